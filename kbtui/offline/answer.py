"""Choosing the lines that answer a question verbatim, with a confidence tier.

Search has found the passages; here their sentences and items are ranked by how many of the
question's significant words they contain. Two thresholds separate answers from near matches, and
those from nothing; `tests/benchmarks/keep.py` fits them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from kbtui.offline.language import begins, of_all, significant_terms
from kbtui.offline.message import asks
from kbtui.offline.times import Period, iso_days, times_in
from kbtui.search.index import analyser

Tier = Literal["sure", "near", "none"]
MAX_LINES = 3
_MAX_ORDERED = 8  # lines that are put in order


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may be an answer.

    Attributes:
        path: The workspace path of the file.
        text: The line.
        number: Its line number in the file, from 1; in a conversation the message's id.
        title: The title of the file, with the heading above the line.
        when: The day on which it was said, with its time; empty if that isn't known.
        score: The search score of its passage in 0..1; comparable within one question.
        relevance: The probability that its passage answers, in 0..1.
        cosine: The semantic similarity of its passage; 0 if unknown.
        speaker: Who said it in a conversation: ``user`` or ``assistant``; empty elsewhere.
        place: The page or sheet it is on.
        time: The time of a journal line.
        paragraph: Its paragraph if that is short; else empty.
        said: The day on which it was said, if it has words that count from it.
        moment: A Unix time to order it by, if that is known already.
    """

    path: str
    text: str
    number: int
    title: str = ""
    when: str = ""
    score: float = 0.0
    relevance: float = 0.0
    cosine: float = 0.0
    speaker: str = ""
    place: str = ""
    time: str = ""
    paragraph: str = ""
    said: date | None = None
    moment: float = 0.0

    @property
    def shown(self) -> str:
        """The text to quote: the paragraph if short, as it may have the reason, else the line."""
        return self.paragraph or self.text


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """The lines that answer, best first, and the confidence; no lines in tier ``none``."""

    tier: Tier
    lines: tuple[Candidate, ...] = ()


# The weight of question words that only a line's title contains.
_TITLE_WEIGHT = 0.6
# In a line's score: the weight of its own words against its passage's, and of the cosine.
_OWN_WEIGHT, _COSINE_WEIGHT = 0.4, 0.6
# The share of common words from which two lines are about the same topic, or say the same.
_SAME_TOPIC, _SAME_WORDS = 0.4, 0.8
_NEAR_BEST = 0.45
_DAY_LENGTH = 10  # of 2026-11-26
# Fitted thresholds: the relevance, and the share of the question that the lines cover.
_SURE, _SURE_COVERAGE = 0.8, 0.3
_NEAR, _NEAR_COSINE = 0.05, 0.2
_MIN_COSINE = 0.3


class Order(Protocol):
    """What is known of lines about a topic: which was said later, and which of them holds."""

    def moment(self, line: Candidate) -> float:
        """Return when a line was said, to order it by; 0 if that isn't known."""

    def is_newer(self, line: Candidate, other: Candidate) -> bool:
        """Return whether a line holds instead of another one."""

    def standing(self, question: str, line: Candidate) -> float:
        """Return how well a line stands as an answer, apart from its time; less is better."""


class _ByDay:
    """The order of lines by the day on which they were said."""

    def moment(self, line: Candidate) -> float:
        day = next(iso_days(line.when[:_DAY_LENGTH]), None)
        if day is None:
            return 0.0
        hour, _, minute = line.time.partition(":")
        return day.toordinal() + (int(hour) + int(minute) / 60) / 24 if minute else day.toordinal()

    def is_newer(self, line: Candidate, other: Candidate) -> bool:  # noqa: ARG002
        return False

    def standing(self, question: str, line: Candidate) -> float:  # noqa: ARG002
        return 0.0


_BY_DAY = _ByDay()


def choose(
    question: str,
    candidates: Sequence[Candidate],
    asked: datetime | None = None,
    order: Order = _BY_DAY,
) -> QuotedAnswer:
    """Return the lines that answer a question.

    If it is known when it was `asked`, in the user's time zone, words like *today* in it mean that
    day, and lines about another one aren't the answer.
    """
    query = _WeightedQuery(question, candidates)
    lines = [each for each in candidates if not asks(each.text)]
    near = _near(query, _of_the_time(question, query, lines, asked))
    if not near:
        return QuotedAnswer("none")
    shown = _distinct(near, query, order, question)
    if (begins(question, of_all("who")) or "")[:1].isupper():  # the oldest line introduces a person
        shown.sort(key=order.moment)
    coverage = max(map(query.coverage, shown))
    relevance = max(each.relevance for each in shown)
    nearest = max(each.cosine for each in shown)
    if relevance >= _SURE and coverage >= _SURE_COVERAGE:
        return QuotedAnswer("sure", tuple(shown))
    if max(relevance, coverage) >= _NEAR or nearest >= _NEAR_COSINE:
        return QuotedAnswer("near", tuple(shown))
    return QuotedAnswer("none")


