"""The values of a sentence: its numbers, dates and names, as they are compared with another's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from kbtui.memory.comparing.figures import Day, Figure, figures_and_dates
from kbtui.memory.comparing.sentences import Sentence
from kbtui.offline.frames import found_in
from kbtui.offline.language import (
    folded,
    holds,
    language_of,
    languages,
    of_all,
    significant_terms,
    stems_of,
    tokens,
)
from kbtui.offline.names import NameReader
from kbtui.search.index import analyser

Kind = Literal["number", "date", "name"]
Reading = str | Day

_DECIMAL = re.compile(r"\d+\.\d\d")
_ELIDED = re.compile(r"[^\W\d_]{1,4}['\u2019]")
_NO_DIGIT = re.compile(r"\D")
_SPACED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[ \u00a0\u202f]\d{3})+(?!\d)")
_PHONE = re.compile(
    r"(?<![\d.,/-])(?:(?:\+|0)\d{1,5}(?:[ \u00a0/-]\d{2,}){1,5}"
    r"|\d{2,4}(?:[ \u00a0]\d{2,4}){2,5})(?!\d)"
)
_HOUR = re.compile(r"(?<=\d)\s(?=[hH]\b)")
_INITIAL = re.compile(r"(?<!\w)[A-Z]\.$")
_NUMBERED = re.compile(r"\bno\.\s?(?=\d)", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(?<![\w-])[^\W\d_]{1,12}-?(\d+)(?!\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ANSWERED = re.compile(r"^\w+[,.:!]\s+")
_SIGNS = {"€": "eur", "$": "dollar", "£": "pound", "%": "percent", "°": "degree"}
_NEAR = 2  # words beside a number


@dataclass(frozen=True)
class Value:
    """A number, date or name: its possible readings, and what kind of thing it counts."""

    text: str
    kind: Kind
    sort: str  # "time", "year" or "identifier" of numbers; how sure it is that a name is one
    readings: frozenset[Reading]
    labels: frozenset[str] = frozenset()

    @property
    def units(self) -> frozenset[str]:
        """The units of measure among its labels."""
        return self.labels & _units_of_measure()

    @cached_property
    def numbers(self) -> frozenset[float]:
        """The readings that are numbers."""
        found: set[float] = set()
        for each in self.readings:
            with suppress(ValueError, TypeError):
                found.add(float(each))  # type: ignore[arg-type]
        return frozenset(found)

    def is_same(self, other: Value) -> bool:
        """Return whether both may mean the same."""
        if self.kind != other.kind:
            return False
        if self.kind == "name":  # a part of one stands for it
            return self.readings <= other.readings or other.readings <= self.readings
        if self.kind == "date":
            return any(
                isinstance(own, Day) and isinstance(each, Day) and own.matches(each)
                for one, two in ((self, other), (other, self))
                for own in one.readings
                for each in two.readings
            )
        return bool(self.readings & other.readings)


@dataclass(frozen=True)
class Line:
    """A statement, with what is compared."""

    text: str
    values: tuple[Value, ...]
    sentence: Sentence

    @cached_property
    def topic(self) -> frozenset[str]:
        """The stems of its words that are no values."""
        valued = {term for each in self.values for term in analyser.terms(each.text)}
        valued |= {term for each in self.values for term in each.units} | titles()
        return frozenset(
            each
            for each in self.sentence.stems
            if each not in valued and not any(map(str.isdigit, each))
        )

    @cached_property
    def counts(self) -> frozenset[float]:
        """All its numbers, those in words too."""
        figures, _ = figures_and_dates(_IDENTIFIER.sub(" ", self.text))
        found = set[float]()
        for each in (reading for figure in figures for reading in figure.readings):
            with suppress(ValueError):
                found.add(float(each))
        return frozenset(found)

    def has(self, value: Value) -> bool:
        """Return whether one of its values may mean the same as another."""
        return any(value.is_same(each) for each in self.values)


def values_of(text: str, names: NameReader) -> Iterator[Value]:
    """Yield the numbers, dates and names of a text."""
    spoken = text
    for spaced in (_SPACED, _PHONE):
        spoken = spaced.sub(lambda match: _NO_DIGIT.sub("", match[0]), spoken)
    spoken = _HOUR.sub("", spoken)
    figures, dates = figures_and_dates(spoken)
    for each in dates:
        parts = {part for day in each.readings for part in _parts_of(day)}
        yield Value(each.text, "date", "", frozenset(each.readings), frozenset(parts))
    yield from _numbers_of(spoken, figures)
    for name in names.names_in(text):
        stems = frozenset(analyser.terms(name)) - titles()
        if stems and not _ELIDED.match(name) and not any(map(str.isdigit, name)):
            yield Value(name, "name", _form_of(name, text), stems)


def _numbers_of(spoken: str, figures: Iterable[Figure]) -> Iterator[Value]:
    """Yield the numbers among the figures of a text, with what is counted by them."""
    marked = {each[1] for each in _IDENTIFIER.finditer(spoken)}
    for figure in figures:
        is_marked = figure.text in marked and not _stands_alone(figure.text, spoken)
        sort = "identifier" if is_marked else _sort_of(figure.readings)
        if sort != "time" and not any(map(str.isdigit, figure.text)):
            continue  # *two* is mostly a count of the model's own
        labels = _labels(spoken, figure.text, figure.unit)
        readings = {*figure.readings, *(_NO_DIGIT.sub("", each) for each in figure.readings)}
        readings = readings if _has_letter(figure.text) else {*figure.readings}
        if _DECIMAL.fullmatch(figure.text):  # at 8.50 is no time of the day for sure
            readings.add(figure.text)
        yield Value(figure.text, "number", sort, frozenset(readings), labels)


def _stands_alone(number: str, text: str) -> bool:
    """Return whether a number stands in a text somewhere but in an identifier."""
    return re.search(rf"(?<![\w-]){re.escape(number)}(?!\w)", text) is not None


def _form_of(name: str, text: str) -> str:
    """Return how sure it is that a word with a capital is a name: "sure", "start" or "noun"."""
    before = text[: text.find(name)].rstrip()
    last = tokens(before)[-1:]
    if " " in name or (last and last[0].word in titles()) or _INITIAL.search(before):
        return "sure"
    language = language_of(text)
    at_start = "noun" if language.nouns_have_capitals else "start"
    if not last or not _has_letter(last[0].word) or before.endswith((".", "!", "?", ",")):
        return at_start
    if before.endswith(":"):
        return "noun" if language.nouns_have_capitals else "sure"
    if language.has("articles", last[0].word):
        return "noun"
    is_plain = language.nouns_have_capitals and not any(
        found_in(last[0].word, each, (language.code,)) for each in ("being", "places")
    )
    return "noun" if is_plain else "sure"


def may_stand_for(value: Value, others: Sequence[Value]) -> bool:
    """Return whether a name that no source has stands for one of a line."""
    return value.sort == "sure" and bool(others)


def _parts_of(day: Day) -> Iterator[str]:
    """Yield what is given of a day: only what both give can differ."""
    if day.weekday is not None:
        yield "weekday"
    if day.month is not None:
        yield "month"
    if day.year is not None:
        yield "year"


def _sort_of(readings: Iterable[str]) -> str:
    found = list(readings)
    if any(":" in each for each in found):
        return "time"
    return "year" if len(found) == 1 and _YEAR.fullmatch(found[0]) else ""


def _labels(text: str, shown: str, unit: str) -> frozenset[str]:
    """Return what a number counts: its unit, else the words next to it."""
    start = text.find(shown)
    before = tokens(text[:start])[-_NEAR - 1 :]
    after = tokens(text[start + len(shown) :])[:_NEAR]
    words = [each.word for each in (*after, *before)]
    units = _units()
    beside = [each.word for each in (*after, *before[-1:])]
    if unit in _SIGNS:
        return frozenset({_SIGNS[unit]})
    if found := [*filter(None, map(units.get, beside))]:
        return frozenset(found)
    return frozenset(term for each in words for term in significant_terms(each))


def denies(text: str) -> bool:
    """Return whether a text denies something, apart from a "No," at its beginning."""
    return holds(_denying(text), of_all("deny"))


def _denying(text: str) -> str:
    """Return a text without a word that only looks like a denial: "No," at its start, no. 14."""
    return _NUMBERED.sub("", _ANSWERED.sub("", text))


def denied_stems(text: str) -> frozenset[str]:
    """Return the stems next to the words by which a text denies something."""
    text = _denying(text)
    found = tokens(text)
    near: set[str] = set()
    for at, count in of_all("deny").places(text, found):
        for side in (reversed(found[:at]), found[at + count :]):
            stems = (significant_terms(each.word) for each in side)
            near.update(next(filter(None, stems), ()))
    return frozenset(near)


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def rivals(line: Line, value: Value, other: Line) -> list[Value]:
    """Return the values of a line that may stand for one of another line."""
    return [
        each
        for each in other.values
        if each.kind == value.kind and not line.has(each) and _is_rival(value, each)
    ]


def _is_rival(value: Value, other: Value) -> bool:
    if value.kind == "name":
        return other.sort != "start" or value.sort == "start"
    has_unit = value.units or other.units
    return other.sort == value.sort and bool(not has_unit or value.units & other.units)


@cache
def titles() -> frozenset[str]:
    """Return the words before a name that are no part of it, folded: Dr, Frau, Señora."""
    return frozenset([folded(word) for each in languages() for word in each.frames["titles"]])


@cache
def _units() -> dict[str, str]:
    """Return the units of measure by their spellings, folded, each with one name for all."""
    groups = [group.split() for each in languages() for group in each.frames["units"]]
    return {folded(spelling): group[0] for group in groups for spelling in group}


@cache
def _units_of_measure() -> frozenset[str]:
    return frozenset([*_SIGNS.values(), *_units().values()])


@cache
def telling_nothing() -> frozenset[str]:
    """Return the stems of words by which no two lines are about the same thing."""
    units = frozenset(term for each in _units() for term in analyser.terms_of(each))
    return units | stems_of("self") | stems_of("agree") | stems_of("deny") | stems_of("talk")
