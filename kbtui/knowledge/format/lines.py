"""Lines of Markdown, one by one: which are headings, items of a list, or of a fenced block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*\s*")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends, as git counts them: only a line feed ends one."""
    return _LINE.findall(text)


def bullet_of(line: str) -> str:
    """What stands before the text of a list's item, its box included; empty for another line."""
    found = _BULLET.match(line)
    return found[0] if found else ""


def heading_of(line: str) -> tuple[int, str] | None:
    """The level and text of a heading; None for any other line."""
    match = _HEADING.fullmatch(line)
    return (len(match[1]), match[2]) if match else None


def fenced(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is of a fenced block, the marks around it included."""
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        is_mark = mark is not None and fence in ("", mark[1])
        yield line, is_mark or bool(fence)
        if mark and is_mark:
            fence = "" if fence else mark[1]
