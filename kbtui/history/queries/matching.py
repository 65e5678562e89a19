"""Matching lines of two texts (patience diff and difflib), and following lines through versions.

Lines that occur once on both sides anchor the match (Bram Cohen's patience diff), which keeps
functions, sections and list items together and stays fast where difflib alone is quadratic. The
package patiencediff does the same, but it is under the GPL, which this program can't impose on its
users. Each version is compared with the next, so a line is followed through the actual edits rather
than by how the first and the last version happen to resemble each other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

Block = tuple[int, int, int]
Opcode = tuple[str, int, int, int, int]
_DIFFLIB_LIMIT = 2_000_000  # cells of the comparison, above which difflib skips popular lines


def matching_blocks(a: Sequence[str], b: Sequence[str]) -> list[Block]:
    """Return runs of equal lines as (start in a, start in b, length), in order."""
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
    """Return the edits from `a` to `b` in order.

    Each is (equal | replace | delete | insert, a1, a2, b1, b2).
    """
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
    # An explicit stack instead of recursion: a text of thousands of sections nests deeply.
    stack: list[tuple[int, int, int, int] | Block] = [(a1, a2, b1, b2)]
    while stack:
        item = stack.pop()
        if len(item) == 3:  # a finished block
            yield item
            continue
        stack.extend(reversed(_split(a, b, *item)))


def _split(
    a: Sequence[str], b: Sequence[str], a1: int, a2: int, b1: int, b2: int
) -> list[tuple[int, int, int, int] | Block]:
    """Match the common ends of a range and its anchors.

    Return these blocks and the ranges between.
    """
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
    """Combine anchors that are adjacent on both sides into blocks."""
    first = 0
    for n, (i, j) in enumerate(pairs, 1):
        if n == len(pairs) or pairs[n] != (i + 1, j + 1):
            size = n - first
            yield i + 1 - size, j + 1 - size, size
            first = n


def _anchors(
    a: Sequence[str], b: Sequence[str], a1: int, a2: int, b1: int, b2: int
) -> list[tuple[int, int]]:
    """Return the lines that are unique on both sides and in the same order on both."""
    in_a, in_b = Counter(a[a1:a2]), Counter(b[b1:b2])
    place = {b[j]: j for j in range(b1, b2) if in_b[b[j]] == 1}
    pairs = [(i, place[a[i]]) for i in range(a1, a2) if in_a[a[i]] == 1 and a[i] in place]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if all(before[1] < pair[1] for before, pair in pairwise(pairs)):
        return pairs  # the usual case: the order is the same
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


_SIMILAR = 0.5
_LONG = 100  # characters; comparing longer lines by characters takes milliseconds a pair
_WORD = re.compile(r"[A-Za-z0-9_]+|\S")
# Lines are compared by position from this number of unchanged lines per changed one.
_MIN_UNCHANGED = 4


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a line.

    `index` is its current position, or that of the line it was changed into.
    """

    state: Literal["same", "changed", "gone"]
    index: int = -1
    moved: bool = False


def keys_of(lines: Sequence[str]) -> list[str]:
    """Return lines for comparison, without line ends."""
    return [line.rstrip("\r\n") for line in lines]


def lines_of(text: str) -> list[str]:
    r"""Split a text into lines for comparison, at ``\n`` only, as git does."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return keys_of(lines) if "\r" in text else lines


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of common lines at the beginning, and then at the end, of two texts."""
    shorter = min(len(old), len(new))
    head = _longest_equal(shorter, lambda low, high: old[low:high] == new[low:high])
    a, b = len(old), len(new)
    tail = _longest_equal(
        shorter - head, lambda low, high: old[a - high : a - low] == new[b - high : b - low]
    )
    return head, tail


