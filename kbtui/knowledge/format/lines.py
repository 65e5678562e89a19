"""What a line of Markdown is by itself: a heading, a list item; see `document` for the whole."""

from __future__ import annotations

import re

_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*(?:(?<=[ \t])#+)?\s*")  # not C#
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their endings, as git does: only at line feeds."""
    return _LINE.findall(text)


def bullet_of(line: str) -> str:
    """Return the bullet of a list item, including its checkbox; empty for any other line."""
    found = _BULLET.match(line)
    return found[0] if found else ""


def heading_of(line: str) -> tuple[int, str] | None:
    """Return the level and text of a heading; None for any other line."""
    match = _HEADING.fullmatch(line)
    return (len(match[1]), match[2]) if match else None
