"""Packing: thousands of loose objects become one file in which versions share what they have alike.

Every version of a folder or file is stored as its difference to the next newer one.
Packs are rolled up as `git repack --geometric=2` does it: each that stays holds at least twice as
many objects as all smaller ones together, so there are few of them, and an object is rewritten
only a few times in its life. Whatever was in a pack that goes is in the one that takes its place,
whether a commit needs it or not: what is on its way to being committed isn't lost.

Deltas are made here: the common ends are found by comparing slices, which costs next to nothing,
and between them whole lines (or entries of a folder's listing) are looked up. Against dulwich's
`create_delta` those of notes are a sixth smaller and made in a fifth of the time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kbtui.history.objects.commit import RawCommit
from kbtui.history.objects.lineage import everything
from kbtui.history.objects.pack_folder import PackFolder, PackRecord
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import changed_objects

_MOST_COPIED = 0xFFFFFF
_MOST_INSERTED = 127
_WORTH_COPYING = 8  # bytes; a copy takes up to seven
_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_ENTRIES = re.compile(rb"[^\0]*\0.{0,20}|[^\0]+", re.DOTALL)


def make_delta(base: bytes, target: bytes) -> bytes:
    """Describe `target` as a git delta of `base`."""
    start = _common(base, target)
    end = _common(base[start:][::-1], target[start:][::-1])
    old, new = (start, len(base) - end), target[start : len(target) - end]
    head = [_size(len(base)), _size(len(target)), *_copies(0, start)]
    return b"".join([*head, *_between(base, old, new), *_copies(old[1], end)])


def _between(base: bytes, old: tuple[int, int], new: bytes) -> Iterator[bytes]:
    """Instructions for what is between the common ends: `new` made out of `base[slice(*old)]`."""
    cut = _ENTRIES if b"\0" in new else _LINES
    places = {found.group(): found.start() for found in cut.finditer(base, *old)}
    fresh = bytearray()
    begin = stop = 0  # what is being copied
    for found in cut.finditer(new):
        piece = found.group()
        if begin < stop and base.startswith(piece, stop):
            stop += len(piece)
            continue
        place = places.get(piece) if len(piece) >= _WORTH_COPYING else None
        if place is None:
            yield from _copies(begin, stop - begin)
            begin = stop = 0
            fresh += piece
        else:
            yield from _inserts(fresh)
            fresh.clear()
            yield from _copies(begin, stop - begin)
            begin, stop = place, place + len(piece)
    yield from _inserts(fresh)
    yield from _copies(begin, stop - begin)


def _common(a: bytes, b: bytes) -> int:
    """How many bytes both begin with, found by halving: comparing slices is memcmp."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _size(number: int) -> bytes:
    """A length, seven bits a byte, the lowest first."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def _inserts(new: bytes | bytearray) -> Iterator[bytes]:
    """Instructions that bring what the base doesn't have."""
    for place in range(0, len(new), _MOST_INSERTED):
        piece = new[place : place + _MOST_INSERTED]
        yield bytes([len(piece)]) + piece


def _copies(offset: int, size: int) -> Iterator[bytes]:
    """Instructions that copy a range of the base."""
    while size:
        part = min(size, _MOST_COPIED)
        instruction, operands = 0x80, bytearray()
        for bit, value in enumerate([*offset.to_bytes(4, "little"), *part.to_bytes(3, "little")]):
            if value:
                instruction |= 1 << bit
                operands.append(value)
        yield bytes([instruction]) + bytes(operands)
        offset, size = offset + part, size - part


ENOUGH = 3000  # loose objects that are worth a pack
MANY = 10  # packs that are worth looking whether some of them should be one
_DEPTH = 50  # git's own
_THOROUGHLY = 6  # zlib's level, for there is time


class _StoppedError(Exception):
    """Somebody wants the packing to end; nothing was changed."""


