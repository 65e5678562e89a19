"""The leaves of a document: its blocks that contain no others; and texts that need no parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from kbtui.text import holds_any

Kind = Literal[
    "heading",
    "paragraph",
    "item",
    "task",
    "quote",
    "row",
    "code",
    "comment",
    "html",
    "property",
    "definition",
]
"""What a line is. A ``row`` is one of a table; a ``definition`` gives a link's target elsewhere."""

Span = tuple[int, int]
"""The start and end of something, as offsets into a text."""

Leaf = tuple[Kind, int, int, int, int, int, int, bool]
"""A block before its section is known: kind, lines, span, depth, level, whether it is quoted."""

# Signs of code, comments, formulas, definitions and footnotes
_SPECIAL = ("```", "~~~", "%%", "$$", "]:")
_SPECIAL_LINE = re.compile(
    r"^(?:[ \t]+[^ \t\n]"  # indented
    r"|[<>]"  # HTML, a quote
    r"|(?:[*_=][ \t]*)+$|[|:-][|:\- \t]*$"  # a rule, the line below a heading or a table's head
    # An empty item, one of code, and one that begins with another block
    r"|(?:[-*+]|\d{1,9}[.)])(?:$|\t| {5}| +(?:$|\t|[-*+>#<~|:$%_=`]|\d{1,9}[.)])))",
    re.MULTILINE,
)
_SIGNS = re.compile(r"#{1,6}(?=[ \t]|$)")
_BULLET = re.compile(r"(?:[-*+]|(\d{1,9})[.)]) +")


def needs_parse(text: str) -> bool:
    """Return whether a text has more than headings, paragraphs and items side by side.

    What has no more is read line by line, which `block_parser` would read in the same way.
    """
    return holds_any(text, _SPECIAL) or _SPECIAL_LINE.search(text) is not None


def scanned(text: str) -> Iterator[Leaf]:
    """Yield the leaves of a text that needs no parser."""
    kind: Kind | None = None
    first = start = end = at = 0
    for number, line in enumerate(text.split("\n")):
        begin, at = at, at + len(line) + 1
        signs = _SIGNS.match(line) if line[:1] == "#" else None
        bullet = None if signs else _BULLET.match(line)
        if bullet and bullet[1] and kind == "paragraph" and int(bullet[1]) != 1:
            bullet = None  # only a list that begins with 1 ends a paragraph
        is_blank = not line.strip(" \t")
        if kind and (signs or bullet or is_blank):
            yield kind, first, number, start, end, int(kind == "item"), 0, False
            kind = None
        if signs:
            level, span = heading_span(text, begin, at - 1)
            yield "heading", number, number + 1, *span, 0, level, False
        elif not is_blank:
            if not kind:
                kind, first = "item" if bullet else "paragraph", number
                start = begin + (bullet.end() if bullet else 0)
            end = begin + len(line.rstrip(" \t"))
    if kind:
        yield kind, first, text.count("\n") + 1, start, end, int(kind == "item"), 0, False


def heading_span(text: str, start: int, end: int) -> tuple[int, Span]:
    """Return the level of a heading that begins with ``#``, and the span of its text."""
    line = text[start:end]
    level = len(line) - len(line.lstrip("#"))
    written = line[level:].rstrip(" \t")
    shown = written.rstrip("#")
    shown = shown.rstrip(" \t") if not shown or shown[-1] in " \t" else written
    begin = start + level + len(shown) - len(shown.lstrip(" \t"))
    return level, (begin, begin + len(shown.strip(" \t")))
