"""Whether a background change of a file may be made, or must be proposed (design 03, rule 3)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from kbtui.history.change import Actor
from kbtui.knowledge.statements import normalise, plain_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LOST = 0.25
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*\s*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SAME_LINE = 60.0


def lost_share(old: str, new: str) -> float:
    """Which share of the lines of `old` has nothing like it in `new`, from 0 to 1.

    A line that was reworded isn't lost. Blank lines don't count.
    """
    before = [key for line in split_lines(old) if (key := line_key(line))]
    others = Counter(key for line in split_lines(new) if (key := line_key(line)))
    missing = []
    for key in before:
        if others[key]:
            others[key] -= 1
        else:
            missing.append(key)
    rest = list(others.elements())
    lost = 0
    for key in missing:
        like = process.extractOne(key, rest, scorer=fuzz.ratio, score_cutoff=_SAME_LINE)
        if like is None:
            lost += 1
        else:
            del rest[like[2]]
    return lost / len(before) if before else 0.0


def review_reason(old: str, new: str, authors: Sequence[Actor | None] = ()) -> str | None:
    """Say why a background change must be proposed instead of made; None: it may be made.

    Args:
        old: The text as it is.
        new: The text as it would be.
        authors: Who wrote each line of `old`, see `History.authors`.
    """
    share = lost_share(old, new)
    if share > MAX_LOST:
        return f"it would lose {share:.0%} of the lines"
    kept = Counter(line.rstrip() for line in split_lines(new))
    for line, author in zip(split_lines(old), authors, strict=False):
        if kept[line.rstrip()] > 0:
            kept[line.rstrip()] -= 1
        elif author is Actor.YOU and line.strip():
            return f"it would change a line that you wrote: {plain_fact(line)!r}"
    return None


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends, as git counts them: only a line feed ends one."""
    return _LINE.findall(text)


def heading_of(line: str) -> tuple[int, str] | None:
    """The level and text of a heading line; None for any other."""
    match = _HEADING.fullmatch(line)
    return (len(match[1]), match[2]) if match else None


def is_statement(line: str) -> bool:
    """Whether a line says something: it isn't blank and no heading."""
    return bool(line.strip()) and heading_of(line) is None


def line_key(line: str) -> str:
    """How lines are compared: bullets, blanks, case and punctuation aside; headings by name."""
    heading = heading_of(line)
    return normalise(plain_fact(line)) if heading is None else f"# {normalise(heading[1])}"
