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
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from kbtui.knowledge.format.leaves import Kind as Kind, Leaf, Span as Span, needs_parse, scanned

_MARKED = ("code", "comment")
"""Kinds whose first and last line may be a mere marker."""
_CACHE_LIMIT = 32_768  # characters; longer documents aren't kept
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
    """

    def __init__(self, text: str, *, has_head: bool = True) -> None:
        self.text = text
        self.body_start = head_end(text) if has_head else 0
        """The offset where the properties end."""

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of each line; a line feed at the end begins one more, which is empty."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def line_at(self, offset: int) -> int:
        """Return the number, from 0, of the line at an offset."""
        return bisect_right(self.line_starts, offset) - 1

    def line(self, number: int) -> str:
        """Return a line without its line feed."""
        return self.text[slice(*self.line_span(number))]

    def line_span(self, number: int) -> Span:
        """Return the offsets of a line without its line feed."""
        starts = self.line_starts
        end = starts[number + 1] - 1 if number + 1 < len(starts) else len(self.text)
        return starts[number], end

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks from top to bottom, each line of the properties being one."""
        return (*self._properties(), *self._read[0])

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections from top to bottom; the first is what is above all headings."""
        return self._read[1]

    @cached_property
    def _body(self) -> str:
        """The text below the properties, in which a carriage return is a blank: it ends no line."""
        body = self.text[self.body_start :] if self.body_start else self.text
        return body.replace("\r", " ").replace("\0", "\N{REPLACEMENT CHARACTER}")

    @cached_property
    def _read(self) -> tuple[tuple[Block, ...], tuple[Section, ...]]:
        first = self.text.count("\n", 0, self.body_start)
        return _placed(self.text, _leaves(self._body), first, self.body_start)

    def _properties(self) -> Iterator[Block]:
        if not self.body_start:
            return
        last = self.text.count("\n", 0, self.body_start)
        if self.body_start == len(self.text) and not self.text.endswith("\n"):
            last += 1
        for number in range(1, last - 1):
            start, end = self.line_span(number)
            if text := self.text[start:end].strip():
                begin = self.text.index(text, start)
                yield Block("property", number, number + 1, begin, begin + len(text))

    def visible_lines(self) -> Iterator[VisibleLine]:
        """Yield every line that a person sees, whatever its kind, but no rules and bare markers.

        Each line with a letter or digit is one of them.
        """
        key, done = "", 0
        for block in self.blocks:
            yield from self._between(done, block.first, block.section)
            done = block.stop
            under = self._title(block.section)
            if block.kind == "property":
                found = _KEY.match(self.line(block.first))
                key = under = found[0].strip() if found else key
            yield from self._lines_of(block, under)
        if self.body_start < len(self.text) or not self.body_start:
            yield from self._between(done, len(self.line_starts), len(self.sections) - 1)

    def _title(self, section: int) -> str:
        return self.sections[section].title if section else ""

    def _between(self, first: int, stop: int, section: int) -> Iterator[VisibleLine]:
        """Yield the lines outside of all blocks that aren't bare markers, such as ``1984.``."""
        if first == stop:
            return
        inside_head = self.body_start and self.line_starts[first] < self.body_start
        for number in range(first, stop):
            text = self.line(number).strip()
            if not inside_head and _SIGN.search(text):
                yield VisibleLine(number, "item", text, self._title(section))

    def _lines_of(self, block: Block, under: str) -> Iterator[VisibleLine]:
        for number in range(block.first, block.stop):
            start, end = self.line_span(number)
            if block.kind == "heading":
                end = max(start, min(end, block.end))
            text = self.text[max(start, block.start) : end] if start <= block.end else ""
            text = text.lstrip(" \t>") if block.quoted and number > block.first else text
            if (text := text.strip()) and (block.kind not in _MARKED or _SIGN.search(text)):
                yield VisibleLine(number, block.kind, text, under)

    @cached_property
    def code(self) -> Ranges:
        """The ranges of code: blocks, formulas on lines of their own, and what is in backticks."""
        has_ticks = "`" in self.text
        if not _may_hide(self._body):
            if not has_ticks:
                return Ranges(())
            spans = list(_spans_by_line(self.text, self.body_start))
            if None not in spans and "]:" not in self.text:  # a label may have some as well
                return Ranges(filter(None, spans))
        found = [self._whole_lines(each) for each in self.blocks if each.kind == "code"]
        if has_ticks:
            for block in self.blocks:
                found += self.code_spans(block)
        return Ranges(found)

    @cached_property
    def comments(self) -> Ranges:
        """The ranges of comments, Obsidian's and those of HTML."""
        if "%%" not in self.text and "<!--" not in self.text:
            return Ranges(())
        found: list[Span] = []
        for block in self.blocks:
            if block.kind == "comment":
                found.append(self._whole_lines(block))
            elif block.kind not in {"code", "property"}:
                found += _comments(self.text, block.start, block.end, self.code)
        return Ranges(found)

    def code_spans(self, block: Block) -> list[Span]:
        """Return the spans in backticks of one block, including the backticks."""
        if block.kind in {"code", "property", "comment", "html"}:
            return []
        return list(filter(None, _code_spans(self.text, block.start, block.end)))

    def _whole_lines(self, block: Block) -> Span:
        return self.line_starts[block.first], self.line_span(block.stop - 1)[1]


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


