"""Scores every document of a corpus for one query: by words, by meaning, and both joined.

The score that orders hits doesn't say how likely one answers: the best of a hundred wrong passages
has a high one. Relevance is a logistic model over a few absolute measures of a query and a corpus:
how much of the query's words the best passage holds, how near the nearest one is by meaning,
whether a name is asked for that nobody mentions. `tests/benchmarks/relevance.py` fits the weights
on questions with and without an answer; where only words are compared, there are others.
"""

from __future__ import annotations

import calendar
import math
import re
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS
from kbtui.search.index.chunk_rows import ASSISTANT, ELSEWHERE
from kbtui.search.query import parser as query
from kbtui.search.query.fusion import Fused, fuse
from kbtui.search.query.parser import MOST_TERMS
from kbtui.search.results import RELEVANT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.fusion import Comparison
    from kbtui.search.query.parser import Condition, Query

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
    say said tell told know remember mention mentioned again many much
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


def gather(corpus: Corpus, asked: Query, meaning: Comparison | None, mask: Mask) -> Evidence:
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


def _asked_for(text: str) -> Sequence[tuple[str, Sequence[str]]]:
    """The words of a query that tell what is asked for, with their terms; else all of them."""
    every = [(text[start:end], terms) for start, end, terms in analyser.spans(text) if terms]
    asking = [each for each in every if each[0].casefold() not in _SMALL_TALK]
    telling = [each for each in asking if not analyser.is_stop_word(each[0])]
    return every if not telling and asking == every else telling


def _telling_words(corpus: Corpus, text: str) -> Iterator[tuple[float, str, dict[str, float]]]:
    """Each telling word: its weight by rarity, itself, and the terms that count for it.

    A word that no passage holds weighs most: who asks for it asks for what isn't there.
    """
    passages = corpus.count + _FURTHER_PASSAGES
    for word, terms in islice(_asked_for(text), MOST_TERMS):
        shares = {term: _PART if i else 1.0 for i, term in enumerate(terms)}
        if len(word) >= _SHORTEST_BEGINNING and not any(map(corpus.knows, terms)):
            longer = corpus.expand(terms[0], _WRITTEN)
            shares = dict.fromkeys(longer, _PART)
        held = max((len(corpus.impacts(term)[0]) for term in shares), default=0)
        yield math.log((passages + 1) / (held + 0.5)), word, shares


_WRITTEN = ("title", "headings", "label", "tags", "body")
_BEGINNING_WEIGHT = 0.8
_SHORT_QUERY = 4  # terms
_TITLED = 2.2
# What kbtui said itself counts less than what it was told.
_SECOND_HAND = 0.8


@dataclass(frozen=True)
class Ranking:
    """The scores of all documents of a corpus, joined and apart, and what matched."""

    fused: Fused
    lexical: Scores
    semantic: Scores | None
    terms: frozenset[str]
    evidence: Evidence
    recency: Scores | None = None

    @cached_property
    def word_scores(self) -> Scores:
        """The scores by words of all candidates."""
        return self.lexical[self.fused.candidates]

    @cached_property
    def cosines(self) -> Scores:
        """The cosines of all candidates."""
        return self.lexical[:0] if self.semantic is None else self.semantic[self.fused.candidates]


def rank(
    corpus: Corpus,
    asked: Query,
    scope: Sequence[str],
    meaning: Comparison | None = None,
    weights: tuple[float, float] = (0.7, 0.3),
    *,
    half_lives: Mapping[str, float] = MappingProxyType({}),
    left_out: Mask | None = None,
) -> Ranking:
    """Score every document of some folders, but for those that are `left_out`.

    Args:
        corpus: The documents.
        asked: The query.
        scope: The folders.
        meaning: The query compared by meaning, if it was.
        weights: How much meaning counts, and words.
        half_lives: In how many days a document of a folder loses half of its score.
        left_out: Documents that aren't found.
    """
    mask = demanded(corpus, asked, scope)
    if left_out is not None:
        mask &= ~left_out
    terms = weighted_terms(corpus, asked)
    lexical = corpus.scores(terms.items())
    lexical[_titled(corpus, asked)] *= _TITLED
    fused = fuse(
        lexical, meaning, mask, weights, live=corpus.live, best_of_file=corpus.best_of_file
    )
    if not asked.has_words:
        fused = Fused(np.where(mask, 1.0, 0.0), mask)
    elif (second_hand := corpus.holding("said", (ASSISTANT, ELSEWHERE))).any():
        lowered = np.where(second_hand, _SECOND_HAND * fused.scores, fused.scores)
        fused = replace(fused, scores=lowered)
    semantic = meaning.cosines if meaning is not None else None
    recency = _recency(corpus, half_lives)
    if recency is not None and asked.has_words:
        fused = replace(fused, scores=fused.scores * recency)
    evidence = gather(corpus, asked, meaning, mask)
    return Ranking(fused, lexical, semantic, frozenset(terms), evidence, recency)


