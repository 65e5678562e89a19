"""Words for days and times, and the days that they mean: the one reader of both.

The words stand in ``[times]`` of each file in ``languages/``. A key there is what its phrases mean:

- ``day -2``, ``week +1``, ``weekend +0``, ``month +1``, ``year -1``: so many units from the day on
  which it was said;
- ``past`` and ``future``: the number and the unit in the phrase, back or ahead;
- ``behind`` and ``ahead``: all the days from there to here, or so many with a sign;
- ``last``, ``next``, ``this``, ``coming``, ``after``: that weekday, relative to the day; ``named``:
  a weekday alone, with a number that of the week so many weeks ahead;
- ``lastmonth``, ``nextmonth``, ``thismonth``: that month, relative to this one;
- ``vague``: a time that can't be worked out; ``age``, ``birthday``: how old somebody is or becomes;
- ``clock -15``: a time of day, so many minutes from the hour; ``noon``, ``midnight``; ``before
  noon`` and ``after noon``: words that tell which half of the day is meant;
- ``none``: phrases that look like one of these and are none.

In phrases, ``NUMBER`` stands for digits and for the words of ``numbers`` and ``count 30``; ``UNIT``
for those of ``day 1``, ``week 2`` without a sign; ``HALF`` for units that need no number; ``HOUR``
for an hour, ``WEEKDAY`` and ``MONTH`` for their names, ``WEEKDAYS`` for plurals of them.

What a phrase means isn't always one day: *next Friday*, said on a Thursday, may be tomorrow or the
Friday after. Such a phrase has no `FoundTime.date`, and nobody works one out.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from kbtui.offline.language import (
    CACHE_LIMIT,
    Language,
    Token,
    language_of,
    language_with,
    languages,
    tokens,
)
from kbtui.offline.lines import sentence_spans

Unit = Literal["day", "week", "month", "year", "time"]
_JOINED = re.compile(r"[\s\u00a0\u202f'\u2019\u2010\u2011-]*")
_OPENS_SENTENCE = re.compile(
    r"(?:\A|[\n.!?:;*(\"\u201c\u201e\u00bf\u00a1-])[\s>\[\]_*\"'\u201c\u201e]*\Z"
)
_ISO_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
_YEAR = re.compile(r"\d{4}")
_SPANS = ("ahead", "behind")  # of use in questions; in a statement they say how long
_WEEK = 7
_MONTHS = 12
_NOON = 12
_HOURS = 24
_MIN_LETTERS = 4  # of a weekday without a capital, as in figures
_LOOKBEHIND = 40
_NEAR_DATE = 2  # words between a weekday and the date that it belongs to


class Period(NamedTuple):
    """The days that are meant, from the first to the last, and how precisely."""

    first: date
    last: date
    unit: Unit
    time: str = ""
    """The time of day, ``16:30``, of what is meant by the minute."""

    def text(self, language: Language) -> str:
        """Return it for people: ``2026-12-04``, ``January 2027``, ``2024``."""
        if self.unit == "year":
            return f"{self.first.year:04}"
        if self.unit == "month":
            return f"{language.month_names[self.first.month - 1]} {self.first.year:04}"
        return f"{self.first.isoformat()} {self.time}".rstrip()


@dataclass(frozen=True, slots=True)
class FoundTime:
    """A phrase for a time, relative to when it was said.

    Attributes:
        start: Its start in the text, in characters.
        end: Its end.
        kind: The key of the phrase.
        periods: The days that it may mean; none if that can't be told.
        language: The language that it is in.
        age: The age in years, if it tells one.
    """

    start: int
    end: int
    kind: str
    periods: tuple[Period, ...]
    language: Language
    age: int | None = None

    @property
    def is_weekday(self) -> bool:
        """Whether it is a weekday alone, which may be the last, the next, or one of every week."""
        return self.kind == "named" and len(self.periods) > 1

    @property
    def date(self) -> Period | None:
        """What it means, if that is one day, month or year; None if it may be several."""
        sure = self.periods if len(self.periods) == 1 and self.periods[0].unit != "week" else ()
        return sure[0] if sure else None


class ClockTime(NamedTuple):
    """A time of day in words, as minutes from midnight, both if the half isn't told."""

    start: int
    end: int
    minutes: tuple[int, ...]
    hour: int
    """The hour that was said."""
    is_hour: bool
    """Whether it is a full hour, which stands there as a number."""


