"""What a sync does with each document and conversation: receive it, send it, or leave it.

A file that only one side changed goes to the other. What looks like damage goes nowhere, though: a
log that lacks what the other one has, a file that is empty, in part zero bytes, cut or gone. The
other side's version comes back in its place, unless a person removed it. That is known from a
record (`workspace/removals.py`), which a sync keeps in its tree, and which beats every version that
goes on from what was removed.

A file that was deleted by hand leaves no record until the next sync, which makes one. It takes a
file that is gone for deleted by hand if its folder is still there, few others are gone with it, and
nothing else here is damaged: people delete single files, broken disks and interrupted copies don't.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kbtui.errors import KbtuiError, NotFoundError, RefusedHistoryError
from kbtui.history.door import MovedError
from kbtui.history.sync.damage import Log, Verdict, compare_documents, is_blank
from kbtui.text import counted
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, folders_of, with_end
from kbtui.workspace.removals import Content, Removal, hidden_name
from kbtui.workspace.scan import Scanner

_MASS_MIN, _MASS_SHARE = 3, 0.3
_MAX_SHOWN = 5
_LESS = (Verdict.DAMAGED, Verdict.LESS)
_REMOVED = "removed/"
EMPTY_BLOB = files.blob_id(b"")
LARGE = f"it is larger than {files.READ_LIMIT >> 20} MB"


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
        is_log: Returns whether a path is a log, to which lines are only ever appended.
        add: Given a log's path, its content and lines that only another version has, returns the
            content for the path and for the copy, as `split`.
    """

    areas: tuple[str, ...]
    hold: Callable[[str], AbstractContextManager[object]]
    keeps_apart: Callable[[str, bytes, bytes], str] = lambda _path, _ours, _theirs: ""
    split: Callable[[str, bytes, bytes], tuple[bytes, bytes]] = lambda _path, ours, theirs: (
        ours,
        theirs,
    )
    is_log: Callable[[str], bool] = lambda _path: False
    add: Callable[[str, bytes, Sequence[bytes]], tuple[bytes, bytes]] = lambda _path, kept, lines: (
        kept,
        b"".join(line + b"\n" for line in lines),
    )

    def __contains__(self, path: str) -> bool:
        return path.startswith(tuple(f"{area}/" for area in self.areas))


@dataclass(frozen=True, slots=True)
class LastSync:
    """The last sync with a place.

    Attributes:
        tip: Their commit.
        blobs: The blob ids of the files that were the same on both sides, by path.
        purged: Whether a purge has run since.
        sizes: The sizes of these contents, as far as they are logs.
        removals: The names of the removals known to both sides.
    """

    tip: str = ""
    blobs: Mapping[str, str] = field(default_factory=dict)
    purged: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    removals: frozenset[str] = frozenset()


class _Removals:
    """The removals that both sides know, and what this sync changes about them."""

    def __init__(
        self, theirs: Collection[str], agreed: Collection[str], ours: Iterable[Removal]
    ) -> None:
        self.names = {*theirs}
        self.unfounded: set[str] = set()
        self.changes: dict[str, str | None] = {}
        parsed = [each for name in theirs if (each := Removal.parse(name)) is not None]
        self._standing = _by_path(each for each in parsed if each.name in agreed)
        self._came = _by_path(each for each in parsed if each.name not in agreed)
        known = {*theirs, *agreed}
        self._ours = _by_path(each for each in ours if each.name not in known)

    def standing(self, path: str) -> list[Removal]:
        """Return the removals of a file that were known at the last sync already."""
        return self._standing.get(hidden_name(path), [])

    def came(self, path: str) -> list[Removal]:
        """Return the removals of a file that the other side has put there since."""
        return self._came.get(hidden_name(path), [])

    def ours(self, path: str) -> list[Removal]:
        """Return the removals of a file that were made here since."""
        return self._ours.get(hidden_name(path), [])

    def add(self, removals: Iterable[Removal]) -> None:
        """Make removals known to the other side."""
        for each in removals:
            if each.name not in self.names:
                self.names.add(each.name)
                self.changes[_REMOVED + each.name] = EMPTY_BLOB

    def withdraw(self, removals: Iterable[Removal]) -> None:
        """Take removals back, since the file was put there again."""
        for each in removals:
            self.unfounded.add(each.name)
            if each.name in self.names:
                self.names.remove(each.name)
                self.changes[_REMOVED + each.name] = None


