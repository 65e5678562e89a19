"""Inclusive ranges of message ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Range = tuple[int, int]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Merge ranges that touch or overlap; the result is sorted, with gaps between the ranges."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def holds(ranges: Sequence[Range], number: int) -> bool:
    """Return whether a number lies in one of the ranges."""
    return any(first <= number <= last for first, last in ranges)


def overlap(one: Range | None, other: Range | None) -> bool:
    """Return whether two ranges have a number in common."""
    if one is None or other is None:
        return False
    return one[0] <= other[1] and one[1] >= other[0]


def ranges_of(numbers: Iterable[int]) -> list[Range]:
    """Group numbers into ranges: 1, 2, 3, 7 become 1-3 and 7-7."""
    return merged((number, number) for number in numbers)


def count(ranges: Iterable[Range]) -> int:
    """Return how many ids lie in ranges that don't overlap."""
    return sum(last - first + 1 for first, last in ranges)


def read_range(value: Any, minimum: int = 1) -> Range | None:
    """Parse ``[a, b]`` from JSON; return None unless it is a range of ids from `minimum` up."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:  # two ends
        return None
    first, last = value
    ids = all(isinstance(end, int) and not isinstance(end, bool) for end in (first, last))
    return (first, last) if ids and minimum <= first <= last else None
