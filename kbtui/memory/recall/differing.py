"""Does an answer say something else than the passages it was given?

While a model's answer streams, each of its sentences is compared with the lines that the model was
shown. A sentence *differs* from the line that is about the same thing if it has another number,
date or name than that line, or denies what that line says. What the passages are silent about isn't
marked, nor what the user said, nor what two of their numbers come to; in doubt nothing is.

Which line is about the same thing is told by the words of the sentence besides its values, by those
of the question, and by what tells two like lines apart: Mainz is no Trier, and my dentist isn't my
sister's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Literal, NamedTuple

from kbtui.knowledge.format.document import Document
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.comparing.figures import Day
from kbtui.memory.comparing.line import with_subject
from kbtui.memory.comparing.reckoning import follows
from kbtui.memory.comparing.same_thing import about_the_same, standing
from kbtui.memory.comparing.sentences import Sentence, shared_stems
from kbtui.memory.comparing.values import (
    Line,
    Value,
    denied_stems,
    denies,
    may_stand_for,
    rivals,
    telling_nothing,
    values_of,
)
from kbtui.memory.records.journal import without_dates
from kbtui.offline.frames import (
    CONDITION,
    FICTION,
    PAST,
    WISH,
    all_codes,
    found_in,
    frames_of,
)
from kbtui.offline.language import languages, significant_terms
from kbtui.offline.lines import lines_of, sentence_spans
from kbtui.offline.message import asks
from kbtui.offline.names import NameReader
from kbtui.search.index import analyser

_CITED = re.compile(r"\s*\[\d{1,3}(?:\s*,\s*\d{1,3})*\](?!\()")
_MARKUP = re.compile(r"\*\*|__|`|~~|^[ \t]*(?:[-*+>#|]+|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)|\[\[(?:[^\]\n|]*\|)?([^\]\n]+)\]\]")
_DATED = re.compile(r"^\(?\d{4}-\d\d-\d\d\)?[:,]?\s+(?:\d\d:\d\d\s+)?")
_CLAUSE = re.compile(r"(?<=[,;:\u2013\u2014])\s+")
_UP_TO = "(?:[-\u2013]|to|until|till|through|bis|à|au|a|al|fino a)"
_ENDS_OF_RANGE = 2
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|e|º|ª|\.)")
_ENDS = re.compile(r"[.!?:\s]")
_UNSAID = frozenset({CONDITION, FICTION, WISH})
_COVERED = 0.6  # of a sentence's words, of which a line is about the same thing
_LOOSELY = 0.33  # the same, where the line answers the question
_HALF = 0.5
_BEFORE = 20  # characters
_TELLING = 2  # words and values of a sentence that states something
_DENIED = 0.66
_CANDIDATES = 6
_CLEARLY = 1.0  # by how much a line must stand better than another one
_MAX_SENTENCE = 400  # characters


class Shown(NamedTuple):
    """Lines of a file, from line `first` on, that a model was shown as source `n`.

    What the user said or noted without being a source has the number 0; `first` is its line, or
    its message.
    """

    n: int
    path: str
    first: int
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence of an answer that differs from a line of source `n`, or of the user's (0).

    Attributes:
        kind: What is another one: a number, date or name, or that it denies what the line says.
        said: The number, date or name in the answer; "" of a denial.
        path: The file of the line.
        line: The number of the line, from 1.
        text: The line.
    """

    kind: Literal["number", "date", "name", "denial"]
    said: str
    n: int
    path: str
    line: int
    text: str = ""


@dataclass(frozen=True)
class _Row(Line):
    """A line of a source."""

    n: int = 0
    path: str = ""
    number: int = 0


