"""What notes are written in: Markdown as GitHub and Obsidian have it, as a tree of blocks.

Two ways to read it. A note is read as Obsidian shows it: comments, block ids and HTML tags are
left out. What somebody said in a conversation is shown whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from kbtui.knowledge.format.body import CodeRanges
from kbtui.text import clean

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\\?\|([^\[\]\n]*))?\]\]")
_PICTURE = re.compile(r"!\[[^\[\]\n]*\]\(<?([^()<>\s]+)>?[^()\n]*\)")
_TAG = re.compile(r"#(?=[^\d\W]|\d+[^\d\s])[\w/-]+")
_MARKED = re.compile(r"==(?=[^\s=])([^=\n]|=(?!=))*(?<=\S)==")
_ELEMENT = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(?=[\s/>])[^<>]*>")
_ANCHORED = re.compile(r"([^<]*)</a>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s(src|alt|href)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_DETAILS = re.compile(r"<(/?)details(?=[\s>])[^<>]*>", re.IGNORECASE)
_SUMMARY = re.compile(
    r"<details(?:\s[^<>]*?(?P<open>\bopen\b)[^<>]*|\s[^<>]*)?>"
    r"\s*(?:<summary(?:\s[^<>]*)?>(?P<title>[^\n]*(?:\n[^\n]*){0,2}?)</summary>)?[ \t]*(?:\n|$)",
    re.IGNORECASE,
)
_MOST_OF_HEAD = 5
"""Lines within which a summary ends."""
_WEB = ("http://", "https://", "mailto:")
LinkKind = Literal["wiki", "markdown", "web", "file"]
_HTML = re.compile(
    "a|abbr|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button"
    "|canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|div"
    "|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|h1|h2|h3|h4|h5|h6|head|header"
    "|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter"
    "|nav|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby"
    "|s|samp|section|select|small|source|span|strike|strong|sub|summary|sup|svg|table|tbody|td"
    "|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
_ENDS = {"%%": "%%", "<!--": "-->", "<script": "</script>", "<style": "</style>"}
_HIDING = re.compile(r"%%|<!--|-->|</?(?:script|style)>|<(?:script|style)(?=\s)", re.IGNORECASE)
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^[A-Za-z0-9-]+[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LinkRef:
    """A link in the text: where it leads as it is written, and a heading there.

    One to a ``file`` has its workspace path, and the number of a line for a heading.
    """

    kind: LinkKind
    target: str
    heading: str = ""


def link_of(href: str) -> LinkRef:
    """Tell a link into the web from one to a file of the workspace."""
    if href.lower().startswith(_WEB):
        return LinkRef("web", clean(href))
    target, _, heading = href.partition("#")
    return LinkRef("markdown", clean(target), clean(heading))


def ref_of(node: SyntaxTreeNode) -> LinkRef:
    """Where a link or picture of the tree leads."""
    if node.type == "wikilink":
        return LinkRef("wiki", clean(node.meta["target"]), clean(node.meta["heading"]))
    return link_of(str(node.attrs.get("src" if node.type == "image" else "href", "")))


def embed_of(line: Sequence[SyntaxTreeNode]) -> LinkRef | None:
    """What a line of text embeds that is nothing but an embedded file; None for any other."""
    line = [each for each in line if each.type != "text" or each.content.strip()]
    if len(line) != 1:
        return None
    only = line[0]
    embeds = only.type == "image" or (only.type == "wikilink" and only.meta["embed"])
    return ref_of(only) if embeds else None


def embedded_in(text: str) -> list[LinkRef]:
    """What a text may embed, each file once, in order; some of it may stand in code."""
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

    With `whole` nothing of it is left out. The lines keep their numbers either way.
    """
    if not whole:
        text = without_hidden(text)
    return SyntaxTreeNode(_parser(whole=whole).parse(text))


def parse_line(text: str) -> list[SyntaxTreeNode]:
    """Parse one line of running text."""
    return SyntaxTreeNode(_parser(whole=False).parseInline(text)).children[0].children


