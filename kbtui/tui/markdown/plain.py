"""Stripping of Markdown markup from single lines, cheap enough for rows of a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbtui.workspace.layout import ENTRIES

if TYPE_CHECKING:
    from kbtui.presentation.notes import Names

# Headings, list and quote markers (at the start, or after a dot that joins lines), links, emphasis,
# code, comments, block ids.
_MARKUP = re.compile(
    r"(?:^|(?<=\s))\#{1,6}\s+|(?:^\s*|(?<=·\s))(?:[-*+]\s+(?:\[.\]\s+)?|>\s?|\|\s?)"
    r"|!?\[\[(?:[^\[\]|]*\|)?|\]\]|!?\[(?=[^\[\]]*\]\([^()]*\))|(?<=[^\[\]])\]\([^()]*\)|\*\*|==|`|%%|\s\^[\w-]+$"
)


_PATH_LINK = re.compile(r"\[\[([^\[\]|#]+/[^\[\]|#]+?)(?:\.md)?(?:#[^\[\]|]*)?\]\]")


def kept(text: str) -> list[tuple[int, int]]:
    """Return the spans of a line that aren't markup, or the whole line if nothing else is left."""
    edges = [0, *(edge for each in _MARKUP.finditer(text) for edge in each.span()), len(text)]
    stays = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    return stays if any(text[a:b].strip() for a, b in stays) else [(0, len(text))]


def without_markup(text: str) -> str:
    """Return a line of Markdown without its markup."""
    return "".join(text[a:b] for a, b in kept(text))


def as_read(text: str, names: Names) -> str:
    """Return a line of Markdown without its markup, with links by path shown as titles."""
    return without_markup(_PATH_LINK.sub(lambda link: names[f"{ENTRIES}{link[1]}.md"].title, text))
