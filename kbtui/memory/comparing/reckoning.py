"""What an answer may work out from what it was given: sums, products, so many days later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import chain, combinations, product

from kbtui.memory.comparing.figures import Day
from kbtui.memory.comparing.values import Line, Value
from kbtui.offline.frames import all_codes, found_in

_MOST_NUMBERS = 60
_SOME_YEAR = 2026  # of days without one
_DIGITS = 6


def follows(value: Value, sentence: Line, lines: Sequence[Line]) -> bool:
    """Return whether a value of a sentence follows from what stands in lines.

    A day is so many days or weeks after another one. A number is the sum or the difference of two
    of its kind, or what two of a line come to, or one and a number of the sentence: 7 nights at 98.
    """
    if value.kind == "date":
        return _is_counted(value, sentence, lines)
    if value.kind != "number" or value.sort or any(line.has(value) for line in lines):
        return False
    return any(_rounded(each) in value.numbers for each in _results(value, sentence, lines))


def _results(value: Value, sentence: Line, lines: Iterable[Line]) -> Iterator[float]:
    shown: set[float] = set()
    alike: set[float] = set()
    for line in lines:
        own = [each for each in line.values if each.kind == "number" and each.sort != "identifier"]
        for one, two in combinations(own, 2):
            for first, second in product(one.numbers, two.numbers):
                if not (one.units and two.units) or one.units == two.units:  # no dollars and days
                    yield from (first + second, abs(first - second))
                yield first * second
                yield first * second / 100  # so many percent of it
        shown |= line.counts
        alike.update(*(each.numbers for each in own if each.labels & value.labels))
    for first, second in combinations(sorted(alike)[:_MOST_NUMBERS], 2):
        yield from (first + second, abs(first - second))
    factors = sentence.counts - value.numbers
    if found_in(sentence.text, "reckoned", all_codes()):
        factors |= {2.0}  # twice, half
    for first, second in product(sorted(shown)[:_MOST_NUMBERS], sorted(factors)[:_MOST_NUMBERS]):
        yield first * second
        if second:
            yield round(first / second, 2)


def _rounded(number: float) -> float:
    return round(number, _DIGITS)


def _is_counted(value: Value, sentence: Line, lines: Iterable[Line]) -> bool:
    days = [day for day in value.readings if isinstance(day, Day) and day.month and day.day]
    for line in lines:
        plain = (each.numbers for each in line.values if each.sort != "time")
        counts = {*sentence.counts, *chain.from_iterable(plain)} - {0.0}
        lengths = {count * unit for count in counts for unit in (1, 7)}
        shown = (day for each in line.values for day in each.readings if isinstance(day, Day))
        if any(_days_between(first, day) in lengths for first in shown for day in days):
            return True
    return False


def _days_between(first: Day, last: Day) -> int | None:
    """Return the days from one day to another, in the same year where none is given."""
    with suppress(ValueError, TypeError):
        year = first.year or last.year or _SOME_YEAR
        begun = date(year, first.month or 0, first.day or 0)
        return (date(last.year or year, last.month or 0, last.day or 0) - begun).days
    return None
