"""Packing: merges thousands of loose objects into one file of deltas between versions.

Every version of a folder or file is stored as a delta against the next newer one. Packs are merged
like `git repack --geometric=2` does it: each remaining pack holds at least twice as many objects as
all smaller ones together, so there are few of them, and an object is rewritten only a few times in
its life. All objects of a replaced pack go into its replacement, reachable or not, so objects that
are about to be committed aren't lost.

Deltas are made here: common prefixes and suffixes are found by comparing slices, which costs next
to nothing, and whole lines (or tree entries) between them are looked up in a dict. Compared with
dulwich's `create_delta`, deltas of notes are a sixth smaller and take a fifth of the time.
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

_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 127
_MIN_COPY = 8  # bytes; a copy instruction takes up to seven
_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_ENTRIES = re.compile(rb"[^\0]*\0.{0,20}|[^\0]+", re.DOTALL)


def make_delta(base: bytes, target: bytes) -> bytes:
    """Encode `target` as a git delta against `base`."""
    start = _common_prefix(base, target)
    end = _common_prefix(base[start:][::-1], target[start:][::-1])
    old, new = (start, len(base) - end), target[start : len(target) - end]
    head = [_encode_size(len(base)), _encode_size(len(target)), *_copy(0, start)]
    return b"".join([*head, *_middle(base, old, new), *_copy(old[1], end)])


def _middle(base: bytes, old: tuple[int, int], new: bytes) -> Iterator[bytes]:
    """Yield delta instructions that make `new` out of `base[slice(*old)]`."""
    cut = _ENTRIES if b"\0" in new else _LINES
    places = {found.group(): found.start() for found in cut.finditer(base, *old)}
    inserted = bytearray()
    begin = stop = 0  # the pending copy
    for found in cut.finditer(new):
        piece = found.group()
        if begin < stop and base.startswith(piece, stop):
            stop += len(piece)
            continue
        place = places.get(piece) if len(piece) >= _MIN_COPY else None
        if place is None:
            yield from _copy(begin, stop - begin)
            begin = stop = 0
            inserted += piece
        else:
            yield from _insert(inserted)
            inserted.clear()
            yield from _copy(begin, stop - begin)
            begin, stop = place, place + len(piece)
    yield from _insert(inserted)
    yield from _copy(begin, stop - begin)


def _common_prefix(a: bytes, b: bytes) -> int:
    """Return the length of the common prefix, by bisection: comparing slices is memcmp."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _encode_size(number: int) -> bytes:
    """Encode a length in groups of seven bits, the lowest first."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def _insert(new: bytes | bytearray) -> Iterator[bytes]:
    for place in range(0, len(new), _MAX_INSERT):
        piece = new[place : place + _MAX_INSERT]
        yield bytes([len(piece)]) + piece


def _copy(offset: int, size: int) -> Iterator[bytes]:
    while size:
        part = min(size, _MAX_COPY)
        instruction, operands = 0x80, bytearray()
        for bit, value in enumerate([*offset.to_bytes(4, "little"), *part.to_bytes(3, "little")]):
            if value:
                instruction |= 1 << bit
                operands.append(value)
        yield bytes([instruction]) + bytes(operands)
        offset, size = offset + part, size - part


ENOUGH = 3000  # minimum number of loose objects for a pack
MANY = 10  # number of packs above which merging them is considered
_MAX_DEPTH = 50  # the longest chain of deltas; git's default
_LEVEL = 6  # zlib's level; packing runs in the background


class _CancelledError(Exception):
    """Packing was cancelled before anything was changed."""


class Packing:
    """Packs one repository, once.

    Args:
        repository: The repository to pack.
        enough: The minimum number of loose objects to make packing worthwhile.
        alone: A context manager that locks out other writers while packs are exchanged, for a
            moment.
        stopped: A callback, called for each object, that returns whether to cancel.
        whole: Make one pack of all objects, worthwhile or not.
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
        """Pack if it is worthwhile, and return the number of objects written.

        Raises:
            StorageError: The new pack doesn't hold what it should; nothing was removed.
        """
        counts = self._folder.counts()
        loose = self._repository.count_loose()
        if loose < self._enough and len(counts) <= MANY and not self._whole:
            return 0
        old = sorted(counts) if self._whole else packs_to_merge(counts, loose)
        packed = {name for pack in old for name in self._folder.objects(pack)}
        try:
            return self._pack(old, packed)
        except _CancelledError:
            return 0

    def _pack(self, old: list[str], packed: set[str]) -> int:
        is_loose = self._repository.is_loose
        chains = self._chains(packed)
        reached = {name for chain in chains for name in chain}
        loose = [name for name in reached if is_loose(name)]
        if not old and (not loose or len(loose) < self._enough // 2):
            return 0  # the other loose objects aren't reachable from any commit
        chains += [[name] for name in sorted(packed - reached)]
        records = _records(self._repository, chains, self._check_cancelled)
        with self._folder.aside() as aside:
            count = len(reached | packed)
            new = self._repository.write_pack(count, records, _LEVEL, aside)
            with self._alone():
                if not self._is_unchanged(old, loose) or self._folder.holds(f"pack-{new}"):
                    return 0
                self._folder.install(aside)
                if not self._folder.holds(f"pack-{new}"):
                    return 0
                self._folder.remove(old)
                self._repository.drop_loose(loose)
        self._repository.close_missing_packs()
        return count

    def _chains(self, packed: set[str]) -> list[list[str]]:
        """Return chains of those objects that are loose or in replaced packs and reachable."""

        def wanted(name: str) -> bool:
            self._check_cancelled()
            return name in packed or self._repository.is_loose(name)

        commits = [each for each in everything(self._repository) if wanted(each[0])]
        return _chains(self._repository, commits, wanted)

    def _check_cancelled(self) -> None:
        if self._stopped():
            raise _CancelledError

    def _is_unchanged(self, old: list[str], loose: list[str]) -> bool:
        """Return whether no object was removed meanwhile, so that a purge isn't reverted."""
        return all(map(self._folder.holds, old)) and all(map(self._repository.is_loose, loose))


def packs_to_merge(counts: Mapping[str, int], loose: int) -> list[str]:
    """Return the packs to merge with the loose objects, as `git repack --geometric=2` chooses them.

    Args:
        counts: The number of objects in each pack.
        loose: The number of loose objects.
    """
    smallest_first = sorted(counts, key=lambda name: (counts[name], name))
    total, taken = loose, 0
    for number, name in enumerate(smallest_first, 1):
        if counts[name] < 2 * total:
            taken = number
        total += counts[name]
    return smallest_first[:taken]


def pack_commits(
    repository: Repository, commits: Sequence[tuple[str, RawCommit]]
) -> tuple[int, Iterator[PackRecord]]:
    """Return the number and the records of all objects that are new in `commits`.

    Args:
        repository: The repository that holds them.
        commits: The commits, parents before their children.
    """
    chains = _chains(repository, commits, lambda _: True)
    count = len({name for chain in chains for name in chain})
    return count, _records(repository, chains, lambda: None)


def pack_objects(repository: Repository, packed: set[str]) -> tuple[int, Iterator[PackRecord]]:
    """Return the number and the records of some objects, reachable or not, for one pack."""
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
    """Return the wanted versions of each folder and file, newest first."""
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
    """Encodes the versions of one file or folder, each as a delta against the one before.

    When the chain gets too deep, the next version is a delta against the first one of the current
    run, so only one in a thousand versions is stored whole, rather than one in fifty.
    """

    def __init__(self) -> None:
        self._first: _Version | None = None
        self._last: _Version | None = None

    def add(self, name: str, kind: bytes, data: bytes) -> PackRecord:
        """Encode the next older version."""
        is_deep = self._last is not None and self._last.depth >= _MAX_DEPTH
        base = self._first if is_deep else self._last
        # Commits are mostly read in sequence, so they are stored whole.
        if base is not None and base.depth < _MAX_DEPTH and kind != b"commit":
            delta = make_delta(base.data, data)
            if len(delta) < len(data) // 2:
                self._last = _Version(name, data, base.depth + 1)
                self._first = self._last if is_deep else self._first
                return PackRecord(name, kind, delta, base.id)
        self._first = self._last = _Version(name, data, 0)
        return PackRecord(name, kind, data)
