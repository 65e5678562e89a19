"""Dates in memory: the day that a word like *tomorrow* meant stands in brackets behind it.

The words stay as they were said. What may mean several days gets no date, but the day on which it
was said: ``next Friday (said 2026-11-26)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING

from kbtui.knowledge.format.document import read_body

if TYPE_CHECKING:
    from kbtui.offline.times import FoundTime

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2})?"
_LINE_END = re.compile(r"[.!?\u2026]*[ \t]*$", re.MULTILINE)
_SAID_ON = re.compile(rf" \(said {_DAY}\)")
_STAMP = re.compile(rf"\A\s*(?:\[{_DAY}[^\]\n]*\]|{_DAY}(?:[T ]{_CLOCK})?)[\s:,-]*")
# Quotations, links, addresses, paths, tags, names of files.
_NOT_SAID = re.compile(
    r"(?<!\S)[^\s@/\\#]*[@/\\#]\S*|(?<!\S)[^\s.@/\\#]+\.\w\S*"
    r"|`[^`\n]*`|\"[^\"\n]*\"|\N{LEFT DOUBLE QUOTATION MARK}[^\n]*?\N{RIGHT DOUBLE QUOTATION MARK}"
    r"|\]\([^)\n]*\)|\[\[[^\]\n]*\]\]",
    re.DOTALL,
)


@cache
def _dated() -> re.Pattern[str]:
    from kbtui.offline.language import languages

    months = "|".join(sorted({name for each in languages() for name in each.month_names}))
    return re.compile(rf" \((?:(?:said )?{_DAY}(?: \d\d:\d\d)?|(?:(?:{months}) )?\d{{4}})\)")


def local(time: datetime) -> datetime:
    """Return a stored time in the user's time zone."""
    return time.astimezone()


def without_stamp(text: str) -> str:
    """Strip the ``[2026-03-06 10:00]`` that models put in front of an archive entry."""
    return _STAMP.sub("", text, count=1).strip()


def with_dates(text: str, said: datetime | date, *, is_dated: bool = False) -> str:
    """Return a text with the date in brackets behind each word that needs it: *gestern*, *ayer*.

    The words count from when it was `said`, in the user's time zone. A line with words that may
    mean several days ends with the day on which it was said, unless it `is_dated` where it stands,
    as in that day's notes. A weekday alone stays alone, as it may be one of every week; quotations,
    code, addresses and link targets do as well.
    """
    if is_dated:
        text = text.replace(f" (said {_day_of(said).isoformat()})", "")
    places: dict[int, str] = {}
    for found in _dated_times(text, said):
        if found.date:
            at, is_there = found.end, bool(_dated().match(text, found.end))
        else:
            line = _LINE_END.search(text, found.end)
            at = line.start() if line else len(text)
            is_there = is_dated or bool(_SAID_ON.search(text, text.rfind("\n", 0, at) + 1, at))
        if not is_there:
            day = found.date.text(found.language) if found.date else f"said {_day_of(said)}"
            places[at] = f" ({day})"
    for at in sorted(places, reverse=True):
        text = f"{text[:at]}{places[at]}{text[at:]}"
    return text


def without_dates(text: str) -> str:
    """Strip the bracketed dates that `with_dates` adds after words."""
    return _dated().sub("", text)


def ages(line: str) -> bool:
    """Return whether a line has words that mean less, or something else, the older it gets.

    One that says on which day it was said has none.
    """
    return not _SAID_ON.search(line) and any(_said_times(line, date.today()))  # noqa: DTZ011 - any day


def _dated_times(text: str, said: datetime | date) -> Iterator[FoundTime]:
    """Yield the phrases that get a date, or the day on which they were said."""
    found = [each for each in _said_times(text, said) if not each.is_weekday]
    is_told = any(each.date for each in found)
    return (each for each in found if not (is_told and each.kind == "birthday"))


def _said_times(text: str, said: datetime | date) -> Iterator[FoundTime]:
    """Yield the phrases of a text that are neither quoted nor code."""
    from kbtui.offline.times import times_in  # its words are loaded only if needed

    if found := times_in(text, said):
        skipped = [*read_body(text).code, *(each.span() for each in _NOT_SAID.finditer(text))]
        for each in found:
            if not any(start < each.end and each.start < end for start, end in skipped):
                yield each


def _day_of(said: datetime | date) -> date:
    return said.date() if isinstance(said, datetime) else said
