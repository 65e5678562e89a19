"""One line of Markdown as it reads, without its markup; cheap enough for rows of a list."""

from __future__ import annotations

import re

# Marks of headings, of a list or quote at the start, links, emphasis, code, comments, block ids.
_MARKUP = re.compile(
    r"(?:^|(?<=\s))\#{1,6}\s+|^\s*(?:[-*+]\s+(?:\[.\]\s+)?|>\s?|\|\s?)"
    r"|!?\[\[(?:[^\[\]|]*\|)?|\]\]|!?\[(?=[^\[\]]*\]\([^()]*\))|(?<=[^\[\]])\]\([^()]*\)|\*\*|==|`|%%|\s\^[\w-]+$"
)


def kept(text: str) -> list[tuple[int, int]]:
    """The stretches of a line that aren't markup; all of it where nothing would be left."""
    edges = [0, *(edge for each in _MARKUP.finditer(text) for edge in each.span()), len(text)]
    stays = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    return stays if any(text[a:b].strip() for a, b in stays) else [(0, len(text))]


def without_markup(text: str) -> str:
    """A line of Markdown as it reads."""
    return "".join(text[a:b] for a, b in kept(text))
