"""The one door: applies a change so that a crash, a second writer or a full disk loses nothing.

The order is what makes it safe: lock, recover what an earlier crash left, companions, outside
edits first (as the user's own commit), hash checks, redaction, objects, intent, files, branch,
and only then the intent is dropped.
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
from kbtui.history.looking.diff import moves_of, path_changes
from kbtui.history.looking.log import CommitLog
from kbtui.history.objects.commit import (
    FOUND,
    OUTSIDE,
    Actor,
    Changed,
    Commit,
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
from kbtui.listeners import Listeners
from kbtui.redaction.redact import redact
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.durable import TOGETHER, USUAL_MODE, FileBatch, Written, storage_errors
from kbtui.workspace.files import blob_of
from kbtui.workspace.layout import MACHINE, Workspace, conflict_copy_of, folders_of, short_name
from kbtui.workspace.opening import WorkspaceLock
from kbtui.workspace.scan import Scanner

_NOT_ASKED = ""  # what is newest: a commit, or None in an empty history


class CommitEvents:
    """Tells the listeners of one history.

    Args:
        repository: Where the commits are.
        commits: What knows who made them.

    Attributes:
        listeners: Who is told.
        coming: The commit that this process is making, or made last; it tells of that itself.
    """

    def __init__(self, repository: Repository, commits: CommitLog) -> None:
        self.listeners: Listeners[Changed] = Listeners()
        self.coming: str | None = None
        self._repository = repository
        self._commits = commits
        self._told: str | None = _NOT_ASKED

    def note_newest(self) -> None:
        """Take the newest commit for told: it is, or nobody needs to be."""
        self._told = self._repository.head()

    def foreign(self) -> list[Changed]:
        """The commits of others since the listeners were told last, as one event."""
        head, told = self._repository.head(), self._told
        if head in {told, self.coming}:
            return []
        self._told = head
        if head is None or told == _NOT_ASKED:
            return []
        try:
            paths = {path for path, _, _ in self._repository.compare(told, head)}
        except NotFoundError:  # a purge has taken it away
            paths = set(self._repository.files(head))
        actor = self._commits.commit(head).actor
        return [Changed(head, tuple(sorted(paths)), actor)] if paths else []

    def publish(self, events: Iterable[Changed]) -> None:
        """Tell everybody, in this thread."""
        for event in events:
            self.listeners.tell(event)


log = logging.getLogger(__name__)
_REMOVED = f"{MACHINE}/removed.json"
Edits = dict[str, "bytes | None"]
Content = TypeVar("Content", bound="bytes | None")
Redacted = dict[str, "tuple[bytes | None, bytes | None]"]


class OnDemand(Mapping[str, Content]):
    """The contents of files, each read when it is asked for: together they may be gigabytes."""

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
    """Somebody else was faster, and nothing is applied: look again and try once more."""

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
        """The time that a commit made now has."""
        return self._clock()

    def open(self, timeout: float = 5.0) -> tuple[bool, Outcome]:
        """Make or mend the repository and settle what a crash left; was it made, what was left.

        Where there is nothing to do nothing is written: who only reads needs no lock.
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
        """Hold the lock with everything recovered; events put into the list go out afterwards.

        Raises:
            WorkspaceBusyError: Somebody else is writing.
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
        """Make a change's edits one commit, which is its `result` as well; None: nothing differed.

        Raises:
            ConflictError: A file was not what the change expected; nothing is applied, and the
                change's version of it lies beside it.
            WorkspaceBusyError: Somebody else is writing.
            StorageError: The file system refused; nothing is applied.
        """
        if not change.edits:
            return None
        done: Redacted | None = None
        if change.actor.is_machine:  # before others have to wait: a long text takes its time
            held = self._told(change)
            held |= self._read(change.edits.keys() - held.keys())
            done = redact_change(change, held)
        with self.entered() as events:
            change.tell(self._read(change.edits))
            for companion in self.companions:
                companion(change)
            current = self._told(change)
            current |= self._read(change.edits.keys() - current.keys())
            self._adopt_first(current, events)
            if change.actor.is_machine:  # before a refused version is kept in a copy
                redact_change(change, current, done)
            self._check_expected(change, current)
            edits = {path: data for path, data in change.edits.items() if data != current[path]}
            if edits:
                self._check_sizes(edits)
                if change.origin.undoes is None:  # what an undo brings back was there beside it
                    self._check_names(edits, current)
                change.result = self._commit_or_keep(change, edits, current, events)
        return change.result

    def settled(self, paths: Iterable[str], events: list[Changed]) -> Edits:
        """Read files, with outside edits of them recorded; the caller has entered."""
        current = self._read(paths)
        self._adopt_first(current, events)
        return current

    def record(
        self, paths: Iterable[str], events: list[Changed], *, found: bool = False
    ) -> Commit | None:
        """Commit what stands in the files already, as the user's; the caller has entered.

        Companions may add edits of other paths. `found`: it stood there before kbtui came.
        """
        current: Edits = {}
        for path in paths:
            try:
                current[path] = files.read_if_there(self._workspace, path)
            except (StorageError, UnreadableError, UnsafePathError) as problem:
                log.warning("left out of the history: %s", problem)  # the others go on
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

    def bring_in(self, change: Change, onto: str) -> Commit:
        """Commit what a merge makes of our files; the other side is the second parent.

        Args:
            change: Its sealed edits are what both sides together say; companions may add others.
            onto: The commit that the merge was worked out for.

        Raises:
            MovedError: Files or history are different by now; nothing is applied.
        """
        with self._entered_at(onto) as events:
            for companion in self.companions:
                companion(change)
            unseen = {p: data for p, data in change.edits.items() if self._is_kept_out(p)}
            current = self._read(change.edits.keys() - unseen.keys())
            self._check_recorded(current)
            edits = {path: change.edits[path] for path in current}
            edits = {path: data for path, data in edits.items() if data != current[path]}
            self._check_names(edits, current)
            change.result = self._commit(change, edits, current, events, unseen)
            return change.result

    def forward(
        self, onto: str | None, commit: str, actor: Actor = Actor.SYNC, watch: Watch | None = None
    ) -> None:
        """Go on to a commit that somebody else made: the files become what it says.

        `watch` is told how many files of how many are written; what it raises stops that, and then
        nothing is changed.

        Raises:
            MovedError: Files or history are different by now; nothing is applied.
        """
        with self._entered_at(onto) as events:
            every = {path: now for path, _, now in self._repository.compare(onto, commit)}
            blobs = {p: now for p, now in every.items() if not self._is_kept_out(p)}
            current = self._read(blobs)
            self._check_recorded(current)
            self._check_names(blobs, current)
            pairs = {path: (blob_of(current[path]), blob) for path, blob in blobs.items()}
            read = self._repository.read_blob
            written = OnDemand(blobs, lambda path: read(blobs[path] or ""))
            self._put_in_place(Intent(commit, onto, pairs), written, [], watch or _unwatched)
            events.append(Changed(commit, tuple(every), actor))

    # Steps ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _entered_at(self, head: str | None) -> Iterator[list[Changed]]:
        """Hold the lock while the history ends where something was worked out for.

        Raises:
            MovedError: It ends elsewhere, or somebody interferes in the block.
        """
        with self.entered() as events:
            if self._repository.head() != head:
                raise MovedError("The history moved on meanwhile.")
            try:
                yield events
            except ConflictError as conflict:
                raise MovedError(conflict.message, conflict.hint) from conflict

    def _is_kept_out(self, path: str) -> bool:
        """True if what stands here isn't to be recorded: what others make of it isn't written."""
        for each in (path, *folders_of(path)):
            if self._scanner.ignores(each) and files.exists(self._workspace, each):
                return True
        return files.in_the_way(self._workspace, path, self._scanner.recorded())

    def _check_recorded(self, current: Edits) -> None:
        """Refuse to touch files with edits that nobody has recorded."""
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
    def _told(change: Change) -> Edits:
        """What the files of a change's edits held, as far as it has asked, or was told."""
        return {path: change.told[path] for path in change.edits if path in change.told}

    def _adopt_first(self, current: Edits, events: list[Changed]) -> None:
        """Record what was edited outside in the files that a change is about to touch."""
        pending = self._unrecorded(current)
        if pending:
            outside = Change(self._workspace, Actor.YOU, OUTSIDE, Origin(), adopted=True)
            self._commit(outside, {}, current, events, pending)

    def _unrecorded(self, current: Edits) -> Edits:
        """Of the files' contents those that the newest commit doesn't have."""
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
        """Keep the versions that lost beside the ones that stay, and say so."""
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
                copies.append(conflict_copy_of(path, stamp))
                files.write_atomic(self._workspace, copies[-1], data)
        return copies

    @staticmethod
    def _check_sizes(edits: Edits) -> None:
        """Refuse what nobody could read again, here or on another machine."""
        for path, data in edits.items():
            if data is not None and len(data) > files.READ_LIMIT:
                raise UsageError(
                    f"{short_name(path)} would be larger than {files.READ_LIMIT >> 20} MB.",
                    "The history takes no such file. Make several of it.",
                )

    def _check_names(self, edits: Mapping[str, object], current: Edits) -> None:
        """Refuse a new file that not every machine can have beside the others; None: it goes."""
        gone = {path for path, data in edits.items() if data is None}
        new = [path for path in edits.keys() - gone if current[path] is None]
        twins = files.twins(self._workspace, new)
        for path in sorted(new):
            if trouble := files.name_trouble(path):
                raise UnsafePathError(
                    f"{clean_line(path)!r} is no name that every machine can have: {trouble}.",
                    "Choose another name.",
                )
            if way := self._in_the_way(path, gone):
                raise UsageError(
                    f"There can be no {short_name(path)}: {way}.", "Choose another name."
                )
            other = twins.get(path)
            if other is not None and other not in gone:
                raise UsageError(
                    f"{short_name(path)} differs from {short_name(other)} only in case.",
                    "On many disks these are one file. Choose another name.",
                )

    def _in_the_way(self, path: str, gone: Container[str]) -> str:
        """Say which recorded file that stays makes one of this name impossible."""
        above = self._repository.blobs_at(self._repository.head(), folders_of(path))
        for folder, blob in above.items():
            if blob is not None and folder not in gone:
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
        """Store, intend, write, move: the part that must survive a crash at any point."""
        in_place = in_place or {}
        head = self._repository.head()
        before = current | self._repository.contents_at(head, in_place)
        commit, raw, objects = self.build(change, head, before, in_place | written)
        intent = Intent(commit.id, head, _blob_pairs(current, written))
        self._put_in_place(intent, written, objects, change.watch)
        self._log.note(commit.id, raw, commit.paths)
        paths = tuple(path.path for path in commit.paths)
        old_paths = tuple(path.old_path for path in commit.paths if path.old_path)
        events.append(Changed(commit.id, paths, change.actor, old_paths, written))
        return commit

    def _put_in_place(
        self,
        intent: Intent,
        written: Mapping[str, bytes | None],
        objects: list[GitObject],
        watch: Watch,
    ) -> None:
        """Store objects, write files, move the branch; a failure leaves all as it was."""
        placed: Mapping[str, Written] = {}
        with storage_errors("Can't record the change"):
            self._repository.store(objects)
            try:
                self._intents.write(intent)  # without files too: it tells whose lock was left
                if written:
                    self._intents.note_folders(intent)
                    placed = self._write_files(intent, written, watch)
                self.events.coming = intent.commit
                self._repository.branch.move(intent.parent, intent.commit)
            except BaseException:  # an interrupt as well must not leave half a change
                self._take_back(intent)
                raise
        self._intents.fold_up(intent, done=True)
        self._intents.clear()
        for path, file in placed.items():
            self._scanner.note(path, intent.paths[path][1] or "", file)

    def build(
        self,
        change: Change,
        parent: str | None,
        before: Edits,
        edits: Edits,
        when: datetime | None = None,
    ) -> tuple[Commit, RawCommit, list[GitObject]]:
        """Make the commit of some edits and all objects that it needs; nothing is stored.

        Args:
            change: Who makes it, why, and from what.
            parent: What it stands on.
            before: What each path of the edits held there.
            edits: What it holds afterwards.
            when: Its time; None: now.
        """
        paths = path_changes(before, edits)
        moves = moves_of(before, edits, paths)
        blobs = {
            path: git_object(b"blob", data) for path, data in edits.items() if data is not None
        }
        ids = {path: blobs[path].id if path in blobs else None for path in edits}
        root = self._repository.read_commit(parent).tree if parent else None
        tree, trees = update_tree(root, {**ids, **change.beside}, self._repository.read_tree)
        subject = describe(paths) if paths else clean_line(change.reason)
        message = write_message(subject, change.reason, change.actor, change.origin, moves)
        author, when = author_of(change.actor), when or self._clock()
        data = encode_commit(tree, parent, author, when, message, also=change.brings)
        made = git_object(b"commit", data)
        for stored, entries in trees.items():
            self._repository.remember_tree(stored.id, entries)
        raw = decode_commit(data)
        return read_commit(made.id, raw, paths), raw, [*blobs.values(), *trees, made]

    def _write_files(
        self, intent: Intent, written: Mapping[str, bytes | None], watch: Watch
    ) -> Mapping[str, Written]:
        """Write the files and tell them as they were written.

        Deletions come first, for a name may change only its case.
        """

        def check(path: str, folder: int, name: str) -> None:
            self._check_untouched(path, intent.paths[path][0], (folder, name))

        gone = [path for path in written if intent.paths[path][1] is None]
        kept = [path for path in written if intent.paths[path][1] is not None]
        watch(0, len(written))
        new = [path for path in kept if intent.paths[path][0] is None]
        known = self._removed() if gone or new else {}
        with FileBatch(self._workspace, known=known) as batch:
            for path in gone:
                self._check_untouched(path, intent.paths[path][0])
                _, mode = self._remember(path, batch, known)
                if len(gone) == len(new) == 1:  # a note that gets another name stays as it is
                    known.setdefault(new[0], (new[0].rpartition("/")[2], mode))
                batch.remove(path)
            for start in range(0, len(kept), TOGETHER):
                watch(len(gone) + start, len(written))
                some = OnDemand(kept[start : start + TOGETHER], lambda p: written[p] or b"")
                batch.write_together(some, just_before=check)
            watch(len(written), len(written))
            batch.sync()
            return batch.written

    def _removed(self) -> dict[str, tuple[str, int]]:
        """Name and mode of removed files where they weren't as usual, for when they come back."""
        try:
            read = json.loads((self._workspace.root / _REMOVED).read_bytes())
            return {
                path: (name, mode & 0o777)
                for path, (name, mode) in read.items()
                if normalize("NFC", name) == path.rpartition("/")[2]
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _check_untouched(
        self, path: str, expected: str | None, place: tuple[int, str] | None = None
    ) -> None:
        """Look once more, just before a file is replaced: editors outside know no lock.

        `place` is its folder, where that is open, and its name there.
        """
        if place is None:
            data = files.read_if_there(self._workspace, path)
        else:
            data = files.read_in(*place, path)
        if blob_of(data) != expected:
            raise ConflictError(f"{path} was changed just now.", paths=(path,))

    def _remember(
        self, path: str, batch: FileBatch, known: dict[str, tuple[str, int]]
    ) -> tuple[str, int]:
        """Keep the name and mode of a file that is about to be removed, if they aren't as usual."""
        usual = path.rpartition("/")[2], USUAL_MODE
        try:
            folder, name = batch.place(path)
            mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return usual
        if (name, mode) != known.get(path, usual):
            known[path] = name, mode
            files.write_machine_file(self._workspace, _REMOVED, json.dumps(known).encode())
        return name, mode

    def _take_back(self, intent: Intent) -> None:
        """Put the files back after a failure; if even that fails, the next start does it."""
        if self._repository.head() == intent.commit:
            return  # the branch has moved; only its sync failed, so the intent stays
        try:
            self._repository.branch.clear_lock(intent.commit)
            self._intents.roll_back(intent)
            self._intents.sweep(intent)
            self._intents.fold_up(intent, done=False)
            self._intents.clear()
        except OSError:
            log.exception("could not take change %s back; the next start will", intent.commit)


def redact_change(change: Change, current: Edits, done: Redacted | None = None) -> Redacted:
    """Take secrets out of what a machine adds; what the user had written stays.

    Args:
        change: Its edits and its reason are put right.
        current: What each path of the edits holds now.
        done: What this returned before, when it put the reason right; where both sides of a file
            are the same still it isn't done again.

    Returns:
        What each path held, and holds after the change.
    """
    if done is None:
        change.reason = redact(change.reason).text
    for path, data in list(change.edits.items()):
        old = current[path]
        if data is None or data == old or (done and done.get(path) == (old, data)):
            continue
        decoded = files.decode(data)
        kept = "" if old is None else files.text_of(old)
        redaction = redact(decoded.text, keep=kept)
        if redaction.found:
            change.replace(path, redaction.text.encode(decoded.encoding, "replace"))
            kinds = ", ".join(sorted({finding.kind for finding in redaction.found}))
            log.warning("kept a secret (%s) out of %s", kinds, path)
    return {path: (current[path], data) for path, data in change.edits.items()}


def _unwatched(_done: int, _total: int) -> None:
    return


def _blob_pairs(current: Edits, written: Edits) -> dict[str, tuple[str | None, str | None]]:
    return {path: (blob_of(current[path]), blob_of(data)) for path, data in written.items()}
