"""The parser behind `document`: markdown-it-py's rules for blocks, and Obsidian's.

Text within a block isn't parsed. For each line only the rules are tried that its first character
allows, and one rule reads both paragraphs and underlined headings, which makes it three times as
fast; what it finds is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    code,
    fence,
    heading,
    html_block,
    list_block,
    reference,
    table,
)
from markdown_it.token import Token
from mdit_py_plugins.footnote.index import footnote_def

from kbtui.knowledge.format.leaves import Kind, Leaf, heading_span

Rule = Callable[[StateBlock, int, int, bool], bool]

MAX_DEPTH: Final = 32
"""How many lists and quotes may be in one another; the bullets deeper inside are plain text."""

_INTERRUPTED: Final = ("paragraph", "reference", "blockquote")
_MIN_RULE: Final = 3
_BLANKS: Final = " \t"
_OPENINGS: Final = {
    "list_item_open": "item",
    "blockquote_open": "quote",
    "footnote_reference_open": "footnote",
}


def parse_leaves(text: str, *, is_excerpt: bool = False) -> list[Leaf]:
    """Return the blocks of a text that contain no others, from top to bottom.

    Of an excerpt, which may begin within a list, nothing is code for being indented, nor HTML.
    """
    state = _State(text, _parser(is_excerpt=is_excerpt), {}, [])
    state.md.block.tokenize(state, 0, state.lineMax)
    return state.leaves


def parse_beginning(text: str, *, is_whole: bool) -> tuple[list[Leaf], int, int]:
    """Return the same of a text that may go on, and the line and offset of what is left.

    That is the last block, which may not have ended.
    """
    if is_whole:
        return parse_leaves(text), text.count("\n"), len(text)
    state = _State(text, _parser(is_excerpt=False), {}, [])
    count = 0
    line = following = state.skipEmptyLines(0)
    while following < state.lineMax:
        line, count = following, len(state.leaves)
        _take(state, line, state.lineMax, "paragraph")
        following = state.skipEmptyLines(state.line)
    return state.leaves[:count], line, state.bMarks[line]


@cache
def _parser(*, is_excerpt: bool) -> MarkdownIt:
    """Return a parser; it has no state of its own."""
    parser = MarkdownIt("zero", {"html": not is_excerpt, "maxNesting": 4 * MAX_DEPTH})
    parser.block = _Blocks()
    if is_excerpt:
        parser.block.ruler.disable("code")
    parser.block.ruler.at("hr", _rule, {"alt": [*_INTERRUPTED, "list"]})
    interrupting: RuleOptionsType = {"alt": [*_INTERRUPTED]}
    parser.block.ruler.before("list", "comment", _comment, interrupting)
    parser.block.ruler.before("list", "formula", _formula, interrupting)
    parser.block.ruler.before("reference", "footnote_def", footnote_def, interrupting)
    return parser


class _State(StateBlock):
    """The parser's state; `leaves` is what has been found."""

    def __init__(self, src: str, md: MarkdownIt, env: dict[str, Any], tokens: list[Any]) -> None:
        super().__init__(src, md, env, tokens)
        self.leaves: list[Leaf] = []
        self.depth = 0
        self.quotes = 0

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Push a token of which only what the rules for blocks read is there, in half the time."""
        token = Token.__new__(Token)
        self.level -= nesting < 0
        token.type, token.tag, token.nesting, token.level = ttype, tag, nesting, self.level
        self.level += nesting > 0
        self.tokens.append(token)
        return token

    def add(self, kind: Kind, first: int, stop: int, span: tuple[int, int], level: int = 0) -> None:
        """Add a leaf."""
        self.leaves.append((kind, first, stop, *span, self.depth, level, self.quotes > 0))


class _Blocks(ParserBlock):
    """Reads the blocks in a list item, a quote, a footnote or the whole text."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803 — theirs
        """Read a range of lines, and leave `state.line` where the method of the base class does."""
        if not isinstance(state, _State):
            raise TypeError(type(state))
        opened = _OPENINGS.get(state.tokens[-1].type, "") if state.tokens else ""
        state.depth += bool(opened)
        state.quotes += opened == "quote"
        kind: Kind = "item" if opened == "item" else "paragraph"
        line = startLine
        while line < endLine:
            state.line = line = state.skipEmptyLines(line)
            if line >= endLine or state.sCount[line] < state.blkIndent:
                break
            _take(state, line, endLine, "quote" if opened == "quote" else kind)
            kind = "paragraph"
            line = state.line
            if line < endLine and state.isEmpty(line):
                line += 1
                state.line = line
        state.depth -= bool(opened)
        state.quotes -= opened == "quote"


def _take(state: _State, line: int, end: int, kind: Kind) -> None:
    """Read one block; a paragraph is of the given kind."""
    if not _take_marked(state, line, end):
        _take_text(state, line, end, kind)


def _take_marked(state: _State, line: int, end: int) -> bool:
    """Read a block that its first characters tell; return False if it is a paragraph."""
    start = state.bMarks[line] + state.tShift[line]
    count = len(state.tokens)
    if state.is_code_block(line):
        code(state, line, end, False)
        return _leaf(state, "code", line, start, count)
    if _may_be_table(state, line, end) and table(state, line, end, False):
        for row in (line, *range(line + 2, state.line)):
            begin = state.bMarks[row] + state.tShift[row]
            state.add("row", row, row + 1, (begin, _text_end(state, begin, row)))
        del state.tokens[count:]
        return True
    for rule, kind in _RULES.get(state.src[start], ()):
        if kind is None:
            if state.depth < MAX_DEPTH and rule(state, line, end, False):
                del state.tokens[count:]
                return True
        elif rule(state, line, end, False):
            return _leaf(state, kind, line, start, count)
    return False


