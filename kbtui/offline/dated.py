"""The days that a text names: as dates, by the names of months, and relative to when it was said.

`kbtui.offline.times` reads phrases that count from a day. Here they are put beside dates that stand
for themselves, such as ``2026-12-04``, *4 December*, *Dec 4th, 2026*, *4.12.*, *in January*.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import cache
from typing import NamedTuple

from kbtui.offline.frames import holds_frame
from kbtui.offline.language import folded, language_of, languages, tokens
from kbtui.offline.times import Period, clock_times, times_in

_ISO = re.compile(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?![\d-])")
# Without a year it may be the number of a version, unless a word before it says that it is a day.
_DOTTED = re.compile(
    r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?![.\d]*\d)"
    r"|(?<!\w)(?:am|vom|zum|bis|ab|den|der|by|on|until|due)[ \t]+(\d{1,2})\.(\d{1,2})\.(?!\d)",
    re.IGNORECASE,
)
_SAID = re.compile(r"\(said \d{4}-\d\d-\d\d\)")
_CLOCK = re.compile(
    r"(?<![\d:.])([01]?\d|2[0-3])[:h]([0-5]\d)(?![\d:])|(?<![\d:.])(1?\d) ?([ap])m\b"
)
_NOON = 12


class NamedDay(NamedTuple):
    """A day, week, month or year that a text names, with where it stands in the text."""

    start: int
    end: int
    period: Period


def days_named(text: str, said: date | None, *, way: int = 0) -> list[NamedDay]:
    """Return the days that a text names, in order.

    Args:
        text: The text.
        said: The day from which words like “tomorrow”, and dates without a year, count. Without it
            only whole dates are read.
        way: Which day is meant where it may be one before or after that one: 1 the one after, as
            in tasks, -1 the one before, 0 neither; of dates without a year then the nearest.
    """
    text = _SAID.sub(lambda match: " " * len(match[0]), text)
    found = [*_whole_dates(text)]
    if said is not None:
        found += _dates_of_months(text, said, way=way)
        found += _relative(text, said, way=way)
    found.sort(key=lambda each: (each.start, -each.end))
    kept: list[NamedDay] = []
    for each in found:
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return _spans(text, kept)


def _spans(text: str, days: list[NamedDay]) -> list[NamedDay]:
    """Return the days with those in between: *from 5 to 8 December*, *Monday till Thursday*.

    What is moved from one day to another isn't on both.
    """
    if not days or holds_frame(text, "delaying"):
        return days
    through = _span_patterns()[1]
    found: list[NamedDay] = []
    for each in days:
        since, joined = 0, each
        if found:
            before, since = found[-1], found[-1].end
            is_later = before.period.first < each.period.first
            if is_later and through.fullmatch(text, since, each.start):
                first = found.pop().period.first
                joined = NamedDay(before.start, each.end, each.period._replace(first=first))
        is_alone = joined is each and each.period.unit == "day"
        found.append(_with_number(text, each, since) if is_alone else joined)
    return found


def _with_number(text: str, named: NamedDay, since: int) -> NamedDay:
    """Return a day with the number of another beside it: *5 to* 8 December, December 5 *to 8*."""
    ends, _, behind = _span_patterns()
    start, end, period = named
    day = period.first
    if text[start].isdecimal():
        match = ends.search(text, since, start)
        if match and 0 < (number := int(match["day"])) < day.day:
            return NamedDay(match.start("day"), end, period._replace(first=day.replace(day=number)))
    elif match := behind.match(text, end):
        number = int(match["day"])
        if day.day < number <= calendar.monthrange(day.year, day.month)[1]:
            return NamedDay(start, match.end(), period._replace(last=day.replace(day=number)))
    return named


@cache
def _span_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what stands between two days: behind a number, by itself, and before a number."""
    listed = {phrase for each in languages() for phrase in each.lists["through"]}
    words = "|".join(sorted(map(re.escape, listed), key=len, reverse=True))
    between = rf"(?:\s+(?:{words})(?!\w)['\u2019]?\s*|\s*[-\u2013\u2014]\s*)"
    number = r"(?<![\w.,:/-])(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º|°)?"
    return (
        re.compile(rf"{number}{between}$", re.IGNORECASE),
        re.compile(between, re.IGNORECASE),
        re.compile(rf"{between}(?P<day>\d{{1,2}})(?![\w:.]\d|\w)", re.IGNORECASE),
    )


