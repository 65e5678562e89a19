"""The write path: applies a change so that a crash, a second writer or a full disk loses nothing.

Safety comes from the order of steps: take the lock, recover what an earlier crash left, run
companions, commit outside edits (as the user's own), check hashes, redact, write objects, write the
intent, write files, move the branch, and only then remove the intent.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeVar
from unicodedata import normalize

from kbtui.errors import (
    ConflictError,
    NotFoundError,
    StorageError,
    UnreadableError,
    UnsafePathError,
    UsageError,
)
from kbtui.history.change import Change, Watch
from kbtui.history.intent import Intent, IntentLog, Outcome
from kbtui.history.objects.commit import (
    FOUND,
    OUTSIDE,
    Actor,
    Changed,
    Commit,
    Edits,
    Origin,
    RawCommit,
    author_of,
    decode_commit,
    describe,
    encode_commit,
    read_commit,
    write_message,
)
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import GitObject, git_object, update_tree
from kbtui.history.queries.diff import moves_of, path_changes
from kbtui.history.queries.log import CommitLog
from kbtui.listeners import Listeners
from kbtui.redaction.redact import redact
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.durable import SYNC_TOGETHER, USUAL_MODE, FileBatch, Written, storage_errors
from kbtui.workspace.files import blob_of
from kbtui.workspace.layout import MACHINE, Workspace, folders_of, short_name
from kbtui.workspace.opening import WorkspaceLock
from kbtui.workspace.scan import Scanner

_UNSET = ""  # unlike None, which is the head of an empty history


class CommitEvents:
    """Notifies the listeners of one history of new commits.

    Args:
        repository: The repository that holds the commits.
        commits: The log, to look up the actor of a commit.

    Attributes:
        listeners: The listeners to notify.
        own_commit: The commit that this process is making or made last; its event is published
            separately.
    """

    def __init__(self, repository: Repository, commits: CommitLog) -> None:
        self.listeners: Listeners[Changed] = Listeners()
        self.own_commit: str | None = None
        self._repository = repository
        self._commits = commits
        self._announced: str | None = _UNSET

    def note_newest(self) -> None:
        """Remember the current head as announced."""
        self._announced = self._repository.head()

    def foreign(self) -> list[Changed]:
        """Return the commits of other processes since the last event, as at most one event."""
        head, announced = self._repository.head(), self._announced
        if head in {announced, self.own_commit}:
            return []
        self._announced = head
        if head is None or announced == _UNSET:
            return []
        try:
            paths = {path for path, _, _ in self._repository.compare(announced, head)}
        except NotFoundError:  # removed by a purge
            paths = set(self._repository.files(head))
        actor = self._commits.commit(head).actor
        return [Changed(head, tuple(sorted(paths)), actor)] if paths else []

    def publish(self, events: Iterable[Changed]) -> None:
        """Notify all listeners, in this thread."""
        for event in events:
            self.listeners.tell(event)


log = logging.getLogger(__name__)
_UNUSUAL_NAMES = f"{MACHINE}/removed.json"
Content = TypeVar("Content", bound="bytes | None")
Redacted = dict[str, "tuple[bytes | None, bytes | None]"]


class OnDemand(Mapping[str, Content]):
    """A lazy mapping from paths to contents, which together may be gigabytes."""

    def __init__(self, paths: Collection[str], read: Callable[[str], Content]) -> None:
        self._paths = paths
        self._read = read

    def __getitem__(self, path: str) -> Content:
        return self._read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class MovedError(ConflictError):
    """Another writer was faster and nothing was applied: read again and retry."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint or "Try again.")


