"""Where a Markdown text holds code, in which nothing is a link or a tag."""

from __future__ import annotations

import re
from bisect import bisect_right

_FENCE = re.compile(r"^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
_TICKS = re.compile(r"(?<![\\`])(`+)(?!`)")


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
