"""When a recurring task is next, by the rule in words that Obsidian Tasks writes.

When that is follows Obsidian Tasks' rules; a rule that it would read otherwise than the words mean
is refused.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta

from kbtui.errors import UsageError

_WEEKDAYS = tuple(name.casefold() for name in calendar.day_name)
_MONTHS = tuple([name.casefold() for name in calendar.month_name])
_NUMBERS = {"": 1, "other": 2}
_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)"
_EVERY = re.compile(
    r"every (?:(?P<count>\d{1,3}|other) )?(?P<unit>day|week|month|year|weekday)s?"
    r"(?: on (?:the )?(?P<on>.+))?"
)
_NAMED = re.compile(r"every (?P<days>[a-z]+(?:(?:, ?(?:and )?| and )[a-z]+)*)")
_ON_MONTH = re.compile(
    rf"(?:(?P<last>last)|{_ORDINAL})(?: (?P<back>last))?(?: (?P<weekday>[a-z]+))?"
)
_SEPARATED = re.compile(r",? and |, ?")
_FAR = 4_000  # steps of a rule without finding a day: more than a hundred years of months


def next_day(rule: str, origin: date | None, today: date) -> date:
    """Return the day of the next occurrence after one of `origin`; without one, after today.

    Raises:
        UsageError: The rule isn't one whose words mean the same to Obsidian Tasks.
    """
    words = " ".join(rule.casefold().rstrip("! ").split())
    plain = words.removesuffix(" when done")
    start = today if plain != words or origin is None else origin
    found = _by_unit(plain, start) or _by_name(plain, start)
    if found is None:
        raise UsageError(
            f"When “{rule}” is next can't be told for sure.",
            "Write the next one yourself, or a rule like “every 2 weeks on Monday”.",
        )
    return found


def _by_unit(rule: str, start: date) -> date | None:
    match = _EVERY.fullmatch(rule)
    count = (_NUMBERS.get(match["count"] or "") or int(match["count"])) if match else 0
    if match is None or not count:
        return None
    found: date | None = None
    match match["unit"], match["on"]:
        case "day", None:
            found = start + timedelta(days=count)
        case "week", None:
            found = start + timedelta(weeks=count)
        case "month" | "year" as unit, None:
            found = months_later(start, count * (12 if unit == "year" else 1))
        case "weekday", None if count == 1:
            found = _on_weekdays(start, ", ".join(_WEEKDAYS[:5]), 1)
        case "week", str() as on:
            found = _on_weekdays(start, on, count)
        case "month", str() as on:
            found = _on_day_of_month(start, on, count)
    return found


def _by_name(rule: str, start: date) -> date | None:
    match = _NAMED.fullmatch(rule)
    return _on_weekdays(start, match["days"], 1) if match else None


def months_later(day: date, months: int) -> date:
    """Return the same day so many months later, or the last of that month if it has no such day."""
    years, month = divmod(day.month - 1 + months, 12)
    return _clamped(day.year + years, month + 1, day.day)


def _clamped(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _on_weekdays(start: date, names: str, weeks: int) -> date | None:
    """Return the next of some weekdays, in every so many weeks from that of `start`."""
    wanted = {_weekday(name) for name in _SEPARATED.split(names)}
    if None in wanted:
        return None
    monday = start - timedelta(days=start.weekday())
    for ahead in range(1, 7 * (weeks + 1) + 1):
        day = start + timedelta(days=ahead)
        if day.weekday() in wanted and (day - monday).days // 7 % weeks == 0:
            return day
    return None


def _weekday(name: str) -> int | None:
    found = [n for n, full in enumerate(_WEEKDAYS) if name in (full, f"{full}s", full[:3])]
    return found[0] if found else None


def _on_day_of_month(start: date, on: str, months: int) -> date | None:
    """Return the next day like “2nd”, “last”, “2nd last Friday”, in every so many months."""
    match = _ON_MONTH.fullmatch(on)
    if match is None:
        return None
    weekday = _weekday(match["weekday"]) if match["weekday"] else None
    if match["weekday"] and weekday is None:
        return None
    place = int(match[2] or 1)
    if not 1 <= place <= (31 if weekday is None else 5):
        return None
    is_back = bool(match["last"] or match["back"])
    for step in range(0, _FAR, months):
        years, month = divmod(start.month - 1 + step, 12)
        days = [
            day
            for day in calendar.Calendar().itermonthdates(start.year + years, month + 1)
            if day.month == month + 1 and weekday in (None, day.weekday())
        ]
        if place <= len(days):
            day = days[-place] if is_back else days[place - 1]
            if day > start:
                return day
    return None
