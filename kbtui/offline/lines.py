"""What a text says, in the pieces that can be quoted: whole sentences, list items, rows of tables.

A paragraph that is wrapped is read as one. Front matter, headings, comments, code, badges, rules,
definitions of links, the fields of templates and what is struck out say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

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


class _Raw(NamedTuple):
    """A line of a text with its number, from 1, and where it begins."""

    text: str
    number: int
    start: int


_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
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
_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"^([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[^\]\n]\][ \t]+)?")
_CLOCK = re.compile(r"(?P<time>\d\d:\d\d)[ \t]+")
_QUOTE = re.compile(r"^[ \t]*>[ \t]?(?:\[![\w-]+\][+-]?[ \t]*)?")
_TABLE = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_RULE = re.compile(r"^[ \t|:*_=-]+$")
_BLOCK_ID = re.compile(r"[ \t]\^[\w-]+[ \t]*$", re.MULTILINE)
# A definition of a link, a badge or a picture alone, a tag line, a field of a template, markup.
_SAYS_NOTHING = re.compile(
    r"(?:!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])[ \t]*)+$|\[!\[.*|!\[\[[^\]\n]*\]\]$"
    r"|\[[^\]\n]+\]:[ \t]|(?:#[\w/-]+[ \t]*)+$|<[%/!a-zA-Z][^\n]*>$|\{\{.*\}\}$|<%.*%>$"
    r"|\d{4}-\d\d-\d\d: recorded\.?$|[\w -]{1,30}::?[ \t]*(?:\{\{.*\}\}|<%.*%>)?$"
)
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
    text = text.replace("\r\n", " \n")  # all else stays in its place
    typed = text.split("\n")
    text = _blanked(text)
    heading = fence = ""
    block: list[_Raw] = []
    start = 0
    for number, raw in enumerate(text.split("\n"), first):
        line = _Raw(raw, number, start)
        start += len(raw) + 1
        is_timed = bool(block) and TIMED_ITEM.match(block[0].text) is not None
        if is_timed and (
            typed[number - first].startswith("  ") or not typed[number - first].strip()
        ):
            block.append(line)  # what was said at one time is one, however many lines it has
            continue
        mark = _FENCE.match(raw)
        if mark and (not fence or raw.strip().startswith(fence)):
            fence = "" if fence else mark[1]
            yield from _said(text, block, heading)
            block = []
            continue
        title = None if fence else _HEADING.match(raw)
        underlined = bool(block) and _UNDERLINE.match(raw) and not _ITEM.match(block[0].text)
        if title or (underlined and not fence):
            yield from () if underlined else _said(text, block, heading)
            said = _titled(title[2] or "") if title else block[-1].text
            heading = clean_line(said)
            block = []
            if headings and heading and title:
                begin = line.start + title.start(2)
                yield Line(heading, number, number, begin, begin + len(said), heading)
            continue
        if fence or is_timed or not raw.strip() or _ITEM.match(raw) or _TABLE.match(raw):
            yield from _said(text, block, heading)
            block = []
        if not fence and raw.strip():
            block.append(line)
    yield from _said(text, block, heading)


def _titled(raw: str) -> str:
    """A heading without the marks that may close it."""
    raw = raw.rstrip()
    bare = raw.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else raw


def _blanked(text: str) -> str:
    """A text with blanks where nothing is said, so that all else stays in its place."""
    closed = text.rfind("-->") + len("-->")  # behind it no comment ends: none is looked for
    text = _without(_MARKUP_COMMENT, text[:closed]) + text[closed:]
    for pattern in (_FRONT, _COMMENT, _STRUCK, _BLOCK_ID):
        text = _without(pattern, text)
    return text


def _without(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _said(text: str, block: list[_Raw], heading: str) -> Iterator[Line]:
    """What a block says: an item or a row is one, of a paragraph each sentence is."""
    if not block:
        return
    lead = _ITEM.match(block[0].text)
    begin = block[0].start + (lead.end() if lead else 0)
    while not block[-1].text.strip():
        block = block[:-1]
    end = block[-1].start + len(block[-1].text.rstrip())
    if _TABLE.match(block[0].text):
        cells = [cell.strip() for cell in block[0].text.strip().strip("|").split("|")]
        row = " | ".join(filter(None, cells))
        if not _RULE.match(block[0].text):
            yield Line(row, block[0].number, block[0].number, begin, end, heading)
        return
    spans = [(begin, end)] if lead else _sentences(text, begin, end)
    for start, stop in spans:
        raw = text[start:stop]
        clock = _CLOCK.match(raw) if lead else None
        shown = _plain(raw[clock.end() :] if clock else raw)
        empty = not any(map(str.isalnum, shown)) or (not clock and _SAYS_NOTHING.match(shown))
        if empty:
            continue
        number = block[0].number + text.count("\n", block[0].start, start)
        yield Line(
            shown,
            number,
            number + raw.count("\n"),
            start,
            stop,
            heading,
            clock["time"] if clock else "",
            item=bool(lead),
        )


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
