"""Writes what a run has come to: proposals into the inbox, everything else as one commit.

Proposals are stored first: a crash in between costs nothing, since the batch is then dreamt about
again, and the same proposal is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.history.change import Actor, Origin
from kbtui.history.looking.diff import diff_file, find_renames
from kbtui.history.objects.commit import is_derived
from kbtui.memory.dream.report import DreamReport, Suggestion
from kbtui.memory.records.committing import committed
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.history.looking.diff import FileDiff
    from kbtui.knowledge.library import Library
    from kbtui.memory.dream.reading import Batch
    from kbtui.memory.dream.report import Kind
    from kbtui.memory.dream.working_copy import Desk, Wish
    from kbtui.memory.inbox.inbox import Inbox
    from kbtui.memory.records.archive import Archive
    from kbtui.memory.records.cursors import Cursors
    from kbtui.workspace.layout import Workspace


class Writer:
    """Writes runs of Dream. Whoever calls it holds the memory lock."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        archive: Archive,
        cursors: Cursors,
        inbox: Inbox,
    ) -> None:
        self._root = workspace.root
        self._history = history
        self._library = library
        self._archive = archive
        self._cursors = cursors
        self._inbox = inbox

    def write(self, batch: Batch, desk: Desk, model: str) -> DreamReport:
        """Make everything one commit, with the cursor in it.

        Where a file was changed meanwhile the operations are done again on what it says now.

        Raises:
            WorkspaceBusyError: somebody else kept writing.
            ConflictError: the files kept changing; nothing is written.
            StorageError: the file system refused; nothing is written.
        """
        origin = Origin(model=model, cursor=batch.cursor)

        def work(change: Change) -> tuple[Suggestion, ...]:
            self._library.refresh()
            now = desk.again(careful=desk.careful)
            suggestions = tuple(self._propose(now, origin))
            for path, data in now.view.changed.items():
                before = now.view.before[path]
                blob = None if before is None else files.blob_id(before)
                if data is None:
                    change.delete(path, expecting=blob)
                else:
                    change.write(path, data, expecting=blob)
            change.repairs.update(desk.repaired)
            seen = self._cursors.stage(change, batch.entries)
            self._archive.compact(change, seen)
            return suggestions

        suggestions, commit = committed(
            self._history, self._root, Actor.DREAM, _reason(batch), origin, work
        )
        diffs = changed_by(self._history, commit.id) if commit else ()
        kind: Kind = "changed" if diffs else "proposed" if suggestions else "read"
        return DreamReport(
            kind,
            len(batch.entries),
            batch.remaining,
            commit.id if commit else None,
            diffs,
            suggestions,
        )

    def preview(self, batch: Batch, desk: Desk) -> DreamReport:
        """What `write` would do."""
        suggestions = [_suggestion(wish) for wish in self._wishes(desk)]
        return DreamReport(
            "dry-run",
            len(batch.entries),
            batch.remaining,
            diffs=_differences(desk.view.before, desk.view.changed),
            suggestions=tuple(suggestions),
        )

    def _propose(self, desk: Desk, origin: Origin) -> Iterator[Suggestion]:
        for wish in self._wishes(desk):
            reason = f"A change by Dream waits for you: {wish.why}."
            proposal = self._inbox.add_unless_rejected(
                Actor.DREAM, reason, wish.texts, origin=origin, bases=wish.before
            )
            if proposal is not None:
                yield _suggestion(wish, proposal.id)

    def _wishes(self, desk: Desk) -> Iterator[Wish]:
        """What to propose: not what the user has rejected before."""
        for wish in desk.wishes():
            rejected = self._inbox.was_rejected(Actor.DREAM, wish.texts, wish.before)
            if wish.texts and not rejected:
                yield wish


def changed_by(history: History, commit: str) -> tuple[FileDiff, ...]:
    """What a commit changed, without the files that only account for what was read."""
    return tuple(diff for diff in history.changes_of(commit) if not is_derived(diff.path))


def _suggestion(wish: Wish, proposal: str = "") -> Suggestion:
    new = {path: None if text is None else text.encode() for path, text in wish.texts.items()}
    return Suggestion(wish.why, _differences(wish.before, new), proposal)


def _differences(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> tuple[FileDiff, ...]:
    added = {p: data for p, data in after.items() if data is not None and before.get(p) is None}
    gone = {p: old for p, data in after.items() if data is None and (old := before.get(p))}
    renames = find_renames(added, gone)
    return tuple(
        diff_file(path, before.get(renames.get(path, path)), data, renames.get(path))
        for path, data in sorted(after.items())
        if path not in renames.values()
    )


def _reason(batch: Batch) -> str:
    cursors = sorted(entry.cursor for entry in batch.entries)
    if len(cursors) == 1:
        return f"Dream read archive entry {cursors[0]}."
    return f"Dream read archive entries {cursors[0]} to {cursors[-1]}."
