"""Times for people: ``now``, ``4 min``, ``14:02``, ``yesterday 14:02``, ``3 Nov 2025``."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from kbtui.clock import local_day, local_now

_WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ]\d)")
_NOW_SECONDS = 60
_HOUR_SECONDS = 3600
_WEEK_DAYS = 7


def format_time(time: datetime, now: datetime | None = None) -> str:
    """Format a time as briefly as it stays clear; both times are timezone-aware."""
    now = now or local_now()
    local = time.astimezone(now.tzinfo)
    passed = (now - local).total_seconds()
    if 0 <= passed < _NOW_SECONDS:
        return "now"
    if 0 <= passed < _HOUR_SECONDS:
        return f"{passed // 60:.0f} min"
    clock = f"{local:%H:%M}"
    days = (now.date() - local.date()).days
    if days == 0:
        return clock
    if days == 1:
        return f"yesterday {clock}"
    if 0 < days < _WEEK_DAYS:
        return f"{local:%a} {clock}"
    return format_day(local.date(), now.date())


def format_day(day: date, today: date | None = None) -> str:
    """Format a day: ``3 Nov``, with the year if it isn't the current one."""
    today = today or local_day()
    short = f"{day.day} {day:%b}"
    return short if day.year == today.year else f"{short} {day.year}"


def recent_day(day: date) -> str:
    """Format a day like `format_day`, but the last two as ``today`` and ``yesterday``."""
    today = local_day()
    return {0: "today", 1: "yesterday"}.get((today - day).days, format_day(day, today))


def format_written_day(text: str) -> str:
    """Format a text that begins with an ISO date like `format_day`; return other text as is."""
    try:
        found = _WRITTEN.match(text)
        return format_day(date.fromisoformat(found[0])) if found else text
    except ValueError:
        return text


def day_heading(day: date, today: date | None = None) -> str:
    """Return a heading for a day: ``Today``, ``Yesterday``, ``Tuesday 3 November``."""
    today = today or local_day()
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    full = f"{day:%A} {day.day} {day:%B}"
    return full if day.year == today.year else f"{full} {day.year}"