class AnswerCheck:
    """Compares the sentences of one answer with the lines that were shown; for one thread."""

    def __init__(self, sources: Iterable[Shown], question: str, said: Iterable[str] = ()) -> None:
        """Create it.

        Args:
            sources: What the model was shown.
            question: The user's message.
            said: What else was said in the conversation: it needs no source.
        """
        self._sources = tuple(sources)
        self._question = question
        self._said = tuple(said)
        self._buffer = ""
        self._read_text = ""
        self._whole = Line("", (), Sentence.of(""))
        self._stated = 0
        self._founded = 0

    @property
    def is_unfounded(self) -> bool:
        """Whether it answers a question with something of which nothing stands in the lines."""
        return bool(self._stated and not self._founded) and asks(self._question)

    def feed(self, text: str) -> list[Difference]:
        """Add a piece of the answer, and compare the sentences that are whole now."""
        self._buffer += text.replace("*", "")  # **14. April** is no end of a sentence
        begun = self._buffer.rfind("\n") + 1
        if _ENDS.search(text):
            spans = sentence_spans(self._buffer[begun:], edited=True)
            begun += spans[-1][0] if spans else 0
        whole, self._buffer = self._buffer[:begun], self._buffer[begun:]
        return list(self._differing(whole))

    def finish(self) -> list[Difference]:
        """Compare what is left."""
        whole, self._buffer = self._buffer, ""
        return list(self._differing(whole))

    def _differing(self, text: str) -> Iterator[Difference]:
        if not text:
            return
        before = self._read_text.rpartition("\n")[2]  # of the line that the text goes on with
        begun = self._read_text.count("\n")
        self._read_text += text
        code = Document(self._read_text, has_head=False, is_excerpt=True).fenced
        for number, line in enumerate(text.split("\n"), begun):
            whole, before = before + line, ""
            if number not in code and not whole.lstrip().startswith(("#", ">")):
                plain = _plain(line)
                for start, end in sentence_spans(plain, edited=True):
                    if (found := self.difference(plain[start:end])) is not None:
                        yield found

    def difference(self, sentence: str) -> Difference | None:
        """Return how a sentence differs from the line about the same thing; None if it doesn't."""
        if len(sentence) > _MAX_SENTENCE or sentence.endswith("?"):
            return None
        if found_in(sentence, "generally", all_codes()):
            return None  # of what is so elsewhere
        parts = [part for part in _CLAUSE.split(sentence) if not frames_of(part) & _UNSAID]
        line = self._read(" ".join(parts))
        self._whole = self._read(sentence)
        self._count(line)
        names = [each for each in line.values if each.kind == "name"]
        if denies(line.text) and names[1:]:  # it isn't Ada but Mira
            return None
        found = self._other_value(line)
        near = self._near(line) if found is None else []
        for part in (line.text, *parts) if near else ():
            found = found or self._denial(self._read(part), near)
        return found

    def _count(self, line: Line) -> None:
        """Count a sentence that states something, and whether half of it stands in a line."""
        if len(line.topic) + len(line.values) >= _TELLING:
            self._stated += 1
            self._founded += any(self._coverage(line, row) >= _HALF for row in self._rows)

    # What is compared ---------------------------------------------------------------------------

    @cached_property
    def _names(self) -> NameReader:
        names = NameReader()
        for text in (self._question, *self._said, *(text for _, _, text in self._texts)):
            names.read(text)
        return names

    @cached_property
    def _texts(self) -> list[tuple[Shown, int, str]]:
        found = []
        for source in self._sources:
            lines = lines_of(source.text, source.first)
            for _, group in groupby(lines, lambda each: (each.first, each.item or each.start)):
                together = list(group)  # of an item all sentences: "tel. 051 555 0193"
                text = _plain(
                    split_lines(source.text)[together[0].first - source.first].strip()
                    if together[0].item and together[0].first == together[-1].last
                    else " ".join(each.text for each in together)
                )
                line = together[0].first if source.n else source.first
                found.append((source, line, without_dates(_DATED.sub("", text))))
        return found

    @cached_property
    def _rows(self) -> list[_Row]:
        found: dict[str, _Row] = {}
        for source, number, text in self._texts:
            told = with_subject(source.title, text)
            if told not in found:
                line = self._read(told)
                found[told] = _Row(text, line.values, line.sentence, source.n, source.path, number)
        return list(found.values())

    @cached_property
    def _free(self) -> list[Value]:
        """What the user said: it needs no source."""
        return [
            each for text in (self._question, *self._said) for each in values_of(text, self._names)
        ]

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(significant_terms(self._question)) - telling_nothing()

    def _read(self, text: str) -> Line:
        return Line(text, tuple(values_of(text, self._names)), Sentence.of(text))

    # Which lines are about the same thing -------------------------------------------------------

    def _near(self, line: Line, besides: Value | None = None) -> list[tuple[float, _Row]]:
        """Return the lines that may be about the same thing, the most likely first."""
        own = self._topic_of(line)
        values = [each for each in line.values if each is not besides]
        counted = []
        for row in self._rows:
            shared = 2 * len(shared_stems(own, row.sentence.stems)) + sum(map(row.has, values))
            if shared:
                asked = len(shared_stems(self._asked, row.sentence.stems))
                counted.append((shared + asked, row))
        counted.sort(key=lambda each: -each[0])
        told = line.text if besides is None else line.text.replace(besides.text, " ")
        stands = [
            (standing(f"{told} {self._question}", row.text), row)
            for _, row in counted[:_CANDIDATES]
        ]
        return sorted(stands, key=lambda each: each[0])

    def _topic_of(self, line: Line) -> frozenset[str]:
        """Return the words that tell what a sentence is about: of "It's 12" the question's."""
        return line.topic - telling_nothing() or self._asked

    def _coverage(self, line: Line, row: _Row, besides: Value | None = None) -> float:
        """Return the share of a sentence's words and values, besides one, that a line has."""
        own = self._topic_of(line)
        values = [each for each in line.values if each is not besides]
        counted = len(own) + len(values)
        found = len(shared_stems(own, row.sentence.stems)) + sum(map(row.has, values))
        return found / counted if counted else 0.0

    def _is_free(self, value: Value) -> bool:
        return any(value.is_same(each) for each in self._free)

    # What differs -------------------------------------------------------------------------------

    def _other_value(self, line: Line) -> Difference | None:
        for value in line.values:
            if value.sort == "noun" and not self._is_surely_named(value):
                continue
            if value.kind == "number" and self._is_rough(line, value):
                continue
            if self._is_free(value) or self._is_day_only(value) or _is_of_range(line, value):
                continue
            if follows(value, self._whole, self._rows):
                continue
            told = self._clause_with(line, value)
            near = self._near(told, besides=value)
            if near and (row := self._row_with_another(told, value, near)) is not None:
                return Difference(value.kind, value.text, row.n, row.path, row.number, row.text)
        return None

    def _is_day_only(self, value: Value) -> bool:
        """Return whether a number is the day of a line's date without its month: the 30th."""
        found = _ORDINAL.fullmatch(value.text)
        return found is not None and any(
            isinstance(day, Day) and day.day == int(found[1])
            for row in self._rows
            for each in row.values
            for day in each.readings
        )

    def _clause_with(self, line: Line, value: Value) -> Line:
        """Return the clause that a value stands in, if it tells alone what it is about."""
        for text in _clauses().split(line.text):
            if value.text in text:
                clause = self._read(text)
                others = [each for each in clause.values if not each.is_same(value)]
                is_told = clause.topic - telling_nothing() and others
                return clause if is_told and clause.has(value) else line
        return line

    def _is_rough(self, line: Line, value: Value) -> bool:
        """Return whether an answer says that a number is about right."""
        before = line.text[: line.text.find(value.text)][-_BEFORE:]
        return bool(found_in(before, "roughly", all_codes()))

    def _row_with_another(
        self, line: Line, value: Value, near: Sequence[tuple[float, _Row]]
    ) -> _Row | None:
        having = [(stands, row) for stands, row in near if row.has(value)]
        best = near[0][0]
        first = [row for stands, row in near if stands < best + _CLEARLY]
        if own := [row for row in first if row.has(value)]:
            is_other = all(
                self._is_swapped(line, value, row) or self._is_given_up(line, value, row)
                for row in own
            )
            return own[0] if is_other else None
        if any(about_the_same(row.text, other.text) for _, other in having for row in first):
            return None
        if any(self._answers(other) > max(map(self._answers, first)) for _, other in having):
            return None
        return next((row for row in first if self._has_another(line, value, row)), None)

    def _has_another(self, line: Line, value: Value, row: _Row) -> bool:
        """Return whether a line has another value in its place."""
        others = [
            each
            for each in rivals(line, value, row)
            if not (each.kind == "name" and self._is_free(each))
        ]
        if not others:
            return False
        if self._coverage(line, row, besides=value) < self._enough(row):
            return False
        if value.kind == "name":
            return may_stand_for(value, others) or any(row.has(value) for row in self._rows)
        if any(value.labels & each.labels for each in others):
            return True
        return value.kind == "number" and len(others) == 1 and self._is_only(value, line, row)

    def _answers(self, row: _Row) -> int:
        """Return how many words of the question a line has."""
        return len(shared_stems(self._asked, row.sentence.stems))

    def _enough(self, row: _Row) -> float:
        """Return the share of a sentence that a line must have: less if it answers the question."""
        asked = self._answers(row)
        return _LOOSELY if self._asked and asked >= _HALF * len(self._asked) else _COVERED

    @staticmethod
    def _is_only(value: Value, line: Line, row: _Row) -> bool:
        """Return whether a number is the only one of its kind that a line lacks."""
        own = [each for each in line.values if (each.kind, each.sort) == ("number", value.sort)]
        return [each for each in own if not row.has(each)] == [value]

    def _is_surely_named(self, value: Value) -> bool:
        return any(
            each.is_same(value) and each.sort == "sure" for row in self._rows for each in row.values
        )

    def _is_swapped(self, line: Line, value: Value, row: _Row) -> bool:
        """Return whether a value is told of something else in the same line."""
        if any(each.sort == "noun" and each.is_same(value) for each in row.values):
            return False
        clauses = [self._read(each) for each in _clauses().split(row.text)]
        named = (each for each in line.values if each.kind == "name" and not each.is_same(value))
        own = (
            line.topic
            | self._asked
            | {term for each in named for term in analyser.terms(each.text)}
        )
        own -= telling_nothing()
        told = [shared_stems(own, each.sentence.stems) for each in clauses]
        common = set.intersection(*told)
        if not any(":" in each.text for each in clauses[1:]):  # the first word may be of all
            common |= {*significant_terms(row.text)[:1]}
        if _stands_by_topic(line, value, clauses):
            return False
        theirs = [
            each - common for clause, each in zip(clauses, told, strict=True) if clause.has(value)
        ]
        return not any(theirs) and any(
            each - common and not clause.has(value) and self._is_rival_of(value, clause)
            for clause, each in zip(clauses, told, strict=True)
        )

    def _is_given_up(self, line: Line, value: Value, row: _Row) -> bool:
        """Return whether a line says that a value was given up for another: from 3 to 17 June."""
        tells = ("changed", "delaying", "moving", "happened")
        if frames_of(line.text) & {PAST} or any(found_in(line.text, n, all_codes()) for n in tells):
            return False
        for start, end in found_in(row.text, "exchanged", all_codes()):
            given_up = self._read(row.text[start:end])
            taken = self._read(row.text[end:])
            if given_up.has(value) and not taken.has(value) and rivals(line, value, taken):
                return True
        return False

    def _is_rival_of(self, value: Value, clause: Line) -> bool:
        found = rivals(self._whole, value, clause)
        return any(value.kind != "number" or value.labels & each.labels for each in found)

    def _denial(self, line: Line, near: Sequence[tuple[float, _Row]]) -> Difference | None:
        """Return whether the line about the same thing denies it, and the sentence doesn't."""
        if frames_of(line.text) & {PAST} and len(near) > 1:
            return None
        if any(found_in(each, "withheld", all_codes()) for each in (line.text, near[0][1].text)):
            return None  # it says in another word that something isn't so
        is_denied = denies(line.text)
        best = near[0][0]
        for stands, row in near:
            clauses = [self._read(each) for each in _clauses().split(row.text)]
            if stands < best + _CLEARLY and any(
                is_denied != denies(each.text) and self._says_the_same(line, each)
                for each in [row, *(clauses[1:] and clauses)]
            ):
                return Difference("denial", "", row.n, row.path, row.number, row.text)
        return None

    def _says_the_same(self, line: Line, other: Line) -> bool:
        """Return whether two lines say the same, but for a denial."""
        own, theirs = (each.topic - telling_nothing() for each in (line, other))
        if not own or not theirs:
            return False
        denied = denied_stems(line.text), denied_stems(other.text)
        if not all(
            shared_stems(each, to.sentence.stems)
            for each, to in zip(denied, (other, line), strict=True)
            if each
        ):
            return False
        shared = len(shared_stems(own, other.sentence.stems))
        back = len(shared_stems(theirs, line.sentence.stems))
        is_covered = shared >= _DENIED * len(own) and back >= _COVERED * len(theirs)
        return is_covered and all(other.has(each) for each in line.values if each.sort != "noun")