def _leaf(state: _State, kind: Kind | Literal["rule"], line: int, start: int, count: int) -> bool:
    """Add what a rule has read; rules between paragraphs are no text. Return True."""
    del state.tokens[count:]
    if kind == "heading":
        signs, span = heading_span(state.src, start, state.eMarks[line])
        state.add("heading", line, line + 1, span, signs)
    elif kind != "rule":
        if kind == "html" and state.src.startswith("<!--", start):
            kind = "comment"
        state.add(kind, line, state.line, (start, _text_end(state, start, state.line - 1)))
    return True


def _take_text(state: _State, line: int, end: int, kind: Kind) -> None:
    """Read a paragraph, or the heading that its underline makes of it (CommonMark 4.3 and 4.8)."""
    start = state.bMarks[line] + state.tShift[line]
    above, state.parentType = state.parentType, "paragraph"
    stop, level = line + 1, 0
    while stop < state.lineMax and not state.isEmpty(stop):
        indent = state.sCount[stop]
        if indent - state.blkIndent <= 3 and indent >= 0:
            level = _underline(state, stop) if stop < end and indent >= state.blkIndent else 0
            if level or _interrupts(state, stop, end):
                break
        stop += 1
    state.parentType = above
    span = start, _text_end(state, start, stop - 1)
    if level:
        state.line = stop + 1
        state.add("heading", line, stop + 1, span, level)
    else:
        state.line = stop
        state.add(kind, line, stop, span)


def _underline(state: _State, line: int) -> int:
    """Return the level of the heading that a line underlines; 0 if it underlines none."""
    start = state.bMarks[line] + state.tShift[line]
    sign = state.src[start]
    if sign not in "-=" or state.src[start : state.eMarks[line]].rstrip(_BLANKS).strip(sign):
        return 0
    return 1 if sign == "=" else 2


def _interrupts(state: _State, line: int, end: int) -> bool:
    """Return whether a line ends the paragraph above it."""
    for rule in _INTERRUPTING.get(state.src[state.bMarks[line] + state.tShift[line]], ()):
        if rule(state, line, state.lineMax, True):
            return True
    return _may_be_table(state, line, end) and table(state, line, state.lineMax, True)


def _may_be_table(state: _State, line: int, end: int) -> bool:
    """Return whether the next line may be that below a table's head."""
    if line + 2 > end:
        return False
    below = state.bMarks[line + 1] + state.tShift[line + 1]
    return below < state.eMarks[line + 1] and state.src[below] in "|-:"


def _text_end(state: StateBlock, start: int, line: int) -> int:
    return start + len(state.src[start : max(start, state.eMarks[line])].rstrip(_BLANKS))


def _text_of(state: StateBlock, line: int) -> str:
    """Return a line in its list or quote, without blanks around it."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip(_BLANKS)


def _rule(state: StateBlock, first: int, end: int, silent: bool) -> bool:  # noqa: ARG001 — theirs
    """Read a rule (CommonMark 4.1), even of 5 MB, for which the library's takes seconds."""
    text = _text_of(state, first)
    sign = text[:1]
    if sign not in {"-", "*", "_"} or text[-1] != sign or text.lstrip(sign + _BLANKS):
        return False
    if text.count(sign) < _MIN_RULE or state.is_code_block(first):
        return False
    state.line = state.line if silent else first + 1
    return True


# Obsidian's own blocks ----------------------------------------------------------------------------


def _comment(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read a comment between ``%%`` that begins a line; an open one is text."""
    text = _text_of(state, first)
    if not text.startswith("%%") or state.is_code_block(first):
        return False
    stop = first + 1
    if text.count("%%") % 2 == 0:
        if any(map(str.strip, text.split("%%")[::2])):
            return False  # text beside it
    else:
        while _continues(state, first, stop, end) and _text_of(state, stop).count("%%") % 2 == 0:
            stop += 1
        if not _continues(state, first, stop, end):
            return False
        stop += 1
    state.line = state.line if silent else stop
    return True


def _formula(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read a formula between ``$$`` that begins a line and has no blank one."""
    text = _text_of(state, first)
    if not text.startswith("$$") or state.is_code_block(first):
        return False
    stop = first + 1
    if "$$" in text[2:]:
        if text.find("$$", 2) != len(text) - 2:
            return False  # text beside it
    else:
        while _continues(state, first, stop, end) and (below := _text_of(state, stop)):
            stop += 1
            if "$$" in below:
                break
        else:
            return False
    state.line = state.line if silent else stop
    return True


def _continues(state: StateBlock, first: int, line: int, end: int) -> bool:
    """Return whether a line belongs to the same item or quote as the `first` of a block."""
    indent = min(state.blkIndent, state.sCount[first])
    return line < end and (state.sCount[line] >= indent or state.isEmpty(line))


_LIST: Final = ((_rule, "rule"), (list_block, None))
_RULES: Final[dict[str, tuple[tuple[Rule, Any], ...]]] = {
    "`": ((fence, "code"),),
    "~": ((fence, "code"),),
    ">": ((blockquote, None),),
    "-": _LIST,
    "*": _LIST,
    "_": ((_rule, "rule"),),
    **dict.fromkeys("+0123456789", ((list_block, None),)),
    "%": ((_comment, "comment"),),
    "$": ((_formula, "code"),),
    "[": ((footnote_def, None), (reference, "definition")),
    "<": ((html_block, "html"),),
    "#": ((heading, "heading"),),
}
"""The rules that a block's first character allows, with the kind of leaf; None for a container."""
_INTERRUPTING: Final = {
    sign: tuple(rule for rule, _ in rules if rule is not reference)
    for sign, rules in _RULES.items()
}
