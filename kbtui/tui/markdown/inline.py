"""Running text: emphasis, code, links and tags as one styled `Content`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from kbtui.text import clean

LinkKind = Literal["wiki", "markdown", "web"]
_MARKED = re.compile(r"==(?=\S)(.+?)(?<=\S)==")
_STYLES = {"strong": ".md--strong", "em": ".md--em", "s": ".md--strike"}
_WEB = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class LinkRef:
    """A link in the text: where it leads as it is written, and a heading there."""

    kind: LinkKind
    target: str
    heading: str = ""


@dataclass(slots=True)
class Links:
    """The links of a document, numbered as the screen's cells refer to them.

    `leads_somewhere` tells whether a link has an entry at its end; where not, it looks different.
    """

    leads_somewhere: Callable[[LinkRef], bool]
    refs: list[LinkRef] = field(default_factory=list)

    def style(self, ref: LinkRef) -> tuple[str, Style]:
        """The looks of a link, and the mark by which a click finds it."""
        self.refs.append(ref)
        found = ref.kind == "web" or self.leads_somewhere(ref)
        mark = Style.from_meta({"link": len(self.refs) - 1})
        return (".md--link" if found else ".md--missing"), mark


def link_of(href: str) -> LinkRef:
    """Tell a link into the web from one to a file of the workspace."""
    if href.lower().startswith(_WEB):
        return LinkRef("web", clean(href))
    target, _, heading = href.partition("#")
    return LinkRef("markdown", clean(target), clean(heading))


class InlineBuilder:
    """Collects the text of one block with its styles.

    `line_ends` are the places in the text at which a line of the source ends.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._text: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self.line_ends: list[int] = []

    def content(self) -> Content:
        """The text that was collected, with its styles."""
        text = "".join(self._text)
        spans = self._spans + [
            Span(match.start(), match.end(), ".md--mark") for match in _MARKED.finditer(text)
        ]
        return Content(text, spans, strip_control_codes=False)

    def add(self, text: str, *styles: str | Style) -> None:
        """Append text."""
        text = clean(text).expandtabs(4)
        self._text.append(text)
        start, self._length = self._length, self._length + len(text)
        if text:
            self._spans += [Span(start, self._length, style) for style in styles]

    def walk(self, node: SyntaxTreeNode) -> InlineBuilder:
        """Append all that is inside `node`."""
        for child in node.children:
            self._one(child)
        return self

    def _one(self, node: SyntaxTreeNode) -> None:
        kind = node.type
        if kind == "text":
            self.add(node.content)
        elif kind == "code_inline":
            self.add(node.content, ".md--code")
        elif kind == "softbreak":
            self.line_ends.append(self._length)
            self.add(" ")
        elif kind == "hardbreak":
            self.line_ends.append(self._length)
            self._text.append("\n")
            self._length += 1
        elif kind in ("wikilink", "link", "image"):
            self._link(node)
        elif kind == "tag":
            self.add(node.content, ".md--tag")
        elif kind == "footnote_ref":
            self.add(f"[{node.meta.get('label') or int(node.meta.get('id', 0)) + 1}]", ".md--muted")
        elif kind == "html_inline":
            self.add(node.content, ".md--muted")
        elif kind != "footnote_anchor":
            self._nested(node, _STYLES.get(kind))

    def _nested(self, node: SyntaxTreeNode, *styles: str | Style | None) -> None:
        start = self._length
        self.walk(node)
        if self._length > start:
            self._spans += [Span(start, self._length, style) for style in styles if style]

    def _link(self, node: SyntaxTreeNode) -> None:
        if node.type == "wikilink":
            meta = node.meta
            ref = LinkRef("wiki", clean(meta["target"]), clean(meta["heading"]))
            self.add("▣ " if meta["embed"] else "", ".md--muted")
            self.add(node.content, *self._links.style(ref))
        elif node.type == "image":
            ref = link_of(str(node.attrs.get("src", "")))
            self.add("▣ ", ".md--muted")
            self.add(node.content or ref.target or "image", *self._links.style(ref))
        else:
            self._nested(node, *self._links.style(link_of(str(node.attrs.get("href", "")))))
