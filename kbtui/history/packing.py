"""Packing: thousands of loose objects become one file in which versions share what they have alike.

Every version of a folder or file is stored as its difference to the next newer one. One edit of a
note leaves both ends of the text (and of each folder's listing) as they were, so the difference is
what lies between the common ends: as small as git's own, and found in no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.history.lineage import newer
from kbtui.history.trees import changed_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kbtui.history.commit import RawCommit
    from kbtui.history.repository import Repository

ENOUGH = 3000  # loose objects that are worth a pack
_DEPTH = 50  # git's own
_THOROUGHLY = 6  # zlib's level, for there is time
_MOST_COPIED = 0xFFFFFF
_MOST_INSERTED = 127


@dataclass(frozen=True, slots=True)
class PackRecord:
    """An object as it goes into a pack: whole, or as a delta to `base`, which comes before it."""

    id: str
    kind: bytes
    data: bytes
    base: str | None = None


def pack_history(repository: Repository, enough: int = ENOUGH) -> int:
    """Pack what the commits since the last time made, if that is `enough`; how many objects."""
    if repository.count_loose() < enough:
        return 0
    commits = [
        each for each in newer(repository, repository.head()) if repository.is_loose(each[0])
    ]
    chains = _chains(repository, commits, repository.is_loose)
    identifiers = list(dict.fromkeys(name for chain in chains for name in chain))
    if not identifiers or len(identifiers) < enough // 2:  # the rest belongs to no commit
        return 0
    repository.write_pack(len(identifiers), _records(repository, chains), _THOROUGHLY)
    repository.drop_loose(identifiers)
    return len(identifiers)


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
    return count, _records(repository, chains)


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


def _records(repository: Repository, chains: list[list[str]]) -> Iterator[PackRecord]:
    seen: set[str] = set()
    for chain in chains:
        base: tuple[str, bytes] | None = None
        depth = 0
        for identifier in chain:
            if identifier in seen:
                continue
            seen.add(identifier)
            kind, data = repository.read_object(identifier)
            delta = None
            if base is not None and depth < _DEPTH and kind != b"commit":
                delta = make_delta(base[1], data)
            if base is not None and delta is not None and len(delta) < len(data) // 2:
                yield PackRecord(identifier, kind, delta, base[0])
                depth += 1
            else:
                yield PackRecord(identifier, kind, data)
                depth = 0
            base = identifier, data


def make_delta(base: bytes, target: bytes) -> bytes:
    """Describe `target` as a git delta: the common start, what is new, the common end."""
    start = _common(base, target)
    end = _common(base[start:][::-1], target[start:][::-1])
    parts = [_size(len(base)), _size(len(target)), *_copies(0, start)]
    new = target[start : len(target) - end]
    for place in range(0, len(new), _MOST_INSERTED):
        piece = new[place : place + _MOST_INSERTED]
        parts += (bytes([len(piece)]), piece)
    return b"".join([*parts, *_copies(len(base) - end, end)])


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
    while number > 0x7F:  # noqa: PLR2004
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


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
