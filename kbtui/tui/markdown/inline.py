"""Rendering of inline Markdown (emphasis, code, links, tags) to styled `Content`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from kbtui.knowledge.format.body import shows_title
from kbtui.knowledge.format.document import Document
from kbtui.presentation.notes import INTO, Named
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.syntax import WIKILINK, LinkRef, parse_line, ref_of
from kbtui.tui.widgets.kinds import KIND_STYLE, mark

_VERBATIM_STYLES: Mapping[str, tuple[str, ...]] = {
    "text": (),
    **dict.fromkeys(("code_inline", "math_inline", "math_inline_double"), (".md--code",)),
    "tag": (".md--tag",),
    "html_inline": (".md--muted",),
}
"""Styles of inline nodes whose content is shown verbatim."""
_STYLES = {"strong": ".md--strong", "em": ".md--em", "s": ".md--strike", "mark": ".md--mark"}
_LINK_OR_URL = re.compile(f'{WIKILINK.pattern}|(https?://[^\\s<>"]+)')


LINE_MARKER = re.compile(
    r"(?P<indent>\s*)(?:(?P<heading>#{1,6})\s+|(?:[-*+]|(?P<number>\d{1,9}[.)]))\s+"
    r"(?:\[(?P<task>[^\[\]])\]\s+)?|(?P<quote>(?:>\s?)+))"
)
_CHECKBOXES = {
    " ": ("☐", ".md--bullet"),
    **dict.fromkeys("xX", ("☑", ".md--done")),
    "/": ("◪", ".md--bullet"),
    "-": ("☒", ".md--muted"),
    ">": ("▷", ".md--bullet"),
    "<": ("◁", ".md--bullet"),
    "*": ("★", ".md--bullet"),
}
"""Checkboxes as in Obsidian themes: half done, cancelled, forwarded, scheduled, starred."""
HAS_MARKUP = re.compile(r"[*_`\[<=~!\\&#]|://|www\.")


def checkbox(mark: str) -> Content:
    """Return a task's checkbox followed by a space; an unknown mark is shown as written."""
    sign, style = _CHECKBOXES.get(mark, (f"[{clean_line(mark)}]", ".md--bullet"))
    return Content.styled(f"{sign} ", style)


def render_single_line(text: str, links: Links) -> Content:
    """Render one line of Markdown without its context."""
    is_code = Document(text, has_head=False, is_excerpt=True).fenced_blocks
    if is_code or text.lstrip().startswith(("|", "    ")):
        return Content.styled(text, ".md--muted")
    marker = LINE_MARKER.match(text)
    text = text[marker.end() :] if marker is not None else text
    body = Content(text, strip_control_codes=False)
    if HAS_MARKUP.search(text):
        body = InlineBuilder(links).walk(parse_line(text)).content()
    if marker is not None and marker["heading"]:
        return body.stylize_before(f".md--h{min(4, len(marker['heading']))}")
    return _marker_sign(marker) + body if marker is not None else body


def _marker_sign(marker: re.Match[str]) -> Content:
    """Return what is shown for the marker of a list item, a task or a quotation."""
    indent = marker["indent"]
    if marker["task"]:
        return indent + checkbox(marker["task"])
    if marker["quote"]:
        return Content.styled(f"{indent}▌ ", ".md--quote-bar")
    return Content.styled(f"{indent}{marker['number'] or '•'} ", ".md--bullet")


@dataclass(slots=True)
class Links:
    """The links of a document, numbered as the screen's cells refer to them.

    `resolve` returns the name of a link's target, or None for a broken link, which is styled so.
    """

    resolve: Callable[[LinkRef], Named | None]
    refs: list[LinkRef] = field(default_factory=list)

    def style(self, ref: LinkRef) -> tuple[str, Style]:
        """Return a link's style, and the metadata by which a click finds it."""
        self.refs.append(ref)
        found = ref.kind in {"web", "file"} or self.resolve(ref) is not None
        mark = Style.from_meta({"link": len(self.refs) - 1})
        return (".md--link" if found else ".md--missing"), mark

    def label(self, ref: LinkRef, written: str) -> str:
        """Return a link's text, with a path or slug replaced by the note's title."""
        if not shows_title(ref.target, written):
            return written
        named = self.resolve(ref)
        if named is None or not (title := clean_line(named.title)):
            return written
        return f"{title}{INTO}{ref.heading}" if ref.heading else title


