"""How likely a hit answers the query, on a scale that compares between queries.

The score that orders hits says nothing of that: the best of a hundred wrong passages has a high
one. Relevance is a logistic model over a few absolute measures of a query and a corpus: how much
of the query's words the best passage holds, how near the nearest one is by meaning, whether a name
is asked for that nobody mentions. `tests/benchmarks/relevance.py` fits the weights on questions
with and without an answer; where only words are compared, there are weights of their own.
"""

from __future__ import annotations

import calendar
import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.query.parser import MOST_TERMS
from kbtui.search.results import RELEVANT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.fusion import Meaning
    from kbtui.search.query.parser import Query

    Scores = NDArray[np.float64]

# Fitted; in the order of `Evidence.features`, the constant first.
BY_WORDS = (-12.73, 15.73, -3.56, 3.8, 3.23)
BY_BOTH = (-16.8, 18.95, -3.91, 1.14, 3.25, 28.03, -20.41)
# A small corpus can't tell common words from rare ones: as if it had so many more passages.
_FURTHER_PASSAGES = 50
# As near are most of the nearest passages to questions about something else.
_BY_CHANCE = 0.35
# Before so much of a corpus has vectors, words decide.
_MOSTLY = 0.8
# They ask for nothing of their own; a model says "the user" of whom it talks with.
_NOTHING_ASKED = """
    hello hi hey thanks thank thx lot ok okay yes yep please bye goodbye hallo danke bitte tschüss
    ja bonjour salut merci hola gracias user user's
    say said tell told know remember mention mentioned
"""
_SMALL_TALK = frozenset(_NOTHING_ASKED.split())
# What a part of a word counts, and what a longer word does that begins with it.
_PART = 0.8
_SHORTEST_BEGINNING = 4
_POSSESSIVE = ("'s", "\N{RIGHT SINGLE QUOTATION MARK}s")
_SUBJECT = re.compile(
    r"\b(?:do|does|did|has|have|had|is|was|will|would|can|could|should|might)\s+([^\W\d_]{3,}\b)",
    re.IGNORECASE,
)
_DATES = frozenset([*calendar.month_name, *calendar.day_name])
# How much weaker hits than the best lose: of words, and of meaning.
_FEWER_WORDS = 1.6
_FARTHER = 3.2


@dataclass(frozen=True)
class Evidence:
    """Measures of one query and a corpus that speak for an answer, or against one.

    Attributes:
        words: How many telling words the query has.
        unknown: The share of them, by their rarity, that no document holds.
        missing_names: The share of its names, see `_names`, that no document holds.
        coverage: The share of the words, by their rarity, that each document holds.
        cosines: How near each document is, NaN without a vector; None where only words count.
        best_coverage: The highest coverage.
        best_cosine: The highest cosine.
    """

    words: int
    unknown: float
    missing_names: float
    coverage: Scores
    cosines: Scores | None
    best_coverage: float
    best_cosine: float

    def features(self) -> tuple[float, ...]:
        """The numbers that the weights are for."""
        by_words = (
            self.best_coverage,
            self.missing_names,
            math.log1p(self.words),
            self.unknown,
        )
        if self.cosines is None:
            return by_words
        return (*by_words, self.best_cosine, self.best_cosine * self.best_coverage)

    @property
    def is_answered(self) -> bool:
        """True if probably some document answers the query."""
        return self.answered >= RELEVANT

    @property
    def is_near_by_chance(self) -> bool:
        """True if probably nothing answers, and no document is nearer than others are by chance."""
        return self.cosines is not None and not self.is_answered and self.best_cosine < _BY_CHANCE

    @cached_property
    def answered(self) -> float:
        """How likely any document answers the query, in 0..1."""
        constant, *weights = BY_WORDS if self.cosines is None else BY_BOTH
        total = constant + sum(w * x for w, x in zip(weights, self.features(), strict=True))
        return 1 / (1 + math.exp(-total))

    def relevance(self, number: int) -> float:
        """How likely a document answers the query, in 0..1.

        Of a query that is likely to have an answer all hits count as relevant, the less like the
        best ones the less: what answers is often not what comes first.
        """
        answered = self.answered
        if answered < RELEVANT:
            return answered
        behind = 0.0
        if self.best_coverage:
            behind += _FEWER_WORDS * (1 - float(self.coverage[number]) / self.best_coverage)
        if self.cosines is not None and np.isfinite(self.cosines[number]):
            behind += _FARTHER * (self.best_cosine - float(self.cosines[number]))
        return RELEVANT + (answered - RELEVANT) * math.exp(-behind)


def gather(corpus: Corpus, asked: Query, meaning: Meaning | None, mask: Mask) -> Evidence:
    """Look at what the documents of `mask` hold of a query."""
    words = list(_telling_words(corpus, asked.text))
    whole = sum(weight for weight, _, _ in words) or 1.0
    unknown = 0.0
    names = _names(asked.text)
    named: list[bool] = []  # whether a name is missing
    coverage = np.zeros(corpus.size)
    for weight, word, terms in words:
        held = np.zeros(corpus.size)
        for term, share in terms.items():
            ids = corpus.impacts(term)[0]
            held[ids] = np.maximum(held[ids], share)
        missing = not held[mask].any()
        coverage += weight / whole * held
        unknown += weight / whole * missing
        if word in names:
            named.append(missing)
    cosines = meaning.cosines if meaning is not None and meaning.is_calibrated else None
    if cosines is not None and np.isfinite(cosines).sum() < _MOSTLY * corpus.count:
        cosines = None
    return Evidence(
        words=len(words),
        unknown=unknown,
        missing_names=sum(named) / max(1, len(named)),
        coverage=coverage,
        cosines=cosines,
        best_coverage=float(coverage[mask].max(initial=0.0)),
        best_cosine=0.0 if cosines is None else float(np.nanmax(cosines, initial=0.0, where=mask)),
    )


def _names(text: str) -> set[str]:
    """The words that are probably names: by a capital letter, or by where they stand."""
    found = {match[1] for match in _SUBJECT.finditer(text)}
    for start, end, _ in analyser.spans(text):
        if (start and text[start].isupper()) or text[start:end].endswith(_POSSESSIVE):
            found.add(text[start:end])
    return found - _DATES


def _telling_words(corpus: Corpus, text: str) -> Iterator[tuple[float, str, dict[str, float]]]:
    """Each telling word: its weight by rarity, itself, and the terms that count for it.

    A word that no passage holds weighs most: who asks for it asks for what isn't there.
    """
    every = [(text[start:end], terms) for start, end, terms in analyser.spans(text) if terms]
    asking = [each for each in every if each[0].casefold() not in _SMALL_TALK]
    telling = [each for each in asking if each[0].casefold() not in analyser.STOP_WORDS]
    if not telling and asking == every:
        telling = every
    passages = corpus.count + _FURTHER_PASSAGES
    for word, terms in islice(telling, MOST_TERMS):
        shares = {term: _PART if i else 1.0 for i, term in enumerate(terms)}
        if len(word) >= _SHORTEST_BEGINNING and not any(map(corpus.knows, terms)):
            longer = corpus.expand(terms[0], ("title", "headings", "tags", "body"))
            shares = dict.fromkeys(longer, _PART)
        held = max((len(corpus.impacts(term)[0]) for term in shares), default=0)
        yield math.log((passages + 1) / (held + 0.5)), word, shares
