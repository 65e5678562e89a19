"""Writes the results of a run: proposals to the inbox, everything else as one commit.

Proposals are stored first. A crash in between is harmless: the batch is processed again, and an
identical proposal isn't stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin, Sink, is_derived
from kbtui.history.history import History
from kbtui.history.merging.tree_merge import Conflict, Resolution
from kbtui.history.queries.diff import FileDiff, diff_files
from kbtui.memory.dream.reading import ArchiveBatch
from kbtui.memory.dream.report import DreamReport, Kind, Suggestion
from kbtui.memory.edits.working_copy import FileProposal, WorkingCopy
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.committing import committed
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.services import Services
from kbtui.text import counted

_MAX_DETAILS = 12


class Writer:
    """Writes the results of runs; the caller holds the memory lock."""

    def __init__(self, services: Services, cursors: Cursors, inbox: Inbox) -> None:
        self._services = services
        self._cursors = cursors
        self._inbox = inbox

    def write(
        self, batch: ArchiveBatch, copy: WorkingCopy, model: str, done: Sequence[str]
    ) -> DreamReport:
        """Commit all edits together with the cursor; the reason lists what was `done`.

        Without entries nothing was read, and no cursor moves. If a file was changed meanwhile, the
        operations are redone on its new text. Raises as `committed`.
        """
        origin = Origin(model=model, cursor=batch.cursor if batch.entries else None)

        def work(change: Change) -> tuple[Suggestion, ...]:
            self._services.library.refresh()
            now = copy.replay(careful=copy.careful)
            suggestions = tuple(
                _suggestion(wish, proposal) for wish, proposal in now.propose(self._inbox, origin)
            )
            now.stage(change)
            if now.ungrounded:
                self._record_ungrounded(change, batch, now.ungrounded)
            if batch.entries:
                seen = self._cursors.stage(change, batch.entries)
                self._services.archive.compact(change, seen)
            return suggestions

        suggestions, commit = committed(
            self._services.history,
            self._services.workspace,
            Actor.DREAM,
            _reason(batch, copy, done),
            origin,
            work,
        )
        diffs = changed_by(self._services.history, commit.id) if commit else ()
        unchanged: Kind = "read" if batch.entries else "nothing"
        kind: Kind = "changed" if diffs else "proposed" if suggestions else unchanged
        return DreamReport(
            kind,
            len(batch.entries),
            batch.remaining,
            commit.id if commit else None,
            diffs,
            suggestions,
        )

    def _record_ungrounded(self, change: Change, batch: ArchiveBatch, lines: Iterable[str]) -> None:
        origin = change.origin
        when = batch.entries[-1].timestamp
        self._services.archive.stage(
            change, "", session=None, messages=None, timestamp=when, not_grounded=lines
        )
        change.origin = origin

    def preview(self, batch: ArchiveBatch, copy: WorkingCopy) -> DreamReport:
        """Return what `write` would do."""
        suggestions = [
            _suggestion(wish)
            for wish in copy.file_proposals()
            if wish.texts
            if not self._inbox.was_rejected(Actor.DREAM, wish.texts, wish.before)
        ]
        return DreamReport(
            "dry-run",
            len(batch.entries),
            batch.remaining,
            diffs=diff_files(copy.files.before, copy.files.changed),
            suggestions=tuple(suggestions),
        )


def changed_by(history: History, commit: str) -> tuple[FileDiff, ...]:
    """Return what a commit changed, without bookkeeping files."""
    return tuple(diff for diff in history.changes_of(commit) if not is_derived(diff.path))


def _suggestion(wish: FileProposal, proposal: str = "") -> Suggestion:
    new = {path: None if text is None else text.encode() for path, text in wish.texts.items()}
    return Suggestion(wish.why, diff_files(wish.before, new), proposal)


def _reason(batch: ArchiveBatch, copy: WorkingCopy, done: Sequence[str]) -> str:
    cursors = sorted(entry.cursor for entry in batch.entries)
    entries = f"entry {cursors[0]}" if cursors else ""
    if len(cursors) > 1:
        entries = f"entries {cursors[0]} to {cursors[-1]}"
    details = list(dict.fromkeys(done))
    if len(details) > _MAX_DETAILS:
        details[_MAX_DETAILS:] = [f"and {len(details) - _MAX_DETAILS} more"]
    if copy.ungrounded:
        details.append(f"left out {counted(len(copy.ungrounded), 'line')} that nobody had said")
    if copy.proposed:
        details.append("what it would change in your own lines waits in the inbox")
    what = f"read archive {entries}" if entries else "tidied up"
    return f"Dream {what}: {'; '.join(details) or 'nothing had to change'}."


# Earlier runs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DreamChange:
    """A commit of Dream, and what it did to each file."""

    commit: Commit
    diffs: tuple[FileDiff, ...]


class DreamLog:
    """Dream's part of the history; `standing` returns why Dream isn't running."""

    def __init__(self, history: History, standing: Callable[[], str]) -> None:
        self._history = history
        self._standing = standing

    def idle(self) -> str:
        """Return why there is nothing newer: the last run changed nothing, or what waits."""
        last = next(iter(self._history.log(actor=Actor.DREAM, limit=1)), None)
        only_read = last is not None and all(is_derived(each.path) for each in last.paths)
        return f"{last.body} {self._standing()}" if last and only_read else self._standing()

    def log(self, limit: int = 10) -> list[Commit]:
        """Return Dream's newest changes, without runs that only read."""
        return list(islice(self._changes(), limit))

    def show(self, rev: str | None = None, command: str = "kbtui dream") -> DreamChange:
        """Return one change, by default the newest; `command` is how the user can run Dream.

        Raises:
            NotFoundError: There is no such commit, or Dream has changed nothing yet.
            UsageError: Somebody else made it.
        """
        commit = self._latest(command) if rev is None else self._dream_commit(rev)
        return DreamChange(commit, changed_by(self._history, commit.id))

    def preview(self, rev: str, *, whole: bool = False) -> tuple[FileDiff, ...]:
        """Return what `restore`, or `restore_all`, would change; raises as they do."""
        commit = self._dream_commit(rev).id
        if whole:
            return self._history.restore_before_preview(commit)
        changes: list[Change] = []
        self._history.undo(commit, sink=changes.append)
        return self._history.preview(changes[0])

    def restore(
        self,
        rev: str,
        *,
        decisions: Mapping[Conflict, Resolution] | None = None,
        sink: Sink | None = None,
    ) -> Commit | None:
        """Take back exactly what a change of Dream did; what was written later stays.

        Raises:
            NotFoundError: There is no such commit.
            UsageError: Somebody else made it, or nothing of it is left.
            UndoConflictError: Its lines were changed again; nothing is done.
        """
        return self._history.undo(self._dream_commit(rev).id, decisions=decisions, sink=sink)

    def restore_all(self, rev: str) -> Commit | None:
        """Restore everything durable to before a change of Dream; None if it is so already.

        Raises:
            NotFoundError: There is no such commit.
            UsageError: Somebody else made it.
            ConflictError: A file was changed at that moment; nothing is done.
        """
        return self._history.restore_before(self._dream_commit(rev).id)

    def _changes(self) -> Iterator[Commit]:
        for commit in self._history.log(actor=Actor.DREAM):
            if not all(is_derived(change.path) for change in commit.paths):
                yield commit

    def _latest(self, command: str) -> Commit:
        latest = next(self._changes(), None)
        if latest is None:
            why = self.idle()
            raise NotFoundError(f"Dream has changed nothing yet. {why}", f"`{command}` lets it.")
        return latest

    def _dream_commit(self, rev: str) -> Commit:
        commit = self._history.commit(rev)
        if commit.actor is not Actor.DREAM:
            raise UsageError(
                f"{commit.id[:10]} was made by {commit.actor}, not by Dream.",
                "The history (F4) and `kbtui restore --to-before` go back to before any commit.",
            )
        return commit