def time_named(text: str) -> str:
    """Return the first time of day that a text names, as ``09:00``; empty if none.

    That in figures is preferred; of one in words the half of the day may stay open: *at nine*. A
    full hour with a word behind it is none: *about 3 lamps*.
    """
    match = _CLOCK.search(text)
    if match is None:
        said = (each for each in clock_times(text) if not each.is_hour or _ends_at(text, each.end))
        first = next((each.minutes[0] for each in said), None)
        return "" if first is None else f"{first // 60:02}:{first % 60:02}"
    if match[3]:
        return f"{int(match[3]) % _NOON + _NOON * (match[4] == 'p'):02}:00"
    return f"{int(match[1]):02}:{match[2]}"


def _ends_at(text: str, at: int) -> bool:
    """Return whether no content word follows a phrase directly."""
    following = tokens(text[at:])[:1]
    is_apart = bool(text[at:].strip()) and not text[at].isspace()
    return is_apart or not following or following[0].word in language_of(text).stop_words


def _day(day: date) -> Period:
    return Period(day, day, "day")


def _whole_dates(text: str) -> Iterator[NamedDay]:
    for match in _ISO.finditer(text):
        with suppress(ValueError):
            yield NamedDay(*match.span(), _day(date(*map(int, match.groups()))))


def _relative(text: str, said: date, *, way: int) -> Iterator[NamedDay]:
    for each in times_in(text, said):
        period = each.date or (each.periods[0] if len(each.periods) == 1 else None)
        if period is None and way:
            near = [each for each in each.periods if _is_on(each, said, way)]
            period = min(near, key=lambda each: abs(each.first - said), default=None)
        if period is not None and period.unit != "year":
            yield NamedDay(each.start, each.end, period)


@cache
def _months() -> dict[str, int]:
    """Return all names of months, folded, with their abbreviations."""
    return {
        name: number + 1
        for language in languages()
        for name, number in language.places["months"].items()
    }


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    names = {name for each in languages() for name in each.month_names}
    short = {each[:3] for each in names} | {each[:4] for each in names}
    words = "|".join(sorted(map(re.escape, names | short), key=len, reverse=True))
    year = r"(?:,?[ \t]+(?:del?[ \t]+)?(?P<year>\d{4}))?(?!\w)"
    return (
        re.compile(
            r"(?:(?<![\w.,:/-])|(?<=(?<!\d)\d-)|(?<=(?<!\d)\d\d-))"
            r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º|°)?[ \t]+"
            r"(?:of[ \t]+|de[ \t]+|d['\u2019])?"
            rf"(?P<month>{words})\b\.?{year}",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?<!\w)(?P<month>{words})\.?[ \t]+(?:the[ \t]+)?"
            rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.]\d)\b{year}",
            re.IGNORECASE,
        ),
        re.compile(
            r"(?<!\w)(?:in|by|until|till|im|bis|en|para|fin de|d'ici|a|entro|per)[ \t]+"
            rf"(?P<month>{words})\b(?![ \t]*\d{{1,2}}\b){year}",
        ),
    )


def _dates_of_months(text: str, said: date, *, way: int) -> Iterator[NamedDay]:
    for pattern in _patterns():
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = _months().get(folded(parts["month"]))
            if month is None:
                continue
            with suppress(ValueError):
                number, year = int(parts.get("day") or 0), int(parts["year"] or 0)
                period = _of_month(number, month, year or None, said, way=way)
                yield NamedDay(*match.span(), period)
    for match in _DOTTED.finditer(text):
        first = 1 if match[3] else 4
        with suppress(ValueError):
            number, month, year = int(match[first]), int(match[first + 1]), int(match[3] or 0)
            period = _of_month(number, month, year or None, said, way=way)
            yield NamedDay(match.start(first), match.end(), period)


def _of_month(day: int, month: int, year: int | None, said: date, *, way: int) -> Period:
    """Return a day of a month, or the month for day 0, in the year that is nearest.

    Raises:
        ValueError: There is no such day.
    """
    years = (year,) if year else (said.year - 1, said.year, said.year + 1)
    found = []
    for each in years:
        last = calendar.monthrange(each, month)[1]
        if day <= last:
            first, end = date(each, month, day or 1), date(each, month, day or last)
            found.append(Period(first, end, "day" if day else "month"))
    if year is None and way:
        found = [each for each in found if _is_on(each, said, way)] or found
    if not found:
        raise ValueError((day, month))
    return min(found, key=lambda each: abs(each.first - said))


def _is_on(period: Period, said: date, way: int) -> bool:
    """Return whether a period isn't over, or for the other way, has begun."""
    return period.last >= said if way > 0 else period.first <= said