def times_in(text: str, said: datetime | date) -> tuple[FoundTime, ...]:
    """Return the phrases of a text that mean a day or a time relative to when it was `said`.

    Each sentence is read in its own language; if it has none of that, in the others.
    """
    when = said if isinstance(said, datetime) else datetime(said.year, said.month, said.day)  # noqa: DTZ001
    read = _found if len(text) < CACHE_LIMIT else _found.__wrapped__
    is_timed = isinstance(said, datetime)
    return tuple(
        found
        for match in read(text)
        if (found := _meant(match, when, is_timed=is_timed)) is not None
    )


def spans_in(text: str, day: date) -> Iterator[tuple[int, int, Period]]:
    """Yield the spans that end or begin on a day, with where they stand: *the next three days*."""
    for match in _found(text):
        if match.key in _SPANS or _is_span_behind(match, text):
            with suppress(ValueError, OverflowError):
                if (period := _span(match, day)) is not None:
                    yield match.start, match.end, period


def _is_span_behind(match: _Match, text: str) -> bool:
    """Return whether a phrase for so long ago is a span behind a word: *over the last 3 days*."""
    _, _, rest = text[match.start : match.end].partition(" ")
    return match.key == "past" and any(each.key == "behind" for each in _found(rest))


def _span(match: _Match, day: date) -> Period | None:
    unit, size = match.slot("UNIT") or ("day", abs(match.step or 0))
    number = (match.slot("NUMBER") or 1) * size * (1 if match.key == "ahead" else -1)
    if unit in ("hour", "minute"):
        return None
    if unit in ("day", "week"):
        then = _period(day, unit, number).first
    else:
        month = _period(day, "month", number * (_MONTHS if unit == "year" else 1))
        then = min(month.last, month.first + timedelta(days=day.day - 1))
    return Period(min(day, then), max(day, then), "week")


def iso_days(text: str) -> Iterator[date]:
    """Yield the days that stand in a text as ``2026-11-26``."""
    for match in _ISO_DAY.finditer(text):
        with suppress(ValueError):
            yield date.fromisoformat(match[0])


def clock_times(text: str) -> tuple[ClockTime, ...]:
    """Return the times of day that stand in words in a text: half past six."""
    read = _found if len(text) < CACHE_LIMIT else _found.__wrapped__
    return tuple(
        ClockTime(each.start, each.end, minutes, each.slot("HOUR") or 0, each.step == 0)
        for each in read(text)
        if (minutes := _minutes(each))
    )


def half_of_day(text: str) -> Literal["before", "after"] | None:
    """Return whether a sentence is about a time before or after noon, if it says one of them."""
    halves = set(_halves(text))
    return halves.pop() if len(halves) == 1 else None


class _Match(NamedTuple):
    """A phrase of the table in a text."""

    start: int
    end: int
    key: str
    step: int | None
    slots: tuple[tuple[str, Any], ...]
    language: Language
    half: str | None = None

    def slot(self, name: str) -> Any:
        """Return what stands in a slot of the phrase; None if it has none of that name."""
        return dict(self.slots).get(name)


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _found(text: str) -> tuple[_Match, ...]:
    matches: list[_Match] = []
    whole = language_of(text)
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        own = language_of(sentence)
        is_told = not own.known.isdisjoint([token.word for token in tokens(sentence)])
        first = own if is_told else whole
        for language in (first, *[each for each in languages() if each is not first]):
            known = first.known if language is not first else frozenset()
            found = [*_phrases(sentence, language, known)]
            if found:
                matches += (
                    each._replace(start=start + each.start, end=start + each.end) for each in found
                )
                break
    return tuple(matches)


