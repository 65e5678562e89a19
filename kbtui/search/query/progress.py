"""Says how far the index is, in words for a person."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kbtui.search.results import IndexStatus, State

if TYPE_CHECKING:
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.semantic import Semantic

PREPARING = "Preparing the embedding model, once; searching by words meanwhile."
_MINUTE = 60
_LEAST_SECONDS = 3.0


class Pace:
    """Estimates how long something takes from how fast it went so far."""

    def __init__(self) -> None:
        self._started = 0.0
        self._first_left = 0

    def left(self, left: int) -> str:
        """How long `left` more will take, as people say it; empty while that isn't known."""
        now = time.monotonic()
        if not self._started or left > self._first_left:
            self._started, self._first_left = now, left
        done, passed = self._first_left - left, now - self._started
        if not left or not done or passed < _LEAST_SECONDS:
            return ""
        seconds = left * passed / done
        if seconds < _MINUTE:
            return "under a minute left"
        return f"about {round(seconds / _MINUTE)} min left"


def status_of(
    store: StateStore, meaning: Semantic | None, activity: str, *, synced: bool
) -> IndexStatus:
    """The status as it is now; without `meaning` only words are searched."""
    state, message = _state(store, meaning, activity, synced=synced)
    embedded = meaning.embedded if meaning else 0
    name = meaning.name if meaning else ""
    return IndexStatus(state, *store.counts(), embedded, message, name)


def notice_of(store: StateStore, meaning: Semantic) -> str:
    """What a search says of the model, where it isn't all there."""
    if meaning.message:
        return meaning.message
    if meaning.state == "ready":
        return f"{_embedding(store, meaning)}." if meaning.left(store) else ""
    return PREPARING


def _state(
    store: StateStore, meaning: Semantic | None, activity: str, *, synced: bool
) -> tuple[State, str]:
    if activity or not synced:
        return "syncing", activity
    if meaning is None or meaning.state == "failed":
        return "lexical-only", meaning.message if meaning else ""
    if meaning.state != "ready":
        return "preparing", PREPARING
    if meaning.left(store):
        return "embedding", _embedding(store, meaning)
    return "ready", ""


def _embedding(store: StateStore, meaning: Semantic) -> str:
    left = meaning.left(store)
    if left < 0:
        return "Reading for meaning"
    whole = meaning.embedded + left
    done = f"Reading for meaning: {100 * meaning.embedded // max(1, whole)} %"
    estimate = meaning.pace.left(left)
    return f"{done}, {estimate}" if estimate else done
