"""Grounding: whether a line can come from its claimed sources, decided without a model.

Every number, date, proper name and address in the line must be in the sources, and so must most of
its other content words, by their stems. A paraphrase passes, an invention doesn't.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache, reduce
from itertools import chain
from typing import Protocol

from kbtui.knowledge.format.facts import normalise
from kbtui.memory.comparing.figures import Day, Figure, FoundDate, day_of, figures_and_dates
from kbtui.memory.comparing.sentences import Sentence, shared_stems, swapped_number
from kbtui.memory.comparing.turned import missing_frames, names_in, swaps_sides
from kbtui.memory.records.dates import local
from kbtui.memory.records.transcript import questions_in
from kbtui.offline.borrowed import sentences_with_owner
from kbtui.offline.language import (
    CACHE_LIMIT,
    begins,
    language_of,
    of_all,
    significant_terms,
    stems_of,
    tokens,
)
from kbtui.offline.names import NameReader
from kbtui.search.index import analyser

_SHARE = 0.6
_HALF = 0.5
_SHORTEST_PART = 5
_SHORTEST_NAME = 2
_MAX_AGREEMENT = 6  # in words
_ADDRESS = re.compile(r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class Spoken(Protocol):
    """A message, as far as grounding needs it."""

    @property
    def role(self) -> str:
        """``user``, ``assistant``, ..."""

    @property
    def content(self) -> str:
        """The text."""

    @property
    def time(self) -> datetime:
        """The time of the message."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What lines may be built from: `terms` of what was said, `asked` of the questions answered.

    What was only asked may be the topic of a line, but neither supports its names and numbers nor
    counts as said.
    """

    terms: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    units: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dates: frozenset[Day] = frozenset()
    days: frozenset[Day] = frozenset()
    said_on: frozenset[date] = frozenset()
    names: NameReader = field(default_factory=lambda: NameReader(_SHORTEST_NAME))
    sentences: tuple[Sentence, ...] = ()

    @classmethod
    def of(
        cls,
        said: Iterable[tuple[datetime | date | None, str]],
        asked: Iterable[str] = (),
        *,
        may_ask: bool = False,
    ) -> Ground:
        """Build the ground of texts, each with when it was said in the user's zone, if known.

        With `may_ask`, sentences that only ask something don't support statements.
        """
        words: list[Ground] = []
        days: set[Day] = set()
        said_on: set[date] = set()
        names = NameReader(_SHORTEST_NAME)
        sentences: list[Sentence] = []
        for when, text in said:
            if when is not None:
                said_on.add(when.date() if isinstance(when, datetime) else when)
            if not text:  # of a tool call, or of a speaker who doesn't count
                continue
            own = [
                Sentence.of(each, text, may_ask=may_ask, said=when, is_borrowed=is_borrowed)
                for each, is_borrowed in sentences_with_owner(text)
            ]
            sentences += own
            days.update(day for each in own for day in each.meant.days)
            names.read(text)
            words.append(cls.knowing(text))
        about: set[str] = set()
        for text in asked:
            about.update(analyser.terms(text))
            names.read(text)  # words without a capital there aren't names
        return cls(
            frozenset().union(*[each.terms for each in words]),
            frozenset(about),
            _units(chain.from_iterable([each.units.items() for each in words])),
            frozenset().union(*[each.dates for each in words]),
            frozenset(days),
            frozenset(said_on),
            names,
            tuple(sentences),
        )

    @classmethod
    def knowing(cls, text: str) -> Ground:
        """Build the ground of words that a line may have, and that say nothing: names, headings."""
        return _words_of(text) if len(text) < CACHE_LIMIT else _words_of.__wrapped__(text)

    def __or__(self, other: Ground) -> Ground:
        return Ground(
            self.terms | other.terms,
            self.asked | other.asked,
            _units(chain(self.units.items(), other.units.items())),
            self.dates | other.dates,
            self.days | other.days,
            self.said_on | other.said_on,
            self.names | other.names,
            self.sentences + other.sentences,
        )

    def lacks(self, line: str, known: Ground | None = None, *, of_user: bool = False) -> str:
        """Return the part of a line that isn't grounded, or "" if all of it is.

        What is `known` besides, such as the subject of the line or what it replaces, may appear in
        it, but is no sign that the rest was said. `of_user`: it stands where everything is about
        the user.
        """
        known = known or Ground()
        line = self._without_said_day(line)
        figures, dates = figures_and_dates(line)
        claim = Sentence.of(line)
        return (
            self._ungrounded_figure(figures, dates, known)
            or self._misdated(claim, figures, dates, known)
            or self._ungrounded_name(line, figures, known)
            or self._ungrounded_words(line, dates, known, is_about=bool(figures or dates))
            or self._misquoted(claim, known)
            or self._turned(claim, known, of_user=of_user)
        )

    def said(self, line: str, about: datetime | None = None) -> datetime | date | None:
        """Return when what a line states was said, by the last of the closest sentences.

        If it was said several times, the one `about` then is meant.
        """
        near = [each.said for each in self._nearest(Sentence.of(line)) if each.said is not None]
        return about if about in near else near[-1] if near else about

    def distorts(self, line: str) -> str:
        """Return the part of a line that says something else than what was said, or "".

        A number that nobody said, another frame, another order; its other words are free.
        """
        claim, known = Sentence.of(line), Ground()
        figures, dates = figures_and_dates(line)
        figure = self._ungrounded_figure(figures, dates, known)
        return figure or self._turned(claim, known, of_user=False)

    def lacks_name(self, name: str, known: Ground) -> str:
        """Return the words of a name or a heading that aren't grounded, or "".

        It is too short for a share of its words: each must have been said or asked, or be `known`.
        """
        figures, dates = figures_and_dates(name)
        calendar = frozenset(analyser.terms(" ".join(each.text for each in dates)))
        free = known.terms | stems_of("labels") | calendar
        terms, compounds = self.terms | self.asked, language_of(name).nouns_have_capitals
        stems = _required_stems(name, free)
        return " ".join(
            each for each in stems if not _occurs(each, terms, compounds)
        ) or self._ungrounded_figure(figures, dates, known)

    def _without_said_day(self, line: str) -> str:
        """Return a line without the day on which it was said, as memory writes it.

        That is behind it, in brackets, or before it, with a colon.
        """
        for day in map(date.isoformat, self.said_on):
            line = line.replace(f"said {day}", "").removeprefix(f"{day}: ")
        return line

    def _ungrounded_figure(
        self, figures: Sequence[Figure], dates: Sequence[FoundDate], known: Ground
    ) -> str:
        """Return the first number or date that isn't in the sources."""
        for figure in figures:
            if not (self.has_figure(figure) or known.has_figure(figure)):
                return figure.text
        for dated in dates:
            if not (self.has_date(dated) or known.has_date(dated)):
                return dated.text
        return ""

    def _misdated(
        self, claim: Sentence, figures: Sequence[Figure], dates: Sequence[FoundDate], known: Ground
    ) -> str:
        """Return a date worked out from what was said of something else, or on another day.

        Where the closest sentences say when by words like *tomorrow*, their messages alone tell it.
        """
        worked_out = [each for each in dates if not (self._says(each) or known.has_date(each))]
        years = [
            each
            for each in figures
            if self.units.keys().isdisjoint(each.readings) and not known.has_figure(each)
        ]
        if not (worked_out or years):
            return ""
        near = self._nearest(claim)
        if not any(each.meant.is_relative for each in near):
            return ""
        texts = {each.within for each in near}
        within = (each.meant.days for each in self.sentences if each.within in texts)
        days = frozenset().union(*within)
        for dated in worked_out:
            if not _is_one_of(dated, days):
                return dated.text
        meant = {str(each.year) for each in days}
        return next((each.text for each in years if meant.isdisjoint(each.readings)), "")

    def _says(self, dated: FoundDate) -> bool:
        """Return whether a date, or its only word, stands in the sources."""
        if not self.dates.isdisjoint(dated.readings):
            return True
        return _is_word(dated) and any(term in self.terms for term in analyser.terms_of(dated.text))

    def _ungrounded_name(self, line: str, figures: Sequence[Figure], known: Ground) -> str:
        """Return the first name or address with a word that isn't in the sources."""
        terms = self.terms | known.terms | stems_of("self")
        compounds = language_of(line).nouns_have_capitals
        numbers = (each.text for each in figures if _has_digit(each.text))
        rest = reduce(lambda text, number: text.replace(number, " "), numbers, line)
        for name in [*self.names.names_in(rest), *_names_by_form(rest)]:
            words = [analyser.terms_of(name[token.start : token.end]) for token in tokens(name)]
            if not all(any(_occurs(term, terms, compounds) for term in word) for word in words):
                return name
        return ""

    def _ungrounded_words(
        self, line: str, dates: Sequence[FoundDate], known: Ground, *, is_about: bool
    ) -> str:
        """Return the stems that weren't said, if too few of the line's stems were."""
        calendar = analyser.terms(" ".join(each.text for each in dates))
        stems = _required_stems(line, known.terms | stems_of("self") | frozenset(calendar))
        compounds = language_of(line).nouns_have_capitals
        said = {each for each in stems if _occurs(each, self.terms, compounds)}
        lacking = [each for each in stems if each not in said | self.asked]
        is_said = len(said) >= round(_SHARE * (len(said) + len(lacking)))
        return "" if is_said and (said or is_about) else " ".join(lacking or stems)

    def _misquoted(self, claim: Sentence, known: Ground) -> str:
        """Return what a line, or a part of it, states differently from the closest sentences."""
        whole, *parts = claim.parts
        found = (
            self._misquoted_as(each, known, is_part=is_part)
            for is_part, group in ((False, [whole]), (True, parts))
            for each in group
        )
        return next(filter(None, found), "")

    def _misquoted_as(self, claim: Sentence, known: Ground, *, is_part: bool) -> str:
        near = self._nearest(claim)
        if not near or claim.stems <= known.terms:
            return ""
        if number := swapped_number(near, claim):
            return number
        contradictions = [*map(claim.contradictions, near)]
        if all(contradictions) and not is_part:  # without the "no" before its comma, a part differs
            return " ".join(sorted(contradictions[0]))
        asking = [each.asks for each in near]
        if all(asking) and not self._answers(claim, is_part=is_part):
            return " ".join(sorted(claim.stems & near[0].stems))
        return "" if any(asking) else self._displacing_name(claim, near, known)

    def _turned(self, line: Sentence, known: Ground, *, of_user: bool) -> str:
        """Return a line, or its part, if it turns the closest sentences round; see `turned`."""
        whole, *parts = line.parts
        for claim in (whole, *parts):
            near = [each for each in self._resembling(claim) if not each.asks]
            if near and all(
                self._turns(each, claim, whole, known, of_user=of_user) for each in near
            ):
                return claim.text
        return ""

    def _turns(
        self, said: Sentence, claim: Sentence, whole: Sentence, known: Ground, *, of_user: bool
    ) -> bool:
        names = names_in(said.text, claim.text)
        missing = missing_frames(said, claim, names, known.terms, of_user=of_user)
        return bool(missing - whole.frames) or swaps_sides(said, claim, names)

    def _resembling(self, claim: Sentence) -> list[Sentence]:
        """Return the sentences that a line is most likely from, with half of its stems in them."""
        stems = claim.stems - stems_of("self")
        shared = [(len(shared_stems(stems, each.stems)), each) for each in self.sentences]
        best = max((count for count, _ in shared), default=0)
        return [each for count, each in shared if best and count == best >= _HALF * len(stems)]

    def _nearest(self, claim: Sentence) -> list[Sentence]:
        """Return the sentences that share the most stems with one, if any do."""
        shared = [(len(claim.stems & each.stems), each) for each in self.sentences]
        best = max((count for count, _ in shared), default=0)
        return [each for count, each in shared if best and count == best]

    def _answers(self, claim: Sentence, *, is_part: bool) -> bool:
        """Return whether it covers a statement, which may answer a question: "It's blue.".

        For a part of a line, such as an item of a list, a shared stem is enough.
        """
        return any(
            claim.stems & each.stems if is_part else claim.covers(each)
            for each in self.sentences
            if not each.asks
        )

    def _displacing_name(self, claim: Sentence, near: list[Sentence], known: Ground) -> str:
        """Return a name where the closest sentences name somebody else, or the speaker.

        Allowed are names from another message that the line covers as well ("No, Anna does."), or
        that may state what is true now; a correction may also have the names of the old line.
        """
        names = [*self.names.names_in(claim.text), *_names_by_form(claim.text)]
        within = " ".join({each.within for each in near} if names else ())  # it may be long
        terms = frozenset(analyser.terms(within)) | known.terms
        for name in names:
            stems = frozenset(analyser.terms(name))
            is_covered = stems <= terms or any(
                stems & each.stems and claim.covers(each, stems) for each in self.sentences
            )
            if not is_covered and self._is_in_place_of(stems, claim, near, known):
                return name
        return ""

    def _is_in_place_of(
        self, name: frozenset[str], claim: Sentence, near: list[Sentence], known: Ground
    ) -> bool:
        """Return whether every close sentence has another name in its place."""
        return not any(each.stems <= known.terms for each in near) and all(
            self._names_another(each, name, claim) for each in near
        )

    def _names_another(self, said: Sentence, name: frozenset[str], claim: Sentence) -> bool:
        """Return whether a sentence has the speaker, or an older name, in place of a name."""
        displaced = said.displaced_by(name, claim)
        names = frozenset(analyser.terms(" ".join(self.names.names_in(said.text))))
        later = self.sentences[self.sentences.index(said) + 1 :]
        is_news = any(name & each.stems for each in later)
        return any(not word or (word in names and not is_news) for word in displaced)

    def has_figure(self, figure: Figure) -> bool:
        """Return whether a number is in the sources, with the same unit or without one."""
        for reading in figure.readings:
            units = self.units.get(reading)
            if units is not None and (not figure.unit or "" in units or figure.unit in units):
                return True
        years = {str(day.year) for day in self.days | self.said_on}
        return bool(figure.readings & years)

    def has_date(self, dated: FoundDate) -> bool:
        """Return whether a date is in the sources, is meant by them, or is when they were said."""
        said_on = () if _is_word(dated) else map(day_of, self.said_on)
        return self._says(dated) or _is_one_of(dated, self.days.union(said_on))


