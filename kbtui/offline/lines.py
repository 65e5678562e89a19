"""Splitting Markdown into quotable lines: whole sentences, list items and table rows.

Wrapped paragraphs are joined. Frontmatter, headings, comments, code, badges, rules, link
definitions, template fields and struck out text are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kbtui.knowledge.format.document import Block as DocumentBlock, Document, head_end
from kbtui.offline.language import language_of, tokens
from kbtui.text import clean_line


@dataclass(frozen=True, slots=True)
class TextLine:
    """One sentence or item of a text.

    Attributes:
        text: The text as typed, on one line and without its bullet.
        first: Its first line number, from 1.
        last: Its last line number.
        start: Its start offset in the text, in characters.
        end: Its end offset.
        heading: The heading above it.
        time: The time of a journal line, ``09:14``; empty elsewhere.
        item: Whether it is a list item.
        block: The start offset of its paragraph, item or row, in characters.
    """

    text: str
    first: int
    last: int
    start: int
    end: int
    heading: str = ""
    time: str = ""
    item: bool = False
    block: int = 0


TIMED_ITEM = re.compile(r"[-*+•][ \t]+(?:\[[^\]\n]\][ \t]+)?(?P<time>\d\d:\d\d)[ \t]")
_TIMED = re.compile(r"[-*+][ \t]+(?:\[[^\]\n]\][ \t]+)?(?=(?:~~)?\d\d:\d\d[ \t])")
# A comment ends at the latest where another timed item, or another comment, begins.
_COMMENT = re.compile(
    rf"(?<!\w)%%(?:(?!\n{TIMED_ITEM.pattern}).)*?%%"
    rf"|<!--(?:(?!<!--|\n{TIMED_ITEM.pattern.replace('time', 'time2')}).)*?-->",
    re.DOTALL,
)
# Struck out text, with the pointer to its replacement; it ends with its paragraph or item.
_STRUCK = re.compile(
    r"(?<![~\\])~~(?!~)(?:[^\n]|\n(?![ \t]*(?:\n|[-*+•][ \t]|\d{1,3}[.)][ \t])))+?~~(?!~)"
    r"(?:[ \t]*→[ \t]*(?:\d{4}-\d\d-\d\d(?:[ \t]\d\d:\d\d)?|\[\[[^\]\n]+\]\]))?"
)
_BLOCK_ID = re.compile(r"[ \t]\^[\w-]+[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[•◦‣](?=[ \t])", re.MULTILINE)
_CONTROL_CHARACTERS = str.maketrans({"\r": " ", "\0": "\N{REPLACEMENT CHARACTER}"})
_ITEM_PREFIX = re.compile(r"\[[^\]\n]\][ \t]+|\[![\w-]+\][+-]?[ \t]*")  # a checkbox, a callout
_CLOCK = re.compile(r"(?P<struck>~~)?(?P<time>\d\d:\d\d)[ \t]+")
_NOT_A_LINE_FEED = re.compile(r"[^\n]")
_ROW = re.compile(r"^[ \t>]*\|.*\|.*$", re.MULTILINE)
_CONTINUATION = re.compile(r"\n[ \t>]*")
# A badge, picture or link alone, a tag line, markup, a template; and kbtui's own "recorded" line.
_NO_STATEMENT = re.compile(
    r"(?:(?:!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])|!\[\[[^\]\n]*\]\]|\[!\[.*|#[\w/-]+"
    r"|<[%/!a-zA-Z][^\n]*>)\s*)+$|[\w -]{0,30}:{0,2}\s*(?:\{\{.*\}\}|<%.*%>)$"
    r"|\d{4}-\d\d-\d\d: recorded\.?$"
)
# An empty field of a template, unless a list follows.
_TEMPLATE_FIELD = re.compile(r"[\w -]{1,30}::?$")
_LOOKAHEAD = 40
_LOOKBEHIND = 200  # bounds the cost of a line with only dates, which is one long sentence
_ITEMS = ("item", "task")
_NOT_QUOTED = ("code", "comment", "definition")
# A sentence continues after ``Dr.``, ``St.`` and ``z. B.``; ``Ada.`` and ``Oslo.`` end one.
_SENTENCE_END = re.compile(
    r"(?<!\b[DFHJMNS][orst])(?<!\bMrs)(?<!\b[DS]ra)(?<!\b(?:Str|Tel|Ing))(?<!\bProf)"
    r"(?<!\b[^\W\d_])[.!?\u2026][\"'\u201d\u2019)\]*_]*[ \t\n>]+(?![a-z\u00e0-\u00ff])"
    r"|[!?\u2026][ \t\n>]+|(?<=[\u3002\uff01\uff1f])"
)
# The dot of a single letter, as in ``z. b.``, ends no sentence.
_LOWERCASE_START = re.compile(
    r"(?<!\b[^\W\d_])\.[\"'\u201d\u2019)\]*_]*[ \t]+(?=[a-z\u00e0-\u00ff])"
)
_ABBREVIATION = re.compile(
    r"\b(?:approx|bzw|ca|dept|dr|etc|evtl|excl|exkl|fig|ggf|incl|inkl|min|mrs?|ms|prof|resp|sog|sra?"
    r"|st|tel|usw|vgl|vol|vs|[a-z]\.[a-z])\Z",
    re.IGNORECASE,
)

_NUMBER_SIGN = re.compile(r"\b(?:no|nos|nr|num|núm)\Z", re.IGNORECASE)


def lines_of(
    text: str, first: int = 1, *, headings: bool = False, struck_too: bool = False
) -> Iterator[TextLine]:
    """Yield the quotable lines of a Markdown text, which starts at line `first` of its file.

    `headings` includes headings, as on slides; `struck_too` includes struck out text with its
    markup.
    """
    struck = () if struck_too else (_STRUCK,)
    if end := head_end(text):
        text = _without(text, [(0, end)])
    for pattern in (_COMMENT, *struck, _BLOCK_ID):
        text = _blanked(pattern, text)  # offsets don't change
    text = _BULLET.sub(r"\1-", text.translate(_CONTROL_CHARACTERS))
    heading = ""
    for block in _blocks(text):
        if block.kind == "heading":
            heading = text[block.start : block.end]
            if not headings:
                continue
        whole = (block.start, block.end)
        for span in _sentence_spans(text, *whole) if block.kind == "paragraph" else (whole,):
            if (line := _matched_line(text, block, span, heading, first)) is not None:
                yield line


def _matched_line(
    text: str, block: _Block, span: tuple[int, int], heading: str, first: int
) -> TextLine | None:
    """Return the statement in one piece of a block, or None if it states nothing."""
    start, stop = span
    raw = text[start:stop].rstrip()
    clock = _CLOCK.match(text, block.start) if block.kind == "item" else None
    if clock:
        statement = f"{'~~' if clock['struck'] else ''}{clean_line(text[clock.end() : stop])}"
    else:
        statement = _on_one_line(raw)
        if _NO_STATEMENT.match(statement) or (
            _TEMPLATE_FIELD.match(statement) and not block.before_list
        ):
            return None
    if not any(map(str.isalnum, statement)):
        return None
    line = first + block.line + text.count("\n", block.start, start)
    return TextLine(
        statement,
        line,
        line + raw.count("\n"),
        start,
        start + len(raw),
        heading,
        time=clock["time"] if clock else "",
        item=block.kind == "item",
        block=start if _ROW.match(raw) else block.start,
    )


class _Block(NamedTuple):
    """A heading, item or paragraph: its span, 0-based line, and whether a list follows."""

    kind: Literal["heading", "item", "paragraph"]
    start: int
    end: int
    line: int
    before_list: bool


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks of a text that contain sentences; a timed item is a single block."""
    document = Document(text, has_head=False, is_excerpt=True)
    blocks, starts = document.blocks, document.line_starts
    number = 0
    while number < len(blocks):
        block, number = blocks[number], number + 1
        clock = _TIMED.match(text, starts[block.first]) if block.depth else None
        if clock:
            while number < len(blocks) and _is_in_item(document, blocks[number]):
                number += 1
            stop = blocks[number].first if number < len(blocks) else len(starts)
            end = _item_end(document, blocks[number - 1].stop, stop)
            yield _Block("item", clock.end(), end, block.first, before_list=False)
        elif block.kind not in _NOT_QUOTED or text.startswith("$$", block.start):
            yield _quotable(text, block, blocks[number] if number < len(blocks) else None)


