"""What a text says, in the pieces that can be quoted: whole sentences, list items, rows of tables.

A paragraph that is wrapped is read as one. Front matter, headings, comments, code, badges, rules,
definitions of links, the fields of templates and what is struck out say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kbtui.search.index.markdown import outline
from kbtui.text import clean_line


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence or item of a text.

    Attributes:
        text: It, on one line and without its bullet, as it was typed.
        first: The line of the text on which it begins, from 1.
        last: The line on which it ends.
        start: Where it begins in the text, in characters.
        end: Where it ends.
        heading: The heading that it stands under.
        time: The time of a line of the journal, ``09:14``; empty elsewhere.
        item: True for an item of a list.
    """

    text: str
    first: int
    last: int
    start: int
    end: int
    heading: str = ""
    time: str = ""
    item: bool = False


_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# The lines of what was said at one time, however many they are.
_GOES_ON = re.compile(r"(?:\n(?:  [^\n]*|[ \t]*(?=\n|\Z)))*")
# None of these goes on over the beginning of what was said at another time.
TIMED_ITEM = re.compile(r"[-*+•][ \t]+(?:\[[^\]\n]\][ \t]+)?(?P<time>\d\d:\d\d)[ \t]")
_AT_A_TIME = rf"\n{TIMED_ITEM.pattern}"
_COMMENT = re.compile(rf"(?<!\w)%%(?:(?!{_AT_A_TIME}).)*?%%", re.DOTALL)
_MARKUP_COMMENT = re.compile(rf"<!--(?:(?!{_AT_A_TIME}).)*?-->", re.DOTALL)
# Struck out, with the pointer to what holds now.
_STRUCK = re.compile(
    r"(?<![~\\])~~(?!~)(?:(?!\n[ \t]*\n|\n[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]).)+?~~(?!~)"
    r"(?:[ \t]*→[ \t]*\d{4}-\d\d-\d\d(?:[ \t]\d\d:\d\d)?)?",
    re.DOTALL,
)
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[^\]\n]\][ \t]+)?")
_CLOCK = re.compile(r"(?P<time>\d\d:\d\d)[ \t]+")
_QUOTE = re.compile(r"^[ \t]*>[ \t]?(?:\[![\w-]+\][+-]?[ \t]*)?")
_TABLE = re.compile(r"[ \t]*\|[^\n]*\|")
_RULE = re.compile(r"[ \t|:*_=-]+$")
_BLOCK_ID = re.compile(r"[ \t]\^[\w-]+[ \t]*$", re.MULTILINE)
# A definition of a link, a badge or a picture alone, a tag line, a field of a template, markup.
_SAYS_NOTHING = re.compile(
    r"(?:!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])[ \t]*)+$|\[!\[.*|!\[\[[^\]\n]*\]\]$"
    r"|\[[^\]\n]+\]:[ \t]|(?:#[\w/-]+[ \t]*)+$|<[%/!a-zA-Z][^\n]*>$|\{\{.*\}\}$|<%.*%>$"
    r"|\d{4}-\d\d-\d\d: recorded\.?$|[\w -]{1,30}::?[ \t]*(?:\{\{.*\}\}|<%.*%>)$"
)
# An empty field of a template, unless it leads to a list.
_FIELD = re.compile(r"[\w -]{1,30}::?$")
# After ``Dr.``, ``St.``, ``z. B.`` and ``3. März`` a sentence goes on.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})(?<!\b[A-Z][a-z]{3})(?<!\b\w)(?<!\b\d\d)"
    r"[.!?\u2026][\"'\u201d\u2019)\]*_]*[ \t\n]+(?![a-z\u00e0-\u00ff])"
    r"|[!?\u2026][ \t\n]+|(?<=[\u3002\uff01\uff1f])"
)


def lines_of(text: str, first: int = 1, *, headings: bool = False) -> Iterator[Line]:
    """What a Markdown text says; it may be a part of a file, of which `first` is the first line.

    With `headings` those say something as well, as they do on slides.
    """
    pieces = list(_pieces(text, first, headings=headings))
    for number, line in enumerate(pieces, 1):
        leads = not line.item and number < len(pieces) and pieces[number].item
        if leads or line.time or not _FIELD.match(line.text):
            yield line


