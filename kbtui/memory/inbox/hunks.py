"""A proposed text cut into the places where it differs from the text that it was made from.

A cut is as small as a person may want to decide on: list items that come or go one below the
other are cuts of their own, and so are lines of the frontmatter and items that were each replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import keys_of, opcodes
from kbtui.history.merging.front_keys import Front, split_front

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_CUTS = 100
"""More places of one file than that are joined with their neighbours."""
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_KEY = re.compile(r"([\w-]+):(?:\s|$)")
_KEPT_BY_THE_DOOR = "updated"


@dataclass(frozen=True, slots=True)
class Cut:
    """Lines `first` to `last` (0-based, exclusive) of the old text that give way to `lines`."""

    first: int
    last: int
    lines: tuple[str, ...]

    def removed(self, base: Sequence[str]) -> Sequence[str]:
        """The old lines."""
        return base[self.first : self.last]

    def moved(self, by: int) -> Cut:
        """The same in a text that has `by` lines more above it."""
        return replace(self, first=self.first + by, last=self.last + by)


def cut(base: str, text: str) -> list[Cut]:
    """Find what has to be done to `base` to make it say what `text` says, from top to bottom.

    How lines end doesn't count, nor does the date of the last change, which the door keeps.
    """
    text = _with_date_of(base, text)
    old, new = split_lines(base), _with_ends(split_lines(text), line_end(base))
    old_keys, new_keys = keys_of(old), keys_of(new)
    found = [
        part
        for tag, a1, a2, b1, b2 in opcodes(old_keys, new_keys)
        if tag != "equal"
        for part in _parts(a1, old_keys[a1:a2], new[b1:b2])
    ]
    while len(found) > MOST_CUTS:
        pairs = [found[index : index + 2] for index in range(0, len(found), 2)]
        found = [joined(old, pair) for pair in pairs]
    return found


def put(base: str, cuts: Iterable[Cut]) -> str:
    """Make some of the changes; every other line stays byte for byte."""
    old = split_lines(base)
    result: list[str] = []
    at = 0
    for each in sorted(cuts, key=lambda each: (each.first, each.last)):
        result += [*old[at : each.first], *each.lines]
        at = each.last
    return finished([*result, *old[at:]], line_end(base))


def joined(base: Sequence[str], cuts: Sequence[Cut]) -> Cut:
    """One cut for neighbours, with the lines between them."""
    first, last = cuts[0].first, max(each.last for each in cuts)
    lines: list[str] = []
    at = first
    for each in cuts:
        lines += [*base[at : each.first], *each.lines]
        at = each.last
    return Cut(first, last, (*lines, *base[at:last]))


def finished(lines: Sequence[str], end: str) -> str:
    """Join lines, of which only the last one may be without its end."""
    *body, last = lines or [""]
    return "".join(line if line.endswith("\n") else line + end for line in body) + last


def line_end(text: str) -> str:
    r"""How most lines of a text end: ``\n`` or ``\r\n``."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def says_the_same(a: str, b: str) -> bool:
    """Whether two texts differ in nothing but line ends and the date of the last change."""
    return keys_of(split_lines(a)) == keys_of(split_lines(_with_date_of(a, b)))


def _with_date_of(base: str, text: str) -> str:
    fronts = split_front(base), split_front(text)
    if fronts[0] is None or fronts[1] is None:
        return text
    dates = [front.units.get(_KEPT_BY_THE_DOOR) for front in fronts if front]
    if dates[0] is None or dates[1] is None or dates[0] == dates[1]:
        return text
    front = fronts[1]
    units = {**front.units, _KEPT_BY_THE_DOOR: dates[0]}
    whole = Front(front.opening, units, front.closing, [])
    return "".join([*whole.lines(), *front.body])


def _with_ends(lines: Sequence[str], end: str) -> list[str]:
    return [line.rstrip("\r\n") + end if line.endswith("\n") else line for line in lines]


def _parts(first: int, old: Sequence[str], new: Sequence[str]) -> Iterator[Cut]:
    """Split one changed block where a person would."""
    if len(old) == len(new) and all(map(_replaceable, old, new)):
        for offset, line in enumerate(new):
            yield Cut(first + offset, first + offset + 1, (line,))
    elif not old and _is_list(new):
        for start, end in _items(new):
            yield Cut(first, first, tuple(new[start:end]))
    elif not new and _is_list(old):
        for start, end in _items(old):
            yield Cut(first + start, first + end, ())
    else:
        yield Cut(first, first + len(old), tuple(new))


def _replaceable(old: str, new: str) -> bool:
    """Whether a line took the place of another by itself: an item, or a key of the frontmatter."""
    keys = _KEY.match(old), _KEY.match(new)
    if keys[0] and keys[1]:
        return keys[0][1] == keys[1][1]
    return bool(_ITEM.match(old) and _ITEM.match(new))


def _is_list(lines: Sequence[str]) -> bool:
    return bool(_ITEM.match(lines[0])) and all(
        _ITEM.match(line) or not line.strip() or line[0] in " \t" for line in lines
    )


def _items(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    starts = [index for index, line in enumerate(lines) if _ITEM.match(line)]
    yield from zip(starts, [*starts[1:], len(lines)], strict=True)
