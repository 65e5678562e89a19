"""The one reader of documents: which line of a Markdown text is what.

A document is read by markdown-it-py, with Obsidian's rules where those differ from CommonMark:
``%%`` comments, ``$$`` formulas, checkboxes with any mark, footnotes. Its blocks don't overlap.
Whatever else wants to know about a text (tasks, headings, links, facts, chunks) filters them.

Only a line feed ends a line, every position is an offset into the text as given, and the time is
in proportion to the text's length, whatever the text is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

from kbtui.knowledge.format.leaves import (
    Kind as Kind,
    Leaf,
    Span as Span,
    heading_span,
    needs_parse,
    scanned,
)
from kbtui.text import holds_any

_MARKED = ("code", "comment")
"""Kinds whose first and last line may be a mere marker."""
_CACHE_LIMIT = 32_768  # characters; longer documents aren't kept
_FENCES = ("```", "~~~")
_FENCE = re.compile("`+|~+")
_FIRST_PART = 200  # characters
_PART_END = re.compile(r"\n[ \t]*\n(?=[^ \t\n])")
_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n")
_HEAD_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_KEY = re.compile(r"[^\s#\-][^:]*(?=:(?:\s|$))")
_SIGN = re.compile(r"[^\W_]")
_BOX = re.compile(r"\[([^\[\]\r\n])\][ \t]+(?=\S)")
_BACKTICKS = re.compile("`+")
_COMMENT_MARK = re.compile("%%|<!--|-->")


class Block(NamedTuple):
    """A part of a document that contains no other.

    Attributes:
        kind: What it is. A paragraph that an item begins with is an ``item`` or ``task``, one right
            in a quote a ``quote``.
        first: Its first line, from 0.
        stop: The line after its last.
        start: The offset of its text: behind bullet and checkbox, or the signs of a heading.
        end: The offset where its text ends.
        depth: How many lists, quotes and footnotes it is in.
        section: The index of its section in `Document.sections`; a heading begins its own.
        level: The level of a heading, from 1; otherwise 0.
        mark: The mark in the checkbox of a task.
        quoted: Whether it is in a quote.
    """

    kind: Kind
    first: int
    stop: int
    start: int
    end: int
    depth: int = 0
    section: int = 0
    level: int = 0
    mark: str = ""
    quoted: bool = False


class Section(NamedTuple):
    """A heading and what is below it; the first of a document is without one.

    `path` has the headings from the outermost to its own, as written.
    """

    level: int
    title: str
    path: tuple[str, ...]


class Part(NamedTuple):
    """A heading outside of lists and quotes, by its line, and the lines below it.

    Those go from `first` to `stop`, which is excluded: the next heading of its level, or above it.
    """

    level: int
    title: str
    line: int
    first: int
    stop: int


class VisibleLine(NamedTuple):
    """A line that a person sees: its number from 0, kind, and text without markers around it.

    `under` is the heading above it, or, of a property, the key at the top level.
    """

    line: int
    kind: Kind
    text: str
    under: str


class Ranges:
    """Ranges of a text in order; test with ``offset in ranges``."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans)
        self._starts = [start for start, _ in self._spans]

    def __contains__(self, offset: int) -> bool:
        found = bisect_right(self._starts, offset) - 1
        return found >= 0 and offset < self._spans[found][1]

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


