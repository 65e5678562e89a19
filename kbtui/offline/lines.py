"""What a text says, in the pieces that can be quoted: whole sentences, list items, rows of tables.

A paragraph that is wrapped is read as one. Front matter, headings, comments, code, badges, rules,
definitions of links, the fields of templates and what is struck out say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from kbtui.offline.language import language_of, tokens
from kbtui.text import clean_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


@dataclass(frozen=True, slots=True)
class TextLine:
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
        block: Where its paragraph, item or row begins in the text, in characters.
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


_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
TIMED_ITEM = re.compile(r"[-*+•][ \t]+(?:\[[^\]\n]\][ \t]+)?(?P<time>\d\d:\d\d)[ \t]")
_TIMED = re.compile(r"[-*+][ \t]+(?:\[[^\]\n]\][ \t]+)?(?=(?:~~)?\d\d:\d\d[ \t])")
# No comment goes on over the beginning of what was said at another time, or of another comment.
_COMMENT = re.compile(
    rf"(?<!\w)%%(?:(?!\n{TIMED_ITEM.pattern}).)*?%%"
    rf"|<!--(?:(?!<!--|\n{TIMED_ITEM.pattern.replace('time', 'time2')}).)*?-->",
    re.DOTALL,
)
# Struck out, with the pointer to what holds now; it ends with its paragraph or item.
_STRUCK = re.compile(
    r"(?<![~\\])~~(?!~)(?:[^\n]|\n(?![ \t]*(?:\n|[-*+•][ \t]|\d{1,3}[.)][ \t])))+?~~(?!~)"
    r"(?:[ \t]*→[ \t]*\d{4}-\d\d-\d\d(?:[ \t]\d\d:\d\d)?)?"
)
_BLOCK_ID = re.compile(r"[ \t]\^[\w-]+[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[•◦‣](?=[ \t])", re.MULTILINE)
_ODD = str.maketrans({"\r": " ", "\0": "\N{REPLACEMENT CHARACTER}"})
_LEAD = re.compile(r"\[[^\]\n]\][ \t]+|\[![\w-]+\][+-]?[ \t]*")  # a box, a callout
_CLOCK = re.compile(r"(?P<struck>~~)?(?P<time>\d\d:\d\d)[ \t]+")
_ROW = re.compile(r"^[ \t>]*\|.*\|.*$", re.MULTILINE)
_GOES_ON = re.compile(r"\n[ \t>]*")
# A badge, a picture or a link alone, a tag line, markup, a template; and what kbtui says of itself.
_SAYS_NOTHING = re.compile(
    r"(?:(?:!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])|!\[\[[^\]\n]*\]\]|\[!\[.*|#[\w/-]+"
    r"|<[%/!a-zA-Z][^\n]*>)\s*)+$|[\w -]{0,30}:{0,2}\s*(?:\{\{.*\}\}|<%.*%>)$"
    r"|\d{4}-\d\d-\d\d: recorded\.?$"
)
# An empty field of a template, unless it leads to a list.
_FIELD = re.compile(r"[\w -]{1,30}::?$")
_LONGEST_WORD = 40
_LISTS = ("bullet_list_open", "ordered_list_open")
# After ``Dr.``, ``St.`` and ``z. B.`` a sentence goes on; ``Ada.`` and ``Oslo.`` end one.
_SENTENCE_END = re.compile(
    r"(?<!\b[DFHJMNS][orst])(?<!\bMrs)(?<!\b[DS]ra)(?<!\b(?:Str|Tel|Ing))(?<!\bProf)"
    r"(?<!\b[^\W\d_])[.!?\u2026][\"'\u201d\u2019)\]*_]*[ \t\n>]+(?![a-z\u00e0-\u00ff])"
    r"|[!?\u2026][ \t\n>]+|(?<=[\u3002\uff01\uff1f])"
)


@cache
def _parser() -> MarkdownIt:
    """Blocks alone, and none that stands for itself by its indentation: a text may be a part."""
    from markdown_it import MarkdownIt

    rules = ["blockquote", "fence", "heading", "hr", "lheading", "list", "reference"]
    return MarkdownIt("zero").enable(rules).disable("inline")


def lines_of(
    text: str, first: int = 1, *, headings: bool = False, past: bool = False
) -> Iterator[TextLine]:
    """What a Markdown text says; it may be a part of a file, of which `first` is the first line.

    With `headings` those say something as well, as they do on slides; with `past`, so does what is
    struck out, with its marks.
    """
    struck = () if past else (_STRUCK,)
    for pattern in (_FRONT, _COMMENT, *struck, _BLOCK_ID):
        text = _without(pattern, text)  # all else stays in its place
    text = _BULLET.sub(r"\1-", text.translate(_ODD))
    heading = ""
    for block in _blocks(text):
        if block.kind == "heading":
            heading = text[block.start : block.end]
            if not headings:
                continue
        whole = (block.start, block.end)
        for span in _pieces(text, *whole) if block.kind == "paragraph" else (whole,):
            if (line := _line(text, block, span, heading, first)) is not None:
                yield line


def _line(
    text: str, block: _Block, span: tuple[int, int], heading: str, first: int
) -> TextLine | None:
    """What a piece of a block says, in a text with this first line; None: nothing."""
    start, stop = span
    raw = text[start:stop].rstrip()
    clock = _CLOCK.match(text, block.start) if block.kind == "item" else None
    if clock:
        said = f"{'~~' if clock['struck'] else ''}{clean_line(text[clock.end() : stop])}"
    else:
        said = _plain(raw)
        if _SAYS_NOTHING.match(said) or (_FIELD.match(said) and not block.leads):
            return None
    if not any(map(str.isalnum, said)):
        return None
    line = first + block.line + text.count("\n", block.start, start)
    return TextLine(
        said,
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
    """A heading, an item or a paragraph: where it stands, its line from 0, if a list follows."""

    kind: Literal["heading", "item", "paragraph"]
    start: int
    end: int
    line: int
    leads: bool


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text that hold sentences; what was said at one time is one."""
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
    found = _parser().parse(text)
    done = 0
    for n, token in enumerate(found):
        if not token.map or token.map[0] < done:
            continue
        first, last = token.map
        if token.type == "list_item_open" and token.level == 1:
            if timed := _TIMED.match(text, starts[first]):
                done = last
                yield _Block("item", timed.end(), starts[last] - 1, first, leads=False)
        elif token.type == "inline" and token.content:
            begun = text.rfind(token.content.split("\n")[0], starts[first], starts[first + 1])
            start, end = max(begun, starts[first]), starts[last] - 1
            leads = n + 2 < len(found) and found[n + 2].type in _LISTS
            if found[n - 1].type == "heading_open":
                yield _Block("heading", start, start + len(token.content), first, leads)
                continue
            lead = _LEAD.match(text, start, end)
            item = n > 1 and found[n - 2].type == "list_item_open"
            kind: Literal["item", "paragraph"] = "item" if item else "paragraph"
            yield _Block(kind, lead.end() if lead else start, end, first, leads)