class Door:
    """Applies changes to one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        scanner: Scanner,
        repository: Repository,
        log: CommitLog,
        clock: Callable[[], datetime],
    ) -> None:
        self.companions: list[Callable[[Change], None]] = []
        self._workspace = workspace
        self._scanner = scanner
        self._repository = repository
        self._log = log
        self._clock = clock
        self._lock = WorkspaceLock(workspace)
        self._intents = IntentLog(workspace, repository)
        self.events = CommitEvents(repository, log)

    def now(self) -> datetime:
        """Return the current time, as a commit would record it."""
        return self._clock()

    def open(self, timeout: float = 5.0) -> tuple[bool, Outcome]:
        """Create or repair the repository and recover from a crash.

        If there is nothing to do, it writes nothing and takes no lock, so that a process that only
        reads needs none.

        Returns:
            Whether the repository was created, and the outcome of recovery.
        """
        self._check_writable()
        created = False
        left: Outcome = "none"
        with storage_errors("Can't open the history"):
            if self._intents.pending() or not self._repository.is_prepared():
                with self._lock.hold(timeout):
                    created, left = self._repository.prepare(), self._intents.recover()
        self.events.note_newest()
        return created, left

    @contextlib.contextmanager
    def entered(self, timeout: float = 5.0) -> Iterator[list[Changed]]:
        """Hold the lock, recover from crashes, and publish the yielded list of events at the end.

        Raises:
            WorkspaceBusyError: Another process holds the lock.
            StorageError: The workspace can't be written.
        """
        self._check_writable()
        events: list[Changed] = []
        try:
            with self._lock.hold(timeout):
                if not self._repository.exists:
                    with storage_errors("Can't make the history"):
                        self._repository.prepare()
                self._intents.recover()
                events += self.events.foreign()
                try:
                    yield events
                finally:
                    self.events.note_newest()
        finally:
            self.events.publish(events)

    def apply(self, change: Change) -> Commit | None:
        """Commit a change and return the commit, also as its `result`, or None if nothing differs.

        Raises:
            ConflictError: A file was not what the change expected; nothing is applied, and the
                change's version of it is saved beside it.
            WorkspaceBusyError: Another process holds the lock.
            StorageError: The file system refused; nothing is applied.
        """
        if not change.edits:
            return None
        done: Redacted | None = None
        if change.actor.is_machine:  # outside the lock, since a long text takes time
            held = self._known(change)
            held |= self._read(change.edits.keys() - held.keys())
            done = redact_change(change, held)
        with self.entered() as events:
            change.set_known(self._read(change.edits))
            for companion in self.companions:
                companion(change)
            current = self._known(change)
            current |= self._read(change.edits.keys() - current.keys())
            self._adopt_first(current, events)
            if change.actor.is_machine:  # before a conflict copy may be written
                redact_change(change, current, done)
            self._check_expected(change, current)
            edits = {path: data for path, data in change.edits.items() if data != current[path]}
            if edits:
                self._check_sizes(edits)
                if change.origin.undoes is None:  # what an undo restores existed beside the others
                    self._check_names(edits, current)
                change.result = self._commit_or_keep(change, edits, current, events)
        return change.result

    def settled(self, paths: Iterable[str], events: list[Changed]) -> Edits:
        """Read files, recording their outside edits first; the caller holds the lock."""
        current = self._read(paths)
        self._adopt_first(current, events)
        return current

    def record(
        self, paths: Iterable[str], events: list[Changed], *, found: bool = False
    ) -> Commit | None:
        """Commit the current content of files as the user's; the caller holds the lock.

        Companions may add edits of other paths. `found` means that the files existed before kbtui
        first saw the folder.
        """
        current: Edits = {}
        for path in paths:
            try:
                current[path] = files.read_if_there(self._workspace, path)
            except (StorageError, UnreadableError, UnsafePathError) as problem:
                log.warning("left out of the history: %s", problem)
        in_place = self._unrecorded(current)
        if not in_place:
            return None
        reason = FOUND if found else OUTSIDE
        change = Change(self._workspace, Actor.YOU, reason, Origin(), adopted=True)
        change.seal(in_place)
        for companion in self.companions:
            companion(change)
        added = [path for path in change.edits if path not in in_place]
        current |= self._read(added)
        self._adopt_first({path: current[path] for path in added}, events)
        written = {p: change.edits[p] for p in added if change.edits[p] != current[p]}
        return self._commit(change, written, current, events, in_place)

    def commit_merge(self, change: Change, onto: str) -> Commit:
        """Commit the result of a merge, with the other side as the second parent.

        Args:
            change: Its sealed edits are the merged contents; companions may add others.
            onto: The head that the merge was computed for.

        Raises:
            MovedError: Files or history have changed since; nothing is applied.
        """
        with self._entered_at(onto) as events:
            for companion in self.companions:
                companion(change)
            skipped = {p: data for p, data in change.edits.items() if self._is_blocked(p)}
            current = self._read(change.edits.keys() - skipped.keys())
            self._check_recorded(current)
            edits = {path: change.edits[path] for path in current}
            edits = {path: data for path, data in edits.items() if data != current[path]}
            self._check_names(edits, current)
            change.result = self._commit(change, edits, current, events, skipped)
            return change.result

    def forward(
        self, onto: str | None, commit: str, actor: Actor = Actor.SYNC, watch: Watch | None = None
    ) -> None:
        """Fast-forward the files and the branch to a commit made elsewhere.

        `watch` is told the number of files written, of how many; an exception in it cancels the
        update, and then nothing is changed.

        Raises:
            MovedError: Files or history have changed since; nothing is applied.
        """
        with self._entered_at(onto) as events:
            every = {path: now for path, _, now in self._repository.compare(onto, commit)}
            blobs = {p: now for p, now in every.items() if not self._is_blocked(p)}
            current = self._read(blobs)
            self._check_recorded(current)
            self._check_names(blobs, current)
            pairs = {path: (blob_of(current[path]), blob) for path, blob in blobs.items()}
            read = self._repository.read_blob
            written = OnDemand(blobs, lambda path: read(blobs[path] or ""))
            self._write_and_move(Intent(commit, onto, pairs), written, [], watch or _no_watch)
            events.append(Changed(commit, tuple(every), actor))

    # Steps ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _entered_at(self, head: str | None) -> Iterator[list[Changed]]:
        """Hold the lock while the head is still `head`.

        Raises:
            MovedError: The head differs, or a conflict occurs in the block.
        """
        with self.entered() as events:
            if self._repository.head() != head:
                raise MovedError("The history moved on meanwhile.")
            try:
                yield events
            except ConflictError as conflict:
                raise MovedError(conflict.message, conflict.hint) from conflict

    def _is_blocked(self, path: str) -> bool:
        """Return whether a local file or folder that isn't recorded blocks the path."""
        for each in (path, *folders_of(path)):
            if self._scanner.ignores(each) and files.exists(self._workspace, each):
                return True
        return files.is_blocked(self._workspace, path, self._scanner.recorded())

    def _check_recorded(self, current: Edits) -> None:
        """Raise `MovedError` if a file has edits that aren't recorded yet."""
        if self._unrecorded(current):
            raise MovedError("A file was edited meanwhile.")

    def _check_writable(self) -> None:
        if not self._workspace.writable:
            raise StorageError(
                f"The workspace {self._workspace.root} is read-only.",
                "Reading and searching work. To change something, make the folder writable or"
                " copy it to where you may write.",
            )

    def _read(self, paths: Iterable[str]) -> Edits:
        return dict(files.read_each(self._workspace, paths))

    @staticmethod
    def _known(change: Change) -> Edits:
        """Return the previous contents of the edited files, as far as the change knows them."""
        return {path: change.known[path] for path in change.edits if path in change.known}

    def _adopt_first(self, current: Edits, events: list[Changed]) -> None:
        """Record outside edits of the files that a change is about to write."""
        pending = self._unrecorded(current)
        if pending:
            outside = Change(self._workspace, Actor.YOU, OUTSIDE, Origin(), adopted=True)
            self._commit(outside, {}, current, events, pending)

    def _unrecorded(self, current: Edits) -> Edits:
        """Return those contents that differ from the newest commit."""
        recorded = self._repository.blobs_at(self._repository.head(), current)
        return {path: data for path, data in current.items() if blob_of(data) != recorded[path]}

    def _check_expected(self, change: Change, current: Edits) -> None:
        lost = [
            path
            for path, expected in change.expected.items()
            if blob_of(current[path]) != expected and change.edits[path] != current[path]
        ]
        if lost:
            raise self._conflict({path: change.edits[path] for path in lost})

    def _conflict(self, lost: Edits) -> ConflictError:
        """Save the rejected versions as conflict copies, and return the error that names them."""
        copies = self._keep_copies(lost)
        names = ", ".join(short_name(path) for path in lost)
        kept = f" Your version is kept in {', '.join(copies)}." if copies else ""
        return ConflictError(
            f"{names} was changed by somebody else meanwhile.{kept}",
            "Read it again, and apply the change to what it says now.",
            paths=tuple(lost),
        )

    def _keep_copies(self, versions: Edits) -> list[str]:
        stamp = self._clock().strftime("%Y%m%dT%H%M%S%f")[:-3]
        copies = []
        for path, data in versions.items():
            if data is not None:
                blob = files.blob_id(data)
                copies.append(files.free_conflict_copy(self._workspace, path, stamp, blob))
                files.write_atomic(self._workspace, copies[-1], data)
        return copies

    @staticmethod
    def _check_sizes(edits: Edits) -> None:
        """Refuse files that are too large to be read again, here or on another machine."""
        for path, data in edits.items():
            if data is not None and len(data) > files.READ_LIMIT:
                raise UsageError(
                    f"{short_name(path)} would be larger than {files.READ_LIMIT >> 20} MB.",
                    "The history takes no such file. Make several of it.",
                )

    def _check_names(self, edits: Mapping[str, object], current: Edits) -> None:
        """Refuse new files whose names some operating systems can't store; None is a deletion."""
        gone = {path for path, data in edits.items() if data is None}
        new = [path for path in edits.keys() - gone if current[path] is None]
        twins = files.twins(self._workspace, new)
        folders = {folder for path in new for folder in folders_of(path)}
        above = self._repository.blobs_at(self._repository.head(), folders)
        in_the_way = {folder for folder, blob in above.items() if blob is not None} - gone
        for path in sorted(new):
            if trouble := files.name_trouble(path):
                raise UnsafePathError(
                    f"{clean_line(path)!r} is no name that every machine can have: {trouble}.",
                    "Choose another name.",
                )
            if obstacle := self._obstacle(path, in_the_way, gone):
                raise UsageError(
                    f"There can be no {short_name(path)}: {obstacle}.", "Choose another name."
                )
            other = twins.get(path)
            if other is not None and other not in gone:
                raise UsageError(
                    f"{short_name(path)} differs from {short_name(other)} only in case.",
                    "On many disks these are one file. Choose another name.",
                )

    def _obstacle(self, path: str, in_the_way: Collection[str], gone: Container[str]) -> str:
        """Describe the recorded file or folder that makes a name impossible, if any.

        Files `in_the_way` are recorded where some of the new names have a folder.
        """
        for folder in folders_of(path):
            if folder in in_the_way:
                return f"{short_name(folder)} is a file, and no folder"
        below = f"{path}/"
        if files.is_folder(self._workspace, path) and any(
            other.startswith(below) and other not in gone for other in self._scanner.recorded()
        ):
            return "it is a folder"
        return ""

    def _commit_or_keep(
        self, change: Change, edits: Edits, current: Edits, events: list[Changed]
    ) -> Commit:
        try:
            return self._commit(change, edits, current, events)
        except ConflictError as conflict:
            lost = {path: edits[path] for path in conflict.paths if path in edits}
            if not lost:
                raise
            raise self._conflict(lost) from conflict

    def _commit(
        self,
        change: Change,
        written: Edits,
        current: Edits,
        events: list[Changed],
        in_place: Edits | None = None,
    ) -> Commit:
        """Store objects, write intent and files, move the branch; safe to crash at any point."""
        in_place = in_place or {}
        head = self._repository.head()
        before = current | self._repository.contents_at(head, in_place)
        commit, raw, objects = self.build(change, head, before, in_place | written)
        intent = Intent(commit.id, head, _blob_pairs(current, written))
        self._write_and_move(intent, written, objects, change.watch)
        self._log.note(commit.id, raw, commit.paths)
        paths = tuple(path.path for path in commit.paths)
        old_paths = tuple(path.old_path for path in commit.paths if path.old_path)
        events.append(Changed(commit.id, paths, change.actor, old_paths, written))
        return commit

    def _write_and_move(
        self,
        intent: Intent,
        written: Mapping[str, bytes | None],
        objects: list[GitObject],
        watch: Watch,
    ) -> None:
        """Store objects, write files and move the branch; restore everything on failure."""
        placed: Mapping[str, Written] = {}
        with storage_errors("Can't record the change"):
            self._repository.store(objects)
            try:
                self._intents.write(intent)  # even without files: it identifies the branch's lock
                if written:
                    self._intents.note_folders(intent)
                    placed = self._write_files(intent, written, watch)
                self.events.own_commit = intent.commit
                self._repository.branch.move(intent.parent, intent.commit)
            except BaseException:  # an interrupt must not leave half a change either
                self._restore(intent)
                raise
        self._intents.remove_empty_folders(intent, done=True)
        self._intents.clear()
        self._scanner.note_all({path: intent.paths[path][1] or "" for path in placed}, placed)

    def build(
        self,
        change: Change,
        parent: str | None,
        before: Edits,
        edits: Edits,
        when: datetime | None = None,
    ) -> tuple[Commit, RawCommit, list[GitObject]]:
        """Build the commit of some edits and all objects that it needs, without storing them.

        Args:
            change: The actor, reason and origin.
            parent: The parent commit.
            before: The content of each path in the parent.
            edits: The new content of each path.
            when: The time of the commit; None for now.
        """
        paths = path_changes(before, edits)
        moves = moves_of(before, edits, paths)
        blobs = {
            path: git_object(b"blob", data) for path, data in edits.items() if data is not None
        }
        ids = {path: blobs[path].id if path in blobs else None for path in edits}
        root = self._repository.read_commit(parent).tree if parent else None
        tree, trees = update_tree(root, {**ids, **change.foreign}, self._repository.read_tree)
        subject = describe(paths) if paths else clean_line(change.reason)
        message = write_message(subject, change.reason, change.actor, change.origin, moves)
        author, when = author_of(change.actor), when or self._clock()
        data = encode_commit(tree, parent, author, when, message, also=change.second_parent)
        made = git_object(b"commit", data)
        for stored, entries in trees.items():
            self._repository.remember_tree(stored.id, entries)
        raw = decode_commit(data)
        return read_commit(made.id, raw, paths), raw, [*blobs.values(), *trees, made]

    def _write_files(
        self, intent: Intent, written: Mapping[str, bytes | None], watch: Watch
    ) -> Mapping[str, Written]:
        """Write and delete files, and return their states as written.

        Deletions come first, because a rename may change only the case of a name.
        """

        def check(path: str, folder: int, name: str) -> None:
            self._check_unmodified(path, intent.paths[path][0], (folder, name))

        gone = [path for path in written if intent.paths[path][1] is None]
        kept = [path for path in written if intent.paths[path][1] is not None]
        watch(0, len(written))
        new = [path for path in kept if intent.paths[path][0] is None]
        known = self._unusual_names() if gone or new else {}
        with FileBatch(self._workspace, known=known) as batch:
            for path in gone:
                self._check_unmodified(path, intent.paths[path][0])
                _, mode = self._save_name_and_mode(path, batch, known)
                if len(gone) == len(new) == 1:  # a renamed note keeps its mode
                    known.setdefault(new[0], (new[0].rpartition("/")[2], mode))
                batch.remove(path)
            for start in range(0, len(kept), SYNC_TOGETHER):
                watch(len(gone) + start, len(written))
                some = OnDemand(kept[start : start + SYNC_TOGETHER], lambda p: written[p] or b"")
                batch.write_together(some, just_before=check)
            watch(len(written), len(written))
            batch.sync()
            return batch.written

    def _unusual_names(self) -> dict[str, tuple[str, int]]:
        """Read the unusual names and modes of removed files, for when they are restored."""
        try:
            read = json.loads((self._workspace.root / _UNUSUAL_NAMES).read_bytes())
            return {
                path: (name, mode & 0o777)
                for path, (name, mode) in read.items()
                if normalize("NFC", name) == path.rpartition("/")[2]
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _check_unmodified(
        self, path: str, expected: str | None, place: tuple[int, str] | None = None
    ) -> None:
        """Check a file again just before it is replaced: other editors don't take the lock.

        `place` is the descriptor of its folder, if that is open, and its name there.
        """
        if place is None:
            data = files.read_if_there(self._workspace, path)
        else:
            data = files.read_in(*place, path)
        if blob_of(data) != expected:
            raise ConflictError(f"{path} was changed just now.", paths=(path,))

    def _save_name_and_mode(
        self, path: str, batch: FileBatch, known: dict[str, tuple[str, int]]
    ) -> tuple[str, int]:
        """Save the name and mode of a file that is about to be removed, if they are unusual."""
        usual = path.rpartition("/")[2], USUAL_MODE
        try:
            folder, name = batch.place(path)
            mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return usual
        if (name, mode) != known.get(path, usual):
            known[path] = name, mode
            files.write_machine_file(self._workspace, _UNUSUAL_NAMES, json.dumps(known).encode())
        return name, mode

    def _restore(self, intent: Intent) -> None:
        """Restore the files after a failure; if even that fails, the next start does it."""
        if self._repository.head() == intent.commit:
            return  # the branch has moved; only its sync failed, so the intent stays
        try:
            self._repository.branch.clear_lock(intent.commit)
            self._intents.roll_back(intent)
            self._intents.sweep(intent)
            self._intents.remove_empty_folders(intent, done=False)
            self._intents.clear()
        except OSError:
            log.exception("could not take change %s back; the next start will", intent.commit)


def redact_change(change: Change, current: Edits, done: Redacted | None = None) -> Redacted:
    """Redact secrets in what a machine adds; text that was there before stays.

    Args:
        change: The change, whose edits and reason are redacted in place.
        current: The current content of each edited path.
        done: The result of an earlier call, which redacted the reason; of files that are unchanged
            since, only the lines that were added to the change meanwhile are looked at.

    Returns:
        The content of each path before and after the change.
    """
    if done is None:
        change.reason = redact(change.reason).text
    for path, data in list(change.edits.items()):
        old = current[path]
        before, seen = done.get(path, (None, None)) if done else (None, None)
        is_seen = seen is not None and before == old
        if data is None or data == old or (is_seen and data == seen):
            continue
        decoded = files.decode(data)
        redaction = redact(decoded.text, keep=files.text_of(seen if is_seen else old))
        if redaction.found:
            change.replace(path, files.encoded_as(redaction.text, decoded))
            kinds = ", ".join(sorted({finding.kind for finding in redaction.found}))
            log.warning("kept a secret (%s) out of %s", kinds, path)
    return {path: (current[path], data) for path, data in change.edits.items()}


def _no_watch(_done: int, _total: int) -> None:
    return


def _blob_pairs(current: Edits, written: Edits) -> dict[str, tuple[str | None, str | None]]:
    return {path: (blob_of(current[path]), blob_of(data)) for path, data in written.items()}
