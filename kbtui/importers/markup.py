"""Texts of exports made safe to keep, above all HTML, which becomes Markdown.

markdownify does the work. Before it, all that isn't shown is taken out, and links that lead neither
to the web nor to mail nor to a file beside; HTML too deep for it becomes its plain text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

    Tree: TypeAlias = BeautifulSoup

_UNSEEN = frozenset(
    (
        *("script", "style", "head", "template", "noscript", "iframe", "object", "embed", "svg"),
        *("button", "select", "textarea", "link", "meta"),
    )
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_SAFE = re.compile(r"(https?|mailto|ftp|tel|evernote):", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:language|lang)-([\w+#\-]{1,30})")
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


def to_markdown(html: str, prepare: Callable[[Tree], None] | None = None) -> str:
    """Turn HTML, or a part of it, broken in any way, into Markdown.

    `prepare` is given the tree before: to replace tags of one's own, and to lead links elsewhere.
    """
    import warnings

    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.element import PreformattedString, Tag
    from bs4.exceptions import ParserRejectedMarkup
    from markdownify import MarkdownConverter

    with warnings.catch_warnings():  # bs4's advice about texts that look like paths, or like XML
        warnings.simplefilter("ignore", MarkupResemblesLocatorWarning)
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        try:
            tree = BeautifulSoup(html, "html.parser", element_classes={Tag: _quick_tag()})
        except ParserRejectedMarkup:  # a section that is marked as nothing HTML knows
            tree = BeautifulSoup(html.replace("<![", "&lt;!["), "html.parser")
    for part in [*tree.descendants][::-1]:  # what is inside goes first
        if isinstance(part, PreformattedString):
            part.extract()  # comments, doctypes, instructions
        elif isinstance(part, Tag) and _is_unseen(part):
            part.decompose()
    if prepare:
        prepare(tree)
    for tag in tree.find_all(["a", "img", "input"]):
        if tag.name != "input":
            _make_safe(tag)
        elif tag.get("type") == "checkbox":
            tag.replace_with("[x] " if tag.has_attr("checked") else "[ ] ")
    try:
        text = MarkdownConverter(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            newline_style="backslash",
            code_language_callback=_language,
            keep_inline_images_in=["td", "th", "a"],
            table_infer_header=True,
        ).convert_soup(tree)
    except RecursionError:
        text = tree.get_text("\n")
    text = words_of(str(text).replace("\xa0", " "))
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip()


@cache
def _quick_tag() -> type[Tag]:
    """A tag that is asked for a parent by name in a tenth of the time: markdownify asks each."""
    from bs4 import Tag

    class QuickTag(Tag):  # type: ignore[misc]
        def find_parent(self, name: Any = None, attrs: Any = None, **more: Any) -> Tag | None:
            if not isinstance(name, str) or attrs or more:
                return super().find_parent(name, attrs or {}, **more)
            parent = self.parent
            while parent is not None and parent.name != name:
                parent = parent.parent
            return parent

    return QuickTag


def relative_link(path: str) -> str:
    """A path as a Markdown link has it."""
    return quote(path, safe="/~!$&',;=:@+-._")


def _is_unseen(tag: Tag) -> bool:
    if tag.name == "input":
        return (
            tag.get("type") != "checkbox" and tag.parent is not None and tag.parent.name == "form"
        )
    style = tag.attrs.get("style")
    return tag.name in _UNSEEN or (style is not None and bool(_HIDDEN.search(str(style))))


def _make_safe(tag: Tag) -> None:
    name = "href" if tag.name == "a" else "src"
    address = re.sub(r"[\x00-\x20]+", " ", str(tag.get(name) or "")).strip()
    bare = address.replace(" ", "")
    if not address or (_SCHEME.match(bare) and not _SAFE.match(bare)):
        if tag.name == "img":
            tag.replace_with(str(tag.get("alt") or ""))
        else:
            tag.unwrap()
        return
    tag[name] = re.sub(r"[\s()<>]", lambda match: f"%{ord(match[0]):02X}", address)
    del tag["title"]


def _language(tag: Any) -> str:
    for each in (tag, *tag.find_all("code", limit=1)):
        if found := _LANGUAGE.search(" ".join(each.get("class") or [])):
            return found[1]
    return ""