def _of_the_time(
    question: str, query: _WeightedQuery, lines: list[Candidate], asked: datetime | None
) -> list[Candidate]:
    """Return the lines about the time that a question asks about, if any is; else all."""
    times = times_in(question, asked) if asked is not None else ()
    wanted = [period for each in times for period in each.periods]
    if not wanted:
        return lines
    then = [
        line
        for line in lines
        if any(
            day.first <= each.last and each.first <= day.last
            for each in wanted
            for day in _days(line)
        )
    ]
    is_about = any(query.coverage(each) or each.cosine >= _MIN_COSINE for each in then)
    return then if is_about else lines


def _days(line: Candidate) -> list[Period]:
    """Return the days that a line is about: those it names or means, else its own."""
    named = [Period(day, day, "day") for day in iso_days(line.text)]
    own = line.said or next(iso_days(line.when[:_DAY_LENGTH]), None)
    if own is None:
        return named
    meant = [period for each in times_in(line.text, own) for period in each.periods]
    return [*named, *meant] or [Period(own, own, "day")]


def _near(query: _WeightedQuery, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the lines scored about as high as the best, best first."""
    scored = sorted(((query.score(each), each) for each in candidates), key=lambda pair: -pair[0])
    near = [each for score, each in scored if score >= _NEAR_BEST * scored[0][0]]
    if any(map(query.coverage, near)):  # if some lines cover it, drop the irrelevant rest
        near = [each for each in near if query.coverage(each) or each.cosine >= _MIN_COSINE]
    return near


class _WeightedQuery:
    """The significant words of a text, each weighted by its rarity among some lines."""

    def __init__(self, text: str, lines: Iterable[Candidate]) -> None:
        known = Counter([term for line in lines for term in set(analyser.terms(line.text))])
        count = known.total() / 8 + 20
        self._weights = {
            term: math.log(1 + count / (known[term] + 0.5)) for term in significant_terms(text)
        }
        self._whole = sum(self._weights.values()) or 1.0

    def coverage(self, line: Candidate) -> float:
        """Return the share of the text a line covers, in 0..1; title words weigh less."""
        own, title_terms = set(analyser.terms(line.text)), set(analyser.terms(line.title))
        shares = [
            1.0 if t in own else _TITLE_WEIGHT if t in title_terms else 0.0 for t in self._weights
        ]
        pairs = zip(self._weights.values(), shares, strict=True)
        return sum([weight * share for weight, share in pairs]) / self._whole

    def is_covered_by(self, line: Candidate) -> bool:
        """Return whether the own words of a journal line cover the whole text."""
        return bool(line.time and self._weights.keys() <= set(analyser.terms(line.text)))

    def score(self, line: Candidate) -> float:
        own = line.score * (1 - _OWN_WEIGHT + _OWN_WEIGHT * self.coverage(line))
        return own + _COSINE_WEIGHT * max(0.0, line.cosine)


def _distinct(
    lines: Sequence[Candidate], query: _WeightedQuery, order: Order, question: str
) -> list[Candidate]:
    """Return the first lines without duplicates; newest first among those on the same topic.

    Journal lines that each cover the whole query count as one topic too.
    """
    kept: list[Candidate] = []
    for line in lines:
        if line.paragraph and any(
            (line.path, line.paragraph) == (each.path, each.paragraph) for each in kept
        ):
            continue
        same = [
            n
            for n, each in enumerate(kept)
            if _says_the_same(line, each)
            and not order.is_newer(line, each)
            and not order.is_newer(each, line)
        ]
        if same:
            kept[same[0]] = max(kept[same[0]], line, key=order.moment)
        else:
            kept.append(line)
        if len(kept) > _MAX_ORDERED:
            break
    return _newest_first(kept, query, order, question)[:MAX_LINES]


def _says_the_same(line: Candidate, other: Candidate) -> bool:
    return _shared(line, other, max) >= _SAME_WORDS


def _newest_first(
    lines: Sequence[Candidate], query: _WeightedQuery, order: Order, question: str
) -> list[Candidate]:
    """Move lines before those on the same topic of which they hold instead, or that are older.

    Of two lines of which neither holds instead of the other, the one that is nearer to what is
    asked about stays above, however old it is.
    """
    ordered: list[Candidate] = []
    for line in lines:
        above = (
            n for n, each in enumerate(ordered) if _is_first(line, each, query, order, question)
        )
        ordered.insert(next(above, len(ordered)), line)
    return ordered


def _is_first(
    line: Candidate, other: Candidate, query: _WeightedQuery, order: Order, question: str
) -> bool:
    if order.is_newer(line, other):
        return True
    if order.is_newer(other, line):
        return False
    both = query.is_covered_by(line) and query.is_covered_by(other)
    own, theirs = order.standing(question, line), order.standing(question, other)
    if not both and _shared(line, other, min) < _SAME_TOPIC:
        return own < theirs and query.coverage(line) >= query.coverage(other) > 0
    return own < theirs if own != theirs else 0 < order.moment(other) < order.moment(line)


def _shared(one: Candidate, other: Candidate, of: Callable[[int, int], int]) -> float:
    """Return the share of common words in two lines, relative to the shorter or longer."""
    words, others = (
        frozenset(significant_terms(each.text) or analyser.terms(each.text))
        for each in (one, other)
    )
    return len(words & others) / max(1, of(len(words), len(others)))
