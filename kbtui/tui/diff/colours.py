"""Subtle colours for Markdown and frontmatter in a difference, line by line.

A line of a difference stands alone, so only what a line shows by itself is coloured: headings,
marks of lists and quotes, links, code, tags, and keys inside the frontmatter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from textual.content import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kbtui.history.looking.diff import DiffLine

_HEADING = re.compile(r"#{1,6}\s.*")
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s(?:\[[ xX]\]\s)?|>\s?|---+\s*$")
_KEY = re.compile(r"[^\s#\-][^:]*:(?=\s|$)")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<link>!?\[\[[^\]]+\]\]|\[[^\]]*\]\([^)\s]+\)|<https?://[^>\s]+>)"
    r"|(?P<tag>(?<![\w/])#[^\W\d][\w/-]*)"
)


def is_markdown(path: str) -> bool:
    """Whether a file is coloured at all."""
    return path.lower().endswith((".md", ".markdown"))


def front_lines(lines: Iterable[DiffLine]) -> set[int]:
    """The places in a file's first hunk that belong to its frontmatter."""
    found: set[int] = set()
    for index, line in enumerate(lines):
        number = line.new or line.old or 0
        if not found and (number != 1 or line.text.rstrip() != "---"):
            return found
        found.add(index)
        if number > 1 and line.kind != "-" and line.text.rstrip() in {"---", "..."}:
            return found
    return found


def colours_of(text: str, *, front: bool) -> list[Span]:
    """The coloured parts of one line."""
    if front:
        match = _KEY.match(text)
        return [Span(0, match.end(), ".diff--key")] if match else []
    if _HEADING.match(text):
        return [Span(0, len(text), ".diff--heading")]
    return list(_spans(text))


def _spans(text: str) -> Iterator[Span]:
    mark = _MARK.match(text)
    if mark:
        yield Span(0, mark.end(), ".diff--mark")
    if "`" in text or "[" in text or "#" in text or "<" in text:
        for match in _INLINE.finditer(text):
            yield Span(match.start(), match.end(), f".diff--{match.lastgroup}")
