"""Sentences: what a text says one by one, and which of them a line is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import combinations, groupby

from kbtui.memory.edits.figures import Figure, figures_and_dates
from kbtui.memory.records.dates import absolute_dates
from kbtui.offline.language import (
    LONG,
    begins,
    holds,
    language_of,
    left_over,
    of_all,
    stems_of,
    telling_terms,
    tokens,
)
from kbtui.offline.lines import sentences
from kbtui.search.index import analyser
from kbtui.text import clean_line

_PART = re.compile(r"[,;]\s")
_APOSTROPHE = re.compile(r"['\u2019]")
_LONGEST = 200  # characters of a sentence that stands for a line
_HALF = 0.5
_LIKE = 0.4  # of a line's telling words; it may be said in another language
_FEWEST = 2  # telling words that another sentence adds to a line
_PAIR = 2
_SELF = ""  # how whoever speaks is compared, whatever they are called


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence: the stems of its telling words, and those that it denies, if it denies anything.

    Attributes:
        text: It, as it was said.
        within: The message, or the line of a file, that it stands in.
        denied: Each denied stem with what stands in its stead: tabs, of *tabs, not spaces*.
        asks: It is a question, or a wish that only a model can fulfil, and states nothing.
    """

    text: str
    stems: frozenset[str]
    denied: frozenset[tuple[str, str]] = frozenset()
    denies: bool = False
    asks: bool = False
    within: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str, within: str = "", *, may_ask: bool = False) -> Sentence:
        """Read one; denied is the telling word right behind what denies. Only some `may_ask`."""
        is_wish = text.endswith("?") or begins(text, of_all("work")) is not None
        asks = may_ask and is_wish and not holds(text, of_all("remember"))
        read = _said_and_denied if len(text) < LONG else _said_and_denied.__wrapped__
        return cls(text, *read(text), asks, within or text)

    def turned(self, other: Sentence) -> frozenset[str]:
        """What both say, and one of them denies while the other denies nothing."""
        if self.denies == other.denies:
            return frozenset()
        return self._denied_in(other) | other._denied_in(self)

    def _denied_in(self, other: Sentence) -> frozenset[str]:
        denied = (stem for stem, instead in self.denied if instead not in other.stems)
        return frozenset(denied) & other.stems

    def tells(self, other: Sentence, besides: frozenset[str] = frozenset()) -> bool:
        """True if it says at least half of what another one does, `besides` some of it."""
        rest = other.stems - besides
        return bool(other.stems) and len(self.stems & rest) >= _HALF * len(rest)

    def parts(self) -> list[Sentence]:
        """It, and what its commas part, as far as that says something by itself."""
        found = [Sentence.of(each, self.within) for each in _PART.split(self.text)]
        return [self, *(each for each in found if found[1:] and len(each.stems) >= _FEWEST)]

    def displaced_by(self, name: frozenset[str], other: Sentence) -> list[str]:
        """What of it stands where another one, else like it, has a name; ``""`` is who speaks.

        What is longer than what came in its place is something else.
        """
        mine, theirs = self._compared, other._compared
        if len(mine) * len(theirs) > _LONGEST**2:
            return []
        codes = SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
        return [
            word
            for kind, start, end, first, last in codes
            if kind == "replace" and end - start <= last - first + _FEWEST
            if name & set(theirs[first:last])
            for word in mine[start:end]
        ]

    @cached_property
    def _compared(self) -> list[str]:
        speaker = stems_of("self")
        words = (self.text[each.start : each.end] for each in tokens(self.text))
        stems = [(analyser.terms_of(_APOSTROPHE.split(each)[0])[:1], each) for each in words]
        return [
            _SELF if speaker & {*head} else (*analyser.terms_of(word), word)[0]
            for head, word in stems
        ]


@lru_cache(maxsize=1_024)  # each turn asks for all sentences of its conversation
def _said_and_denied(text: str) -> tuple[frozenset[str], frozenset[tuple[str, str]], bool]:
    """The stems of a sentence, those that it denies, and whether it denies anything."""
    found = tokens(text)
    counts = language_of(text).list("deny").places(text, found)
    places = [(found[at].start, found[at + count - 1].end) for at, count in counts]
    denied: set[tuple[str, str]] = set()
    for start, end in places:
        before = text[max(0, start - _LONGEST) : start].rstrip()
        behind = telling_terms(text[end : end + _LONGEST])[:1]
        instead = telling_terms(before)[-1:] if before.endswith(",") else []
        denied.update([(stem, "".join(instead)) for stem in behind])
    return frozenset(telling_terms(text)), frozenset(denied), bool(places)