class InlineBuilder:
    """Builds the styled text of one block.

    `line_ends` are the offsets in the text at which source lines end. With `breaks` single line
    breaks are shown, instead of as spaces.
    """

    def __init__(self, links: Links, *, breaks: bool = False) -> None:
        self._links = links
        self._breaks = breaks
        self._text: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self.line_ends: list[int] = []

    def content(self) -> Content:
        """Return the text built so far, with its styles."""
        return Content("".join(self._text), self._spans, strip_control_codes=False)

    def add(self, text: str, *styles: str | Style) -> InlineBuilder:
        """Append text."""
        text = clean(text).expandtabs(4)
        self._text.append(text)
        start, self._length = self._length, self._length + len(text)
        if text:
            self._spans += [Span(start, self._length, style) for style in styles]
        return self

    def walk(self, nodes: Sequence[SyntaxTreeNode]) -> InlineBuilder:
        """Append parsed inline nodes."""
        for node in nodes:
            self._add_node(node)
        return self

    def _add_single_link(self, text: str, *, linked: bool) -> bool:
        """Append text as one link, if it is `linked` or names a note with a title."""
        target, _, heading = text.partition("#")
        ref = LinkRef("wiki", target, heading)
        named = self._links.resolve(ref) if target else None
        if not linked and (named is None or not named.title):
            return False
        if named is not None and named.kind is not None:
            self.add(f"{mark(named.kind)} ", f"{KIND_STYLE}{named.kind.name}")
        self.add(self._links.label(ref, text), *self._links.style(ref))
        return True

    def value(self, text: str, *, linked: bool = False) -> InlineBuilder:
        """Append a property's value with its links; if `linked`, the whole value is one."""
        text, at = clean_line(text), 0
        if "[[" not in text and self._add_single_link(text, linked=linked):
            return self
        for match in _LINK_OR_URL.finditer(text):
            self.add(text[at : match.start()])
            self._add_property_link(match)
            at = match.end()
        is_tag = not at and text.startswith("#")
        return self.add(text[at:], *((".md--tag",) if is_tag else ()))

    def _add_property_link(self, match: re.Match[str]) -> None:
        _, target, heading, alias, web = match.groups()
        if web:
            self.add(web, *self._links.style(LinkRef("web", web)))
            return
        ref = LinkRef("wiki", target.strip(), (heading or "")[1:].strip())
        self.add(alias or self._links.label(ref, target or ref.heading), *self._links.style(ref))

    def _add_node(self, node: SyntaxTreeNode) -> None:
        kind = node.type
        if kind in _VERBATIM_STYLES:
            self.add(node.content, *_VERBATIM_STYLES[kind])
        elif kind == "softbreak" and not self._breaks:
            self.line_ends.append(self._length)
            self._add_space()
        elif kind in ("softbreak", "hardbreak"):
            self.line_ends.append(self._length)
            self._text.append("\n")
            self._length += 1
        elif kind in ("wikilink", "link", "image"):
            self._add_link(node)
        elif kind == "footnote_ref":
            self.add(f"[{node.meta.get('label') or int(node.meta.get('id', 0)) + 1}]", ".md--muted")
        elif kind != "footnote_anchor":
            self._add_nested(node, _STYLES.get(kind))

    def _add_space(self) -> None:
        """Append a space unless the text ends with whitespace."""
        if self._text and not self._text[-1].endswith((" ", "\n")):
            self.add(" ")

    def _add_nested(self, node: SyntaxTreeNode, *styles: str | Style | None) -> None:
        start = self._length
        self.walk(node.children)
        if self._length > start:
            self._spans += [Span(start, self._length, style) for style in styles if style]

    def _add_link(self, node: SyntaxTreeNode) -> None:
        if node.type == "wikilink":
            self.add("▣ " if node.meta["embed"] else "", ".md--muted")
            ref = ref_of(node)
            self.add(self._links.label(ref, node.content), *self._links.style(ref))
        elif node.type == "image":
            ref = ref_of(node)
            self.add("▣ ", ".md--muted")
            self.add(node.content or ref.target or "image", *self._links.style(ref))
        else:
            self._add_nested(node, *self._links.style(ref_of(node)))