class Document:
    """A text that is read as Markdown, as far as somebody asks.

    Args:
        text: The text.
        has_head: Whether the text is a whole file, which may begin with properties; otherwise it is
            the body of one, or an excerpt.
        is_excerpt: Whether it may begin within a list, so that what is indented is no code for
            that. Tags of HTML are text.
    """

    def __init__(self, text: str, *, has_head: bool = True, is_excerpt: bool = False) -> None:
        self.text = text
        self._is_excerpt = is_excerpt
        self.body_start = head_end(text) if has_head else 0
        """The offset where the properties end."""

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of each line; a line feed at the end begins one more, which is empty."""
        lengths = [len(line) + 1 for line in self.text.split("\n")]
        return [0, *accumulate(lengths[:-1])]

    def line_at(self, offset: int) -> int:
        """Return the number, from 0, of the line at an offset."""
        return bisect_right(self.line_starts, offset) - 1

    def line(self, number: int) -> str:
        """Return a line without its line feed."""
        start, end = self._line_spans[number]
        return self.text[start:end]

    def line_span(self, number: int) -> Span:
        """Return the offsets of a line without its line feed."""
        return self._line_spans[number]

    @cached_property
    def _line_spans(self) -> list[Span]:
        starts = self.line_starts
        ends = [each - 1 for each in starts[1:]]
        return list(zip(starts, [*ends, len(self.text)], strict=True))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks from top to bottom, each line of the properties being one."""
        return tuple(self._walk(_leaves(self._body, is_excerpt=self._is_excerpt)))

    @cached_property
    def headings(self) -> tuple[Block, ...]:
        """The blocks that are headings, in quotes as well."""
        is_read = "blocks" in self.__dict__ or self._is_excerpt
        if not (is_read or self._may_hide or _has_other_headings(self._body)):
            return tuple(self._plain_headings())
        return tuple(block for block in self.blocks if block.level)

    def _plain_headings(self) -> Iterator[Block]:
        offset, section = self.body_start, 0
        for section, found in enumerate(_PLAIN_HEADING.finditer(self._body), 1):
            level, (start, end) = heading_span(self._body, *found.span())
            line = self.line_at(found.start() + offset)
            span = start + offset, end + offset
            yield Block("heading", line, line + 1, *span, section=section, level=level)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections from top to bottom; the first is what is above all headings."""
        found, above = [Section(0, "", ())], list[Section]()
        for block in self.headings:
            if block.quoted:
                continue
            while above and above[-1].level >= block.level:
                above.pop()
            title = _folded(self.text[block.start : block.end])
            path = (*above[-1].path, title) if above else (title,)
            above.append(Section(block.level, title, path))
            found.append(above[-1])
        return tuple(found)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The headings outside of lists and quotes from top to bottom, each with what is below."""
        found = [each for each in self.headings if not each.depth]
        parts = []
        for number, each in enumerate(found, 1):
            later = (other.first for other in found[number:] if other.level <= each.level)
            stop = next(later, len(self.line_starts))
            lines = self.text[each.start : each.end].splitlines()  # of an underlined one, several
            title = " ".join(map(str.strip, lines)) if len(lines) > 1 else "".join(lines)
            parts.append(Part(each.level, title, each.first, each.stop, stop))
        return tuple(parts)

    def walk(self) -> Iterator[Block]:
        """Yield the blocks, reading little further than somebody asks."""
        if "blocks" in self.__dict__ or self._is_excerpt:
            return iter(self.blocks)
        return self._walk(_leaves_by_parts(self._body))

    def _walk(self, leaves: Iterable[Leaf]) -> Iterator[Block]:
        yield from self._properties()
        line, offset, section = self.text.count("\n", 0, self.body_start), self.body_start, 0
        for kind, first, stop, start, end, depth, level, quoted in leaves:
            section += level > 0 and not quoted
            lines, span = (first + line, stop + line), (start + offset, end + offset)
            if kind == "item" and (box := _BOX.match(self.text, *span)):
                yield Block("task", *lines, box.end(), span[1], depth, section, 0, box[1], quoted)
            else:
                yield Block(kind, *lines, *span, depth, section, level, "", quoted)

    @cached_property
    def _body(self) -> str:
        """The text below the properties, in which a carriage return is a blank: it ends no line."""
        body = self.text[self.body_start :] if self.body_start else self.text
        return body.replace("\r", " ").replace("\0", "\N{REPLACEMENT CHARACTER}")

    def _properties(self) -> list[Block]:
        if not self.body_start:
            return []
        last = self.text.count("\n", 0, self.body_start)
        if self.body_start == len(self.text) and not self.text.endswith("\n"):
            last += 1
        found: list[Block] = []
        for number in range(1, last - 1):
            start, end = self._line_spans[number]
            if text := self.text[start:end].strip():
                begin = self.text.index(text, start)
                found.append(Block("property", number, number + 1, begin, begin + len(text)))
        return found

    def visible_lines(self) -> list[VisibleLine]:
        """Return every line that a person sees, whatever its kind, but no rules and bare markers.

        Each line with a letter or digit is one of them.
        """
        key, done = "", 0
        seen: list[VisibleLine] = []
        for block in self.blocks:
            under = self.sections[block.section].title
            if done != block.first:
                seen += self._between(done, block.first, under)
            done = block.stop
            if block.kind == "property":
                found = _KEY.match(self.text, *self._line_spans[block.first])
                key = under = found[0].strip() if found else key
            seen += self._lines_of(block, under)
        if self.body_start < len(self.text) or not self.body_start:
            seen += self._between(done, len(self.line_starts), self.sections[-1].title)
        return seen

    def _between(self, first: int, stop: int, under: str) -> list[VisibleLine]:
        """Return the lines outside of all blocks that aren't bare markers, such as ``1984.``."""
        if first == stop or (self.body_start and self.line_starts[first] < self.body_start):
            return []
        if not _SIGN.search(self.text, self.line_starts[first], self._line_spans[stop - 1][1]):
            return []
        texts = [(number, self.line(number).strip()) for number in range(first, stop)]
        return [VisibleLine(at, "item", text, under) for at, text in texts if _SIGN.search(text)]

    def _lines_of(self, block: Block, under: str) -> list[VisibleLine]:
        found: list[VisibleLine] = []
        for number in range(block.first, block.stop):
            start, end = self._line_spans[number]
            if block.kind == "heading":
                end = max(start, min(end, block.end))
            text = self.text[max(start, block.start) : end] if start <= block.end else ""
            text = text.lstrip(" \t>") if block.quoted and number > block.first else text
            if (text := text.strip()) and (block.kind not in _MARKED or _SIGN.search(text)):
                found.append(VisibleLine(number, block.kind, text, under))
        return found

    @cached_property
    def code(self) -> Ranges:
        """The ranges of code: blocks, formulas on lines of their own, and what is in backticks."""
        has_ticks = "`" in self.text
        if not self._may_hide:
            if not has_ticks:
                return Ranges(())
            spans = list(_spans_by_line(self.text, self.body_start))
            if None not in spans and not ("]:" in self.text and _LABEL.search(self.text)):
                return Ranges(filter(None, spans))
        found = [self._whole_lines(each) for each in self.blocks if each.kind == "code"]
        if has_ticks:
            for block in self.blocks:
                found += self.code_spans(block)
        return Ranges(found)

    @cached_property
    def _may_hide(self) -> bool:
        return _may_hide(self._body)

    @cached_property
    def fenced_blocks(self) -> tuple[Block, ...]:
        """The blocks of code that begin with a fence."""
        if not [each for each in _FENCES if each in self.text]:
            return ()
        code = (each for each in self.blocks if each.kind == "code")
        return tuple(each for each in code if self.text.startswith(_FENCES, each.start))

    @property
    def fenced(self) -> frozenset[int]:
        """The numbers, from 0, of all lines of code between fences, including these."""
        lines = (range(each.first, each.stop) for each in self.fenced_blocks)
        return frozenset(chain.from_iterable(lines))

    def closing_fence(self, block: Block) -> int | None:
        """Return the number of the line that closes a block of code; None if it is left open."""
        last = self.line(block.stop - 1).strip("> \t\r")
        is_closed = block.stop - block.first > 1 and last != "" and not last.strip(last[0])
        return block.stop - 1 if is_closed and last.startswith(_FENCES) else None

    def bare_fence(self, block: Block) -> str:
        """Return the line that opens a block of code, without the words behind its fence."""
        fence = _FENCE.match(self.text, block.start)
        return self.text[self.line_starts[block.first] : fence.end() if fence else block.start]

    def code_of(self, block: Block) -> str:
        """Return the code between the fences of a block, without the indentation of these."""
        closing = self.closing_fence(block)
        indent = block.start - self.line_starts[block.first]
        marks = re.compile(rf"[ \t>]{{0,{indent}}}")
        lines = range(block.first + 1, block.stop if closing is None else closing)
        return "\n".join(marks.sub("", self.line(number), count=1) for number in lines)

    @cached_property
    def comments(self) -> Ranges:
        """The ranges of comments, Obsidian's and those of HTML."""
        if "%%" not in self.text and "<!--" not in self.text:
            return Ranges(())
        found: list[Span] = []
        for block in self.blocks:
            if block.kind not in {"code", "property"}:
                is_open = block.kind == "comment"
                found += _comments(self.text, block.start, block.end, self.code, is_open=is_open)
        return Ranges(found)

    def code_spans(self, block: Block) -> list[Span]:
        """Return the spans in backticks of one block, including the backticks."""
        if block.kind in {"code", "property"}:
            return []
        return list(filter(None, _code_spans(self.text, block.start, block.end)))

    def _whole_lines(self, block: Block) -> Span:
        return self.line_starts[block.first], self._line_spans[block.stop - 1][1]


