"""Where a proposed change is in a text as it is now, and both sides of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import opcodes
from kbtui.history.looking.tracking import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.looking.matching import Opcode
    from kbtui.memory.inbox.hunks import Cut


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a text as it is now, and those that would take their place.

    Attributes:
        first: The first of the lines, 0-based.
        ours: What stands there now.
        theirs: What is proposed.
        base: The lines of the old text that correspond to `ours`: first, and last exclusive.
    """

    first: int
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    base: tuple[int, int] = (0, 0)

    @property
    def last(self) -> int:
        """Where the lines end, exclusive."""
        return self.first + len(self.ours)


class Since:
    """What was done to a text since a proposal was made from it."""

    def __init__(self, base: str, now: str) -> None:
        self._old, self._new = split_lines(base), split_lines(now)
        self._codes = opcodes(keys_of(self._old), keys_of(self._new))
        self._changed = [(a1, a2) for tag, a1, a2, *_ in self._codes if tag != "equal"]

    def left_alone(self, cut: Cut) -> bool:
        """Whether the lines of a cut, and those above and below, are what they were."""
        return not any(a1 <= cut.last + 1 and cut.first - 1 <= a2 for a1, a2 in self._changed)

    def place(self, cut: Cut) -> Place:
        """Both sides of a cut; lines that were changed together with its own are taken in."""
        first, last = cut.first, cut.last
        for a1, a2 in self._changed:
            if _lies_in(cut, a1, a2):
                first, last = min(first, a1), max(last, a2)
        start, end = _start(self._codes, first), _end(self._codes, last)
        if first == last:  # lines that only come go below the line above
            start = end
        theirs = (*self._old[first : cut.first], *cut.lines, *self._old[cut.last : last])
        return Place(start, tuple(self._new[start:end]), theirs, (first, last))


def _lies_in(cut: Cut, first: int, last: int) -> bool:
    """Whether a cut has a line in common with others, or comes in between them."""
    if cut.first == cut.last:
        return first < cut.first < last
    return max(first, cut.first) < min(last, cut.last)


def place_of(now: str, then: str) -> Place:
    """The one place in which two texts differ; all between the first and the last difference."""
    old, new = split_lines(now), split_lines(then)
    a, b = keys_of(old), keys_of(new)
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return Place(head, tuple(old[head : len(a) - tail]), tuple(new[head : len(b) - tail]))


def _start(codes: Sequence[Opcode], line: int) -> int:
    """Where what begins with a line of the old text begins in the new one."""
    for tag, a1, a2, b1, _ in codes:
        if a1 <= line < a2:
            return b1 + line - a1 if tag == "equal" else b1
    return codes[-1][4] if codes else 0


def _end(codes: Sequence[Opcode], line: int) -> int:
    """Where what ends before a line of the old text ends in the new one."""
    for tag, a1, a2, b1, b2 in codes:
        if a1 < line <= a2:
            return b1 + line - a1 if tag == "equal" else b2
    return 0
