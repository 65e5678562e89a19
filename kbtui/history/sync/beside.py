"""Documents and conversations on their way to other machines: files without a history of their own.

They travel where a person wants that, as they are, on a branch beside the notes. What both sides
changed is judged by what was there at the last sync: a log that was gone on with is the longer one,
and of anything else both versions stay, one in a copy (of a conversation what was said since). The
repository here keeps names of contents, but none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime

from kbtui.errors import KbtuiError, NotFoundError, RefusedHistoryError, UnreadableError
from kbtui.history.door import MovedError
from kbtui.history.objects.commit import Actor, author_of, encode_commit
from kbtui.history.objects.pack_folder import PackRecord
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import (
    FOLDER,
    GitObject,
    git_object,
    parse_tree,
    update_tree,
    walk_files,
)
from kbtui.history.sync.purge import SEEN_BESIDE, SUBJECT, PurgedCommits, hidden_name
from kbtui.history.sync.transport import Transport
from kbtui.text import counted, json_object
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, folders_of, with_end
from kbtui.workspace.scan import Scanner

_FEW, _MASS = 3, 0.3
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Companions:
    """What travels beside the notes.

    Attributes:
        areas: Its folders, as workspace paths: docs, sessions.
        hold: Keeps others from a file while it is replaced; raises `KbtuiError` where it can't.
        keeps_apart: Says of a file and both its versions why they can't stand beside each other;
            nothing where they can.
        split: What of a file and both its versions keeps the name, and what the copy holds;
            nothing: there is no copy.
    """

    areas: tuple[str, ...]
    hold: Callable[[str], AbstractContextManager[object]]
    keeps_apart: Callable[[str, bytes, bytes], str] = lambda _path, _ours, _theirs: ""
    split: Callable[[str, bytes, bytes], tuple[bytes, bytes]] = lambda _path, ours, theirs: (
        ours,
        theirs,
    )

    def __contains__(self, path: str) -> bool:
        return path.startswith(tuple(f"{area}/" for area in self.areas))


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a sync did with files beside the notes: how many came and went, and what is to say."""

    received: int = 0
    sent: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen:
    """The last sync: their commit, the blobs by path, and whether a purge has been run since."""

    tip: str = ""
    blobs: Mapping[str, str] = field(default_factory=dict)
    purged: bool = False


