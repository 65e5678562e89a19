"""Numbers, times and dates in a text, normalised for comparison: 1,100 and 1100, 3pm and 15:00."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from kbtui.offline.language import CACHE_LIMIT, Token, language_of, tokens
from kbtui.offline.times import Period, clock_times, half_of_day, times_in

_GOES_ON = re.compile(r"[.,'\u2019]\d")  # 3,218.40
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_NUMERIC = re.compile(r"(?<![\d.,/])(\d{1,2})([./])(\d{1,2})(?:\2(\d{4}|\d{2}))?(?![\d/])")
_CLOCK = re.compile(
    r"(?<![\w.,:])(\d{1,2})(?:[:.](\d\d))?[ \u00a0\u202f]?([ap])\.?m\b\.?", re.IGNORECASE
)
_TIME = re.compile(r"(?<![\w.,:])(\d{1,2})[:h](\d\d)(?![\w:])")
_TIME_WITH_POINT = re.compile(r"(?<![\w.,:])(\d{1,2})\.(\d\d)(?=[ \u00a0\u202f](?:Uhr|h|ore)\b)")
_FIGURE = re.compile(r"(?<![^\W\d_])[^\W\d_]*\d\w*(?:[.,:/'\u2019\u00a0\u202f-]\d\w*)*")
_ORDINAL = re.compile(r"(?<!\w)(\d{1,2})(?:[^\W\d_]{1,2}\b|\.(?=\s))")
_DIGITS = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_GROUPED_DECIMAL = re.compile(
    r"(?P<whole>\d{1,3}(?:(?P<group>[.,'\u2019\u00a0\u202f])\d{3})(?:(?P=group)\d{3})*)"
    r"(?!(?P=group))[.,](?P<part>\d{1,2})"
)  # 3,218.40, and 3.218,40
_GROUPED = re.compile(r"\d{1,3}([.,'\u2019\u00a0\u202f])\d{3}(?:\1\d{3})*")
_DECIMAL = re.compile(r"\d+[.,]\d+")
_SPAN = 2  # words between a day and its month
_NOON = 12
_WEEK = 7
_LONGEST_MONTH = 31
_MAX_SUFFIX = 2  # letters, as in 7th
_MIN_LETTERS = 4  # of a calendar word without a capital


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a text: its possible readings, and the sign of its unit, if any."""

    text: str
    readings: frozenset[str]
    unit: str = ""


