"""Ranges of message ids, both ends included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Range = tuple[int, int]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Join what touches or overlaps; the result is sorted and has gaps in between."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def holds(ranges: Sequence[Range], number: int) -> bool:
    """True if a number lies in one of the ranges."""
    return any(first <= number <= last for first, last in ranges)


def overlap(one: Range | None, other: Range | None) -> bool:
    """True if two ranges have a number in common."""
    if one is None or other is None:
        return False
    return one[0] <= other[1] and one[1] >= other[0]


def ranges_of(numbers: Iterable[int]) -> list[Range]:
    """Say numbers as ranges: 1, 2, 3, 7 is 1-3 and 7-7."""
    return merged((number, number) for number in numbers)


def count(ranges: Iterable[Range]) -> int:
    """How many ids lie in ranges that don't overlap."""
    return sum(last - first + 1 for first, last in ranges)


def read_range(value: Any, least: int = 1) -> Range | None:
    """Read ``[a, b]`` out of JSON; None where it isn't a range of ids, which begin with `least`."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:  # two ends
        return None
    first, last = value
    ids = all(isinstance(end, int) and not isinstance(end, bool) for end in (first, last))
    return (first, last) if ids and least <= first <= last else None