def ground_of(messages: Iterable[Spoken], *, may_ask: bool = True) -> Ground:
    """Return the ground of the user's words, what they agreed to, and the questions answered.

    With `may_ask`, what they only ask for doesn't count; whoever fulfils the request omits it.
    """
    said: list[tuple[datetime | date | None, str]] = []
    asked: list[str] = []
    before = ""
    for message in messages:
        when = local(message.time)
        said.append((when, message.content if message.role == "user" else ""))
        if message.role == "user":
            questions = questions_in(before)
            asked += questions
            if _agrees(message.content):
                said.append((when, " ".join(questions).replace("?", ".")))
            before = ""
        elif message.role == "assistant" and message.content.strip():
            before = message.content
    return Ground.of(said, asked, may_ask=may_ask)


def nearest(line: str, messages: Sequence[tuple[int, str]], number: int | None) -> int | None:
    """Return the id of the message that states a line: `number`, if it shares a stem with it.

    Otherwise the one of `messages` (ids and texts) that shares the most, or None.
    """
    stems = set(significant_terms(line))
    shared = {each: len(stems & set(analyser.terms(text))) for each, text in messages}
    if number is not None and shared.get(number):
        return number
    best = max(shared, key=lambda each: shared[each], default=None)
    return best if best is not None and shared[best] else None


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _words_of(text: str) -> Ground:
    figures, dates = figures_and_dates(text)
    return Ground(
        frozenset([*analyser.terms(text), *analyser.terms(normalise(text))]),
        units=_units((reading, {each.unit}) for each in figures for reading in each.readings),
        dates=frozenset([reading for each in dates for reading in each.readings]),
    )


