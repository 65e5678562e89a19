"""Grounded: whether a line can come from what it is said to come from, told without a model.

Every number, date, proper name and address in it must stand there, and most of its other telling
words, by their stems. So a paraphrase passes, and what was made up doesn't.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import reduce
from typing import Protocol

from kbtui.knowledge.format.facts import normalise
from kbtui.memory.edits.figures import Dated, Day, Figure, days_meant, figures_and_dates
from kbtui.memory.edits.sentences import Sentence, swapped
from kbtui.memory.records.dates import local
from kbtui.memory.records.transcript import questions_in
from kbtui.offline.language import (
    begins,
    holds,
    language_of,
    of_all,
    stems_of,
    telling_terms,
    tokens,
)
from kbtui.offline.lines import sentences as sentences_of
from kbtui.offline.names import NameReader
from kbtui.search.index import analyser

_SHARE = 0.6
_SHORTEST_PART = 5
_SHORTEST_NAME = 2
_LONGEST_AGREEMENT = 6  # words
_FEW = 3  # telling words that say when
_ADDRESS = re.compile(r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class Spoken(Protocol):
    """A message, as far as it matters here."""

    @property
    def role(self) -> str:
        """``user``, ``assistant``, ..."""

    @property
    def content(self) -> str:
        """What is said."""

    @property
    def time(self) -> datetime:
        """When it is said."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What lines may be built from: `terms` of what was said, `asked` of what that answered.

    What was only asked says what a line may be about: it is no name or number of it, and no sign
    that it was said.
    """

    terms: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    units: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dates: frozenset[Day] = frozenset()
    days: frozenset[date] = frozenset()
    said_on: frozenset[date] = frozenset()
    names: NameReader = field(default_factory=lambda: NameReader(_SHORTEST_NAME))
    sentences: tuple[Sentence, ...] = ()

    @classmethod
    def of(
        cls,
        said: Iterable[tuple[date | None, str]],
        asked: Iterable[str] = (),
        *,
        may_ask: bool = False,
    ) -> Ground:
        """That of texts, each with the day on which it was said, as far as days matter.

        With `may_ask` nothing comes from what they only ask.
        """
        terms: set[str] = set()
        units: dict[str, set[str]] = {}
        dates: set[Day] = set()
        days: set[date] = set()
        said_on: set[date] = set()
        names = NameReader(_SHORTEST_NAME)
        sentences: list[Sentence] = []
        for day, text in said:
            if day is not None:
                said_on.add(day)
            if not text:  # of a call, or of who isn't listened to
                continue
            sentences += (Sentence.of(each, text, may_ask=may_ask) for each in sentences_of(text))
            terms.update(analyser.terms(text), analyser.terms(normalise(text)))
            names.read(text)
            figures, dated = figures_and_dates(text)
            dates.update(reading for each in dated for reading in each.readings)
            for figure in figures:
                for reading in figure.readings:
                    units.setdefault(reading, set()).add(figure.unit)
            if day is not None:
                days |= days_meant(text, day)
        about: set[str] = set()
        for text in asked:
            about.update(analyser.terms(text))
            names.read(text)  # what has no capital there is no name
        known = {reading: frozenset(signs) for reading, signs in units.items()}
        return cls(
            frozenset(terms),
            frozenset(about),
            known,
            frozenset(dates),
            frozenset(days),
            frozenset(said_on),
            names,
            tuple(sentences),
        )

    def __or__(self, other: Ground) -> Ground:
        """Both together."""
        units = {
            reading: self.units.get(reading, frozenset()) | other.units.get(reading, frozenset())
            for reading in self.units.keys() | other.units.keys()
        }
        return Ground(
            self.terms | other.terms,
            self.asked | other.asked,
            units,
            self.dates | other.dates,
            self.days | other.days,
            self.said_on | other.said_on,
            self.names | other.names,
            self.sentences + other.sentences,
        )

    def lacks(self, line: str, known: Ground | None = None) -> str:
        """What of a line doesn't stand in it; empty: the line is grounded.

        What is `known` besides, such as whom the line is about, or what it replaces, may stand in
        it and is no sign that the rest was said.
        """
        known = known or Ground()
        figures, dates = figures_and_dates(line)
        return (
            self._unheard_figure(Sentence.of(line), figures, dates, known)
            or self._unheard_name(line, figures, known)
            or self._unheard_words(line, dates, known, is_about=bool(figures or dates))
            or self._misread(line, known)
        )

    def _unheard_figure(
        self, told: Sentence, figures: Sequence[Figure], dates: Sequence[Dated], known: Ground
    ) -> str:
        """The first number or date that stands nowhere."""
        for figure in figures:
            is_said = self.has_figure(figure) or known.has_figure(figure)
            if not (is_said or self._is_year_meant(figure, told)):
                return figure.text
        for dated in dates:
            if not (self.has_date(dated) or known.has_date(dated)):
                return dated.text
        return ""

    def _unheard_name(self, line: str, figures: Sequence[Figure], known: Ground) -> str:
        """The first name or address of which a word stands nowhere."""
        terms = self.terms | known.terms | stems_of("self")
        compounds = language_of(line).nouns_have_capitals
        numbers = (each.text for each in figures if _has_digit(each.text))
        rest = reduce(lambda text, number: text.replace(number, " "), numbers, line)
        for name in [*self.names.names_in(rest), *_marked(rest)]:
            words = [analyser.terms_of(name[token.start : token.end]) for token in tokens(name)]
            if not all(any(_stands(term, terms, compounds) for term in word) for word in words):
                return name
        return ""

    def _unheard_words(
        self, line: str, dates: Sequence[Dated], known: Ground, *, is_about: bool
    ) -> str:
        """The stems that weren't said, where too few of a line's were."""
        calendar = analyser.terms(" ".join(each.text for each in dates))
        stems = _countable(line, known.terms | stems_of("self") | frozenset(calendar))
        compounds = language_of(line).nouns_have_capitals
        said = {each for each in stems if _stands(each, self.terms, compounds)}
        lacking = [each for each in stems if each not in said | self.asked]
        is_said = len(said) >= round(_SHARE * (len(said) + len(lacking)))
        return "" if is_said and (said or is_about) else " ".join(lacking or stems)

    def _misread(self, line: str, known: Ground) -> str:
        """What a line or a part of it says otherwise than the sentences nearest to it."""
        whole, *parts = Sentence.of(line).parts()
        found = (
            self._misread_as(each, known, is_part=is_part)
            for is_part, of in ((False, [whole]), (True, parts))
            for each in of
        )
        return next(filter(None, found), "")

    def _misread_as(self, told: Sentence, known: Ground, *, is_part: bool) -> str:
        near = self._nearest(told)
        if not near or told.stems <= known.terms:
            return ""
        if number := swapped(near, told):
            return number
        turned = [*map(told.turned, near)]
        if all(turned) and not is_part:  # without the "no" before its comma a part says otherwise
            return " ".join(sorted(turned[0]))
        asking = [each.asks for each in near]
        if all(asking) and not self._answers(told, is_part=is_part):
            return " ".join(sorted(told.stems & near[0].stems))
        return "" if any(asking) else self._displacing(told, near, known)

    def _nearest(self, told: Sentence) -> list[Sentence]:
        """The sentences that share most stems with one, if any do."""
        shared = [(len(told.stems & each.stems), each) for each in self.sentences]
        most = max((count for count, _ in shared), default=0)
        return [each for count, each in shared if most and count == most]

    def _answers(self, told: Sentence, *, is_part: bool) -> bool:
        """True if it tells what some sentence says, which may answer a question: "It's blue.".

        Of a part of a line, as of a list, something of it is enough.
        """
        return any(
            told.stems & each.stems if is_part else told.tells(each)
            for each in self.sentences
            if not each.asks
        )

    def _displacing(self, told: Sentence, near: list[Sentence], known: Ground) -> str:
        """A name where what is nearest names somebody else, or who speaks.

        It may come from another message that the line tells as well ("No, Anna does."), or that may
        say what is true now; and who corrects a line knows what it said.
        """
        names = [*self.names.names_in(told.text), *_marked(told.text)]
        within = " ".join({each.within for each in near} if names else ())  # it may be long
        terms = frozenset(analyser.terms(within)) | known.terms
        for name in names:
            stems = frozenset(analyser.terms(name))
            is_told = stems <= terms or self._tells_elsewhere(told, stems)
            if not is_told and self._is_in_place_of(stems, told, near, known):
                return name
        return ""

    def _tells_elsewhere(self, told: Sentence, name: frozenset[str]) -> bool:
        """True if a line tells another sentence as well, which has a name."""
        return any(name & each.stems and told.tells(each, name) for each in self.sentences)

    def _is_in_place_of(
        self, name: frozenset[str], told: Sentence, near: list[Sentence], known: Ground
    ) -> bool:
        """True if each of some sentences names another where a line has this name."""
        return not any(each.stems <= known.terms for each in near) and all(
            self._names_another(each, name, told) for each in near
        )

    def _names_another(self, said: Sentence, name: frozenset[str], told: Sentence) -> bool:
        """True if a sentence names who speaks, or what was said last, where a line has a name."""
        displaced = said.displaced_by(name, told)
        names = frozenset(analyser.terms(" ".join(self.names.names_in(said.text))))
        later = self.sentences[self.sentences.index(said) + 1 :]
        is_news = any(name & each.stems for each in later)
        return any(not word or (word in names and not is_news) for word in displaced)

    def has_figure(self, figure: Figure) -> bool:
        """True if a number stands in it, with the same unit or without one."""
        for reading in figure.readings:
            units = self.units.get(reading)
            if units is not None and (not figure.unit or "" in units or figure.unit in units):
                return True
        years = {str(day.year) for day in self.days | self.said_on}
        return bool(figure.readings & years)

    def _is_year_meant(self, figure: Figure, told: Sentence) -> bool:
        """True of the year before or after what was said, where *last year* or *next* was said.

        Of that sentence the line tells all but a few words.
        """
        meant = [
            of_all(name)
            for name, step in (("before", -1), ("after", 1))
            if figure.readings & {str(day.year + step) for day in self.said_on}
        ]
        return any(
            each.stems & told.stems
            and len(each.stems - told.stems) <= _FEW
            and any(holds(each.text, phrases) for phrases in meant)
            for each in (self.sentences if meant else ())
            if not each.asks
        )

    def has_date(self, dated: Dated) -> bool:
        """True if a date stands in it, is meant by what was said, or is when it was said."""
        if not self.dates.isdisjoint(dated.readings):
            return True
        is_word = all(each.day is None and each.year is None for each in dated.readings)
        days = self.days if is_word else self.days | self.said_on
        if any(reading.means(day) for reading in dated.readings for day in days):
            return True
        return is_word and any(term in self.terms for term in analyser.terms_of(dated.text))


def ground_of(messages: Iterable[Spoken], *, may_ask: bool = True) -> Ground:
    """What the user said in a conversation, with what they agreed to and the questions answered.

    With `may_ask` what they only ask for is none of it; who does what they ask goes without.
    """
    said: list[tuple[date | None, str]] = []
    asked: list[str] = []
    before = ""
    for message in messages:
        day = local(message.time).date()
        said.append((day, message.content if message.role == "user" else ""))
        if message.role == "user":
            questions = questions_in(before)
            asked += questions
            if _agrees(message.content):
                said.append((day, " ".join(questions).replace("?", ".")))
            before = ""
        elif message.role == "assistant" and message.content.strip():
            before = message.content
    return Ground.of(said, asked, may_ask=may_ask)


def nearest(line: str, messages: Sequence[tuple[int, str]], number: int | None) -> int | None:
    """The number of the message that says a line: the given one, if it shares a stem with it.

    Else the one that shares most; None: none of `messages`, numbers and texts, does.
    """
    stems = set(telling_terms(line))
    shared = {each: len(stems & set(analyser.terms(text))) for each, text in messages}
    if number is not None and shared.get(number):
        return number
    best = max(shared, key=lambda each: shared[each], default=None)
    return best if best is not None and shared[best] else None


def _agrees(text: str) -> bool:
    rest = begins(text, of_all("agree"))
    return rest is not None and len(tokens(rest)) < _LONGEST_AGREEMENT


def _marked(line: str) -> list[str]:
    """What its form marks as a name wherever it stands: IBM, GitHub, an address."""
    words = [line[token.start : token.end] for token in tokens(line)]
    mixed = [word for word in words if any(map(str.isupper, word[1:]))]
    return [*_ADDRESS.findall(line), *mixed]


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _countable(line: str, free: frozenset[str]) -> list[str]:
    """The stems of a line that must have been said: no numbers, which are looked at themselves."""
    return [each for each in telling_terms(line) if not (each in free or _has_digit(each))]


def _stands(term: str, terms: frozenset[str], compounds: bool) -> bool:  # noqa: FBT001 - of a language
    """True if a term is one of some terms, or where words are compounded shares a part with one."""
    if term in terms:
        return True
    return compounds and any(
        min(len(term), len(each)) >= _SHORTEST_PART and (each in term or term in each)
        for each in terms
    )
