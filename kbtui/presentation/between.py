"""Differences as people ask for them: a note between two days, or two changes."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from kbtui.clock import local_day
from kbtui.errors import NotFoundError, UsageError
from kbtui.memory.recall.agenda import named_past, short_day
from kbtui.text import clean_line

if TYPE_CHECKING:
    from kbtui.history.history import HistoryReader

Moment = str | datetime
"""A revision, or the time just before which something was so."""
EXAMPLES = "A day: yesterday, Monday, 3 November, 2026-11-03. Or two: 3 Nov to 10 Nov."
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TWO = re.compile(r"\s+(?:to|until|till|bis|-|\N{EN DASH}|\.\.)\s+", re.IGNORECASE)


def between_of(history: HistoryReader, text: str) -> tuple[Moment, Moment | None]:
    """Return the two moments that a person named in one line; the second may be missing."""
    first, *second = _TWO.split(text.strip(), 1)
    since = moment_of(history, first)
    return since, moment_of(history, second[0], is_end=True) if second else None


def moment_of(history: HistoryReader, text: str, *, is_end: bool = False) -> Moment:
    """Return the moment that a person named: a day's beginning, or its end, or a change.

    Raises:
        UsageError: It names neither.
    """
    text, today = text.strip(), local_day()
    if _DAY.fullmatch(text):
        try:
            return _edge(date.fromisoformat(text), is_end=is_end)
        except ValueError:
            raise UsageError(f"No calendar has a {text}.", EXAMPLES) from None
    try:
        return history.resolve(text)
    except NotFoundError:
        period = named_past(text, today)
    if period is None:
        raise UsageError(f"{clean_line(text)!r} names neither a past day nor a change.", EXAMPLES)
    return _edge(min(period.last, today) if is_end else period.first, is_end=is_end)


def _edge(day: date, *, is_end: bool) -> datetime:
    return datetime.combine(day + timedelta(days=is_end), time.min).astimezone()


def told_moment(history: HistoryReader, moment: Moment | None, *, is_end: bool = False) -> str:
    """Return a moment for people: ``Mon 3 Nov``, ``today 20:34``, ``now``."""
    if moment is None:
        return "now"
    if isinstance(moment, str):
        made = history.commit(moment).time.astimezone()
        return f"{short_day(made.date(), local_day())} {made:%H:%M}"
    day = moment.date() - timedelta(days=is_end)
    return short_day(day, local_day())