def _units(numbers: Iterable[tuple[str, Iterable[str]]]) -> dict[str, frozenset[str]]:
    """Return the signs of units by number."""
    units: dict[str, frozenset[str]] = {}
    for reading, signs in numbers:
        units[reading] = units.get(reading, frozenset()).union(signs)
    return units


def _agrees(text: str) -> bool:
    rest = begins(text, of_all("agree"))
    return rest is not None and len(tokens(rest)) < _MAX_AGREEMENT


def _names_by_form(line: str) -> list[str]:
    """Return words that are names by their form anywhere: IBM, GitHub, an address."""
    words = [line[token.start : token.end] for token in tokens(line)]
    mixed = [word for word in words if any(map(str.isupper, word[1:]))]
    return [*_ADDRESS.findall(line), *mixed]


def _is_word(dated: FoundDate) -> bool:
    """Return whether a date is only a weekday or a month."""
    return all(each.day is None and each.year is None for each in dated.readings)


def _is_one_of(dated: FoundDate, days: Iterable[Day]) -> bool:
    return any(reading.matches(day) for day in days for reading in dated.readings)


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _required_stems(line: str, free: frozenset[str]) -> list[str]:
    """Return the stems of a line that must have been said; numbers are checked separately."""
    return [each for each in significant_terms(line) if not (each in free or _has_digit(each))]


def _occurs(term: str, terms: frozenset[str], compounds: bool) -> bool:  # noqa: FBT001 - of a language
    """Return whether a term occurs or, in compounding languages, shares a part with another."""
    if term in terms:
        return True
    return compounds and any(
        min(len(term), len(each)) >= _SHORTEST_PART and (each in term or term in each)
        for each in terms
    )