def _is_in_item(document: Document, block: DocumentBlock) -> bool:
    """Return whether a block below an unindented item is in it."""
    return block.depth > 0 and document.line(block.first)[0] in " \t"


def _item_end(document: Document, line: int, stop: int) -> int:
    """Return where an item ends of which the blocks end above a line: rules are none."""
    indented = (n for n in range(line, stop) if re.match(r"[ \t]+\S", document.line(n)))
    return document.line_span(max(indented, default=line - 1))[1]


def _quotable(text: str, block: DocumentBlock, below: DocumentBlock | None) -> _Block:
    """Return a block without its markers."""
    lead = _ITEM_PREFIX.match(text, block.start, block.end)
    start = lead.end() if lead and not block.level else block.start
    line = text[start : block.end].partition("\n")[0]
    start += len(line) - len(line.lstrip()) if line.strip() else 0
    before_list = below is not None and below.kind in _ITEMS and below.depth > block.depth
    kind: Literal["heading", "item", "paragraph"] = "paragraph"
    if block.level or block.kind in _ITEMS:
        kind = "heading" if block.level else "item"
    return _Block(kind, start, block.end, block.first, before_list)


def _sentence_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a paragraph's sentences and table rows."""
    for row in [*_ROW.finditer(text, begin, end), None]:
        start = begin
        stop = row.start() if row else end
        for match in _SENTENCE_END.finditer(text, start, stop):
            dot, behind = match.start(), match.end()
            begun = text[max(start, dot - _LOOKBEHIND) : dot]
            rest = text[behind : min(stop, behind + _LOOKAHEAD)]
            if not (match[0][:1] == "." and _is_numbered(begun, rest)):
                yield start, match.end()
                start = match.end()
        yield start, stop
        if row:
            yield row.span()
            begin = row.end()