def _by_path(removals: Iterable[Removal]) -> dict[str, list[Removal]]:
    found: dict[str, list[Removal]] = {}
    for each in removals:
        found.setdefault(each.path, []).append(each)
    return found


class FilePlan:
    """What to do with each file.

    Args:
        layout: Where the files are.
        scanner: Finds those that are here.
        rules: Which of them to sync, and how.
        tree: The blob ids of all files of the other side, by path.
        seen: The last sync; without a common state if theirs isn't based on it any more.
        removals: What a person removed here, as far as it is known.

    Attributes:
        ours: The blob ids of the files that are here, by path.
        theirs: The same of the other side.
        incoming: The blob ids of the files to write here; None to delete one.
        outgoing: The same for the other side.
        made: New contents by blob id, which neither side may have yet.
        sizes: The sizes of contents by blob id, as far as they are known.
    """

    def __init__(
        self,
        layout: Layout,
        scanner: Scanner,
        rules: UnversionedRules,
        tree: Mapping[str, str],
        seen: LastSync,
        removals: Iterable[Removal] = (),
    ) -> None:
        self._layout = layout
        self._seen = seen
        self._rules = rules
        states = scanner.scan(*rules.areas)
        self.ours = {path: state.blob for path, state in states.items()}
        self.theirs = {path: blob for path, blob in tree.items() if path in rules}
        self.incoming: dict[str, str | None] = {}
        self.outgoing: dict[str, str | None] = {}
        self.made: dict[str, bytes] = {}
        self.sizes = {**seen.sizes, **{state.blob: state.size for state in states.values()}}
        theirs = {path.removeprefix(_REMOVED) for path in tree if path.startswith(_REMOVED)}
        self.removals = _Removals(theirs, seen.removals, removals)
        self._read_theirs: Callable[[str], bytes] = lambda _blob: b""
        self._is_purged_there = False
        self._skipped: dict[str, str] = {}
        self._both: dict[str, str] = {}  # files changed on both sides, by the path of the copy
        self._back: list[str] = []
        self._mended_here: list[str] = []
        self._mended_there: list[str] = []
        self._deleted: list[str] = []  # although they had been gone on with here
        for path, state in states.items():
            if state.size > files.READ_LIMIT:
                self.skip(path, LARGE)
        for path, why in scanner.left_out(recorded=False).items():
            if path in rules:
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
        """Return the common base, without files gone here en masse, which are restored."""
        base = {path: blob for path, blob in self._seen.blobs.items() if path in self._rules}
        gone = [path for path in self._gone(base) if not self._is_deleted(path)]
        if len(gone) >= _MASS_MIN and len(gone) > _MASS_SHARE * len(base):
            self._back = [path for path in gone if path in self.theirs]
            base = {path: blob for path, blob in base.items() if path not in {*gone}}
        return base

    def _gone(self, base: Mapping[str, str]) -> list[str]:
        """Return the files of `base` that were deleted here; files that can't be read are left."""
        missing = base.keys() - self.ours.keys() - self._skipped.keys()
        for path in sorted(missing):
            if not self._is_gone(path):
                self.skip(path, "it can't be looked at")
        return [path for path in base if path in missing - self._skipped.keys()]

    def make(
        self,
        read: Callable[[str], bytes],
        *,
        is_purged: bool,
        force: bool,
        is_purged_there: bool = False,
    ) -> None:
        """Decide about every file.

        Args:
            read: Reads the contents of theirs.
            is_purged: Whether a secret was purged here since the last sync.
            force: Whether what they changed meanwhile is to be dropped in this case.
            is_purged_there: Whether a secret was purged on the other side since.
        """
        self._read_theirs, self._is_purged_there = read, is_purged_there
        ours, theirs, base = self.ours, self.theirs, self._base()
        hidden = {path for path in theirs if hidden_name(path) in self._seen.blobs}
        base |= {path: self._seen.blobs[hidden_name(path)] for path in hidden}
        gone: list[str] = []
        for path in sorted({*ours, *theirs} - {*self._skipped}):
            here, there, was = ours.get(path), theirs.get(path), base.get(path)
            if here == there:
                continue
            if here is None:
                gone.append(path)
            elif there is None:
                self._gone_there(path, here, was)
            elif not self._is_rewritten(path, here, there, was, asks=is_purged and not force):
                self._compare(path, here, there, was, is_purged=is_purged, force=force)
        moved = {blob for path, blob in ours.items() if path not in base}
        for path in gone:  # what else is damaged is known by now
            was = base.get(path)
            if was is None:
                self._arrives(path, theirs[path])
            elif path in hidden or was in moved or self._is_deleted(path) or self._by_hand(path):
                self._delete(path, was, theirs[path])
            else:
                self.incoming[path] = theirs[path]
                self._mended_here.append(path)

    # Files that are gone ---------------------------------------------------------------------

    def _is_deleted(self, path: str) -> bool:
        """Return whether it is known that a person deleted a file that is gone here."""
        known = (*self.removals.ours(path), *self.removals.came(path))
        return any(each.now is None for each in known)

    def _by_hand(self, path: str) -> bool:
        """Return whether a person must have deleted a file that is gone here."""
        folder = path.rpartition("/")[0]
        return not self._mended_here and files.is_folder(self._layout, folder)

    def _delete(self, path: str, was: str, there: str) -> None:
        """Delete a file there that a person deleted here, unless it is another one by now."""
        if was not in self.sizes and self._rules.is_log(path):
            self.sizes[was] = len(self._read_theirs(was))
        made = Removal(hidden_name(path), Content(was, self.sizes.get(was, 0)))
        made_here = [made, *(each for each in self.removals.ours(path) if each.now is None)]
        if any(
            self._is_beaten(each, path, there, self._read_theirs)
            for each in (*made_here, *self.removals.came(path))
        ):
            self.outgoing[path] = None
            self.removals.add(made_here)
        else:
            self.incoming[path] = there

    def _gone_there(self, path: str, here: str, was: str | None) -> None:
        """Decide about a file that the other side doesn't have, or not any more."""

        def read(blob: str) -> bytes:
            return self.read(path, blob)

        came = [each for each in self.removals.came(path) if each.now is None]
        is_log = self._rules.is_log(path)
        if was is None:
            again = [
                each
                for each in (*self.removals.standing(path), *self.removals.ours(path))
                if self._is_beaten(each, path, here, read)
            ]
            self.removals.withdraw(again)  # somebody has put it there again
            if is_log and any(self._is_beaten(each, path, here, read) for each in came):
                self.incoming[path] = None
            else:
                self.outgoing[path] = here
        elif here == was and (came or self._is_purged_there):
            self.incoming[path] = None
        elif came and (
            (is_log and self._goes_on(path, here, was))
            or any(self._is_beaten(each, path, here, read) for each in came)
        ):
            self.incoming[path] = None
            self._deleted.append(path)
        else:
            self.outgoing[path] = here
            if not came:
                self._mended_there.append(path)

    def _arrives(self, path: str, there: str) -> None:
        """Receive a new file, unless it was deleted, and one that didn't know has sent it again."""
        known = (*self.removals.standing(path), *self.removals.came(path))
        if any(
            each.now is None and self._is_beaten(each, path, there, self._read_theirs)
            for each in known
        ):
            self.outgoing[path] = None
        else:
            self.incoming[path] = there

    def _is_beaten(
        self, removal: Removal, path: str, blob: str, read: Callable[[str], bytes]
    ) -> bool:
        """Return whether a version is the removed one, or a log that goes on from it.

        A log in which something was forgotten since is another one.
        """
        if blob == removal.was.blob:
            return True
        if not self._rules.is_log(path):
            return False
        data = read(blob)
        before = data[: removal.was.size]
        return removal.was.begins(data) and not self._rules.keeps_apart(path, before, data)

    def _goes_on(self, path: str, here: str, was: str) -> bool:
        """Return whether a log here goes on from its last common version, forgetting nothing."""
        size = self.sizes.get(was)
        if size is None:
            return False
        removal = Removal(hidden_name(path), Content(was, size))
        return self._is_beaten(removal, path, here, lambda blob: self.read(path, blob))

    # Files that differ -----------------------------------------------------------------------

    def _is_rewritten(
        self, path: str, here: str, there: str, was: str | None, *, asks: bool
    ) -> bool:
        """Decide about a file of which a person removed something, here or there, if it is one.

        What was added to the former version goes on from the new one. With `asks`, a person is to
        decide if it was gone on with there.
        """
        came, ours = self.removals.came(path), self.removals.ours(path)
        if not came and not ours:
            return False
        mine, other = self.read(path, here), self._read_theirs(there)
        for each in ours:
            is_former = there == was or self._is_beaten(each, path, there, lambda _: other)
            if each.now and each.now.begins(mine) and is_former and (there == was or not asks):
                self._put_after(path, here, there, mine, other[each.was.size :])
                self.removals.add([each])
                return True
        for each in came:
            is_former = here == was or self._is_beaten(each, path, here, lambda _: mine)
            if not is_former and was is not None and self._rules.is_log(path):
                is_former = self._goes_on(path, here, was)
            if is_former and each.now and each.now.begins(other):
                size = self.sizes.get(was or "", len(mine))
                if here == was or each.was.begins(mine):
                    size = len(mine) if here == was else each.was.size
                self._put_after(path, here, there, other, mine[size:])
                return True
            if is_former and not each.now and self._is_beaten(each, path, there, lambda _: other):
                self.incoming[path] = self.outgoing[path] = None
                return True
        return False

    def _put_after(self, path: str, here: str, there: str, kept: bytes, rest: bytes) -> None:
        """Put the new version of a rewritten file on both sides, and what was added to the old."""
        is_log = self._rules.is_log(path)
        self._put(path, here, there, kept + (rest if is_log else b""), b"")

    def _compare(
        self, path: str, here: str, there: str, was: str | None, *, is_purged: bool, force: bool
    ) -> None:
        """Decide about a file by both contents, as far as they are needed."""
        if is_purged and was not in (here, there):
            if not force:
                raise RefusedHistoryError(
                    f"{self._layout.file(path)} was changed elsewhere since you purged a secret.",
                    "Take over by hand what you need from there, then replace it: `kbtui sync"
                    " --replace`.",
                )
            self.outgoing[path] = here
        elif self._rules.is_log(path):
            self._compare_logs(path, here, there, was)
        else:
            self._compare_documents(path, here, there, was)

    def _compare_documents(self, path: str, here: str, there: str, was: str | None) -> None:
        mine = self.read(path, here)
        try:
            other = self._read_theirs(there)
        except NotFoundError:
            if there != was or is_blank(mine):
                raise
            self.outgoing[path] = here  # whoever receives it compares it
            return
        if was in (here, there):
            self._compare_with_changed(path, here, there, mine, other, is_ours=there == was)
        elif compare_documents(other, mine) in _LESS:
            self.incoming[path] = there
        elif compare_documents(mine, other) in _LESS:
            self.outgoing[path] = here
        else:
            self._put(path, here, there, *self._rules.split(path, mine, other))

    def _compare_with_changed(
        self, path: str, here: str, there: str, mine: bytes, other: bytes, *, is_ours: bool
    ) -> None:
        """Decide about a document that only one side has changed, we or they."""
        changed, before = (mine, other) if is_ours else (other, mine)
        verdict = compare_documents(before, changed)
        if verdict is Verdict.SOUND and self._is_of_another(path, changed, is_ours=is_ours):
            verdict = Verdict.LESS
        match verdict:
            case Verdict.SOUND:
                self._spread(path, here if is_ours else there, is_ours=is_ours)
            case Verdict.DAMAGED:
                self._mend(path, there if is_ours else here, is_ours=is_ours)
            case Verdict.LESS:
                self._put(path, here, there, changed, before)
            case Verdict.DOUBTFUL:
                self._note_mended(path, is_ours=is_ours)
                self._put(path, here, there, before, changed)

    def _compare_logs(self, path: str, here: str, there: str, was: str | None) -> None:
        if there == was and self._only_grew(path, here, was):
            self.outgoing[path] = here
            return
        mine, other = self.read(path, here), self._read_theirs(there)
        ours, theirs = Log(mine), Log(other)
        bad_here, bad_there = ours.bad - theirs.bad, theirs.bad - ours.bad
        new_here, new_there = ours.without(theirs.lines), theirs.without(ours.lines)
        # By an older kbtui, which makes no record, or brought together by another machine.
        is_known = here == was and (self._is_purged_there or self._is_beside(path, new_here))
        if not bad_there and theirs.has_all_of(ours) and (new_there or here != was):
            self._take(path, there, is_ours=False, mends=there == was)
        elif not bad_here and ours.has_all_of(theirs):
            self._take(path, here, is_ours=True, mends=here == was)
        elif is_known and not bad_there:
            self.incoming[path] = there
        else:
            is_either = was not in (here, there)
            if new_here and new_there:
                if why := self._rules.keeps_apart(path, mine, other):
                    self.skip(path, why)
                    return
                if is_either and not bad_here and not bad_there:
                    self._put(path, here, there, *self._rules.split(path, mine, other))
                    return
            # One of them was damaged. The other one stays, with what only this one has.
            damaged_here = here != was if not is_either else bool(bad_here or not new_here)
            kept, rest, data = (other, new_here, mine) if damaged_here else (mine, new_there, other)
            self._note_mended(path, is_ours=damaged_here)
            is_new = rest and not self._is_of_another(path, data, is_ours=damaged_here)
            versions = self._rules.add(path, kept, rest) if is_new else (kept, b"")
            self._put(path, here, there, *versions)

    def _is_beside(self, path: str, lines: Sequence[bytes]) -> bool:
        """Return whether lines of a log that theirs lacks stand there in copies of it."""
        stem = path.removesuffix(".jsonl")
        copies = [
            blob
            for other, blob in self.theirs.items()
            if other.startswith(f"{stem}-") and self._rules.is_log(other)
        ]
        if not lines or not copies:
            return False
        where = {blob: path for path, blob in self.ours.items()}
        beside: set[bytes] = set()
        for blob in copies:
            data = self.read(where[blob], blob) if blob in where else self._read_theirs(blob)
            beside |= {*Log(data).lines}
        return beside.issuperset(lines)

    def _only_grew(self, path: str, here: str, was: str) -> bool:
        """Return whether a log here has only got more lines since its last common version."""
        size = self.sizes.get(was)
        data = self.read(path, here)
        return (
            size is not None
            and Content(was, size).begins(data)
            and not Log(data[size:], data[:size]).bad
        )

    def _is_of_another(self, path: str, data: bytes, *, is_ours: bool) -> bool:
        """Return whether another file of the same side has that content as well."""
        blob = files.blob_id(data)
        others = self.ours if is_ours else self.theirs
        return any(blob == each and path != other for other, each in others.items())

    def _take(self, path: str, blob: str, *, is_ours: bool, mends: bool) -> None:
        """Let one side have the other one's version, which may mend it."""
        if mends:
            self._mend(path, blob, is_ours=not is_ours)
        else:
            self._spread(path, blob, is_ours=is_ours)

    def _spread(self, path: str, blob: str, *, is_ours: bool) -> None:
        (self.outgoing if is_ours else self.incoming)[path] = blob

    def _mend(self, path: str, blob: str, *, is_ours: bool) -> None:
        """Replace a damaged version, ours or theirs, by the other one."""
        self._note_mended(path, is_ours=is_ours)
        self._spread(path, blob, is_ours=not is_ours)

    def _note_mended(self, path: str, *, is_ours: bool) -> None:
        (self._mended_here if is_ours else self._mended_there).append(path)

    def _put(self, path: str, here: str, there: str, kept: bytes, rest: bytes) -> None:
        """Put a content on both sides, and another one, if it isn't empty, into a copy."""
        blobs = files.blob_id(kept), files.blob_id(rest)
        self.made |= dict(zip(blobs, (kept, rest), strict=True))
        folder, _, name = path.rpartition("/")
        copy = f"{folder}/{with_end(name, f'-{blobs[1][:6]}')}"
        to_write = [(copy, blobs[1]), (path, blobs[0])]  # the copy first: a kill loses neither
        if rest:
            self._both[copy] = path
        else:
            del to_write[0]
        for each, blob in to_write:
            self.sizes[blob] = len(self.made[blob])
            if self.ours.get(each) in (None, here) and blob != self.ours.get(each):
                self.incoming[each] = blob
            if self.theirs.get(each) in (None, there) and blob != self.theirs.get(each):
                self.outgoing[each] = blob

    # Carrying it out -------------------------------------------------------------------------

    def locked_paths(self, path: str) -> set[str]:
        """Return the files to lock while one is written: of a copy also its original."""
        return {path, self._both.get(path, path)}

    def is_skipped(self, path: str) -> bool:
        """Return whether a file is left as it is on both sides."""
        return path in self._skipped

    def skip(self, path: str, why: str) -> None:
        """Leave a file as it is on both sides."""
        for each in (path, self._both.pop(path, path)):
            self._skipped[each] = why
            self.outgoing.pop(each, None)

    def read(self, path: str, blob: str) -> bytes:
        """Read a file's content, if it still has the scanned one.

        Raises:
            MovedError: It was changed.
        """
        if blob in self.made:
            return self.made[blob]
        data = files.read_if_there(self._layout, path)
        if data is None or files.blob_id(data) != blob:
            raise MovedError("A file was changed meanwhile.")
        return data

    def agreed(self, tip: str) -> LastSync:
        """Return the new common state; of files that were left, the previous one."""
        theirs = {**self.theirs, **self.outgoing}
        same = {path: blob for path, blob in self.ours.items() if theirs.get(path) == blob}
        kept = {
            path: blob
            for path, blob in self._seen.blobs.items()
            if path in self._skipped or path not in self._rules
        }
        blobs = {**same, **kept}
        logs = {blob for path, blob in blobs.items() if self._rules.is_log(path)}
        sizes = {blob: self.sizes[blob] for blob in sorted(logs) if blob in self.sizes}
        return LastSync(tip, blobs, sizes=sizes, removals=frozenset(self.removals.names))

    def notes(self) -> Iterator[str]:
        """Yield what a person should know, one sentence each."""
        name = self._layout.file
        for path, why in [*self._skipped.items()][:_MAX_SHOWN]:
            yield f"Not synced: {name(path)}: {why}."
        if (more := len(self._skipped) - _MAX_SHOWN) > 0:
            yield f"And {counted(more, 'more file', 'more files')} likewise."
        if self._both:
            yield f"Changed on both sides, so both versions are there: {self._listed(self._both)}."
        if self._back:
            count = counted(len(self._back), "file")
            yield f"{count} were gone here at once and are back. Delete fewer at a time."
        if self._mended_here:
            yield (
                f"Damaged or gone here, and back as on the other side:"
                f" {self._listed(self._mended_here)}."
            )
        if self._mended_there:
            yield (
                f"Damaged or gone on the other side, and back there as here:"
                f" {self._listed(self._mended_there)}. To delete a file everywhere, delete it here."
            )
        if self._deleted:
            yield (
                "Deleted on another machine, with what was added here since:"
                f" {self._listed(self._deleted)}."
            )

    def _listed(self, paths: Iterable[str]) -> str:
        shown = [*dict.fromkeys(paths)]
        more = len(shown) - _MAX_SHOWN
        names = ", ".join(map(self._layout.file, shown[:_MAX_SHOWN]))
        return f"{names} and {more} more" if more > 0 else names

    def _is_gone(self, path: str) -> bool:
        try:
            return files.is_gone(self._layout, path)
        except KbtuiError:
            return False
