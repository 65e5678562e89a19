"""One line of Markdown as it reads, without its markup; cheap enough for rows of a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbtui.workspace.layout import ENTRIES

if TYPE_CHECKING:
    from kbtui.presentation.notes import Names

# Marks of headings, of a list or quote at the start or behind a dot between lines, links, emphasis,
# code, comments, block ids.
_MARKUP = re.compile(
    r"(?:^|(?<=\s))\#{1,6}\s+|(?:^\s*|(?<=·\s))(?:[-*+]\s+(?:\[.\]\s+)?|>\s?|\|\s?)"
    r"|!?\[\[(?:[^\[\]|]*\|)?|\]\]|!?\[(?=[^\[\]]*\]\([^()]*\))|(?<=[^\[\]])\]\([^()]*\)|\*\*|==|`|%%|\s\^[\w-]+$"
)


_PATH_LINK = re.compile(r"\[\[([^\[\]|#]+/[^\[\]|#]+?)(?:\.md)?(?:#[^\[\]|]*)?\]\]")


def kept(text: str) -> list[tuple[int, int]]:
    """The stretches of a line that aren't markup; all of it where nothing would be left."""
    edges = [0, *(edge for each in _MARKUP.finditer(text) for edge in each.span()), len(text)]
    stays = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    return stays if any(text[a:b].strip() for a, b in stays) else [(0, len(text))]


def without_markup(text: str) -> str:
    """A line of Markdown as it reads."""
    return "".join(text[a:b] for a, b in kept(text))


def as_read(text: str, names: Names) -> str:
    """A line of Markdown as it reads, with the notes that it leads to by a path by their titles."""
    return without_markup(_PATH_LINK.sub(lambda link: names[f"{ENTRIES}{link[1]}.md"].title, text))