def _is_numbered(before: str, rest: str) -> bool:
    """Return whether a dot marks a number: ``am 3. Tag``, ``3. March``, ``at no. 17``."""
    if _NUMBER_SIGN.search(before):
        return rest[:1].isdigit()
    words = before.split()
    if not words or not words[-1].isdigit():
        return False
    language, following = language_of(before), tokens(rest)[:1]
    is_date = any(
        each.word in other.places["months"]
        for each in following
        for other in (language, language_of(f"{before} {rest}"))
    )
    return len(words) == 1 or language.nouns_have_capitals or is_date


def _on_one_line(raw: str) -> str:
    """Join a piece to one line without quote markers; the cells of a row by bars."""
    if _ROW.match(raw):
        return " | ".join(filter(None, (cell.strip() for cell in raw.strip(" \t>|").split("|"))))
    return clean_line(_CONTINUATION.sub(" ", raw))


def sentence_spans(text: str, *, edited: bool = False) -> list[tuple[int, int]]:
    """Return the spans of a message's sentences, stripped; each line starts a new one.

    Many people type messages without capitals, so a small letter may start a sentence there; in an
    `edited` text it doesn't.
    """
    found = []
    for line in re.finditer(r"[^\n]+", text):
        for span in _sentence_spans(text, *line.span()):
            for start, stop in [span] if edited else _typed_spans(text, *span):
                if sentence := text[start:stop].strip():
                    begin = text.index(sentence, start)
                    found.append((begin, begin + len(sentence)))
    return found


def _typed_spans(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split a span at sentence ends that are followed by a lowercase letter."""
    for match in _LOWERCASE_START.finditer(text, start, stop):
        begun = text[max(start, match.start() - _LOOKBEHIND) : match.start()]
        rest = text[match.end() : min(stop, match.end() + _LOOKAHEAD)]
        if not (_ABBREVIATION.search(begun) or _is_numbered(begun, rest)):
            yield start, match.end()
            start = match.end()
    yield start, stop


def sentences(text: str, *, edited: bool = False) -> list[str]:
    """Return the sentences of a message, or of an `edited` text; see `sentence_spans`."""
    return [text[start:stop] for start, stop in sentence_spans(text, edited=edited)]


def without_struck(text: str) -> str:
    """Remove struck out text, and items of which nothing is left."""
    kept = []
    for typed, left in zip(text.split("\n"), _blanked(_STRUCK, text).split("\n"), strict=True):
        if typed == left or re.sub(r"^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+|\d\d:\d\d", "", left).strip():
            kept.append(typed if typed == left else left.rstrip())
    return "\n".join(kept)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Blank out what a pattern matches; the signs of comments and the like are none in code."""
    if not pattern.search(text):
        return text
    shown = text
    if "`" in text:
        shown = _without(text, Document(text, has_head=False, is_excerpt=True).code)
    return _without(text, (match.span() for match in pattern.finditer(shown)))


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with spans of it blank, in their order."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], _NOT_A_LINE_FEED.sub(" ", text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])