class Packing:
    """Packs one repository, once.

    Args:
        repository: What is packed.
        enough: How many loose objects are worth it.
        alone: Keeps other writers away while packs are exchanged, which takes a moment.
        stopped: Asked for each object whether to give up.
        whole: Make one pack of all there are, worth it or not.
    """

    def __init__(
        self,
        repository: Repository,
        enough: int = ENOUGH,
        alone: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
        stopped: Callable[[], bool] = lambda: False,
        *,
        whole: bool = False,
    ) -> None:
        self._repository = repository
        self._folder = PackFolder(repository.folder)
        self._enough = enough
        self._alone = alone
        self._stopped = stopped
        self._whole = whole

    def run(self) -> int:
        """Pack what is worth it; how many objects were written.

        Raises:
            StorageError: What was written isn't what was to be written; nothing was removed.
        """
        counts = self._folder.counts()
        loose = self._repository.count_loose()
        if loose < self._enough and len(counts) <= MANY and not self._whole:
            return 0
        old = sorted(counts) if self._whole else rolled_up(counts, loose)
        packed = {name for pack in old for name in self._folder.objects(pack)}
        try:
            return self._pack(old, packed)
        except _StoppedError:
            return 0

    def _pack(self, old: list[str], packed: set[str]) -> int:
        is_loose = self._repository.is_loose
        chains = self._chains(packed)
        reached = {name for chain in chains for name in chain}
        loose = [name for name in reached if is_loose(name)]
        if not old and (not loose or len(loose) < self._enough // 2):
            return 0  # the rest belongs to no commit
        chains += [[name] for name in sorted(packed - reached)]
        records = _records(self._repository, chains, self._check)
        with self._folder.aside() as aside:
            count = len(reached | packed)
            new = self._repository.write_pack(count, records, _THOROUGHLY, aside)
            with self._alone():
                if not self._is_as_it_was(old, loose) or self._folder.holds(f"pack-{new}"):
                    return 0
                self._folder.let_in(aside)
                if not self._folder.holds(f"pack-{new}"):
                    return 0
                self._folder.remove(old)
                self._repository.drop_loose(loose)
        self._repository.look_again()
        return count

    def _chains(self, packed: set[str]) -> list[list[str]]:
        """The objects that are loose or in the packs that go, as far as commits need it."""

        def wanted(name: str) -> bool:
            self._check()
            return name in packed or self._repository.is_loose(name)

        commits = [each for each in everything(self._repository) if wanted(each[0])]
        return _chains(self._repository, commits, wanted)

    def _check(self) -> None:
        if self._stopped():
            raise _StoppedError

    def _is_as_it_was(self, old: list[str], loose: list[str]) -> bool:
        """True if nobody threw away meanwhile what would come back now, as a purge does."""
        return all(map(self._folder.holds, old)) and all(map(self._repository.is_loose, loose))


def rolled_up(counts: Mapping[str, int], loose: int) -> list[str]:
    """Which packs become one with what is loose, as `git repack --geometric=2` would choose.

    Args:
        counts: How many objects each pack holds.
        loose: How many lie beside them.
    """
    smallest_first = sorted(counts, key=lambda name: (counts[name], name))
    total, taken = loose, 0
    for number, name in enumerate(smallest_first, 1):
        if counts[name] < 2 * total:
            taken = number
        total += counts[name]
    return smallest_first[:taken]


def pack_of(
    repository: Repository, commits: Sequence[tuple[str, RawCommit]]
) -> tuple[int, Iterator[PackRecord]]:
    """All objects that commits brought, for those who have everything before: how many, and they.

    Args:
        repository: Where they are.
        commits: Parents before their children.
    """
    chains = _chains(repository, commits, lambda _: True)
    count = len({name for chain in chains for name in chain})
    return count, _records(repository, chains, lambda: None)


def pack_again(repository: Repository, packed: set[str]) -> tuple[int, Iterator[PackRecord]]:
    """Some objects, whether a commit needs them or not, for one pack: how many, and they."""
    commits = [each for each in everything(repository) if each[0] in packed]
    chains = _chains(repository, commits, packed.__contains__)
    reached = {name for chain in chains for name in chain}
    chains += [[name] for name in sorted(packed - reached)]
    return len(packed), _records(repository, chains, lambda: None)


def _chains(
    repository: Repository,
    commits: Sequence[tuple[str, RawCommit]],
    wanted: Callable[[str], bool],
) -> list[list[str]]:
    """The versions of each folder and file that are wanted, newest first."""
    chains: dict[str, list[str]] = {}
    for _, raw in reversed(commits):
        before = repository.read_commit(raw.parents[0]).tree if raw.parents else None
        for path, made in changed_objects(before, raw.tree, repository.read_entries):
            if wanted(made):
                chains.setdefault(path, []).append(made)
    return [[identifier for identifier, _ in reversed(commits)], *chains.values()]


def _records(
    repository: Repository, chains: list[list[str]], check: Callable[[], None]
) -> Iterator[PackRecord]:
    seen: set[str] = set()
    for names in chains:
        chain = _Chain()
        for name in names:
            if name not in seen:
                seen.add(name)
                check()
                yield chain.add(name, *repository.read_object(name))


@dataclass(frozen=True, slots=True)
class _Version:
    id: str
    data: bytes
    depth: int


class _Chain:
    """The versions of one file or folder, each made out of the one before.

    Where that would be too deep, the next is made out of the first of the last run, so a text has
    to stand there whole once in a thousand versions and not in fifty.
    """

    def __init__(self) -> None:
        self._first: _Version | None = None
        self._last: _Version | None = None

    def add(self, name: str, kind: bytes, data: bytes) -> PackRecord:
        """The next older version."""
        is_deep = self._last is not None and self._last.depth >= _DEPTH
        base = self._first if is_deep else self._last
        # Commits are read one after the other: they stay whole.
        if base is not None and base.depth < _DEPTH and kind != b"commit":
            delta = make_delta(base.data, data)
            if len(delta) < len(data) // 2:
                self._last = _Version(name, data, base.depth + 1)
                self._first = self._last if is_deep else self._first
                return PackRecord(name, kind, delta, base.id)
        self._first = self._last = _Version(name, data, 0)
        return PackRecord(name, kind, data)