def _longest_equal(limit: int, is_same: Callable[[int, int], bool]) -> int:
    """Find the longest equal stretch by bisection: comparing slices beats comparing lines."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if is_same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return for each line of `new` the line of `old` that it is, kept or moved.

    -1 if it is new.
    """
    if not old or not new:
        return [-1] * len(new)
    if len(old) == len(new):
        differing = [n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        if len(differing) * _MIN_UNCHANGED <= len(new):
            return _with_moves(old, new, list(range(len(new))), differing, differing)
    origins = [-1] * len(new)
    gone: list[int] = []
    come: list[int] = []
    for tag, a1, a2, b1, b2 in opcodes(old, new):
        if tag == "equal":
            origins[b1:b2] = range(a1, a2)
        else:
            gone += range(a1, a2)
            come += range(b1, b2)
    return _with_moves(old, new, origins, gone, come)


def _with_moves(
    old: Sequence[str],
    new: Sequence[str],
    origins: list[int],
    gone: Sequence[int],
    come: Sequence[int],
) -> list[int]:
    moves = {j: i for i, j in find_moves(old, new, gone, come).items()}
    for j in come:
        origins[j] = moves.get(j, -1)
    return origins


def follow(versions: Sequence[Sequence[str]], returns: Collection[int] = ()) -> list[Fate]:
    """Follow each line of the first version to the last one.

    Args:
        versions: The lines of each version.
        returns: The indexes of the versions that an undo or a restore wrote: a deleted line that
            reappears in one is the same line.
    """
    first = versions[0]
    fates = [Fate("same", index) for index in range(len(first))]
    lost: dict[int, tuple[Fate, str]] = {}
    for number, (old, new) in enumerate(pairwise(versions), 1):
        step = _step(old, new)
        before, fates = fates, [_compose(fate, step) for fate in fates]
        for index, (was, fate) in enumerate(zip(before, fates, strict=True)):
            if fate.state == "gone" and was.state != "gone":
                lost[index] = was, old[was.index]
        if number in returns:
            _revive(fates, lost, {fate.index for fate in step}, new)
    last = versions[-1]
    return [
        # A line that was changed and changed back counts as unchanged.
        Fate("same", fate.index, fate.moved)
        if fate.index >= 0 and last[fate.index] == line
        else fate
        for line, fate in zip(first, fates, strict=True)
    ]


def _compose(fate: Fate, step: list[Fate]) -> Fate:
    if fate.state == "gone":
        return fate
    then = step[fate.index]
    state = "changed" if fate.state == "changed" and then.state == "same" else then.state
    return Fate(state, then.index, fate.moved or then.moved)


def _revive(
    fates: list[Fate], lost: dict[int, tuple[Fate, str]], known: set[int], new: Sequence[str]
) -> None:
    """Locate deleted lines that a version restored."""
    come = [(line, n) for n, line in enumerate(new) if n not in known and line.strip()]
    counts = Counter(line for line, _ in come)
    wanted = Counter(line for _, line in lost.values())
    place = dict(come)
    for index, (was, line) in list(lost.items()):
        if counts[line] == 1 == wanted[line]:
            fates[index] = Fate(was.state, place[line], moved=was.moved)
            del lost[index]


def _step(old: Sequence[str], new: Sequence[str]) -> list[Fate]:
    fates = [Fate("gone")] * len(old)
    replaced: list[tuple[range, range]] = []
    for tag, a1, a2, b1, b2 in opcodes(old, new):
        if tag == "equal":
            for offset in range(a2 - a1):
                fates[a1 + offset] = Fate("same", b1 + offset)
        else:
            replaced.append((range(a1, a2), range(b1, b2)))
    moved = find_moves(
        old, new, [i for a, _ in replaced for i in a], [j for _, b in replaced for j in b]
    )
    for i, j in moved.items():
        fates[i] = Fate("same", j, moved=True)
    arrived = set(moved.values())
    for left, right in replaced:
        pairs = pair_lines(
            old, new, [i for i in left if i not in moved], [j for j in right if j not in arrived]
        )
        for i, j in pairs.items():
            fates[i] = Fate("changed", j)
    return fates


def find_moves(
    old: Sequence[str], new: Sequence[str], removed: Sequence[int], inserted: Sequence[int]
) -> dict[int, int]:
    """Pair removed lines with equal inserted ones: unique lines, and their equal neighbours."""
    if not removed or not inserted:
        return {}
    counts_old = Counter(old[i] for i in removed)
    counts_new = Counter(new[j] for j in inserted)
    place = {new[j]: j for j in inserted}
    moves = {
        i: place[old[i]]
        for i in removed
        if old[i].strip() and counts_old[old[i]] == 1 == counts_new[old[i]]
    }
    free_old, free_new = set(removed) - moves.keys(), set(inserted) - set(moves.values())
    for direction in (1, -1):
        for i in sorted(moves, reverse=direction < 0):
            here, there = i + direction, moves[i] + direction
            while here in free_old and there in free_new and old[here] == new[there]:
                moves[here] = there
                free_old.discard(here)
                free_new.discard(there)
                here, there = here + direction, there + direction
    return moves


def pair_lines(
    old: Sequence[str], new: Sequence[str], removed: Sequence[int], inserted: Sequence[int]
) -> dict[int, int]:
    """Match removed lines with the inserted ones that they were changed into.

    Equally many lines on both sides are paired in order; otherwise similar lines are paired. What
    is left over on only one side was deleted or inserted. If both sides have lines left over, these
    are paired in order, and any further removed lines are all paired with the last one.
    """
    left = [i for i in removed if old[i].strip()]
    right = [j for j in inserted if new[j].strip()]
    if len(left) == len(right):
        return dict(zip(left, right, strict=True))
    pairs = _align(old, new, left, right)
    taken = set(pairs.values())
    spare = [j for j in right if j not in taken]
    over = [i for i in left if i not in pairs]
    if spare:
        pairs |= {i: spare[min(n, len(spare) - 1)] for n, i in enumerate(over)}
    return pairs


def _align(
    old: Sequence[str], new: Sequence[str], left: list[int], right: list[int]
) -> dict[int, int]:
    """Pair lines in order, maximising the total similarity."""
    rows, columns = len(left), len(right)
    if rows * columns > 10_000:  # a rewritten text, in which following lines is pointless
        return {}
    scores = [[_similarity(old[i], new[j]) for j in right] for i in left]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            both = scores[i][j] + best[i + 1][j + 1] if scores[i][j] >= _SIMILAR else 0.0
            best[i][j] = max(both, best[i + 1][j], best[i][j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < rows and j < columns:
        if scores[i][j] >= _SIMILAR and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            pairs[left[i]] = right[j]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _similarity(a: str, b: str) -> float:
    """Return the similarity of two lines, 0 to 1: by characters, or by words if they are long."""
    if max(len(a), len(b)) > _LONG:
        one, other = _words(a), _words(b)
        if 2 * (one.counts & other.counts).total() < _SIMILAR * (len(one.words) + len(other.words)):
            return 0.0
        return SequenceMatcher(None, one.words, other.words, autojunk=False).ratio()
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < _SIMILAR or matcher.quick_ratio() < _SIMILAR:
        return 0.0
    return matcher.ratio()


class _Words(NamedTuple):
    words: list[str]
    counts: Counter[str]


@lru_cache(maxsize=1024)
def _words(line: str) -> _Words:
    words = _WORD.findall(line)
    return _Words(words, Counter(words))