def added_visible(before: str, after: str) -> list[VisibleLine]:
    """Return the lines a person sees in the whole file `after` and didn't see in `before`.

    A line counts by its text without markers and blanks, whatever its kind: what became a heading
    or has moved isn't added, what stands twice and stood once is.
    """
    known = Counter(_folded(each.text) for each in read(before).visible_lines())
    added: list[VisibleLine] = []
    for line in read(after).visible_lines():
        text = _folded(line.text)
        if known[text]:
            known[text] -= 1
        else:
            added.append(line)
    return added


def _folded(text: str) -> str:
    return " ".join(text.split())


# From leaves to blocks ----------------------------------------------------------------------------


def _placed(
    text: str, leaves: Iterable[Leaf], line: int, offset: int
) -> tuple[tuple[Block, ...], tuple[Section, ...]]:
    """Return the blocks and sections of a text whose body begins at a line and offset."""
    blocks: list[Block] = []
    sections = [Section(0, "", ())]
    above: list[Section] = []
    for leaf in leaves:
        kind, first, stop, start, end, depth, level, quoted = leaf
        span, mark = (start + offset, end + offset), ""
        if kind == "heading" and not quoted:
            while above and above[-1].level >= level:
                above.pop()
            title = _folded(text[slice(*span)])
            path = (*above[-1].path, title) if above else (title,)
            above.append(Section(level, title, path))
            sections.append(above[-1])
        box = _BOX.match(text, *span) if kind == "item" else None
        if box:
            span, mark = (box.end(), span[1]), box[1]
        shown: Kind = "task" if box else kind
        lines, section = (first + line, stop + line), len(sections) - 1
        blocks.append(Block(shown, *lines, *span, depth, section, level, mark, quoted))
    return tuple(blocks), tuple(sections)


def _leaves(body: str) -> Iterable[Leaf]:
    if not needs_parse(body):
        return scanned(body)
    from kbtui.knowledge.format.block_parser import parse_leaves  # only here is the parser imported

    return parse_leaves(body)


# Code ---------------------------------------------------------------------------------------------

_HIDING = re.compile(
    r"```|~~~|%%|\$\$"
    r"|^[ \t>*+\-\d.)]*<"  # HTML
    r"|^[ \t>*+\-\d.)]*[>*+\-.)](?: {5}| *\t)",  # code in an item or a quote
    re.MULTILINE,
)
_INDENTED = re.compile(r"^(?: {4}| {1,3}\t|\t)", re.MULTILINE)
# What is indented and doesn't continue a paragraph: below bare signs, a heading, or what may be a
# row of a table, a definition or a footnote.
_INDENTED_BLOCK = re.compile(
    r"(?:\A|^(?:[ \t>*+\-\d.):=_]*(?:\#.*)?|.*(?:\||\]:).*)\n)[ \t>]*(?: {4}|\t)", re.MULTILINE
)


def _may_hide(text: str) -> bool:
    """Return whether a text may have lines of code or HTML, formulas or comments."""
    if _HIDING.search(text):
        return True
    # Of a table, the last row may have no bar.
    return bool(_INDENTED.search(text)) and ("|" in text or bool(_INDENTED_BLOCK.search(text)))


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


def _comments(text: str, start: int, end: int, code: Ranges) -> Iterator[Span]:
    """Yield the comments within a paragraph; what is never closed is none."""
    opened = -1
    for mark in _COMMENT_MARK.finditer(text, start, end):
        is_closed = opened >= 0 and text.startswith("%%", opened) == (mark[0] == "%%")
        if opened >= 0 and is_closed and mark[0] != "<!--":
            yield opened, mark.end()
            opened = -1
        elif opened < 0 and mark[0] != "-->" and mark.start() not in code:
            opened = mark.start()