def _stands_by_topic(line: Line, value: Value, clauses: Sequence[Line]) -> bool:
    """Return whether just those clauses have a value that have a word of a sentence's topic."""
    topic = line.topic - telling_nothing()
    near = [bool(shared_stems(topic, each.sentence.stems)) for each in clauses]
    return any(near) and near == [each.has(value) for each in clauses]


def _is_of_range(line: Line, value: Value) -> bool:
    """Return whether a weekday is one of several: Monday to Thursday."""
    weekdays = [each for each in line.values if each.labels == {"weekday"}]
    texts = [re.escape(each.text) for each in weekdays]
    if len(weekdays) != _ENDS_OF_RANGE or value not in weekdays:
        return False
    return re.search(rf"{texts[0]}\s*{_UP_TO}\s*{texts[1]}", line.text) is not None


@cache
def _clauses() -> re.Pattern[str]:
    """Return what stands between two clauses: a comma, or a word that joins them."""
    joins = "|".join(
        sorted({re.escape(word) for each in languages() for word in each.frames["joins"]})
    )
    return re.compile(rf"[,;]\s+|\s(?:{joins})\s")


def _plain(text: str) -> str:
    """Return a text without markup and citations."""
    return _MARKUP.sub("", _LINK.sub(lambda match: match[1] or match[2], _CITED.sub("", text)))
