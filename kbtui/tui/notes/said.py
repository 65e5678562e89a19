"""What was said with a change of the journal, which tells more than the name of the day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from kbtui.errors import KbtuiError
from kbtui.history.change import Commit, is_derived
from kbtui.history.history import HistoryReader
from kbtui.history.queries.diff import FileDiff
from kbtui.memory.records.journal import day_of
from kbtui.text import clean_line
from kbtui.tui.markdown.plain import as_read

_HEADING = re.compile(r"#{1,6}\s|[-=*_\s]+$")
_MARK = re.compile(r"(?:[-*+•] (?:\[.\] )?|> ?)+")
_ITEM = re.compile(r"[-*+•] (?:\[.\] )?(?:\d\d:\d\d )?(?P<text>.+)")


def is_of_journal(commit: Commit) -> bool:
    """Return whether a commit changed notes of days, and nothing else."""
    paths = [change.path for change in commit.paths if not is_derived(change.path)]
    return bool(paths) and all(day_of(path) is not None for path in paths)


class Added(NamedTuple):
    """A line that came to a note, as it is read, and its number."""

    text: str
    line: int


def added_lines(diffs: Sequence[FileDiff]) -> list[Added]:
    """Return the new lines of texts, without heads, headings and blank ones."""
    return [
        Added(text, line.new)
        for diff in diffs
        for hunk in diff.hunks
        for line in hunk.lines
        if line.kind == "+" and line.new is not None and line.new > diff.heads[1]
        if not _HEADING.match(line.text)
        and (text := as_read(_MARK.sub("", clean_line(line.text)))).strip()
    ]


def said_with(diffs: Sequence[FileDiff]) -> str:
    """Return what the new lines of days say: the first of them, and how many more there are."""
    lines = (line for diff in diffs for hunk in diff.hunks for line in hunk.lines)
    items = (_ITEM.match(clean_line(line.text)) for line in lines if line.kind == "+")
    told = [as_read(item["text"]) for item in items if item and not item["text"].startswith("~~")]
    more = f" · and {len(told) - 1:,} more" if len(told) > 1 else ""
    return f"{told[0]}{more}" if told else ""


def read_said(history: HistoryReader, commit: Commit) -> str:
    """Return what was said with a change of the journal, else nothing; run in a thread."""
    if not is_of_journal(commit):
        return ""
    try:
        paths = [change.path for change in commit.paths]
        return said_with(history.diff(commit.parent, commit.id, paths))
    except KbtuiError:
        return ""


def draw_said(said: str) -> Content:
    """Return the row of what was said."""
    return Content.assemble(("+ ", ".rows--good"), said)