class Day(NamedTuple):
    """A day, as far as it is given."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None

    @classmethod
    def of(cls, period: Period) -> Day:
        """Return a day, month or year."""
        day = period.first
        if period.unit == "year":
            return cls(day.year)
        if period.unit == "month":
            return cls(day.year, day.month)
        return cls(day.year, day.month, day.day, day.weekday())

    def matches(self, other: Day) -> bool:
        """Return whether all that is given of it is so of the other, which may be as vague."""
        return not [own for own, each in zip(self, other, strict=True) if own not in (None, each)]


def day_of(day: date) -> Day:
    """Return a date with its weekday."""
    return Day(day.year, day.month, day.day, day.weekday())


class Meant(NamedTuple):
    """The days, months and years that a text may mean.

    `is_relative` if it says so by words that count from the day on which it was said.
    """

    days: frozenset[Day] = frozenset()
    is_relative: bool = False


class FoundDate(NamedTuple):
    """A date in a text, and its possible readings."""

    text: str
    readings: tuple[Day, ...]


def figures_and_dates(text: str) -> tuple[tuple[Figure, ...], tuple[FoundDate, ...]]:
    """Return all numbers and dates of a text; parts of a date aren't numbers too."""
    return (
        _figures_and_dates(text)
        if len(text) < CACHE_LIMIT
        else _figures_and_dates.__wrapped__(text)
    )


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _figures_and_dates(text: str) -> tuple[tuple[Figure, ...], tuple[FoundDate, ...]]:
    dates, rest = _dates(text)
    figures: list[Figure] = []
    for match in _CLOCK.finditer(rest):
        hour = int(match[1]) % _NOON + _NOON * (match[3].lower() == "p")
        figures.append(Figure(match[0], _clock(hour, match[2] or "00")))
    rest = _blank(_CLOCK, rest)
    rest = _TIME_WITH_POINT.sub(r"\1:\2", rest)
    for match in _TIME.finditer(rest):
        readings = _clock(int(match[1]), match[2])
        if int(match[1]) < _NOON and half_of_day(text) == "after":
            readings |= _clock(int(match[1]) + _NOON, match[2])
        figures.append(Figure(match[0], readings))
    rest = _blank(_TIME, rest)
    for clock in clock_times(rest):
        readings = frozenset().union(
            *(_clock(each // 60, f"{each % 60:02}") for each in clock.minutes)
        )
        if clock.is_hour:  # it may stand as a number elsewhere: at 8, at eight
            readings |= {str(clock.hour)}
        figures.append(Figure(rest[clock.start : clock.end], readings))
        rest = _blank_span(rest, clock.start, clock.end)
    language = language_of(text)
    for match in _FIGURE.finditer(rest):
        figures += _read(match[0], _unit(rest, match.start(), match.end()))
    places = language.places["numbers"]
    figures += [
        Figure(rest[token.start : token.end], frozenset({str(places[token.word] + 2)}))
        for token in tokens(rest)
        if token.word in places
    ]
    return tuple(figures), dates


def days_meant(text: str, said: datetime | date) -> Meant:
    """Return the days that a text, said or written at a time, may mean.

    Words that may mean several days, such as *next Friday*, give none; a weekday alone gives both.
    """
    read = _days_meant if len(text) < CACHE_LIMIT else _days_meant.__wrapped__
    return read(text, said.replace(tzinfo=None) if isinstance(said, datetime) else said)


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _days_meant(text: str, said: datetime | date) -> Meant:
    times = times_in(text, said)
    rest = text
    for each in times:
        if each.kind != "named":
            rest = _blank_span(rest, each.start, each.end)
    day = said.date() if isinstance(said, datetime) else said
    readings = [
        *(each.readings for each in _dates(rest)[0]),
        *map(_numeric, _NUMERIC.finditer(rest)),
        *((Day(day=int(match[1])),) for match in _ORDINAL.finditer(rest)),
    ]
    sure = {Day.of(each.date) for each in times if each.date}
    births = {
        Day(by.year - each.age)
        for each in times
        if each.kind == "birthday" and each.age
        for by in sure
        if by.year
    }
    named = [*chain(*readings)]
    given = {found for meant in named for found in [*_joined(meant, sure)] or _nearest(meant, day)}
    return Meant(frozenset(sure | births | given), bool(times))


def _joined(named: Day, sure: Iterable[Day]) -> Iterator[Day]:
    """Yield dates of two parts: *20 June* and next year, *the 5th* and next month."""
    for by in sure:
        month = named.month or by.month
        is_part = named.year is None and by.day is None and (named.month or named.day)
        if by.year is None or month is None or not is_part or (named.month and by.month):
            continue
        with suppress(ValueError):
            if named.day is not None:
                yield day_of(date(by.year, month, named.day))
            else:
                yield Day(by.year, month)


def _nearest(meant: Day, said: date) -> Iterator[Day]:
    """Yield what a date without its year, or without its month, may mean when it is said."""
    if meant.month is None:
        reach = _LONGEST_MONTH if meant.weekday is None else _WEEK
        near = [day_of(said + timedelta(n)) for n in range(-reach, reach + 1)]
        yield from [each for each in near if meant.matches(each)]
    elif meant.day is not None:
        years = (said.year - 1, said.year, said.year + 1)
        for year in years if meant.year is None else (meant.year,):
            with suppress(ValueError):
                yield day_of(date(year, meant.month, meant.day))
    elif meant.year is None:
        yield Day(said.year - (meant.month > said.month), meant.month)
        yield Day(said.year + (meant.month < said.month), meant.month)


def _clock(hour: int, minute: str) -> frozenset[str]:
    return frozenset({f"{hour}:{minute}", *([str(hour)] if minute == "00" else [])})


def _read(text: str, unit: str) -> Iterator[Figure]:
    """Yield the number, or each one of several joined ones, such as 2-3 or 24/7."""
    bare = text.strip("'\u2019")
    if bare[0].isalpha():
        yield Figure(text, frozenset({bare.casefold()}))  # a name with a number in it
    elif amount := _GROUPED_DECIMAL.fullmatch(bare):
        digits = "".join(_DIGITS.findall(amount["whole"]))
        exact = f"{digits}.{amount['part']}"
        yield Figure(text, frozenset({exact, exact.rstrip("0").rstrip(".")}), unit)
    elif _GROUPED.fullmatch(bare) or _DECIMAL.fullmatch(bare):
        readings = {bare.replace(",", ".")}
        if _GROUPED.fullmatch(bare):
            readings.add("".join(_DIGITS.findall(bare)))
        if _DECIMAL.fullmatch(bare):
            whole, _, part = bare.replace(",", ".").partition(".")
            readings.add(f"{int(whole)}.{part}".rstrip("0").rstrip("."))
        yield Figure(text, frozenset(readings), unit)
    else:
        for digits in _DIGITS.findall(bare):
            yield Figure(text, frozenset({digits.lstrip("0") or "0"}), unit)


def _unit(text: str, start: int, end: int) -> str:
    """Return the sign next to a number: of a currency, or a percent sign."""
    around = text[:start].rstrip()[-1:] + text[end:].lstrip()[:1]
    return next((each for each in around if each == "%" or unicodedata.category(each) == "Sc"), "")


@lru_cache(maxsize=512)  # a line's figures, dates and days are asked for in turn
def _dates(text: str) -> tuple[tuple[FoundDate, ...], str]:
    """Return the dates of a text, and the text with the dates blanked out."""
    found: list[FoundDate] = []
    for read in (_iso_dates, _dates_with_year, _named_dates):
        dated, text = read(text)
        found += dated
    return tuple(found), text


def _iso_dates(text: str) -> tuple[list[FoundDate], str]:
    found = [
        FoundDate(match[0], (Day(*(int(each) if each else None for each in match.groups())),))
        for match in _ISO.finditer(text)
    ]
    return found, _blank(_ISO, text)


def _dates_with_year(text: str) -> tuple[list[FoundDate], str]:
    found = []
    for match in _NUMERIC.finditer(text):
        readings = _numeric(match)
        if match[4] and readings:
            found.append(FoundDate(match[0], readings))
            text = _blank_span(text, match.start(), match.end())
    return found, text


def _named_dates(text: str) -> tuple[list[FoundDate], str]:
    found = []
    language, words = language_of(text), tokens(text)
    weekdays, months = language.places["weekdays"], language.places["months"]
    for number, token in enumerate(words):
        if token.word not in weekdays and token.word not in months:
            continue
        shown = text[token.start : token.end]
        if not (shown[0].isupper() or len(shown) >= _MIN_LETTERS):
            continue
        named = Day(month=months.get(token.word), weekday=weekdays.get(token.word))
        if named.month is not None:
            near = _day_beside(text, words, number)
            year = _year_after(words, number)
            named = named._replace(
                month=named.month + 1,
                day=_number(near.word) if near else None,
                year=int(year.word) if year else None,
            )
            for each in filter(None, (near, year)):
                text = _blank_span(text, each.start, each.end)
        found.append(FoundDate(text[token.start : token.end], (named,)))
    return found, text


def _numeric(match: re.Match[str]) -> tuple[Day, ...]:
    """Return the readings of a numeric date, with day and month in either order."""
    first, second = int(match[1]), int(match[3])
    year = int(match[4]) if match[4] else None
    if year is not None and len(match[4]) == 2:  # a two-digit year
        year += 2000
    return tuple(
        Day(year, month, day)
        for day, month in {(first, second), (second, first)}
        if 1 <= month <= _NOON and 1 <= day <= _LONGEST_MONTH
    )


def _day_beside(text: str, words: list[Token], month: int) -> Token | None:
    """Return the number nearest to a month's name that can be its day: none that goes on."""
    near = [
        (abs(place - month), place)
        for place in range(max(0, month - _SPAN), min(len(words), month + _SPAN + 1))
        if 1 <= _number(words[place].word) <= _LONGEST_MONTH
        and not _GOES_ON.match(text, words[place].end)
    ]
    return words[min(near)[1]] if near else None


def _year_after(words: list[Token], month: int) -> Token | None:
    """Return the year closely following a month's name."""
    later = words[month + 1 : month + _SPAN + 2]
    return next((each for each in later if _YEAR.fullmatch(each.word)), None)


def _number(word: str) -> int:
    digits = _DIGITS.match(word)
    return int(digits[0]) if digits and len(word) - len(digits[0]) <= _MAX_SUFFIX else 0


def _blank_span(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)