def _phrases(sentence: str, language: Language, known: frozenset[str]) -> Iterator[_Match]:
    """Yield the phrases of a sentence in a language, the longest at each place.

    Words that are `known` in the language of the sentence aren't meant.
    """
    words = tokens(sentence)
    taken: list[_Match] = []
    half: str | None = ""
    at = 0
    while at < len(words):
        match, stop = None, at + 1
        if words[at].word not in known and _may_begin(words[at].word, language.code):
            match, stop = _longest(sentence, language, words, at)
        if match is None or any(each.word in known for each in words[at:stop]):
            at += 1
            continue
        if match.key == "clock":
            later, beyond = _longest(sentence, language, words, at + 1)
            if later is not None and beyond > stop:
                match, stop = later, beyond  # at [five to seven], about [ten years ago]
        if match.key == "clock":
            half = half_of_day(sentence) if half == "" else half
            match = match._replace(half=half)
        taken.append(match)
        at = stop
    for number, match in enumerate(taken):
        beside = (*taken[max(0, number - 1) : number], *taken[number + 1 : number + 2])
        is_bare = match.key == "named" and match.step is None
        is_told = is_bare and any(_is_beside(match, each, sentence) for each in beside)
        if match.key != "none" and not is_told:
            yield match


def _longest(
    sentence: str, language: Language, words: Sequence[Token], at: int
) -> tuple[_Match | None, int]:
    """Return the longest phrase that begins at a word of a sentence, and where it ends."""
    found = _walk(language.times, language, sentence, words, at) if at < len(words) else ()
    best = max(found, key=_length, default=None)
    if best is None:
        return None, at
    stop, (key, step), slots = best
    match = _Match(words[at].start, words[stop - 1].end, key, step, slots, language)
    return (match if _is_meant(match, sentence, words, at, stop) else None), stop


@lru_cache(maxsize=1 << 14)  # the same words recur in many lines
def _may_begin(word: str, code: str) -> bool:
    """Return whether a phrase of a language can begin with a word."""
    own = language_with(code)
    named = {**own.places["weekdays"], **own.places["months"]}
    if word in own.times or word in named:
        return True
    return word.isdecimal() or word in own.slots["NUMBER"] or word in own.slots["HALF"]


def _length(found: tuple[int, Any, Any]) -> int:
    return found[0]


def _walk(
    node: Mapping[str, Any],
    language: Language,
    text: str,
    words: Sequence[Token],
    at: int,
    *,
    slots: tuple[tuple[str, Any], ...] = (),
    begun: bool = False,
) -> Iterator[tuple[int, Any, tuple[tuple[str, Any], ...]]]:
    """Yield where phrases that begin at a word end, with what they mean and their slots."""
    if "" in node:
        yield at, node[""], slots
    if at >= len(words) or (
        begun and not _JOINED.fullmatch(text, words[at - 1].end, words[at].start)
    ):
        return
    ways = [("", None, at + 1, node.get(words[at].word))]
    for name in _SLOTS:
        if name in node:
            filled = _slot(name, language, text, words, at)
            ways += [(name, value, stop, node[name]) for value, stop in filled]
    for name, value, stop, below in ways:
        if below is not None:
            own = (*slots, (name, value)) if name else slots
            yield from _walk(below, language, text, words, stop, slots=own, begun=True)


_SLOTS = ("HALF", "NUMBER", "UNIT", "HOUR", "WEEKDAY", "WEEKDAYS", "MONTH")


def _slot(
    name: str, language: Language, text: str, words: Sequence[Token], at: int
) -> Iterator[tuple[Any, int]]:
    """Yield what a slot may hold at a word, with where it ends."""
    word = words[at].word
    if name in ("WEEKDAY", "WEEKDAYS", "MONTH"):
        kind = "months" if name == "MONTH" else "weekdays"
        place = language.places[kind].get(word)
        is_plural = word not in language.lists[kind] and word[:-1] in language.lists[kind]
        if place is not None and is_plural == (name == "WEEKDAYS"):
            yield place, at + 1
        return
    if name in ("NUMBER", "HOUR") and word.isdecimal() and len(word) <= _MAX_DIGITS:
        if name == "NUMBER" or int(word) <= _HOURS:
            yield int(word), at + 1
        return
    place = language.slots["NUMBER" if name == "HOUR" else name]
    for stop, value, _ in _walk(place, language, text, words, at):
        if name != "HOUR" or value <= _HOURS:
            yield value, stop


