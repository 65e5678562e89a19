"""Running text: emphasis, code, links and tags as one styled `Content`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from kbtui.knowledge.format.body import shows_title
from kbtui.presentation.notes import INTO, Named
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.syntax import WIKILINK, LinkRef, parse_line, ref_of
from kbtui.tui.widgets.kinds import KIND_STYLE, mark

_AS_IT_IS: Mapping[str, tuple[str, ...]] = {
    "text": (),
    **dict.fromkeys(("code_inline", "math_inline", "math_inline_double"), (".md--code",)),
    "tag": (".md--tag",),
    "html_inline": (".md--muted",),
}
"""The looks of what is said as it is written."""
_STYLES = {"strong": ".md--strong", "em": ".md--em", "s": ".md--strike", "mark": ".md--mark"}
_LINKED = re.compile(f'{WIKILINK.pattern}|(https?://[^\\s<>"]+)')


_BEGINS = re.compile(
    r"(?P<indent>\s*)(?:(?P<heading>#{1,6})\s+|(?:[-*+]|(?P<number>\d{1,9}[.)]))\s+"
    r"(?:\[(?P<task>[^\[\]])\]\s+)?|(?P<quote>(?:>\s?)+))"
)
_BOXES = {
    " ": ("☐", ".md--bullet"),
    **dict.fromkeys("xX", ("☑", ".md--done")),
    "/": ("◪", ".md--bullet"),
    "-": ("☒", ".md--muted"),
    ">": ("▷", ".md--bullet"),
    "<": ("◁", ".md--bullet"),
    "*": ("★", ".md--bullet"),
}
"""Boxes as themes of Obsidian's draw them: half done, cancelled, put off, scheduled, a star."""
_IS_MARKED = re.compile(r"[*_`\[<=~!\\&#]|://|www\.")


def box(mark: str) -> Content:
    """The box of a task with a blank behind it; one whose sign means nothing here as written."""
    sign, style = _BOXES.get(mark, (f"[{clean_line(mark)}]", ".md--bullet"))
    return Content.styled(f"{sign} ", style)


def line_as_read(text: str, links: Links) -> Content:
    """One line of Markdown as it reads by itself, without knowing what stands around it."""
    if text.lstrip().startswith(("```", "~~~", "|", "    ")):
        return Content.styled(text, ".md--muted")
    begins = _BEGINS.match(text)
    text = text[begins.end() :] if begins is not None else text
    body = Content(text, strip_control_codes=False)
    if _IS_MARKED.search(text):
        body = InlineBuilder(links).walk(parse_line(text)).content()
    if begins is not None and begins["heading"]:
        return body.stylize_before(f".md--h{min(4, len(begins['heading']))}")
    return _sign_of(begins) + body if begins is not None else body


def _sign_of(begins: re.Match[str]) -> Content:
    """What stands for the beginning of an item, a task or a quotation."""
    indent = begins["indent"]
    if begins["task"]:
        return indent + box(begins["task"])
    if begins["quote"]:
        return Content.styled(f"{indent}▌ ", ".md--quote-bar")
    return Content.styled(f"{indent}{begins['number'] or '•'} ", ".md--bullet")


@dataclass(slots=True)
class Links:
    """The links of a document, numbered as the screen's cells refer to them.

    `leads_to` names what is at a link's end; a link that leads nowhere (None) looks different.
    """

    leads_to: Callable[[LinkRef], Named | None]
    refs: list[LinkRef] = field(default_factory=list)

    def style(self, ref: LinkRef) -> tuple[str, Style]:
        """The looks of a link, and the mark by which a click finds it."""
        self.refs.append(ref)
        found = ref.kind in {"web", "file"} or self.leads_to(ref) is not None
        mark = Style.from_meta({"link": len(self.refs) - 1})
        return (".md--link" if found else ".md--missing"), mark

    def shown(self, ref: LinkRef, written: str) -> str:
        """A link by the title of its note, where only the note's path or slug is written."""
        if not shows_title(ref.target, written):
            return written
        named = self.leads_to(ref)
        if named is None or not (title := clean_line(named.title)):
            return written
        return f"{title}{INTO}{ref.heading}" if ref.heading else title


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
        """Append text that was parsed."""
        for node in nodes:
            self._one(node)
        return self

    def _add_whole(self, text: str, *, linked: bool) -> bool:
        """Append a text that is one link, if it is `linked` or names something with a title."""
        target, _, heading = text.partition("#")
        ref = LinkRef("wiki", target, heading)
        named = self._links.leads_to(ref) if target else None
        if not linked and (named is None or not named.title):
            return False
        if named is not None and named.kind is not None:
            self.add(f"{mark(named.kind)} ", f"{KIND_STYLE}{named.kind.name}")
        self.add(self._links.shown(ref, text), *self._links.style(ref))
        return True

    def value(self, text: str, *, linked: bool = False) -> InlineBuilder:
        """Append the value of a property, with the links in it; `linked`: it is one as a whole."""
        text, at = clean_line(text), 0
        if "[[" not in text and self._add_whole(text, linked=linked):
            return self
        for match in _LINKED.finditer(text):
            self.add(text[at : match.start()])
            self._linked(match)
            at = match.end()
        is_tag = not at and text.startswith("#")
        return self.add(text[at:], *((".md--tag",) if is_tag else ()))

    def _linked(self, match: re.Match[str]) -> None:
        """Append a link in the value of a property."""
        _, target, heading, alias, web = match.groups()
        if web:
            self.add(web, *self._links.style(LinkRef("web", web)))
            return
        ref = LinkRef("wiki", target.strip(), (heading or "")[1:].strip())
        self.add(alias or self._links.shown(ref, target or ref.heading), *self._links.style(ref))

    def _one(self, node: SyntaxTreeNode) -> None:
        kind = node.type
        if kind in _AS_IT_IS:
            self.add(node.content, *_AS_IT_IS[kind])
        elif kind == "softbreak":
            self.line_ends.append(self._length)
            self._part()
        elif kind == "hardbreak":
            self.line_ends.append(self._length)
            self._text.append("\n")
            self._length += 1
        elif kind in ("wikilink", "link", "image"):
            self._link(node)
        elif kind == "footnote_ref":
            self.add(f"[{node.meta.get('label') or int(node.meta.get('id', 0)) + 1}]", ".md--muted")
        elif kind != "footnote_anchor":
            self._nested(node, _STYLES.get(kind))

    def _part(self) -> None:
        """A blank between two words, unless there is one."""
        if self._text and not self._text[-1].endswith((" ", "\n")):
            self.add(" ")

    def _nested(self, node: SyntaxTreeNode, *styles: str | Style | None) -> None:
        start = self._length
        self.walk(node.children)
        if self._length > start:
            self._spans += [Span(start, self._length, style) for style in styles if style]

    def _link(self, node: SyntaxTreeNode) -> None:
        if node.type == "wikilink":
            self.add("▣ " if node.meta["embed"] else "", ".md--muted")
            ref = ref_of(node)
            self.add(self._links.shown(ref, node.content), *self._links.style(ref))
        elif node.type == "image":
            ref = ref_of(node)
            self.add("▣ ", ".md--muted")
            self.add(node.content or ref.target or "image", *self._links.style(ref))
        else:
            self._nested(node, *self._links.style(ref_of(node)))
