"""Which lines of two texts belong together: patience first, difflib in what is left.

Lines that occur once on both sides anchor the match (Bram Cohen's patience diff), which keeps
functions, sections and list items together and stays fast where difflib alone is quadratic. The
package patiencediff does the same, but its licence (GPL) can't be asked of users of this program.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Block = tuple[int, int, int]
Opcode = tuple[str, int, int, int, int]
_DIFFLIB_LIMIT = 2_000_000  # cells; beyond that popular lines are left out of the search


def matching_blocks(a: Sequence[str], b: Sequence[str]) -> list[Block]:
    """Runs of equal lines as (start in a, start in b, length), in order."""
    blocks: list[Block] = []
    for start_a, start_b, size in _blocks(a, b, 0, len(a), 0, len(b)):
        if size == 0:
            continue
        if blocks:
            last_a, last_b, last_size = blocks[-1]
            if last_a + last_size == start_a and last_b + last_size == start_b:
                blocks[-1] = (last_a, last_b, last_size + size)
                continue
        blocks.append((start_a, start_b, size))
    return blocks


def opcodes(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    """The steps from `a` to `b`: (equal | replace | delete | insert, a1, a2, b1, b2) in order."""
    result: list[Opcode] = []
    i = j = 0
    for start_a, start_b, size in [*matching_blocks(a, b), (len(a), len(b), 0)]:
        if i < start_a and j < start_b:
            result.append(("replace", i, start_a, j, start_b))
        elif i < start_a:
            result.append(("delete", i, start_a, j, start_b))
        elif j < start_b:
            result.append(("insert", i, start_a, j, start_b))
        if size:
            result.append(("equal", start_a, start_a + size, start_b, start_b + size))
        i, j = start_a + size, start_b + size
    return result


def _blocks(
    a: Sequence[str], b: Sequence[str], a1: int, a2: int, b1: int, b2: int
) -> Iterator[Block]:
    # A stack of work instead of recursion: a text of thousands of sections nests deeply.
    work: list[tuple[int, int, int, int] | Block] = [(a1, a2, b1, b2)]
    while work:
        item = work.pop()
        if len(item) == 3:  # noqa: PLR2004 — a finished block
            yield item
            continue
        work.extend(reversed(_split(a, b, *item)))


def _split(
    a: Sequence[str], b: Sequence[str], a1: int, a2: int, b1: int, b2: int
) -> list[tuple[int, int, int, int] | Block]:
    """Match what one range has at its ends and around its anchors; the rest is left as ranges."""
    head = 0
    while a1 + head < a2 and b1 + head < b2 and a[a1 + head] == b[b1 + head]:
        head += 1
    tail = 0
    while a2 - tail > a1 + head and b2 - tail > b1 + head and a[a2 - tail - 1] == b[b2 - tail - 1]:
        tail += 1
    start: Block = (a1, b1, head)
    end: Block = (a2 - tail, b2 - tail, tail)
    a1, b1, a2, b2 = a1 + head, b1 + head, a2 - tail, b2 - tail
    if a1 == a2 or b1 == b2:
        return [start, end]
    anchors = _anchors(a, b, a1, a2, b1, b2)
    if not anchors:
        return [start, *_by_difflib(a[a1:a2], b[b1:b2], a1, b1), end]
    parts: list[tuple[int, int, int, int] | Block] = [start]
    for i, j, size in _runs(anchors):
        parts += [(a1, i, b1, j), (i, j, size)]
        a1, b1 = i + size, j + size
    return [*parts, (a1, a2, b1, b2), end]


def _runs(pairs: Sequence[tuple[int, int]]) -> Iterator[Block]:
    """Anchors that follow one another on both sides as one block."""
    first = 0
    for n, (i, j) in enumerate(pairs, 1):
        if n == len(pairs) or pairs[n] != (i + 1, j + 1):
            size = n - first
            yield i + 1 - size, j + 1 - size, size
            first = n


def _anchors(
    a: Sequence[str], b: Sequence[str], a1: int, a2: int, b1: int, b2: int
) -> list[tuple[int, int]]:
    """Lines that are unique on both sides and in the same order on both."""
    in_a, in_b = Counter(a[a1:a2]), Counter(b[b1:b2])
    place = {b[j]: j for j in range(b1, b2) if in_b[b[j]] == 1}
    pairs = [(i, place[a[i]]) for i in range(a1, a2) if in_a[a[i]] == 1 and a[i] in place]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if all(before[1] < pair[1] for before, pair in pairwise(pairs)):
        return pairs  # most often nothing has changed places
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(ends, j)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [j]
        last[place : place + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _by_difflib(a: Sequence[str], b: Sequence[str], a1: int, b1: int) -> list[Block]:
    matcher = SequenceMatcher(None, a, b, autojunk=len(a) * len(b) > _DIFFLIB_LIMIT)
    return [(a1 + m.a, b1 + m.b, m.size) for m in matcher.get_matching_blocks()]