def swapped(said: Sequence[Sentence], told: Sentence) -> str:
    """A number of a line that was said of something else, whose number stands in its place."""
    numbers = figures_and_dates(told.text)[0] if len(told.text) <= _LONGEST else ()
    if len(numbers) < _PAIR:
        return ""
    short = [each for each in said if len(each.text) <= _LONGEST][:_PAIR]
    stems = told.stems & frozenset().union(*(each.stems for each in short))
    mine = _said_of(told.text, numbers, stems)
    theirs = _said_of("\n".join(each.text for each in short), numbers, stems)

    def is_turned(first: int, second: int) -> bool:
        kept = mine[first] & theirs[first] or mine[second] & theirs[second]
        return bool(not kept and mine[first] & theirs[second] and mine[second] & theirs[first])

    pairs = combinations(sorted(mine.keys() & theirs.keys()), _PAIR)
    return next((numbers[first].text for first, second in pairs if is_turned(first, second)), "")


def _said_of(
    text: str, numbers: Sequence[Figure], stems: frozenset[str]
) -> dict[int, frozenset[str]]:
    """The stems beside each of some numbers, by its place among them.

    Empty where a text doesn't pair stems and numbers one by one.
    """
    marks = [each for each in _marks(text, numbers) if isinstance(each, int) or each in stems]
    runs = [[*run] for _, run in groupby(marks, lambda each: isinstance(each, int))]
    counted = [run[0] for run in runs if len(run) == 1 and isinstance(run[0], int)]
    named = [frozenset(map(str, run)) for run in runs if not isinstance(run[0], int)]
    is_paired = len(counted) == len(named) == len(runs) / 2 == len({*counted})
    return dict(zip(counted, named, strict=True)) if is_paired else {}


def _marks(text: str, numbers: Sequence[Figure]) -> Iterator[str | int]:
    """The stems of a text, and in the place of a number its place among some, in their order."""
    places: dict[int, str | int] = {}
    for token in tokens(text):
        places[token.start] = "".join(telling_terms(text[token.start : token.end])[:1])
    for figure in figures_and_dates(text)[0]:
        meant = (at for at, each in enumerate(numbers) if each.readings & figure.readings)
        places[text.find(figure.text)] = next(meant, "")
    return (each for _, each in sorted(places.items()))


class UserSentences:
    """What was told, sentence by sentence, each with the day and the number of its message.

    What only asks is none of it.
    """

    def __init__(self, said: Iterable[tuple[str, date | None, int | None]]) -> None:
        self._told = [
            (sentence, day, number)
            for text, day, number in said
            for sentence in (Sentence.of(each, may_ask=True) for each in sentences(text))
            if sentence.stems and not sentence.asks and _says_something(sentence.text)
        ]

    def unmentioned(self, lines: Iterable[str], least: int) -> list[tuple[int, str]]:
        """What is told and no line says half of, with its numbers.

        It has at least so many words, or two with a number or a day.
        """
        known = [Sentence.of(line) for line in lines]
        return [
            (number, clean_line(sentence.text))
            for sentence, _, number in self._told
            if number is not None
            and len(sentence.stems) >= (_FEWEST if any(figures_and_dates(sentence.text)) else least)
            and not any(line.tells(sentence) for line in known)
        ]

    def whole(self, line: str) -> list[tuple[str, int | None]]:
        """The sentences that a line is made of, with dates for *yesterday*, and their numbers.

        They are in the order in which they were told, so that a correction follows what it
        corrects. The line itself where none is like it.
        """
        told = Sentence.of(line)
        left = set(told.stems)
        found: list[int] = []

        def adds(at: int) -> bool:
            sentence = self._told[at][0]
            is_new = len(sentence.text) <= _LONGEST and at not in found and left & sentence.stems
            tells = _is_like(left, sentence, found) or (found and told.tells(sentence))
            return bool(is_new and tells)

        def nearness(at: int) -> tuple[int, int, int]:
            stems = self._told[at][0].stems
            return len(left & stems), -len(stems), at

        while (best := max(filter(adds, range(len(self._told))), key=nearness, default=-1)) >= 0:
            found.append(best)
            left -= self._told[best][0].stems
        return [self._as_said(at) for at in sorted(found)] or [(line, None)]

    def _as_said(self, at: int) -> tuple[str, int | None]:
        sentence, day, number = self._told[at]
        text = clean_line(sentence.text)
        return (absolute_dates(text, day) if day else text), number


def _says_something(text: str) -> bool:
    """True of what is more than thanks, greetings and the like."""
    return any(left_over(text, map(of_all, ("talk", "thanks", "greeting"))))


def _is_like(left: set[str], sentence: Sentence, found: list[int]) -> bool:
    """True if a sentence says enough of what is left of a line."""
    return len(left & sentence.stems) >= max(_FEWEST if found else 1, _LIKE * len(left))
