"""Syncing unversioned files: documents and conversations.

If the user wants them synced, they are stored as they are on a branch of their own. Changes are
detected by comparing with the state at the last sync: if both sides changed a log, the longer one
wins if it continues the other; of anything else both versions are kept, one in a copy (for a
conversation, what was added since). The repository here stores the trees but not the contents.
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
from kbtui.history.sync.purge import LAST_SYNC, SUBJECT, PurgedCommits, hidden_name
from kbtui.history.sync.transport import Transport
from kbtui.text import counted, json_object
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, folders_of, with_end
from kbtui.workspace.scan import Scanner

_MASS_MIN, _MASS_SHARE = 3, 0.3
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class UnversionedRules:
    """What to sync besides the history, and its rules.

    Attributes:
        areas: The folders, as workspace paths: docs, sessions.
        hold: Locks a file while it is replaced; raises `KbtuiError` if it can't.
        keeps_apart: Given a path and both versions, returns why they can't be kept side by side, or
            an empty string if they can.
        split: Given a path and both versions, returns the content for the path and for the copy,
            which isn't written if it is empty.
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
    """The result: the numbers of files received and sent, and notes for a person."""

    received: int = 0
    sent: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _LastSync:
    """The last sync: their commit, the blob ids by path, and whether a purge has run since."""

    tip: str = ""
    blobs: Mapping[str, str] = field(default_factory=dict)
    purged: bool = False


class UnversionedSync:
    """Syncs documents and conversations with those at one address."""

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
        self,
        transport: Transport,
        place: str,
        companions: UnversionedRules,
        *,
        replace_theirs: bool,
    ) -> Exchanged:
        """Sync both sides.

        Raises:
            RemoteError: The connection or the other end doesn't work.
            RefusedHistoryError: Their data isn't valid git data, or a file was changed there since
                a purge here.
            MovedError: A file or the other side was changed meanwhile: retry.
        """
        seen = self._seen(place)
        known = [seen.tip] if seen.tip and seen.tip in self._repository else []
        try:
            return self._exchange(transport, place, companions, seen, known, force=replace_theirs)
        except (NotFoundError, RefusedHistoryError):
            if not known:
                raise
            # They assume we have more than we do: a content that is gone by now, or a commit
            # before the only one that we fetched.
            return self._exchange(transport, place, companions, seen, [], force=replace_theirs)

    def _exchange(
        self,
        transport: Transport,
        place: str,
        companions: UnversionedRules,
        seen: _LastSync,
        known: list[str],
        *,
        force: bool,
    ) -> Exchanged:
        is_first = not seen.tip  # then older versions are of no use
        with transport.fetched(known, known, alone=is_first) as (tip, incoming):
            if tip is not None:
                incoming.inspect(tip, contents=False, alone=is_first)
            there = incoming.repository
            tree = there.read_commit(tip).tree if tip else None
            theirs = dict(walk_files(tree, there.read_tree)) if tree else {}
            is_purged = tip is not None and seen.purged
            agreed = {} if is_first or not _descends_from(there, tip, seen.tip) else seen.blobs
            plan = _Plan(self._layout, self._scanner, companions, theirs, agreed)
            self._scanner.sweep()
            plan.make(there.read_blob, is_purged=is_purged, force=force)
            came = self._receive(plan, there, companions)
            if not plan.outgoing and not is_purged:
                new, made = tip, list[GitObject]()
            else:
                parent = None if is_purged else tip
                subject = SUBJECT if is_purged else counted(len(plan.outgoing), "file")
                new, made = self._send(plan, transport, there, tree, tip, parent, subject)
                if is_purged and tip:
                    self._purged.add([tip])
            if new is not None:
                self._remember(place, new, {each.id: each for each in made}, there, plan)
        return Exchanged(came, len(plan.outgoing), tuple(plan.notes()))

    def _receive(self, plan: _Plan, there: Repository, companions: UnversionedRules) -> int:
        """Write the received files and return their number."""
        where = {blob: path for path, blob in plan.ours.items()}
        came = 0
        for path, blob in [*plan.incoming.items()]:
            if plan.is_skipped(path):
                continue
            data = None if blob is None else _content(blob, plan, where, there)
            try:
                with ExitStack() as holding:
                    for each in plan.locked_paths(path):
                        holding.enter_context(companions.hold(each))
                    self._write(path, plan.ours.get(path), data)
            except MovedError:
                raise
            except KbtuiError as error:
                plan.skip(path, error.message.rstrip("."))
                continue
            came += 1
            plan.ours.pop(path, None)
            if blob is not None:
                plan.ours[path] = blob
        return came

    def _write(self, path: str, before: str | None, data: bytes | None) -> None:
        """Replace or delete a file, if it is unchanged."""
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
        """Push a commit with what they lack; return its id, and it with its new trees."""
        root, trees = update_tree(tree, plan.outgoing, there.read_tree)
        author = author_of(Actor.YOU)
        commit = git_object(b"commit", encode_commit(root, parent, author, self._now(), subject))
        lacking = {*plan.outgoing.values()} - {*plan.theirs.values(), None}
        blobs = {blob: path for path, blob in plan.outgoing.items() if blob in lacking}

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
        """Record the common state, and store the trees that later fetches are compared with."""

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
        files.write_machine_file(self._repository.folder, LAST_SYNC, data)

    def _seen(self, place: str) -> _LastSync:
        known = self._all().get(place)
        try:
            return _LastSync(str(known["tip"]), dict(known["blobs"]), bool(known["purged"]))  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            return _LastSync()

    def _all(self) -> dict[str, object]:
        try:
            return json_object((self._repository.folder / LAST_SYNC).read_bytes()) or {}
        except OSError:
            return {}


