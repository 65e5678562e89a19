"""The catalogue: INDEX.md for people, and the part of it that goes into each prompt.

Up to 1,000 entries INDEX.md is written in the same change that altered a name or a summary. Above
that it holds the categories and 300 entries, each category has an INDEX.md of its own, and all of
them are written a little later: when nothing was changed for a moment, after half a minute at the
latest, or on leaving. They are never merged, only generated again.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.objects.commit import Actor
from kbtui.knowledge import catalog_text
from kbtui.knowledge.catalog_text import ROOT_INDEX
from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.info import EntryInfo, info_of
from kbtui.knowledge.shelf import is_on_shelf
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge.shelf import Shelf
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)

AT_ONCE = 1_000
CHOSEN = 300
IDLE_SECONDS = 3.0
LATEST_SECONDS = 30.0
TITLE = "Knowledge Index"


@dataclass(slots=True)
class _Pending:
    """A rewrite that is due: since when, and whose change asked for it."""

    since: float
    actor: Actor


class Catalog:
    """Writes the INDEX.md files of one workspace."""

    def __init__(self, workspace: Workspace, history: History, shelf: Shelf) -> None:
        self._workspace = workspace
        self._history = history
        self._shelf = shelf
        self._lock = threading.RLock()
        self._pending: _Pending | None = None
        self._timer: threading.Timer | None = None

    def companion(self, change: Change) -> None:
        """Add the new INDEX.md to a change that alters a name or a summary."""
        edits = {
            path: data
            for path, data in change.edits.items()
            if path.startswith("knowledge/") and is_on_shelf(path)
        }
        if edits:
            self._follow(change, edits)

    def _follow(self, change: Change, edits: Mapping[str, bytes | None]) -> None:
        large = max(self._shelf.count(), sum(data is not None for data in edits.values())) > AT_ONCE
        if large and change.adopted:
            self._postpone(change.actor)
            return
        altered = self._altered(edits, adopted=change.adopted)
        if not altered:
            return
        if not large:
            known = {info.path: info for info in self._shelf.infos()}
            merged = {**known, **altered}.values()
            infos = _sorted(info for info in merged if info is not None)
            if len(infos) <= AT_ONCE:
                self._write_small(change, infos)
                return
        self._postpone(change.actor)

    def flush(self) -> Commit | None:
        """Write what was postponed; None when there was nothing to do."""
        with self._lock:
            pending, self._pending = self._pending, None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        if pending is None and not self._mark.exists():
            return None
        if not self._workspace.writable:
            return None
        actor = pending.actor if pending else Actor.YOU
        infos = self._shelf.infos()
        with self._history.change(actor, "bring the index up to date") as change:
            if len(infos) > AT_ONCE:
                self._write_large(change, infos)
            else:
                self._write_small(change, infos)
        self._mark.unlink(missing_ok=True)
        return change.result

    def close(self) -> None:
        """Write what is pending; where that is impossible now, the next process does it."""
        try:
            self.flush()
        except KbtuiError as error:
            log.info("the index is written later: %s", error)

    def public_text(self, path: str, text: str, *, names_private: bool = False) -> str:
        """The text of an INDEX.md, as if there were no private entries.

        It is made anew: the file may still say what an entry said before it became private.

        Args:
            path: Which one.
            text: What stands in it.
            names_private: Say that private entries are there, but nothing of what they say.
        """
        infos = [info for info in self._shelf.infos() if names_private or not info.private]
        category = path.removeprefix("knowledge/").removesuffix("INDEX.md").rstrip("/")
        if not catalog_text.is_ours(text):
            return text
        if category:
            block = catalog_text.category_index(i for i in infos if i.category == category)
            return catalog_text.merged(text, catalog_text.heading(category), block)
        block = catalog_text.small_index(infos)
        if len(infos) > AT_ONCE:
            groups = catalog_text.by_category(infos)
            counts = {name: len(entries) for name, entries in groups.items()}
            block = catalog_text.large_index(counts, self._chosen(infos))
        return catalog_text.merged(text, TITLE, block)

    def _altered(
        self, edits: Mapping[str, bytes | None], *, adopted: bool
    ) -> dict[str, EntryInfo | None]:
        """The edited entries whose line in the catalogue is another one now.

        Of adopted edits the old text isn't at hand any more: they all count.
        """
        now = time.time_ns()
        altered: dict[str, EntryInfo | None] = {}
        for path, data in edits.items():
            old = None if adopted else self._old_line(path)
            info = None
            if data is not None:
                info = info_of(parse_entry(path, data), len(data), now)
            if adopted or old != (catalog_text.entry_line(info) if info else None):
                altered[path] = info
        return altered

    def _old_line(self, path: str) -> str | None:
        info = self._shelf.peek(path)
        if info is not None:
            return catalog_text.entry_line(info)
        try:
            data = files.read_bytes(self._workspace.root, path)
        except NotFoundError:
            return None
        return catalog_text.entry_line(info_of(parse_entry(path, data), len(data), 0))

    def _write_small(self, change: Change, infos: Sequence[EntryInfo]) -> None:
        self._put(change, ROOT_INDEX, TITLE, catalog_text.small_index(infos))
        for category in {info.category for info in infos} - {""}:
            path = f"knowledge/{category}/INDEX.md"
            existing = _text(change.read(path))
            if existing is not None and catalog_text.is_generated_only(existing):
                change.delete(path)

    def _write_large(self, change: Change, infos: Sequence[EntryInfo]) -> None:
        groups = catalog_text.by_category(infos)
        counts = {category: len(entries) for category, entries in groups.items()}
        top = catalog_text.large_index(counts, self._chosen(infos))
        self._put(change, ROOT_INDEX, TITLE, top)
        for category, entries in groups.items():
            if category:
                block = catalog_text.category_index(entries)
                path = f"knowledge/{category}/INDEX.md"
                self._put(change, path, catalog_text.heading(category), block)

    def _put(self, change: Change, path: str, title: str, block: str) -> None:
        data = change.read(path)
        existing = _text(data)
        if data is not None and existing is None:
            return  # not text that can be added to: the user's, whatever it is
        if data is None and files.twin(self._workspace.root, path):
            return  # beside an index.md of the user's: on many disks the two are one file
        if change.adopted and existing is not None and not catalog_text.is_ours(existing):
            return  # looking at a folder of notes adds nothing to a file in it
        text = catalog_text.merged(existing, title, block)
        if text != existing:
            change.write(path, text)

    def _chosen(self, infos: Sequence[EntryInfo]) -> list[EntryInfo]:
        """The entries that most files link to, and those that changed last, half and half."""
        graph = self._shelf.graph()
        degree = {info.path: graph.degree(info.path) for info in infos}
        linked = sorted(infos, key=lambda info: (-degree[info.path], info.path))
        chosen = [info for info in linked[: CHOSEN // 2] if degree[info.path]]
        taken = {info.path for info in chosen}
        recent = (info for info in by_date(infos) if info.path not in taken)
        return chosen + [info for info, _ in zip(recent, range(CHOSEN - len(chosen)), strict=False)]

    def _postpone(self, actor: Actor) -> None:
        with self._lock:
            now = time.monotonic()
            if self._pending is None:
                self._pending = _Pending(now, actor)
                self._mark.touch(0o600)
            self._pending.actor = actor
            wait = min(IDLE_SECONDS, max(0.0, self._pending.since + LATEST_SECONDS - now))
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(wait, self._flush_later)
            self._timer.daemon = True
            self._timer.start()

    def _flush_later(self) -> None:
        try:
            self.flush()
        except KbtuiError:
            # Somebody else is writing: the mark stays, and the next flush does it.
            self._postpone(Actor.YOU)

    @property
    def _mark(self) -> Path:
        """Tells the next process that this one ended before it wrote the index."""
        return self._workspace.cache / "index-due"


def by_date(infos: Iterable[EntryInfo]) -> list[EntryInfo]:
    """Sort entries by when they were last said to have changed, the newest first."""
    ordered = sorted(infos, key=lambda info: info.path)
    ordered.sort(key=lambda info: (info.updated or info.created or "")[:10], reverse=True)
    return ordered


def _sorted(infos: Iterable[EntryInfo]) -> list[EntryInfo]:
    return sorted(infos, key=lambda info: (info.category.casefold(), info.slug.casefold()))


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