def _pieces(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph stand, and the rows of a table without its head's rule."""
    for row in [*_ROW.finditer(text, begin, end), None]:
        start = begin
        stop = row.start() if row else end
        for match in _SENTENCE_END.finditer(text, start, stop):
            is_dot = match[0][:1] == "."
            if not (is_dot and _is_numbered(text[start : match.start()], text[match.end() : stop])):
                yield start, match.end()
                start = match.end()
        yield start, stop
        if row:
            yield row.span()
            begin = row.end()


def _is_numbered(begun: str, rest: str) -> bool:
    """True if the dot between makes an ordinal of a number, as in ``am 3. Tag`` or ``3. March``."""
    words = begun.split()
    if not words or not words[-1].isdigit():
        return False
    language, following = language_of(begun), tokens(rest[:_LONGEST_WORD])[:1]
    is_date = any(each.word in language.places["months"] for each in following)
    return len(words) == 1 or language.nouns_have_capitals or is_date


def _plain(raw: str) -> str:
    """A piece on one line, without the marks of quotes; a row by its cells."""
    if _ROW.match(raw):
        return " | ".join(filter(None, (cell.strip() for cell in raw.strip(" \t>|").split("|"))))
    return clean_line(_GOES_ON.sub(" ", raw))


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a message stand, blanks aside; a line begins a new one."""
    found = []
    for line in re.finditer(r"[^\n]+", text):
        for start, stop in _pieces(text, *line.span()):
            if said := text[start:stop].strip():
                begin = text.index(said, start)
                found.append((begin, begin + len(said)))
    return found


def sentences(text: str) -> list[str]:
    """The sentences of a message, one by one."""
    return [text[start:stop] for start, stop in sentence_spans(text)]


def without_struck(text: str) -> str:
    """A text without what is struck out; an item of which nothing is left goes as well."""
    kept = []
    for typed, left in zip(text.split("\n"), _without(_STRUCK, text).split("\n"), strict=True):
        if typed == left or re.sub(r"^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+|\d\d:\d\d", "", left).strip():
            kept.append(typed if typed == left else left.rstrip())
    return "\n".join(kept)


def _without(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