_MAX_DIGITS = 3


def _is_meant(match: _Match, text: str, words: Sequence[Token], at: int, stop: int) -> bool:
    """Return whether a phrase is one here, not part of a name, a compound or a date."""
    if match.key == "none":
        return True
    shown = text[match.start : match.end]
    is_named = match.key == "clock" or (
        match.slots[:1] and match.slots[0][0] in ("WEEKDAY", "MONTH")
    )
    if re.match(r"[-\u2010\u2011]\w", text[match.end : match.end + 2]):
        return False
    if shown[0].isupper() and not is_named and not _opens_sentence(text, match.start):
        return False  # a name, such as USA Today; German nouns too
    if match.key in ("age", "birthday") or (match.key == "clock" and match.step):
        return _is_complete(match, words[at:stop], words[stop : stop + 1])
    if match.key == "named" and match.step is None:
        is_word = shown.isalpha() and (shown[0].isupper() or len(shown) >= _MIN_LETTERS)
        return is_word and not _has_date(match.language, words, at)
    return True


def _opens_sentence(text: str, at: int) -> bool:
    return _OPENS_SENTENCE.search(text[max(0, at - _LOOKBEHIND) : at]) is not None


def _is_complete(match: _Match, own: Sequence[Token], following: Sequence[Token]) -> bool:
    """Return whether no noun follows a number that is meant as an age, or as a time of day.

    One does in *I am 20 minutes late* and *it takes five to seven days*. An age may be so many
    years or months.
    """
    if unit := match.slot("UNIT"):
        return unit[0] in ("year", "month")
    is_clock = match.key == "clock" and own[0].word not in match.language.slots["NUMBER"]
    if is_clock or not following:
        return True
    word = following[0].word
    is_time = word in match.language.times  # ten to eight [tonight]
    return is_time or word in match.language.stop_words


def _has_date(language: Language, words: Sequence[Token], at: int) -> bool:
    """Return whether a date stands beside a weekday."""
    near = [*words[max(0, at - _NEAR_DATE) : at], *words[at + 1 : at + 2 + _NEAR_DATE]]
    return any(
        each.word in language.places["months"] or _YEAR.fullmatch(each.word) for each in near
    )


def _is_beside(one: _Match, other: _Match, text: str) -> bool:
    if other.key in ("named", "clock", "none", "age", *_SPANS):
        return False
    between = (
        text[one.end : other.start] if one.start < other.start else text[other.end : one.start]
    )
    return len(tokens(between)) < _NEAR_DATE and "." not in between


def _halves(sentence: str) -> Iterator[Any]:
    words = tokens(sentence)
    for language in languages():
        for at in (n for n, each in enumerate(words) if each.word in language.halves):
            for _, (key, _step), _slots in _walk(language.halves, language, sentence, words, at):
                yield key


# What the phrases mean ----------------------------------------------------------------------------


def _meant(match: _Match, when: datetime, *, is_timed: bool) -> FoundTime | None:
    """Return what a phrase means, said at a time; None if that is no day."""
    if match.key in ("clock", "noon", "midnight", *_SPANS):
        return None
    try:
        periods = _periods(match, when, is_timed=is_timed)
    except (ValueError, OverflowError):  # five thousand years ago
        return None
    if periods is None:
        return None
    age = match.slot("NUMBER") if match.key in ("age", "birthday") else None
    if age is not None and (match.slot("UNIT") or ["year", 1])[0] != "year":
        age = None
    return FoundTime(match.start, match.end, match.key, periods, match.language, age)