def without_hidden(text: str) -> str:
    """A text without its comments and block ids; each line stays where it is."""
    if not _HIDING.search(text) and "^" not in text:
        return text
    code = CodeRanges(text)

    def blank(found: re.Match[str]) -> str:
        return found[0] if found.start() in code else " " * len(found[0])

    text = _BLOCK_ID.sub(blank, text)
    kept: list[str] = []
    at, start, end = 0, 0, ""
    for found in _HIDING.finditer(text):
        sign = found[0].lower()
        if found.start() in code:
            continue
        if end and sign == end:
            kept += [text[at:start], "\n" * text.count("\n", start, found.end())]
            at, end = found.end(), ""
        elif not end:
            start, end = found.start(), _ENDS.get(sign.removesuffix(">"), "")
    return "".join([*kept, text[at:]])


_MOST_NESTED = 100  # a list is two levels; what lies deeper the parser leaves out


@lru_cache(maxsize=2)
def _parser(*, whole: bool) -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": True, "maxNesting": _MOST_NESTED}).use(footnote_plugin)
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("image", "wikilink_embed", _wikilink)
    parser.inline.ruler.before("wikilink", "tag", _tag)
    parser.inline.ruler.before("wikilink", "mark", _mark)
    parser.inline.add_terminator_char("#")
    parser.inline.add_terminator_char("=")
    if not whole:
        # A block of HTML is then a paragraph, whose tags are left out.
        parser.block.ruler.before(
            "html_block", "details", _details, {"alt": ["paragraph", "reference", "blockquote"]}
        )
        parser.disable("html_block")
        parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
        parser.inline.ruler.before("html_inline", "element", _element)
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


def _mark(state: StateInline, silent: bool) -> bool:
    match = _MARKED.match(state.src, state.pos)
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
    """A ``<details>`` whose tags stand on lines of their own, but for the summary's.

    Of any other its words are shown as a paragraph's.
    """
    if not _line(state, start).lower().startswith("<details"):
        return False
    last = _end_of_details(state, start, end)
    if last is None:
        return False
    head = range(start, min(last, start + _MOST_OF_HEAD))
    opened = _SUMMARY.match("\n".join(_line(state, number) for number in head))
    if opened is not None and not silent:
        _push_details(state, start, last, opened)
    return opened is not None


def _line(state: StateBlock, number: int) -> str:
    at = state.bMarks[number] + state.tShift[number]
    return state.src[at : state.eMarks[number]].strip()


def _end_of_details(state: StateBlock, start: int, end: int) -> int | None:
    """The line that closes a ``<details>``; None where none does in the list that it stands in."""
    depth = 0
    for number in range(start, end):
        line = _line(state, number)
        if line and state.sCount[number] < state.blkIndent:
            return None
        depth += sum(1 if not found[1] else -1 for found in _DETAILS.finditer(line))
        if depth <= 0:
            return number if line.lower() == "</details>" else None
    return None


def _push_details(state: StateBlock, start: int, last: int, opened: re.Match[str]) -> None:
    """Add the title and the blocks of a ``<details>``, and go on behind it."""
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


def _element(state: StateInline, silent: bool) -> bool:
    """An HTML tag: a link, a picture or a new line where it is one, else nothing to be seen."""
    match = _ELEMENT.match(state.src, state.pos)
    if match is None or match.end() > state.posMax or not _HTML.fullmatch(match[1].lower()):
        return False
    name = match[1].lower() if match[0][1] != "/" else ""
    said = {key.lower(): "".join(value) for key, *value in _ATTRIBUTE.findall(match[0])}
    state.pos, linked = match.end(), None
    anchored = _ANCHORED.match(state.src, state.pos) if name == "a" and "href" in said else None
    if anchored is not None and anchored.end() <= state.posMax:
        state.pos, linked = anchored.end(), anchored[1]
    if not silent:
        _push(state, name, said, linked)
    return True


def _push(state: StateInline, name: str, said: Mapping[str, str], linked: str | None) -> None:
    """Add what an element shows: a text that is `linked`, a picture, a new line or nothing."""
    if linked is not None:
        state.push("link_open", "a", 1).attrs = {"href": said["href"]}
        state.push("text", "", 0).content = linked
        state.push("link_close", "a", -1)
    elif name == "img":
        token = state.push("image", "img", 0)
        token.attrs, token.content = {"src": said.get("src", "")}, said.get("alt", "")
    else:
        state.push("hardbreak" if name == "br" else "nothing", "", 0)
