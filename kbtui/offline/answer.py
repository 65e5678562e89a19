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
from typing import Literal

from kbtui.offline.language import begins, language_of, of_all, significant_terms, tokens
from kbtui.offline.message import asks
from kbtui.offline.names import NameReader
from kbtui.offline.times import Period, iso_days, times_in
from kbtui.search.index import analyser

Tier = Literal["sure", "near", "none"]
MAX_LINES = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may be an answer.

    Attributes:
        path: The workspace path of the file.
        text: The line.
        number: Its line number in the file, from 1; in a conversation the message's id.
        title: The title of the file, with the heading above the line.
        when: When it was said or written; newer values sort later.
        score: The search score of its passage in 0..1; comparable within one question.
        relevance: The probability that its passage answers, in 0..1.
        cosine: The semantic similarity of its passage; 0 if unknown.
        speaker: Who said it in a conversation: ``user`` or ``assistant``; empty elsewhere.
        place: The page or sheet it is on.
        time: The time of a journal line.
        paragraph: Its paragraph if that is short; else empty.
        said: The day on which it was said, if it has words that count from it.
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
_NEAR_STATEMENT = 0.28
# The weight of common words if the cosine is unknown.
_WORDS_ONLY_WEIGHT = 0.7


def choose(
    question: str, candidates: Sequence[Candidate], asked: datetime | None = None
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
    shown = _distinct(near, query)
    if (begins(question, of_all("who")) or "")[:1].isupper():  # the oldest line introduces a person
        shown.sort(key=_time_order)
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
        known = Counter(term for line in lines for term in set(analyser.terms(line.text)))
        count = known.total() / 8 + 20
        self._weights = {
            term: math.log(1 + count / (known[term] + 0.5)) for term in significant_terms(text)
        }
        self._whole = sum(self._weights.values()) or 1.0

    def coverage(self, line: Candidate, by_title: float = _TITLE_WEIGHT) -> float:
        """Return the share of the text a line covers, in 0..1; title words weigh less."""
        own, title_terms = set(analyser.terms(line.text)), set(analyser.terms(line.title))
        shares = (
            (1.0 if t in own else by_title if t in title_terms else 0.0) for t in self._weights
        )
        pairs = zip(self._weights.values(), shares, strict=True)
        return sum(weight * share for weight, share in pairs) / self._whole

    def is_covered_by(self, line: Candidate) -> bool:
        """Return whether the own words of a journal line cover the whole text."""
        return bool(line.time and self._weights.keys() <= set(analyser.terms(line.text)))

    def score(self, line: Candidate) -> float:
        own = line.score * (1 - _OWN_WEIGHT + _OWN_WEIGHT * self.coverage(line))
        return own + _COSINE_WEIGHT * max(0.0, line.cosine)


def _distinct(lines: Sequence[Candidate], query: _WeightedQuery) -> list[Candidate]:
    """Return the first lines without duplicates; newest first among those on the same topic.

    Journal lines that each cover the whole query count as one topic too.
    """
    kept: list[Candidate] = []
    for line in lines:
        if line.paragraph and any(
            (line.path, line.paragraph) == (each.path, each.paragraph) for each in kept
        ):
            continue
        same = [n for n, each in enumerate(kept) if _shared(line, each, max) >= _SAME_WORDS]
        if same:
            kept[same[0]] = max(kept[same[0]], line, key=_time_order)
        else:
            kept.append(line)
    return _newest_first(kept[:MAX_LINES], query)


def _newest_first(lines: Sequence[Candidate], query: _WeightedQuery) -> list[Candidate]:
    """Move newer lines before older ones on the same topic."""
    ordered: list[Candidate] = []
    for line in lines:
        older = (n for n, each in enumerate(ordered) if _time_order(line) > _time_order(each))
        same_topic = (
            n
            for n in older
            if (query.is_covered_by(line) and query.is_covered_by(ordered[n]))
            or _shared(line, ordered[n], min) >= _SAME_TOPIC
        )
        ordered.insert(next(same_topic, len(ordered)), line)
    return ordered


def _time_order(line: Candidate) -> tuple[str, int]:
    """Return a sort key by time; within a minute, later lines are further down."""
    return line.when, line.number


def _shared(one: Candidate, other: Candidate, of: Callable[[int, int], int]) -> float:
    """Return the share of common words in two lines, relative to the shorter or longer."""
    words, others = (
        frozenset(significant_terms(each.text) or analyser.terms(each.text))
        for each in (one, other)
    )
    return len(words & others) / max(1, of(len(words), len(others)))


def nearest(statement: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the line that a new statement is most likely about, or None if unsure.

    The two share significant words and, if known, meaning. They also share a name or more than one
    word, or else the statement has a value where the line has another.
    """
    query = _WeightedQuery(statement, candidates)

    def nearness(line: Candidate) -> float:
        coverage = query.coverage(line, by_title=0.0)
        return (
            (coverage + max(0.0, line.cosine)) / 2 if line.cosine else _WORDS_ONLY_WEIGHT * coverage
        )

    best = max(candidates, key=nearness, default=None)
    if best is None or nearness(best) < _NEAR_STATEMENT:
        return None
    shared = {*significant_terms(statement)} & {*significant_terms(best.text)}
    values, others = _values(statement), _values(best.text)
    is_named = shared & _name_terms(statement) & _name_terms(best.text)
    is_about = is_named or len(shared) > 1 or (others and values - others)
    return best if shared and is_about else None


def _values(text: str) -> set[str]:
    """Return the numbers of a text, and the weekdays and months it names."""
    language = language_of(text)
    lists = [language.places[name] for name in ("numbers", "weekdays", "months")]
    return {
        word
        for word, _, _ in tokens(text)
        if any(map(str.isdigit, word)) or any(word in places for places in lists)
    }


def _name_terms(text: str) -> set[str]:
    names = NameReader()
    names.read(text)
    return {term for name in names.names_in(text) for term in analyser.terms(name)}