def _recency(corpus: Corpus, half_lives: Mapping[str, float]) -> Scores | None:
    """The share left of each score: half after a half-life; all without a date in the past."""
    if not any(half_lives.values()):
        return None
    left = np.ones(corpus.size)
    ages = np.maximum(date.today().toordinal() - corpus.days("updated"), 0)  # noqa: DTZ011
    for folder, days in sorted(half_lives.items()):
        if days:
            inside = corpus.holding("scope", [folder.strip("/")]) & np.isfinite(ages)
            left[inside] = 0.5 ** (ages[inside] / days)
    return left


def _titled(corpus: Corpus, asked: Query) -> Mask:
    """The documents whose title, or an alias, holds a short query whole: that is what is meant."""
    terms = list(asked.terms())
    mask: Mask = np.full(corpus.size, 0 < len(terms) <= _SHORT_QUERY)
    for term in terms if len(terms) <= _SHORT_QUERY else ():
        mask &= corpus.holding("title", [term])
    return mask


def weighted_terms(corpus: Corpus, asked: Query) -> dict[str, float]:
    """The terms to score by; one that nothing holds is taken as the beginning of others."""
    found: dict[str, float] = {}
    beginnings = [analyser.fold(word) for word in asked.beginnings]
    for term, word in asked.terms().items():
        if corpus.knows(term):
            found[term] = corpus.rarity(term)
        elif len(term) > 1 or analyser.is_unspaced(term):
            beginnings += [term, analyser.fold(word)]
    for beginning in dict.fromkeys(beginnings):
        for term in corpus.expand(beginning, _WRITTEN):
            found.setdefault(term, _BEGINNING_WEIGHT * corpus.rarity(term))
    return found


def demanded(corpus: Corpus, asked: Query, scope: Sequence[str]) -> Mask:
    """The documents of some folders that meet all conditions, words and phrases of a query.

    Of a phrase only the words are looked at here, not whether they stand together.
    """
    mask = corpus.live & corpus.holding("scope", scope)
    for condition in asked.conditions:
        mask &= _meets(corpus, condition)
    for text in (*asked.required, *asked.demanded_phrases):
        mask &= _holds(corpus, text)
    for word in asked.excluded:
        mask &= ~_holds(corpus, word)
    return mask


def _holds(corpus: Corpus, text: str, fields: Sequence[str] = tuple(SCORED_FIELDS)) -> Mask:
    """Which documents hold all words of a text, anywhere in the fields."""
    mask: Mask = np.ones(corpus.size, dtype=np.bool_)
    for _, _, terms in analyser.spans(text):
        if len(terms) and len(terms[0]) == 1 and analyser.is_unspaced(terms[0]):
            # A single letter of such a script is only indexed as part of pairs.
            pairs = corpus.expand(terms[0], fields) or terms
            mask &= np.any([_holding(corpus, term, fields) for term in pairs], axis=0)
        elif terms:
            mask &= _holding(corpus, terms[0], fields)
    return mask


def _holding(corpus: Corpus, term: str, fields: Sequence[str]) -> Mask:
    mask: Mask = np.zeros(corpus.size, dtype=np.bool_)
    for name in fields:
        mask[corpus.postings(name, term)[0]] = True
    return mask


def _meets(corpus: Corpus, condition: Condition) -> Mask:
    value = analyser.fold(condition.value)
    match condition.field:
        case "title":
            mask = _holds(corpus, condition.value, ("title",))
        case "heading":
            mask = _holds(corpus, condition.value, ("headings", "label", "title"))
        case "created" | "updated":
            since, until = query.days(condition.value) or ("", "")
            known = corpus.expand("", (condition.field,), limit=1_000_000)
            mask = corpus.holding(condition.field, [d for d in known if since <= d <= until])
        case "path":
            known = corpus.expand("", ("path",), limit=10_000_000)
            mask = corpus.holding("path", [p for p in known if value in analyser.fold(p)])
        case _:
            mask = corpus.holding(condition.field, [value])
    return ~mask if condition.negated else mask
