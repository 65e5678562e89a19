"""The main object of the package, `History`: every write goes through it, and every query.

See `door` for the order of steps that makes a write safe.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from kbtui.clock import local_now
from kbtui.errors import NotFoundError, StorageError, UsageError, WorkspaceBusyError
from kbtui.history.adoption import (
    Adoption,
    MassDeletionError as MassDeletionError,
    OutsideEdits as OutsideEdits,
)
from kbtui.history.change import Actor, Change, Commit, Origin, Sink, Watch
from kbtui.history.door import Door
from kbtui.history.objects.commit import RESTORED
from kbtui.history.objects.packing import Packing
from kbtui.history.objects.repository import Repository, plain_environment as plain_environment
from kbtui.history.proposals import Proposals
from kbtui.history.queries.blame import Blame, LineOrigin as LineOrigin
from kbtui.history.queries.diff import FileDiff, diff_file
from kbtui.history.queries.log import CommitLog
from kbtui.history.queries.reader import (
    ForeignHistory as ForeignHistory,
    HistoryReader as HistoryReader,
    is_repository as is_repository,
    open_foreign as open_foreign,
    read_version,
)
from kbtui.history.undo import Undo, rewind
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kbtui.history.intent import Outcome
    from kbtui.history.merging.line_merge import Conflict, Resolution
    from kbtui.history.objects.commit import Changed
    from kbtui.history.objects.lineage import Soundness
    from kbtui.history.sync.purge import Purge
    from kbtui.history.sync.remote import Address, SyncWatcher
    from kbtui.history.sync.sync import SyncReport, SyncRules
    from kbtui.history.undo import UndoPlan
    from kbtui.redaction.secret import Secret
    from kbtui.workspace.layout import Workspace
    from kbtui.workspace.scan import Scanner

    Decisions = Mapping[Conflict, Resolution]


_OPEN_TIMEOUT = 0.5  # the timeout in seconds for the lock when opening


@dataclass(frozen=True, slots=True)
class OpenReport:
    """The result of `History.open`: whether the repository is new, and the outcome of recovery."""

    created: bool
    recovered: Outcome


class History(HistoryReader):
    """The history of one workspace.

    Args:
        workspace: The workspace.
        scanner: The scanner, which knows the files' hashes.
        clock: Returns the time for commits, timezone-aware.

    Attributes:
        proposals: The changes that wait for a decision.
    """

    def __init__(
        self, workspace: Workspace, scanner: Scanner, clock: Callable[[], datetime] = local_now
    ) -> None:
        self._workspace = workspace
        self._scanner = scanner
        self._clock = clock
        repository = Repository(workspace.repository, workspace.confirm)
        super().__init__(repository, CommitLog(workspace.cache, repository))
        self._door = Door(workspace, scanner, self._repository, self._log, clock)
        self.proposals = Proposals(workspace, repository, self._log, self._door, clock)
        self._undo = Undo(workspace, self._repository, self._log)
        self._adoption = Adoption(workspace, scanner, self._repository, self._door)
        self._blame = Blame(self._repository, self._log, workspace.cache / "blame.sqlite")

    def open(self) -> OpenReport:
        """Create or check the repository, and recover from a crash.

        Does nothing in a read-only workspace, or while another process is writing, since a writer
        recovers first and reading can begin.

        Raises:
            WorkspaceBusyError: Another process is writing, and there is no repository yet.
            StorageError: The file system refused.
        """
        if not self._workspace.writable:
            return OpenReport(created=False, recovered="none")
        try:
            report = OpenReport(*self._door.open(_OPEN_TIMEOUT if self._repository.exists else 5.0))
        except WorkspaceBusyError:
            if not self._repository.exists:
                raise
            return OpenReport(created=False, recovered="none")
        machine = self._workspace.machine
        below = [folder for folder in machine.iterdir() if folder.is_dir()]
        for folder in (machine, *below, self._workspace.sessions, self._workspace.root):
            sweep(folder)
        return report

    # Writing -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def change(
        self,
        actor: Actor,
        reason: str,
        origin: Origin = Origin(),  # noqa: B008
        sink: Sink | None = None,
    ) -> Iterator[Change]:
        """Collect edits in the block; at its end they become one commit, `Change.result`.

        An exception in the block discards them. See `Change.write` for conflicts.

        Args:
            actor: The author of the change.
            reason: The reason; the body of the commit.
            origin: The session, turn, model etc. that it comes from.
            sink: Receives the change instead of it being committed, such as `proposals.add`.

        Raises:
            ConflictError: A file was not what the change expected; both versions are kept.
            WorkspaceBusyError: Another process held the lock for 5 seconds.
            StorageError: The file system refused; nothing was changed.
        """
        change = Change(self._workspace, actor, reason, origin)
        yield change
        if change.edits:
            (sink or self._door.apply)(change)

    def apply(self, change: Change, watch: Watch = lambda _done, _total: None) -> Commit | None:
        """Commit a change that a sink received; None if nothing differs. Raises like `change`.

        Args:
            change: The collected change; refused if a file isn't what it was then.
            watch: Receives the number of files written, of how many; may raise `StoppedError`,
                after which nothing is changed.
        """
        change.watch = watch
        return self._door.apply(change)

    def preview(self, change: Change, limit: int | None = None) -> tuple[FileDiff, ...]:
        """Return what a collected change would do to up to `limit` of the current files."""
        return tuple(
            diff_file(path, files.read_if_there(self._workspace, path), change.edits[path])
            for path in sorted(change.edits)[:limit]
        )

    @contextlib.contextmanager
    def alone(self, timeout: float = 5.0) -> Iterator[None]:
        """Lock out everybody else from writing, proposing and deciding for the block.

        Raises:
            WorkspaceBusyError: Another process is writing.
            StorageError: The workspace can't be written.
        """
        with self._door.entered(timeout):
            yield

    # Listening and adopting ----------------------------------------------------------------

    def add_companion(self, companion: Callable[[Change], None]) -> None:
        """Let `companion` add edits to every change before it is committed.

        Companions run in the order of registration, under the lock. They also receive adopted
        changes (`Change.adopted`), whose own paths they can't alter.
        """
        self._door.companions.append(companion)

    def subscribe(self, listener: Callable[[Changed], None]) -> Callable[[], None]:
        """Call `listener` after each commit, in the writing thread.

        Return a function to unsubscribe.
        """
        return self._door.events.listeners.add(listener)

    def adopt(
        self,
        *,
        timeout: float = 0.2,
        settle: float = 1.0,
        confirmed: bool = False,
        whole: bool = False,
    ) -> Commit | None:
        """Record outside edits as the user's own change.

        Listeners are also notified of what other processes have recorded since.

        Args:
            timeout: Seconds to wait for the lock; if it is busy, nothing is done.
            settle: Seconds without changes after which a file counts as finished; a younger one is
                waited for once.
            confirmed: Whether the user has confirmed a deletion of many entries.
            whole: Record new pictures and other attachments however large they are in total.

        Raises:
            MassDeletionError: More than 30 % of the entries were deleted; this is not recorded, but
                everything else is.
            StorageError: The file system refused.
        """
        self._workspace.confirm()
        self._door.events.publish(self._door.events.foreign())
        return self._adoption.adopt(timeout, settle, confirmed=confirmed, whole=whole)

    def undo(
        self,
        rev: str,
        *,
        paths: Sequence[str] = (),
        hunk: int | None = None,
        actor: Actor = Actor.YOU,
        decisions: Decisions | None = None,
        origin: Origin | None = None,
        sink: Sink | None = None,
    ) -> Commit | None:
        """Undo exactly what a commit did; later changes stay as they are.

        Args:
            rev: The commit.
            paths: Only these of its files.
            hunk: Only this hunk, counted from 1 through the chosen files in the order of
                `changes_of`.
            actor: The actor that undoes.
            decisions: Decisions about the conflicts of an earlier attempt.
            origin: The origin of the undo, if it is to be recorded.
            sink: Receives the change instead of it being committed; the result is None then.

        Raises:
            UndoConflictError: The same lines were changed again. Nothing was changed; `conflicts`
                has a `line_merge.Conflict` for each undecided one.
            UsageError: Nothing is left to undo, or there is no such path or hunk.
        """
        self._workspace.confirm()
        plan = self._undo.of_commit(self.resolve(rev), paths, hunk, decisions)
        return self._apply_undo(_with_origin(plan, origin), actor, sink)

    def last_change(self) -> Commit:
        """Return the newest change that can be undone: see `Undo.last`."""
        return self._undo.last(self.log())

    def undo_turn(
        self, turn: str, *, decisions: Decisions | None = None, sink: Sink | None = None
    ) -> Commit | None:
        """Undo everything that a turn changed, as one commit; raises like `undo`."""
        self._workspace.confirm()
        commits = self._log.commits_of("turn", turn)
        return self._apply_undo(self._undo.of_several(commits, decisions), Actor.YOU, sink)

    def undo_batch(
        self, batch: str, *, decisions: Decisions | None = None, sink: Sink | None = None
    ) -> Commit | None:
        """Undo all of a batch (an import, a run of Dream) as one commit; raises like `undo`."""
        self._workspace.confirm()
        commits = self._log.commits_of("batch", batch)
        return self._apply_undo(self._undo.of_several(commits, decisions), Actor.YOU, sink)

    def standing(self, batch: str) -> list[Commit]:
        """Return the commits of a batch that aren't undone, newest first."""
        return self._undo.standing([*self.log(batch=batch)])

    def restore(self, path: str, at: str) -> Commit | None:
        """Restore a file to its content in a commit; None if it has it already.

        Raises:
            NotFoundError: There was no such file, or there is no such commit.
        """
        self._workspace.confirm()
        path = files.checked_path(path)
        commit = self.resolve(at)
        data = read_version(self._repository, commit, path)
        with self.change(Actor.YOU, f"{RESTORED}{commit[:10]}.") as change:
            change.write(path, data)
            change.restores = commit
        return change.result

    def restore_preview(self, path: str, at: str) -> tuple[FileDiff, ...]:
        """Return what `restore` would change; raises the same errors."""
        path = files.checked_path(path)
        data = read_version(self._repository, self.resolve(at), path)
        now = files.read_if_there(self._workspace, path)
        return () if now == data else (diff_file(path, now, data),)

    def restore_before(
        self, rev: str, *, actor: Actor = Actor.YOU, sink: Sink | None = None
    ) -> Commit | None:
        """Restore every durable file to the state before a commit; None if all have it already.

        Unrecorded edits are recorded first, so nothing is lost. The archive, the tombstones and
        how far Dream has read stay; see `rewind`.

        Raises:
            NotFoundError: There is no such commit.
            UsageError: It is the first one.
            ConflictError: A file was changed at this moment; nothing is done.
        """
        self._workspace.confirm()
        commit = self.commit(rev)
        with contextlib.suppress(MassDeletionError):  # the missing files are to be restored
            self.adopt(timeout=5.0, settle=0.0)
        back = rewind(self._repository, commit, self._working_tree())
        with self.change(actor, back.reason, sink=sink) as change:
            for path in back.paths:
                now, then = back.now.get(path), back.then.get(path)
                if then is None:
                    change.delete(path, expecting=now)
                else:
                    change.write(path, self._repository.read_blob(then), expecting=now)
        return change.result

    def restore_before_preview(self, rev: str) -> tuple[FileDiff, ...]:
        """Return what `restore_before` would change; raises the same errors."""
        back = rewind(self._repository, self.commit(rev), self._working_tree())
        return self._compare(back.now, back.then, [])

    def _apply_undo(self, plan: UndoPlan, actor: Actor, sink: Sink | None) -> Commit | None:
        with self.change(actor, plan.reason, plan.origin, sink) as change:
            change.restores = plan.restores
            for path, data in plan.edits.items():
                change.put(path, data, over=plan.before[path])
        if change.result is None and sink is None:
            raise UsageError("Nothing is left to undo: it is all taken back already.")
        return change.result

    def sync(
        self,
        address: Address,
        watcher: SyncWatcher | None = None,
        rules: SyncRules | None = None,
        *,
        replace_theirs: bool = False,
    ) -> SyncReport:
        """Sync with another history: see `sync.Sync.run`, also for errors."""
        from kbtui.history.sync.remote import SyncWatcher
        from kbtui.history.sync.sync import Sync, SyncRules

        if not self._workspace.writable:
            raise StorageError("The workspace is read-only: it can't be synced.")
        self._workspace.confirm()
        sync = Sync(
            self._workspace,
            self._repository,
            self._door,
            self._adoption,
            self._scanner,
            rules or SyncRules(),
        )
        return sync.run(address, watcher or SyncWatcher(), replace_theirs=replace_theirs)

    def check(self, tell: Callable[[str], None] = lambda _: None) -> Soundness:
        """Verify every object of the history, also with git if it is installed."""
        from kbtui.history.objects.lineage import check_history

        return check_history(self._repository, tell)

    def find_secret(self, secret: Secret) -> list[str]:
        """Return the ids of all objects that contain a secret, reachable or not."""
        return self._purge.find(secret) if self._repository.exists else []

    @contextlib.contextmanager
    def purging(self) -> Iterator[Purge]:
        """Hold the lock for a purge, with outside edits recorded.

        Raises:
            WorkspaceBusyError: Another process is writing.
            MassDeletionError: Many entries were deleted, and nobody has confirmed it.
        """
        with self._door.entered():
            self.adopt(timeout=5.0, settle=0.0)
            yield self._purge

    @property
    def _purge(self) -> Purge:
        from kbtui.history.sync.purge import Purge

        return Purge(self._workspace.root, self._repository, self._door, self._clock)

    def tidy(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Pack loose objects if there are many, at idle moments; return the number packed.

        Writers are locked out only for the moment in which packs are exchanged.

        Args:
            stopped: Called for each object; returns whether to cancel without changing anything.

        Raises:
            StorageError: The file system refused; nothing is lost.
        """
        if not self._workspace.writable:
            return 0
        packing = Packing(self._repository, alone=self._door.entered, stopped=stopped)
        with storage_errors("Can't pack the history"), contextlib.suppress(WorkspaceBusyError):
            return packing.run()
        return 0

    # Queries in addition to those of `HistoryReader` --------------------------------------

    def blame(
        self, path: str, at: str | None = None, text: str | None = None
    ) -> tuple[LineOrigin, ...]:
        """Return the commit that wrote each line; lines end only in a line feed.

        Args:
            path: The file.
            at: A revision; None for the current file, including unrecorded lines.
            text: The file's current text, if the caller has read it already.

        Raises:
            NotFoundError: There was or is no such file, or there is no such commit.
        """
        path = files.checked_path(path)
        if at is not None:
            commit = self.resolve(at)
            read_version(self._repository, commit, path)
            return self._blame.at(path, commit)
        if text is None:
            text = files.text_of(files.read_bytes(self._workspace, path))
        return self._blame.of_text(path, text)

    def moments(self) -> Mapping[str, float]:
        """Return the Unix time of each commit on the branch, each earlier than the next one's."""
        return self._log.moments()

    def _working_tree(self) -> dict[str, str]:
        return self._adoption.working_tree()

    def _content(self, path: str, blob: str) -> bytes:
        """Return the content of a blob, which may not be recorded yet."""
        with contextlib.suppress(NotFoundError):
            return self._repository.read_blob(blob)
        return files.read_bytes(self._workspace, path)


def _with_origin(plan: UndoPlan, origin: Origin | None) -> UndoPlan:
    if origin is None:
        return plan
    return replace(plan, origin=replace(origin, undoes=plan.origin.undoes))