def read(text: str) -> Document:
    """Return a whole file's text as a document; one of the last few is kept."""
    return _kept(text, has_head=True) if len(text) < _CACHE_LIMIT else Document(text)


def read_body(text: str) -> Document:
    """Return a text without properties as a document; one of the last few is kept."""
    if len(text) < _CACHE_LIMIT:
        return _kept(text, has_head=False)
    return Document(text, has_head=False)


@lru_cache(maxsize=64)
def _kept(text: str, *, has_head: bool) -> Document:
    return Document(text, has_head=has_head)


def head_end(text: str) -> int:
    """Return the offset where the properties that a file begins with end; 0 if it has none."""
    opening = _HEAD.match(text)
    closing = _HEAD_END.search(text, opening.end()) if opening else None
    return closing.end() if closing else 0


def _folded(text: str) -> str:
    return " ".join(text.split())


def _leaves(body: str, *, is_excerpt: bool) -> Iterable[Leaf]:
    if not needs_parse(body):
        return scanned(body)
    from kbtui.knowledge.format.block_parser import parse_leaves  # imported only if needed

    return parse_leaves(body, is_excerpt=is_excerpt)


def _leaves_by_parts(body: str) -> Iterator[Leaf]:
    """Yield the same for who needs the first ones only, reading as much as is needed.

    A part ends above an unindented line below a blank one. What is still open there is read again
    with a part that is longer.
    """
    begin = above = 0
    size = _FIRST_PART
    while begin < len(body):
        # A comment may end in any other part.
        found = _PART_END.search(body, begin + size) if "%%" not in body else None
        part = body[begin : found.end() if found else len(body)]
        parse = _leaves_of_part if len(part) < _CACHE_LIMIT else _leaves_of_part.__wrapped__
        leaves, lines, length = parse(part, is_whole=not found)
        for kind, first, stop, start, end, depth, level, quoted in leaves:
            place = first + above, stop + above, start + begin, end + begin
            yield kind, *place, depth, level, quoted
        begin, above, size = begin + length, above + lines, 2 * size