def _content(blob: str, plan: _Plan, where: Mapping[str, str], there: Repository) -> bytes:
    """Return a received file's content; what was only moved isn't sent, and read from `where`."""
    if blob in plan.made:
        return plan.made[blob]
    is_moved = blob in where and blob not in there
    return plan.read(where[blob], blob) if is_moved else there.read_blob(blob)


def _descends_from(there: Repository, tip: str | None, since: str) -> bool:
    """Return whether their branch descends from a commit, or was restarted by a purge.

    Otherwise it was deleted or reset to an old state, so what it lacks, or has in an older version,
    isn't an intended change.
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
    """What to do with each file: receive it, send it, or leave it as it is on both sides."""

    def __init__(
        self,
        layout: Layout,
        scanner: Scanner,
        companions: UnversionedRules,
        theirs: Mapping[str, str],
        seen: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._seen = seen
        self._companions = companions
        states = scanner.scan(*companions.areas)
        self.ours = {path: state.blob for path, state in states.items()}
        self.theirs = {path: blob for path, blob in theirs.items() if path in companions}
        self.incoming: dict[str, str | None] = {}
        self.outgoing: dict[str, str | None] = {}
        self.made: dict[str, bytes] = {}  # new contents by blob id, which neither side may have yet
        self._skipped: dict[str, str] = {}
        self._both: dict[str, str] = {}  # files changed on both sides, by the path of the copy
        self._back: list[str] = []
        for path, state in states.items():
            if state.size > files.READ_LIMIT:
                self.skip(path, _LARGE)
        for path, why in scanner.left_out(recorded=False).items():
            if path in companions:
                self.skip(path, why)
        self._skip_folders(self.ours, self.theirs)
        self._skip_folders(self.theirs, self.ours)
        for path in self.theirs.keys() | self.ours.keys():
            if why := files.name_trouble(path):
                self.skip(path, f"its name can't be used on every machine: {why}")

    def _skip_folders(self, one: Mapping[str, str], other: Mapping[str, str]) -> None:
        """Leave files that are folders on the other side, and everything in these."""
        folders = {folder for path in other for folder in folders_of(path)}
        for path in {*one} & folders:
            self.skip(path, "it is a folder on the other side")
            for each in [each for each in other if each.startswith(f"{path}/")]:
                self.skip(each, f"{self._layout.file(path)} is a file on the other side")

    def _base(self) -> dict[str, str]:
        """Return the common base, without files deleted here en masse, which are restored."""
        base = {path: blob for path, blob in self._seen.items() if path in self._companions}
        gone = self._gone(base)
        if len(gone) >= _MASS_MIN and len(gone) > _MASS_SHARE * len(base):
            self._back = [path for path in gone if path in self.theirs]
            base = {path: blob for path, blob in base.items() if path in self.ours}
        purged = {path: self._seen.get(hidden_name(path)) for path in self.theirs}
        return base | {path: blob for path, blob in purged.items() if blob is not None}

    def _gone(self, base: Mapping[str, str]) -> list[str]:
        """Return the files of `base` that were deleted here; files that can't be read are left."""
        missing = base.keys() - self.ours.keys() - self._skipped.keys()
        for path in sorted(missing):
            if not self._is_gone(path):
                self.skip(path, "it can't be looked at")
        return [path for path in base if path in missing - self._skipped.keys()]

    def make(self, read: Callable[[str], bytes], *, is_purged: bool, force: bool) -> None:
        """Decide about every file; `read` reads their contents."""
        ours, theirs, base = self.ours, self.theirs, self._base()
        for path in sorted({*ours, *theirs} - {*self._skipped}):
            here, there, was = ours.get(path), theirs.get(path), base.get(path)
            if here == there:
                continue
            if there in (was, None) and here != was:
                self.outgoing[path] = here
            elif here in (was, None):
                self.incoming[path] = there
            elif is_purged and not force:
                raise RefusedHistoryError(
                    f"{self._layout.file(path)} was changed elsewhere since you purged a secret.",
                    "Take over by hand what you need from there, then replace it: `kbtui sync"
                    " --replace`.",
                )
            elif is_purged:
                self.outgoing[path] = here
            else:
                self._resolve(path, here or "", there or "", read)

    def _resolve(self, path: str, here: str, there: str, read: Callable[[str], bytes]) -> None:
        """Resolve a file changed on both sides: keep the longer log, or else both versions."""
        mine, other = self.read(path, here), read(there)
        if other.startswith(mine):
            self.incoming[path] = there
            return
        if why := "" if mine.startswith(other) else self._companions.keeps_apart(path, mine, other):
            self.skip(path, why)
            return
        if mine.startswith(other):
            self.outgoing[path] = here
            return
        versions = self._companions.split(path, mine, other)
        kept, rest = map(files.blob_id, versions)
        self.made |= dict(zip((kept, rest), versions, strict=True))
        folder, _, name = path.rpartition("/")
        copy = f"{folder}/{with_end(name, f'-{rest[:6]}')}"
        to_write = [(copy, rest), (path, kept)]  # the copy first, so that a kill loses neither
        if versions[1]:
            self._both[copy] = path
        else:
            del to_write[0]
        for each, blob in to_write:
            if self.ours.get(each) in (None, here) and blob != self.ours.get(each):
                self.incoming[each] = blob
            if self.theirs.get(each) in (None, there) and blob != self.theirs.get(each):
                self.outgoing[each] = blob

    def locked_paths(self, path: str) -> set[str]:
        """Return the files to lock while one is written: of a copy also its original."""
        return {path, self._both.get(path, path)}

    def is_skipped(self, path: str) -> bool:
        return path in self._skipped

    def skip(self, path: str, why: str) -> None:
        for each in (path, self._both.pop(path, path)):
            self._skipped[each] = why
            self.outgoing.pop(each, None)

    def read(self, path: str, blob: str) -> bytes:
        """Read a file's content, if it still has the scanned one.

        Raises:
            MovedError: It was changed.
        """
        data = files.read_if_there(self._layout, path)
        if data is None or files.blob_id(data) != blob:
            raise MovedError("A file was changed meanwhile.")
        return data

    def agreed(self) -> dict[str, str]:
        """Return the new common state; of files that were left, the previous one."""
        theirs = {**self.theirs, **self.outgoing}
        same = {path: blob for path, blob in self.ours.items() if theirs.get(path) == blob}
        kept = {
            path: blob
            for path, blob in self._seen.items()
            if path in self._skipped or path not in self._companions
        }
        return {**same, **kept}

    def notes(self) -> Iterator[str]:
        """Yield what a person should know, one sentence each."""
        name = self._layout.file
        for path, why in [*self._skipped.items()][:_MAX_SHOWN]:
            yield f"Not synced: {name(path)}: {why}."
        if (more := len(self._skipped) - _MAX_SHOWN) > 0:
            yield f"And {counted(more, 'more file', 'more files')} likewise."
        if self._both:
            copies = ", ".join(map(name, [*self._both][:_MAX_SHOWN]))
            yield f"Changed on both sides, so both versions are there: {copies}."
        if self._back:
            count = counted(len(self._back), "file")
            yield f"{count} were gone here at once and are back. Delete fewer at a time."

    def _is_gone(self, path: str) -> bool:
        try:
            return files.is_gone(self._layout, path)
        except KbtuiError:
            return False
