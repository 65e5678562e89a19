"""Parser of Markdown with the extensions of GitHub and Obsidian.

There are two modes. Notes are parsed as Obsidian shows them, without comments, block ids and HTML
tags. Messages of a conversation are parsed whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from kbtui.knowledge.format.document import Document
from kbtui.text import clean

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

CALLOUT = re.compile(r"\[!([^\[\]\n|]+)(?:\|[^\[\]\n]*)?\]([+-]?)[ \t]*")
"""The beginning of a callout of Obsidian's: ``[!kind]- ``; its groups are the kind and the fold."""
WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\\?\|([^\[\]\n]*))?\]\]")
_PICTURE = re.compile(r"!\[[^\[\]\n]*\]\(<?([^()<>\s]+)>?[^()\n]*\)")
_TAG = re.compile(r"#(?=[^\d\W]|\d+[^\d\s])[\w/-]+")
_HIGHLIGHT = re.compile(r"==(?=[^\s=])([^=\n]|=(?!=))*(?<=\S)==")
_HTML_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(?=[\s/>])[^<>]*>")
_ANCHOR = re.compile(r"([^<]*)</a>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s(src|alt|href)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_DETAILS = re.compile(r"<(/?)details(?=[\s>])[^<>]*>", re.IGNORECASE)
_SUMMARY = re.compile(
    r"<details(?:\s[^<>]*?(?P<open>\bopen\b)[^<>]*|\s[^<>]*)?>"
    r"\s*(?:<summary(?:\s[^<>]*)?>(?P<title>[^\n]*(?:\n[^\n]*){0,2}?)</summary>)?[ \t]*(?:\n|$)",
    re.IGNORECASE,
)
_MAX_SUMMARY_LINES = 5
"""Lines within which a ``<summary>`` has to end."""
_WEB_SCHEMES = ("http://", "https://", "mailto:")
LinkKind = Literal["wiki", "markdown", "web", "file"]
_HTML_NAMES = re.compile(
    "a|abbr|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button"
    "|canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|div"
    "|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|h1|h2|h3|h4|h5|h6|head|header"
    "|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter"
    "|nav|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby"
    "|s|samp|section|select|small|source|span|strike|strong|sub|summary|sup|svg|table|tbody|td"
    "|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
_SCRIPT = re.compile(r"<(/?)(script|style)(?=[\s>])[^<>]*>", re.IGNORECASE)
_HIDING_SIGN = re.compile(r"%%|<!--|<script|<style|\^", re.IGNORECASE)
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^[A-Za-z0-9-]+[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LinkRef:
    """A link in the text: its target as written, and a heading there.

    For the kind ``file`` the target is a workspace path, and the heading a line number.
    """

    kind: LinkKind
    target: str
    heading: str = ""


def link_of(href: str) -> LinkRef:
    """Parse a URL as a link to the web or to a file of the workspace."""
    if href.lower().startswith(_WEB_SCHEMES):
        return LinkRef("web", clean(href))
    target, _, heading = href.partition("#")
    return LinkRef("markdown", clean(target), clean(heading))


def ref_of(node: SyntaxTreeNode) -> LinkRef:
    """Return the target of a link or image node."""
    if node.type == "wikilink":
        return LinkRef("wiki", clean(node.meta["target"]), clean(node.meta["heading"]))
    return link_of(str(node.attrs.get("src" if node.type == "image" else "href", "")))


def embed_of(line: Sequence[SyntaxTreeNode]) -> LinkRef | None:
    """Return the target of a line that consists of one embed, else None."""
    line = [each for each in line if each.type != "text" or each.content.strip()]
    if len(line) != 1:
        return None
    only = line[0]
    embeds = only.type == "image" or (only.type == "wikilink" and only.meta["embed"])
    return ref_of(only) if embeds else None


def embedded_in(text: str) -> list[LinkRef]:
    """Return the distinct files a text embeds, in order, including any in code."""
    wiki = (
        (at.start(), LinkRef("wiki", at[2].strip(), (at[3] or "")[1:].strip()))
        for at in WIKILINK.finditer(text)
        if at[1]
    )
    pictures = ((at.start(), link_of(at[1])) for at in _PICTURE.finditer(text))
    found = sorted([*wiki, *pictures], key=lambda pair: pair[0])
    return [
        ref for ref in dict.fromkeys(ref for _, ref in found) if ref.kind != "web" and ref.target
    ]


def parse(text: str, *, whole: bool = False) -> SyntaxTreeNode:
    """Parse Markdown without frontmatter into a tree; any text is valid.

    With `whole` nothing is left out. Line numbers are the same either way.
    """
    if not whole:
        text = without_hidden(text)
    return SyntaxTreeNode(_parser(whole=whole).parse(text))


def parse_line(text: str) -> list[SyntaxTreeNode]:
    """Parse one line of inline Markdown."""
    return SyntaxTreeNode(_parser(whole=False).parseInline(text)).children[0].children


def without_hidden(text: str) -> str:
    """Return a text without comments and block ids; line numbers stay the same."""
    if not _HIDING_SIGN.search(text):
        return text
    document = Document(text, has_head=False)
    kept: list[str] = []
    at = 0
    for start, end in sorted([*_closed_comments(document), *_scripts(document)]):
        if start >= at:
            kept += [text[at:start], "\n" * text.count("\n", start, end)]
            at = end
    return "".join([*kept, text[at:]])


def _closed_comments(document: Document) -> Iterator[tuple[int, int]]:
    """Yield the comments that end, and the block ids, which are as little text."""
    text, code = document.text, document.code
    yield from (span for span in document.comments if text.endswith(("%%", "-->"), *span))
    yield from (id_.span() for id_ in _BLOCK_ID.finditer(text) if id_.start() not in code)


def _scripts(document: Document) -> Iterator[tuple[int, int]]:
    """Yield the scripts and styles that end."""
    begin, opened = 0, ""
    for tag in _SCRIPT.finditer(document.text):
        name = tag[2].lower()
        if tag.start() not in document.code and not opened and not tag[1]:
            begin, opened = tag.start(), name
        elif tag[1] and name == opened:
            yield begin, tag.end()
            opened = ""


_MAX_NESTING = 100  # a list takes two levels; the parser drops what is deeper


@lru_cache(maxsize=2)
def _parser(*, whole: bool) -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": True, "maxNesting": _MAX_NESTING}).use(footnote_plugin)
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("image", "wikilink_embed", _wikilink)
    parser.inline.ruler.before("wikilink", "tag", _tag)
    parser.inline.ruler.before("wikilink", "mark", _highlight)
    parser.inline.ruler.before("mark", "lone_bracket", _lone_bracket)
    if not whole:
        # HTML blocks then parse as paragraphs, whose tags are left out.
        parser.block.ruler.before(
            "html_block", "details", _details, {"alt": ["paragraph", "reference", "blockquote"]}
        )
        parser.disable("html_block")
        parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
        parser.inline.ruler.before("html_inline", "element", _html_tag)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = WIKILINK.match(state.src, state.pos)
    if match is None or match.end() > state.posMax or not (match[2] or match[3]):
        return False
    if not silent:
        target, heading = match[2].strip(), (match[3] or "")[1:].strip()
        token = state.push("wikilink", "", 0)
        token.content = (match[4] or " > ".join(filter(None, (target, heading)))).strip()
        token.meta = {"target": target, "heading": heading, "embed": bool(match[1])}
    state.pos = match.end()
    return True


def _lone_bracket(state: StateInline, silent: bool) -> bool:
    """Take a bracket that no other closes as text: the parser would look for one at each again."""
    if state.src[state.pos] != "[" or state.src.find("]", state.pos, state.posMax) >= 0:
        return False
    if not silent:
        state.pending += "["
    state.pos += 1
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "#" or (state.pos and not state.src[state.pos - 1].isspace()):
        return False
    match = _TAG.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        state.push("tag", "", 0).content = match.group()
    state.pos = match.end()
    return True


def _highlight(state: StateInline, silent: bool) -> bool:
    match = _HIGHLIGHT.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        end = state.posMax
        state.push("mark_open", "mark", 1)
        state.pos, state.posMax = match.start() + 2, match.end() - 2
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
        state.posMax = end
    state.pos = match.end()
    return True


def _details(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``<details>`` whose tags are on lines of their own, except for the summary's.

    The text of any other is a paragraph.
    """
    if not _stripped_line(state, start).lower().startswith("<details"):
        return False
    last = _closing_line(state, start, end)
    if last is None:
        return False
    head = range(start, min(last, start + _MAX_SUMMARY_LINES))
    opened = _SUMMARY.match("\n".join(_stripped_line(state, number) for number in head))
    if opened is not None and not silent:
        _push_details(state, start, last, opened)
    return opened is not None


def _stripped_line(state: StateBlock, number: int) -> str:
    at = state.bMarks[number] + state.tShift[number]
    return state.src[at : state.eMarks[number]].strip()


def _closing_line(state: StateBlock, start: int, end: int) -> int | None:
    """Return the line that closes a ``<details>`` within its list item, or None."""
    depth = 0
    for number in range(start, end):
        line = _stripped_line(state, number)
        if line and state.sCount[number] < state.blkIndent:
            return None
        depth += sum(1 if not found[1] else -1 for found in _DETAILS.finditer(line))
        if depth <= 0:
            return number if line.lower() == "</details>" else None
    return None


def _push_details(state: StateBlock, start: int, last: int, opened: re.Match[str]) -> None:
    """Push the tokens of a ``<details>``, and move the parser past it."""
    body = start + 1 + opened[0].rstrip("\n").count("\n")
    token = state.push("details_open", "details", 1)
    token.map, token.meta = [start, last + 1], {"open": bool(opened["open"])}
    title = state.push("inline", "", 0)
    title.content, title.children = (opened["title"] or "").strip() or "Details", []
    title.map = [start, body]
    bounds = state.lineMax, state.parentType
    state.lineMax = last
    state.md.block.tokenize(state, body, last)
    state.lineMax, state.parentType = bounds
    state.push("details_close", "details", -1)
    state.line = last + 1


def _html_tag(state: StateInline, silent: bool) -> bool:
    """Parse an HTML tag as a link, an image or a line break, else hide it."""
    match = _HTML_TAG.match(state.src, state.pos)
    if match is None or match.end() > state.posMax or not _HTML_NAMES.fullmatch(match[1].lower()):
        return False
    name = match[1].lower() if match[0][1] != "/" else ""
    attrs = {key.lower(): "".join(value) for key, *value in _ATTRIBUTE.findall(match[0])}
    state.pos, link_text = match.end(), None
    anchor = _ANCHOR.match(state.src, state.pos) if name == "a" and "href" in attrs else None
    if anchor is not None and anchor.end() <= state.posMax:
        state.pos, link_text = anchor.end(), anchor[1]
    if not silent:
        _push_html_tag(state, name, attrs, link_text)
    return True


def _push_html_tag(
    state: StateInline, name: str, attrs: Mapping[str, str], link_text: str | None
) -> None:
    """Push the token of an HTML tag: a link with text, an image, a line break or nothing."""
    if link_text is not None:
        state.push("link_open", "a", 1).attrs = {"href": attrs["href"]}
        state.push("text", "", 0).content = link_text
        state.push("link_close", "a", -1)
    elif name == "img":
        token = state.push("image", "img", 0)
        token.attrs, token.content = {"src": attrs.get("src", "")}, attrs.get("alt", "")
    else:
        state.push("hardbreak" if name == "br" else "nothing", "", 0)