@lru_cache(maxsize=64)  # title and summary are asked for in turn, and again if the rest changes
def _leaves_of_part(part: str, *, is_whole: bool) -> tuple[list[Leaf], int, int]:
    """Return the leaves of a part, and the lines and characters that they take up."""
    if not needs_parse(part):
        return [*scanned(part)], part.count("\n"), len(part)
    from kbtui.knowledge.format.block_parser import parse_beginning

    return parse_beginning(part, is_whole=is_whole)


# Code ---------------------------------------------------------------------------------------------

_HIDING_SIGNS = ("```", "~~~", "%%", "$$")
_HTML = re.compile(r"^[ \t>*+\-\d.)]*<", re.MULTILINE)
_CODE_IN_ITEM = re.compile(r"^[ \t>*+\-\d.)]*[>*+\-.)](?: {5}| *\t)", re.MULTILINE)
_LABEL = re.compile(r"^[ \t>*+\-\d.)]*\[[^\]\n]*`", re.MULTILINE)  # of a definition or footnote
_INDENTED = re.compile(r"^(?: {4}| {1,3}\t|\t)", re.MULTILINE)
# What is indented and doesn't continue a paragraph: below bare signs, a heading, or what may be a
# definition or a footnote.
_INDENTED_BLOCK = re.compile(
    r"(?:\A|^(?:[ \t>*+\-\d.):=_]*(?:\#.*)?|.*\]:.*)\n)[ \t>]*(?: {4}|\t)", re.MULTILINE
)
_TABLE = re.compile(r"^[ \t>*+\-\d.)]*[|:\-][|:\- \t]*$", re.MULTILINE)  # the line below its head