class Beside:
    """Keeps documents and conversations in step with those at one address."""

    def __init__(
        self,
        layout: Layout,
        repository: Repository,
        scanner: Scanner,
        store: Callable[[Sequence[GitObject]], None],
        now: Callable[[], datetime],
    ) -> None:
        self._layout = layout
        self._repository = repository
        self._scanner = scanner
        self._store = store
        self._now = now
        self._purged = PurgedCommits(layout.root)

    def run(
        self, transport: Transport, place: str, companions: Companions, *, replace_theirs: bool
    ) -> Exchanged:
        """Bring both sides together.

        Raises:
            RemoteError: The way or the other end doesn't work.
            RefusedHistoryError: What they have is none of git's; or after a purge here somebody
                has gone on with what was purged.
            MovedError: A file or the other side was changed meanwhile: try again.
        """
        seen = self._seen(place)
        known = [seen.tip] if seen.tip and seen.tip in self._repository else []
        try:
            return self._exchange(transport, place, companions, seen, known, force=replace_theirs)
        except (NotFoundError, RefusedHistoryError):
            if not known:
                raise
            # They take us to have more than we do: a content that is gone by now, or a commit
            # before the only one that came.
            return self._exchange(transport, place, companions, seen, [], force=replace_theirs)

    def _exchange(
        self,
        transport: Transport,
        place: str,
        companions: Companions,
        seen: _Seen,
        known: list[str],
        *,
        force: bool,
    ) -> Exchanged:
        is_first = not seen.tip  # then no older version is of use
        with transport.fetched(known, known, alone=is_first) as (tip, incoming):
            if tip is not None:
                incoming.inspect(tip, contents=False, alone=is_first)
            there = incoming.repository
            tree = there.read_commit(tip).tree if tip else None
            theirs = dict(walk_files(tree, there.read_tree)) if tree else {}
            is_purged = tip is not None and seen.purged
            agreed = {} if is_first or not _goes_on(there, tip, seen.tip) else seen.blobs
            plan = _Plan(self._layout, self._scanner, companions, theirs, agreed)
            self._scanner.sweep()
            plan.make(there.read_blob, is_purged=is_purged, force=force)
            came = self._take(plan, there, companions)
            if not plan.going and not is_purged:
                new, made = tip, list[GitObject]()
            else:
                parent = None if is_purged else tip
                subject = SUBJECT if is_purged else counted(len(plan.going), "file")
                new, made = self._send(plan, transport, there, tree, tip, parent, subject)
                if is_purged and tip:
                    self._purged.add([tip])
            if new is not None:
                self._remember(place, new, {each.id: each for each in made}, there, plan)
        return Exchanged(came, len(plan.going), tuple(plan.said()))

    def _take(self, plan: _Plan, there: Repository, companions: Companions) -> int:
        """Write what came; how many files it was."""
        where = {blob: path for path, blob in plan.ours.items()}
        came = 0
        for path, blob in [*plan.coming.items()]:
            if plan.is_left(path):
                continue
            data = None
            if blob is not None and blob in plan.made:
                data = plan.made[blob]
            elif blob is not None:
                is_moved = blob in where and blob not in there
                data = plan.read(where[blob], blob) if is_moved else there.read_blob(blob)
            try:
                with ExitStack() as holding:
                    for each in plan.held(path):
                        holding.enter_context(companions.hold(each))
                    self._write(path, plan.ours.get(path), data)
            except MovedError:
                raise
            except KbtuiError as error:
                plan.leave(path, error.message.rstrip("."))
                continue
            came += 1
            plan.ours.pop(path, None)
            if blob is not None:
                plan.ours[path] = blob
        return came

    def _write(self, path: str, before: str | None, data: bytes | None) -> None:
        """Replace or remove a file that is still what it was."""
        if files.blob_of(files.read_if_there(self._layout, path)) != before:
            raise MovedError("A file was changed meanwhile.")
        if data is None:
            files.remove(self._layout, path)
            return
        if len(data) > files.READ_LIMIT:
            raise UnreadableError(_LARGE)
        if before is None and (twin := files.twin(self._layout, path)):
            raise UnreadableError(f"it differs from {self._layout.file(twin)} only in case")
        written = files.write_atomic(self._layout, path, data)
        self._scanner.note(path, files.blob_id(data), written)

    def _send(
        self,
        plan: _Plan,
        transport: Transport,
        there: Repository,
        tree: str | None,
        tip: str | None,
        parent: str | None,
        subject: str,
    ) -> tuple[str, list[GitObject]]:
        """Put what they lack on their branch: the new commit, and it with its new trees."""
        root, trees = update_tree(tree, plan.going, there.read_tree)
        author = author_of(Actor.YOU)
        commit = git_object(b"commit", encode_commit(root, parent, author, self._now(), subject))
        lacking = {*plan.going.values()} - {*plan.theirs.values(), None}
        blobs = {blob: path for path, blob in plan.going.items() if blob in lacking}

        def pack() -> tuple[int, Iterator[PackRecord]]:
            def records() -> Iterator[PackRecord]:
                for each in (commit, *trees):
                    yield PackRecord(each.id, each.kind, each.data)
                for blob, path in blobs.items():
                    yield PackRecord(blob or "", b"blob", plan.read(path, blob or ""))

            return 1 + len(trees) + len(blobs), records()

        transport.push(commit.id, tip, pack)
        return commit.id, [commit, *trees]

    def _remember(
        self, place: str, tip: str, made: Mapping[str, GitObject], there: Repository, plan: _Plan
    ) -> None:
        """Note what both sides have now, and keep the trees that later ones are told apart by."""

        def below(identifier: str) -> Iterator[GitObject]:
            if identifier in kept or identifier in self._repository:
                return
            each = made.get(identifier) or GitObject(identifier, *there.read_object(identifier))
            kept.add(identifier)
            yield each
            for mode, sha in parse_tree(each.data).values():
                if mode == FOLDER:
                    yield from below(sha.hex())

        kept: set[str] = set()
        commit = made.get(tip) or GitObject(tip, *there.read_object(tip))
        root = commit.data[len(b"tree ") :].partition(b"\n")[0].decode()
        self._store([*below(root), commit])
        seen = {"tip": tip, "purged": False, "blobs": plan.agreed()}
        every = {**self._all(), place: seen}
        data = json.dumps(every, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        files.write_machine_file(self._repository.folder, SEEN_BESIDE, data)

    def _seen(self, place: str) -> _Seen:
        known = self._all().get(place)
        try:
            return _Seen(str(known["tip"]), dict(known["blobs"]), bool(known["purged"]))  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            return _Seen()

    def _all(self) -> dict[str, object]:
        try:
            return json_object((self._repository.folder / SEEN_BESIDE).read_bytes()) or {}
        except OSError:
            return {}


def _goes_on(there: Repository, tip: str | None, since: str) -> bool:
    """True if their branch was continued since a commit, or was begun again by a purge.

    Otherwise it was deleted, or taken back to what it was long ago: what it lacks, or has in an
    older version, isn't what somebody wanted.
    """
    while tip != since:
        if tip is None:
            return False
        commit = there.read_commit(tip)
        if not commit.parents:
            return commit.message.startswith(SUBJECT)
        tip = commit.parents[0]
    return True


_LARGE = f"it is larger than {files.READ_LIMIT >> 20} MB"


class _Plan:
    """What becomes of each file: it comes, it goes, or it is left as it is on both sides."""

    def __init__(
        self,
        layout: Layout,
        scanner: Scanner,
        companions: Companions,
        theirs: Mapping[str, str],
        seen: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._seen = seen
        self._companions = companions
        states = scanner.scan(*companions.areas)
        self.ours = {path: state.blob for path, state in states.items()}
        self.theirs = {path: blob for path, blob in theirs.items() if path in companions}
        self.coming: dict[str, str | None] = {}
        self.going: dict[str, str | None] = {}
        self.made: dict[str, bytes] = {}  # contents by their ids, which may be on no side yet
        self._left: dict[str, str] = {}
        self._both: dict[str, str] = {}  # what was changed on both sides, by the name of its copy
        self._back: list[str] = []
        for path, state in states.items():
            if state.size > files.READ_LIMIT:
                self.leave(path, _LARGE)
        for path, why in scanner.left_out(recorded=False).items():
            if path in companions:
                self.leave(path, why)
        self._leave_folders(self.ours, self.theirs)
        self._leave_folders(self.theirs, self.ours)
        for path in self.theirs.keys() | self.ours.keys():
            if why := files.name_trouble(path):
                self.leave(path, f"its name can't be used on every machine: {why}")

    def _leave_folders(self, one: Mapping[str, str], other: Mapping[str, str]) -> None:
        """Leave the files of one side that are folders on the other, and what is in these."""
        folders = {folder for path in other for folder in folders_of(path)}
        for path in {*one} & folders:
            self.leave(path, "it is a folder on the other side")
            for each in [each for each in other if each.startswith(f"{path}/")]:
                self.leave(each, f"{self._layout.file(path)} is a file on the other side")

    def _base(self) -> dict[str, str]:
        """What both sides had, without files that went here in a mass, which come back."""
        base = {path: blob for path, blob in self._seen.items() if path in self._companions}
        gone = self._gone(base)
        if len(gone) >= _FEW and len(gone) > _MASS * len(base):
            self._back = [path for path in gone if path in self.theirs]
            base = {path: blob for path, blob in base.items() if path in self.ours}
        purged = {path: self._seen.get(hidden_name(path)) for path in self.theirs}
        return base | {path: blob for path, blob in purged.items() if blob is not None}

    def _gone(self, base: Mapping[str, str]) -> list[str]:
        """What went here of what there was; what can't be looked at is left as it is."""
        missing = base.keys() - self.ours.keys() - self._left.keys()
        for path in sorted(missing):
            if not self._is_gone(path):
                self.leave(path, "it can't be looked at")
        return [path for path in base if path in missing - self._left.keys()]

    def make(self, read: Callable[[str], bytes], *, is_purged: bool, force: bool) -> None:
        """Decide about every file; `read` reads what they have."""
        ours, theirs, base = self.ours, self.theirs, self._base()
        for path in sorted({*ours, *theirs} - {*self._left}):
            here, there, was = ours.get(path), theirs.get(path), base.get(path)
            if here == there:
                continue
            if there in (was, None) and here != was:
                self.going[path] = here
            elif here in (was, None):
                self.coming[path] = there
            elif is_purged and not force:
                raise RefusedHistoryError(
                    f"{self._layout.file(path)} was changed elsewhere since you purged a secret.",
                    "Take over by hand what you need from there, then replace it: `kbtui sync"
                    " --replace`.",
                )
            elif is_purged:
                self.going[path] = here
            else:
                self._settle(path, here or "", there or "", read)

    def _settle(self, path: str, here: str, there: str, read: Callable[[str], bytes]) -> None:
        """Both sides changed one: of a log the longer one stays, of anything else both."""
        mine, other = self.read(path, here), read(there)
        if other.startswith(mine):
            self.coming[path] = there
            return
        if why := "" if mine.startswith(other) else self._companions.keeps_apart(path, mine, other):
            self.leave(path, why)
            return
        if mine.startswith(other):
            self.going[path] = here
            return
        versions = self._companions.split(path, mine, other)
        kept, rest = map(files.blob_id, versions)
        self.made |= dict(zip((kept, rest), versions, strict=True))
        folder, _, name = path.rpartition("/")
        copy = f"{folder}/{with_end(name, f'-{rest[:6]}')}"
        to_write = [(copy, rest), (path, kept)]  # the copy first: a kill leaves both
        if versions[1]:
            self._both[copy] = path
        else:
            del to_write[0]
        for each, blob in to_write:
            if self.ours.get(each) in (None, here) and blob != self.ours.get(each):
                self.coming[each] = blob
            if self.theirs.get(each) in (None, there) and blob != self.theirs.get(each):
                self.going[each] = blob

    def held(self, path: str) -> set[str]:
        """The files that nobody may use while one is written: of a copy also what it is of."""
        return {path, self._both.get(path, path)}

    def is_left(self, path: str) -> bool:
        """True if a file stays as it is on both sides."""
        return path in self._left

    def leave(self, path: str, why: str) -> None:
        """Leave a file as it is on both sides."""
        for each in (path, self._both.pop(path, path)):
            self._left[each] = why
            self.going.pop(each, None)

    def read(self, path: str, blob: str) -> bytes:
        """A file's content, if it is still the one that was looked at.

        Raises:
            MovedError: It isn't.
        """
        data = files.read_if_there(self._layout, path)
        if data is None or files.blob_id(data) != blob:
            raise MovedError("A file was changed meanwhile.")
        return data

    def agreed(self) -> dict[str, str]:
        """What both sides have now; of what was left as it is, what they had before."""
        theirs = {**self.theirs, **self.going}
        same = {path: blob for path, blob in self.ours.items() if theirs.get(path) == blob}
        kept = {
            path: blob
            for path, blob in self._seen.items()
            if path in self._left or path not in self._companions
        }
        return {**same, **kept}

    def said(self) -> Iterator[str]:
        """What a person should know, one sentence each."""
        name = self._layout.file
        for path, why in [*self._left.items()][:_SHOWN]:
            yield f"Not synced: {name(path)}: {why}."
        if (more := len(self._left) - _SHOWN) > 0:
            yield f"And {counted(more, 'more file', 'more files')} likewise."
        if self._both:
            copies = ", ".join(map(name, [*self._both][:_SHOWN]))
            yield f"Changed on both sides, so both versions are there: {copies}."
        if self._back:
            count = counted(len(self._back), "file")
            yield f"{count} were gone here at once and are back. Delete fewer at a time."

    def _is_gone(self, path: str) -> bool:
        try:
            return files.is_gone(self._layout, path)
        except KbtuiError:
            return False
