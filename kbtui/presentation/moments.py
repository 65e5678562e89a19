"""Times as people say them: ``now``, ``4 min``, ``14:02``, ``yesterday 14:02``, ``3 Nov 2025``."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

_WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ]\d)")
_NOW_SECONDS = 60
_HOUR_SECONDS = 3600
_WEEK_DAYS = 7


def said(time: datetime, now: datetime | None = None) -> str:
    """Say when something happened, as short as it stays clear; both are aware of their zone."""
    now = now or datetime.now().astimezone()
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
    return day_said(local.date(), now.date())


def day_said(day: date, today: date | None = None) -> str:
    """Say which day: ``3 Nov``, and the year where it is another one."""
    today = today or datetime.now().astimezone().date()
    short = f"{day.day} {day:%b}"
    return short if day.year == today.year else f"{short} {day.year}"


def written_said(text: str) -> str:
    """A day, or a time on one, that is written in a file, as people say it; other text as it is."""
    try:
        found = _WRITTEN.match(text)
        return day_said(date.fromisoformat(found[0])) if found else text
    except ValueError:
        return text


def day_heading(day: date, today: date | None = None) -> str:
    """Name a day above what happened on it: ``Today``, ``Yesterday``, ``Tuesday 3 November``."""
    today = today or datetime.now().astimezone().date()
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    full = f"{day:%A} {day.day} {day:%B}"
    return full if day.year == today.year else f"{full} {day.year}"
