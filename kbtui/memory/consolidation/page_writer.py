"""Writes what a page leaves behind as one commit: archive entry, MEMORY.md and entries.

Proposals are stored before the commit: a crash in between costs nothing, since the page is then
condensed again and the same proposal is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.memory.consolidation.live_edits import live_edits
from kbtui.memory.edits.drafting import Drafting, Edits, Said
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.edits.merging import is_said
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import absolute_dates, without_stamp
from kbtui.memory.records.ranges import holds
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.consolidation.live_edits import LiveEdits
    from kbtui.memory.consolidation.page import Page
    from kbtui.memory.edits.subjects import Subjects
    from kbtui.memory.inbox.inbox import Inbox
    from kbtui.memory.records.archive import Archive
    from kbtui.memory.records.extraction import Extraction
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.workspace.layout import Workspace

RAW = "[RAW]"


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written of a page: its archive entry's cursor, the commit, the proposals' ids."""

    cursor: int
    commit: str
    proposals: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class MemoryWriter:
    """Writes pages. Whoever calls it holds the memory lock."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        archive: Archive,
        inbox: Inbox,
        tombstones: Tombstones,
        subjects: Subjects,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._library = library
        self._archive = archive
        self._inbox = inbox
        self._drafting = Drafting(workspace, history, library, subjects, tombstones)

    def live_edits(self, page: Page) -> LiveEdits:
        """What was done with entries and MEMORY.md while a page was said (decision 13)."""
        return live_edits(self._history, self._inbox, page)

    def memory_text(self) -> str:
        """MEMORY.md as it is; empty where there is none."""
        try:
            return files.read_text(self._workspace.root, MEMORY)
        except NotFoundError:
            return ""

    def save(self, page: Page, extraction: Extraction, model: str) -> Saved | None:
        """Write an extraction; None where another process has archived the page meanwhile.

        Raises:
            WorkspaceBusyError: somebody else kept writing.
            ConflictError: the files kept changing; nothing is written.
            StorageError: the file system refused; nothing is written.
        """
        if self._is_archived(page):
            return None
        origin = self._origin(page, model)
        live = self.live_edits(page)
        content = absolute_dates(without_stamp(extraction.history_entry), page.day)

        def work(change: Change) -> Saved:
            self._library.refresh()
            said = page.said
            context = Said(
                page.day,
                said,
                live.files,
                lambda fact: live.is_removed(fact, said) or is_said(fact, live.waiting),
            )
            edits = self._drafting.edits(context, extraction)
            proposals = tuple(self._propose(edits, origin))
            cursor = self._stage(change, page, content)
            for path, text in edits.texts.items():
                before = edits.before[path]
                blob = None if before is None else files.blob_id(before)
                change.write(path, text, expecting=blob)
            return Saved(cursor, "", proposals, tuple(edits.notices))

        first, last = page.range
        reason = f"Archived messages {first} to {last} of {page.session}."
        return self._committed(reason, origin, work)

    def save_raw(self, page: Page, model: str, why: str) -> Saved | None:
        """Write a page whole, where no model could condense it; see `save`."""
        if self._is_archived(page):
            return None
        content = f"{RAW} {page.shown} messages\n{page.text.rstrip()}"

        def work(change: Change) -> Saved:
            return Saved(self._stage(change, page, content, raw=True), "")

        return self._committed(f"Archived whole. {why}", self._origin(page, model), work)

    def _committed(self, reason: str, origin: Origin, work: Callable[[Change], Saved]) -> Saved:
        root = self._workspace.root
        saved, commit = committed(self._history, root, Actor.CONSOLIDATOR, reason, origin, work)
        if commit is None:
            raise AssertionError("an archive entry is always new")
        return replace(saved, commit=commit.id)

    def _stage(self, change: Change, page: Page, content: str, *, raw: bool = False) -> int:
        cursor = self._archive.stage(
            change,
            content,
            session=page.session,
            messages=page.range,
            timestamp=page.timestamp,
            raw=raw,
            dropped=page.dropped,
        )
        change.origin = replace(change.origin, cursor=cursor)
        return cursor

    def _propose(self, edits: Edits, origin: Origin) -> Iterable[str]:
        """Store what is only proposed, unless the user has rejected that before."""
        for path, (why, text) in edits.proposals.items():
            proposal = self._inbox.add_unless_rejected(
                Actor.CONSOLIDATOR,
                f"An update of {short_name(path)} waits for you: {why}.",
                {path: text.removeprefix("\ufeff")},
                origin=origin,
                bases=edits.before,
            )
            if proposal is not None:
                yield proposal.id

    def _is_archived(self, page: Page) -> bool:
        covered = self._archive.covered(page.session)
        return any(holds(covered, message.id) for message in page.messages)

    def _origin(self, page: Page, model: str) -> Origin:
        return Origin(session=page.session, messages=page.range, model=model)
