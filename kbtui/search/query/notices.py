"""What people are told of the index, and of the queue of models that read it for meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.search.results import IndexStatus

if TYPE_CHECKING:
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.reading import ReadingQueue
    from kbtui.search.results import Preparation, State

BY_WORDS = "Searching by words."
"""How a banner ends where no model answers."""
UNPREPARED = "The embedding model isn't prepared."


def status_of(
    store: StateStore, queue: ReadingQueue | None, activity: str, *, synced: bool
) -> IndexStatus:
    """Return the current status; `queue` is None if search by meaning is off."""
    state, message = _state(store, queue, activity, synced=synced)
    files, chunks = store.counts()
    if queue is None:
        return IndexStatus(state, files, chunks, message=message)
    first, left = queue.first, max(0, queue.left(store))
    return IndexStatus(
        state, files, chunks, first.embedded, message, first.name, left, remark=first.remark
    )


def _state(
    store: StateStore, queue: ReadingQueue | None, activity: str, *, synced: bool
) -> tuple[State, str]:
    if activity or not synced:
        return "syncing", activity
    if queue is None or queue.first.state == "failed":
        return "lexical-only", by_words(queue.message) if queue else ""
    if not queue.first.is_ready:
        return "preparing", preparing(None, queue.standing_in)
    if queue.left(store):
        return "embedding", _progress(store, queue)
    return "ready", ""


def notice_of(store: StateStore, queue: ReadingQueue) -> str:
    """Return the notice for a search while search by meaning is incomplete, or ``""``."""
    if queue.message:
        return by_words(queue.message)
    if not queue.first.is_ready:
        return preparing(queue.preparation, queue.standing_in)
    if not queue.left(store):
        return ""
    if queue.preparation is not None and queue.preparation.why:
        return f"{_percentage(store, queue)} % is read for meaning. {queue.preparation.why}"
    return f"{_progress(store, queue)}."


def by_words(why: str) -> str:
    """Return the notice that no model answers, and why; empty if that is."""
    return f"{why} {BY_WORDS}" if why else ""


def preparing(found: Preparation | None, standing_in: str = "") -> str:
    """Return the notice while the configured model isn't loaded.

    Args:
        found: How far its preparation is; None if this process prepares it.
        standing_in: The name of the model that answers meanwhile; empty if none does.
    """
    if found is not None and found.state != "preparing":
        until = f"{standing_in} answers until then." if standing_in else BY_WORDS
        return f"{found.why or UNPREPARED} {until}"
    where = "" if found is None else " in the background"
    meanwhile = f"{standing_in} answers" if standing_in else "searching by words"
    return f"Preparing the embedding model{where}, once; {meanwhile} meanwhile."


def _progress(store: StateStore, queue: ReadingQueue) -> str:
    left = queue.left(store)
    if left < 0:
        return "Reading for meaning"
    done = f"Reading for meaning: {_percentage(store, queue)} %"
    estimate = queue.pace.left(left)
    return f"{done}, {estimate}" if estimate else done


def _percentage(store: StateStore, queue: ReadingQueue) -> int:
    """Return the percentage of passages with a vector."""
    return 100 * queue.first.embedded // max(1, queue.first.embedded + queue.left(store))