def _pieces(text: str, first: int, *, headings: bool) -> Iterator[Line]:
    """The pieces of a text, the empty fields of a template among them."""
    typed = text.replace("\r\n", " \n")  # all else stays in its place
    text = _blanked(typed)
    found = outline(text)
    done = 0
    for block in found.blocks:
        heading = found.titles[block.section]
        if block.heading and headings and heading:
            begin = text.index(heading, block.start)
            number = found.line_at(begin) + first - 1
            yield Line(heading, number, number, begin, begin + len(heading), heading)
        if block.heading or block.solid:
            continue
        for start, end in _items(text, typed, max(done, block.start), block.end):
            done = end
            read = _row if _TABLE.match(text, start, end) else _said
            for line in read(text, start, end):
                number = first + found.line_at(line.start) - 1
                last = number + text.count("\n", line.start, line.end)
                yield replace(line, first=number, last=last, heading=heading)


def _items(text: str, typed: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a block into items, rows and what is neither; a timed item may go on behind the block."""
    begun = start
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        row = _TABLE.match(text, start, stop)
        if row or _ITEM.match(text, start, stop):
            if begun < start:
                yield begun, start
            begun = start
        if TIMED_ITEM.match(text, start, stop):
            goes_on = _GOES_ON.match(typed, stop)
            stop = goes_on.end() if goes_on else stop
            row = row or goes_on
        if row:
            yield start, stop
            begun = stop + 1
        start = stop + 1
    if begun < end:
        yield begun, end


def without_struck(text: str) -> str:
    """A text without what is struck out; an item of which nothing is left goes as well."""
    kept = []
    for typed, left in zip(text.split("\n"), _without(_STRUCK, text).split("\n"), strict=True):
        if typed == left:
            kept.append(typed)
        elif _CLOCK.sub("", _ITEM.sub("", left)).strip():
            kept.append(left.rstrip())
    return "\n".join(kept)


def _blanked(text: str) -> str:
    """A text with blanks where nothing is said, so that all else stays in its place."""
    closed = text.rfind("-->") + len("-->")  # behind it no comment ends: none is looked for
    text = _without(_MARKUP_COMMENT, text[:closed]) + text[closed:]
    for pattern in (_FRONT, _COMMENT, _STRUCK, _BLOCK_ID):
        text = _without(pattern, text)
    return text


def _without(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _row(text: str, begin: int, end: int) -> Iterator[Line]:
    """What a row of a table says; nothing for the rule below its head."""
    raw = text[begin:end].strip()
    if not _RULE.match(raw):
        cells = (cell.strip() for cell in raw.strip("|").split("|"))
        yield Line(" | ".join(filter(None, cells)), 0, 0, begin, end)


def _said(text: str, begin: int, end: int) -> Iterator[Line]:
    """What an item says, or each sentence of a paragraph."""
    end = begin + len(text[begin:end].rstrip())
    lead = _ITEM.match(text, begin, end)
    begin = lead.end() if lead else begin
    for start, stop in [(begin, end)] if lead else _sentences(text, begin, end):
        raw = text[start:stop]
        clock = _CLOCK.match(raw) if lead else None
        shown = _plain(raw[clock.end() :] if clock else raw)
        if any(map(str.isalnum, shown)) and (clock or not _SAYS_NOTHING.match(shown)):
            time = clock["time"] if clock else ""
            yield Line(shown, 0, 0, start, stop, "", time, item=bool(lead))


def _plain(raw: str) -> str:
    """A piece on one line, without the marks of quotes."""
    return clean_line(" ".join(_QUOTE.sub("", line) for line in raw.split("\n")))


def _sentences(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph stand."""
    start = begin
    for match in _SENTENCE_END.finditer(text, begin, end):
        if match.end() < end:
            yield start, match.end() - len(match[0]) + len(match[0].rstrip())
            start = match.end()
    yield start, end
