"""Reads a Markdown body: its code, title, first sentence and tags."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from kbtui.text import clean_line, shorten

SUMMARY_WIDTH = 160
_MARKED = r"^ {0,3}#[ \t]+(.*?)[ \t]*#*[ \t]*\r?$"
_UNDERLINED = r"^ {0,3}([^\s#>|+*-][^\r\n]*)\r?\n {0,3}=+[ \t]*\r?$"
_H1 = re.compile(_MARKED, re.MULTILINE)
_ANY_H1 = re.compile(f"{_MARKED}|{_UNDERLINED}", re.MULTILINE)
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]*[^\W\d_])([\w/-]+)")
_NOT_PROSE = re.compile(
    r"#{1,6}\s|[|!<>%]|[-*_=]{3,}\s*$|\[\^?[^\]]+\]:|\$\$|:::|(?:import|export)\s.*from\s"
)
_BULLET = re.compile(r"\A(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!e\.g)(?<!i\.e)(?<!etc)[.!?。！？](?=\s|$)")  # noqa: RUF001


def _label(of_dendron: re.Match[str]) -> str:
    """What a link to a note in a vault says: its label, which comes first, or the note's name."""
    return of_dendron[1] or of_dendron[2]


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[\[(?:([^\]|]*)\|)?dendron://[^/\]]*/([^\]#|]*)[^\]|]*\]\]"), _label),
    (re.compile(r"\[\[[^\]|]*\\?\|([^\]]*)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#]*)(?:#[^\]]*)?\]\]"), r"\1"),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[\^[^\]]*\]|<[^<>]*>"), ""),
    (re.compile(r"(\*\*|__|~~|==)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+([^`]*)`+"), r"\1"),
)
_MARKUP_SIGN = re.compile(r"[\[*_`<=~]")
_CODE_MARK = re.compile("`|~~~")
_FENCE = re.compile(r"^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
_TICKS = re.compile(r"(?<![\\`])(`+)(?!`)")


def heading_of(body: str) -> str | None:
    """The text of the first first-level heading (``# so``, or underlined), code left out."""
    pattern = _ANY_H1 if "\n=" in body else _H1
    code: CodeRanges | None = None
    for found in pattern.finditer(body):
        if code is None and (mark := _CODE_MARK.search(body)) and mark.start() < found.start():
            code = CodeRanges(body)
        is_code = code is not None and found.start() in code
        if not is_code and (title := plain_line(found[found.lastindex or 0])):
            return title
    return None


def summary_of(body: str) -> str:
    """The first sentence of the prose, without markup, at most 160 characters."""
    line = _first_prose(body)
    text = plain_line(_BULLET.sub("", line, count=1))
    end = _SENTENCE_END.search(text)
    return shorten(text[: end.end()] if end else text, SUMMARY_WIDTH)


def plain_line(text: str) -> str:
    """One line of Markdown as a reader sees it; what is absurdly long is cut."""
    text = text[:2_000]
    if _MARKUP_SIGN.search(text):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    return clean_line(text)


def tags_in_body(body: str) -> list[str]:
    """The ``#tags`` of a body, in order; a tag holds a letter, as in Obsidian."""
    if "#" not in body:
        return []
    code: CodeRanges | None = None
    found: dict[str, None] = {}
    for match in _TAG.finditer(body):
        code = code or CodeRanges(body)
        if match.start() not in code:
            found.setdefault(match[1].strip("/"))
    return list(found)


def _first_prose(body: str) -> str:
    """The first paragraph that is text, joined to one line."""
    paragraph: list[str] = []
    fence = ""
    for raw in body.splitlines():
        line = raw.strip()
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
            if paragraph:
                break
        elif not line or _NOT_PROSE.match(line) or (paragraph and _BULLET.match(line)):
            if paragraph:
                break
        elif plain_line(_BULLET.sub("", line, count=1)):
            paragraph.append(line)
            if sum(map(len, paragraph)) > 4 * SUMMARY_WIDTH:
                break
    return " ".join(paragraph)


class CodeRanges:
    """The code in a text; ask ``offset in ranges``."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        if "`" not in text and "~~~" not in text:
            return
        at = 0
        for start, end in [*_fenced(text), (len(text), len(text))]:
            for span in _inline(text, at, start):
                self._add(*span)
            if end > start:
                self._add(start, end)
            at = end

    def __contains__(self, offset: int) -> bool:
        found = bisect_right(self._starts, offset) - 1
        return found >= 0 and offset < self._ends[found]

    def _add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)


def _fenced(text: str) -> list[tuple[int, int]]:
    """The fenced blocks; one that is never closed reaches to the end (CommonMark 4.5)."""
    blocks: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        mark, rest = found.groups()
        if opened is None:
            if mark[0] == "~" or "`" not in rest:
                opened = found
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not rest.strip():
            blocks.append((opened.start(), found.end()))
            opened = None
    if opened is not None:
        blocks.append((opened.start(), len(text)))
    return blocks


def _inline(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The code spans between two offsets: equal runs of backticks in one paragraph."""
    spans: list[tuple[int, int]] = []
    runs = list(_TICKS.finditer(text, start, end))
    last = {run[1]: number for number, run in enumerate(runs)}
    at = 0
    while at < len(runs):
        run = runs[at]
        close = at + 1
        # A run that has no equal one behind it needs no search, so the whole stays linear.
        if last[run[1]] > at:
            while runs[close][1] != run[1]:
                close += 1
            if not re.search(r"\n[ \t]*\r?\n", text[run.end() : runs[close].start()]):
                spans.append((run.start(), runs[close].end()))
                at = close + 1
                continue
        at += 1
    return spans