def _may_hide(text: str) -> bool:
    """Return whether a text may have lines of code or HTML, formulas or comments."""
    if holds_any(text, _HIDING_SIGNS) or ("<" in text and _HTML.search(text)):
        return True
    if "    " not in text and "\t" not in text:
        return False
    if _CODE_IN_ITEM.search(text):
        return True
    if not _INDENTED.search(text):
        return False
    return bool(_INDENTED_BLOCK.search(text)) or ("|" in text and bool(_TABLE.search(text)))


# Headings at the very start of a line, where no list or quote is; and what may be another one, or
# the head of a table.
_PLAIN_HEADING = re.compile(r"^#{1,6}(?:[ \t].*)?$", re.MULTILINE)
_INNER_HEADING = re.compile(r"^[ \t>*+\-\d.)]+#{1,6}(?:[ \t]|$)", re.MULTILINE)
_UNDERLINE = re.compile(r"\n(?<=[^\n]\n)[ \t>*+\-\d.)]*[=-]+[ \t]*$", re.MULTILINE)
_HEADING_IN_NOTE = re.compile(r"\]:[ \t]*#")
_HEADING_WITH_BAR = re.compile(r"^#.*\|", re.MULTILINE)


def _has_other_headings(text: str) -> bool:
    """Return whether a text may have headings that aren't at the very start of a line."""
    if _UNDERLINE.search(text):
        return True
    if "#" not in text:
        return False
    patterns = (_INNER_HEADING, _HEADING_IN_NOTE)
    return any(each.search(text) for each in patterns) or (
        "|" in text and _HEADING_WITH_BAR.search(text) is not None
    )


def _spans_by_line(text: str, start: int) -> Iterator[Span | None]:
    """Yield what is in backticks on each line; None for those that are matched by none there."""
    at = text.find("`", start)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield from _code_spans(text, text.rfind("\n", 0, at) + 1, end)
        at = text.find("`", end)


def _code_spans(text: str, start: int, end: int) -> Iterator[Span | None]:
    """Yield the code spans between two offsets: equal runs of backticks (CommonMark 6.1).

    For a run that opens none, None.
    """
    runs = [found.span() for found in _BACKTICKS.finditer(text, start, end)]
    of_length: dict[int, list[int]] = {}
    for number, (begin, stop) in enumerate(runs):
        of_length.setdefault(stop - begin, []).append(number)
    number = 0
    while number < len(runs):
        begin, stop = runs[number]
        before = text[start:begin] if begin - start < 2 else text[max(start, begin - 64) : begin]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            begin += 1  # escaped
        number += 1
        if begin == stop:
            continue
        equal = of_length.get(stop - begin, [])
        close = bisect_left(equal, number)
        if close < len(equal):
            yield begin, runs[equal[close]][1]
            number = equal[close] + 1
        else:
            yield None


def _comments(
    text: str, start: int, end: int, code: Ranges, *, is_open: bool = False
) -> Iterator[Span]:
    """Yield the comments in a block; one that isn't closed is none, or, if `is_open`, the rest."""
    begin = -1
    for mark in _COMMENT_MARK.finditer(text, start, end):
        if begin >= 0:
            if mark[0] == ("%%" if text.startswith("%%", begin) else "-->"):
                yield begin, mark.end()
                begin = -1
        elif mark[0] != "-->" and mark.start() not in code:
            begin = mark.start()
    if begin >= 0 and is_open:
        yield begin, end
