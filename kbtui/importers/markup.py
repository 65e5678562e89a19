"""Texts of exports made safe to keep, above all HTML, which becomes Markdown.

What isn't shown stays out, and so do links that lead neither to the web nor to mail nor to a file
beside.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from kbtui.importers.html_writer import markdown_of, tamed
from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

    Tree: TypeAlias = BeautifulSoup

_BLANK_LINES = re.compile(r"\n{3,}")


def words_of(value: Any) -> str:
    """A text, stripped and without control characters; empty if it is none."""
    return clean(value).encode("utf-8", "replace").decode().strip() if type(value) is str else ""


def line_of(value: Any) -> str:
    """The same in one line, for titles and names."""
    return clean_line(words_of(value))


def digest(*parts: str) -> str:
    """A short name for something that has none of its own."""
    data = "\x00".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()[:16]


def to_markdown(
    html: str,
    prepare: Callable[[Tree], None] | None = None,
    lead: Callable[[str], str] = str,
) -> str:
    """Turn HTML, or a part of it, broken in any way, into Markdown.

    `prepare` is given its tree before, to replace tags of one's own; `lead` may lead the address of
    a link elsewhere, and costs less.
    """
    if prepare:
        tree = _tree_of(tamed(html))
        prepare(tree)
        html = tree.decode()
    text = words_of(markdown_of(html, lead).replace("\xa0", " "))
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _tree_of(html: str) -> Tree:
    import warnings

    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.exceptions import ParserRejectedMarkup

    with warnings.catch_warnings():  # bs4's advice about texts that look like paths, or like XML
        warnings.simplefilter("ignore", MarkupResemblesLocatorWarning)
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        try:
            return BeautifulSoup(html, "html.parser")
        except ParserRejectedMarkup:  # a section that is marked as nothing HTML knows
            return BeautifulSoup(html.replace("<![", "&lt;!["), "html.parser")


def relative_link(path: str) -> str:
    """A path as a Markdown link has it."""
    return quote(path, safe="/~!$&',;=:@+-._")