def _periods(match: _Match, when: datetime, *, is_timed: bool) -> tuple[Period, ...] | None:
    day, key, step = when.date(), match.key, match.step or 0
    if key in ("past", "future"):
        return _counted(match, when, is_timed=is_timed)
    if key in ("day", "month", "year"):
        return (_period(day, key, step),)
    if key in ("week", "weekend"):
        monday = _monday(day, step)
        first = monday if key == "week" else monday + timedelta(days=5)
        return (Period(first, monday + timedelta(days=6), "week"),)
    if (weekday := match.slot("WEEKDAY")) is not None:
        days = _weekdays(key, match.step, weekday, day)
        return tuple(Period(each, each, "day") for each in days)
    if (month := match.slot("MONTH")) is not None:
        return tuple(
            _month(date(year, month + 1, 1)) for year in _years(key, month + 1 - day.month, day)
        )
    return ()


def _counted(match: _Match, when: datetime, *, is_timed: bool) -> tuple[Period, ...] | None:
    """Return the period of so many units ago or ahead."""
    unit, size = match.slot("UNIT") or match.slot("HALF")
    number = (match.slot("NUMBER") or 1) * size * (-1 if match.key == "past" else 1)
    if unit not in ("hour", "minute"):
        return (_period(when.date(), unit, number),)
    if number > 0 or not is_timed:  # "in four hours" may be how long it took
        return None
    then = when + timedelta(**{f"{unit}s": number})
    return (Period(then.date(), then.date(), "time", f"{then:%H:%M}"),)


def _period(day: date, unit: str, number: int) -> Period:
    """Return the day, month or year that is so many units from a day."""
    if unit in ("day", "week"):
        then = day + timedelta(days=number * (_WEEK if unit == "week" else 1))
        return Period(then, then, "day")
    if unit == "month":
        years, month = divmod(day.month - 1 + number, _MONTHS)
        return _month(date(day.year + years, month + 1, 1))
    year = day.year + number
    return Period(date(year, 1, 1), date(year, 12, 31), "year")


def _month(first: date) -> Period:
    _, days = calendar.monthrange(first.year, first.month)
    return Period(first, first.replace(day=days), "month")


def _monday(day: date, weeks: int) -> date:
    return day + timedelta(days=weeks * _WEEK - day.weekday())


def _weekdays(key: str, step: int | None, weekday: int, day: date) -> tuple[date, ...]:
    """Return the days that a weekday may mean, said on a day."""
    in_week = _monday(day, step or 0) + timedelta(days=weekday)
    if step is not None:
        return (in_week,)
    coming = day + timedelta(days=(weekday - day.weekday() - 1) % _WEEK + 1)
    gone = day - timedelta(days=(day.weekday() - weekday - 1) % _WEEK + 1)
    week = timedelta(days=_WEEK)
    one = timedelta(days=1)
    meant: dict[str, tuple[date, ...]] = {
        "coming": (coming,),
        "after": (coming + week,),
        "last": (gone, gone - week) if in_week == gone or day - gone == one else (gone,),
        "next": (coming, coming + week) if in_week == coming or coming - day == one else (coming,),
        "this": (in_week,) if in_week >= day else (gone, coming),
    }
    return meant.get(key, (gone, coming) if in_week != day else (gone, day, coming))


def _years(key: str, ahead: int, day: date) -> tuple[int, ...]:
    """Return the years of the month that a phrase may mean, which is so many months ahead."""
    if key == "lastmonth":
        return (day.year, day.year - 1) if ahead < 0 else (day.year - 1,)
    if key == "nextmonth":
        return (day.year, day.year + 1) if ahead > 0 else (day.year + 1,)
    return (day.year,)


def _minutes(match: _Match) -> tuple[int, ...]:
    """Return the minutes from midnight that a time of day in words may mean."""
    if match.key in ("noon", "midnight"):
        return (_NOON * 60 if match.key == "noon" else 0,)
    hour = match.slot("HOUR")
    if match.key != "clock" or hour is None:
        return ()
    day = _HOURS * 60
    found = (hour * 60 + (match.step or 0)) % day
    if hour > _NOON:
        return (found,)
    half = _NOON * 60
    if match.half:
        return (found % half + half * (match.half == "after"),)
    return (found, (found + half) % day) if match.step else (found,)
