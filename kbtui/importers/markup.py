"""Cleaning of text from exports, above all the conversion of HTML to Markdown.

Hidden content is dropped, and so are links other than to the web, mail, a phone number, an
Evernote note or a relative file.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from kbtui.importers.html_writer import escape_unclosed, markdown_of
from kbtui.text import clean, clean_line, is_damaged_unicode, storable

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

    Tree: TypeAlias = BeautifulSoup

_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?([\w-]{3,30})", re.IGNORECASE)
_DECLARED = 4096
_BLANK_LINES = re.compile(r"\n{3,}")


def words_of(value: Any) -> str:
    """Return a string stripped and without control characters, or "" for any other value."""
    return storable(clean(value)).strip() if type(value) is str else ""


def line_of(value: Any) -> str:
    """Return the same on one line, for titles and names."""
    return clean_line(words_of(value))


def decoded(data: bytes) -> str:
    """Decode a text file, which is in UTF-8 or UTF-16, says what it is in, or is from old Windows.

    A text in UTF-8 with damaged bytes stays one; these become U+FFFD.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8-sig", "replace")
        if is_damaged_unicode(data, text, error.start):
            return text
    declared = _CHARSET.search(data[:_DECLARED])
    with suppress(LookupError, UnicodeDecodeError):
        return data.decode(declared[1].decode() if declared else "cp1252")
    return text


def digest(*parts: str) -> str:
    """Return 16 hex digits of a hash, as an id for something without one."""
    data = "\x00".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()[:16]


def to_markdown(
    html: str,
    prepare: Callable[[Tree], None] | None = None,
    rewrite_link: Callable[[str], str] = str,
    dropped: Counter[str] | None = None,
) -> str:
    """Convert HTML, a fragment or malformed, to Markdown.

    `prepare` gets the parsed tree first, to replace custom tags; `rewrite_link` maps the address of
    each link to a new one, and needs no tree; `dropped` counts what is hidden, by its tag.
    """
    if prepare:
        tree = _tree_of(escape_unclosed(html))
        prepare(tree)
        html = tree.decode()
    text = words_of(markdown_of(html, rewrite_link, dropped).replace("\xa0", " "))
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _tree_of(html: str) -> Tree:
    import warnings

    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.exceptions import ParserRejectedMarkup

    with warnings.catch_warnings():  # bs4's hints about text that looks like a path or like XML
        warnings.simplefilter("ignore", MarkupResemblesLocatorWarning)
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        try:
            return BeautifulSoup(html, "html.parser")
        except ParserRejectedMarkup:  # an unknown marked section
            return BeautifulSoup(html.replace("<![", "&lt;!["), "html.parser")


def relative_link(path: str) -> str:
    """Return a path percent-encoded for a Markdown link."""
    return quote(path, safe="/~!$&',;=:@+-._")
