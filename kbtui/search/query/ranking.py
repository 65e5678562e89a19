"""Scores every document of a corpus for one query: lexically, semantically, and combined.

The score that orders hits doesn't tell whether one answers the query: the best of a hundred wrong
passages scores high too. Relevance is a logistic model over a few absolute features: how many of
the query's words the best passage covers, how similar the nearest passage is, whether the query has
a name that no document mentions. `tests/benchmarks/relevance.py` fits the weights on questions with
and without an answer, with a separate set for lexical search.
"""

from __future__ import annotations

import calendar
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, reduce
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kbtui.clock import local_day
from kbtui.search.index import analyser
from kbtui.search.index.chunk_rows import ASSISTANT, ELSEWHERE
from kbtui.search.query.asked_for import raised
from kbtui.search.query.fusion import Fused, fuse
from kbtui.search.query.parser import MAX_TERMS, content_words
from kbtui.search.results import RELEVANT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.index.whoosh_reader import Texts
    from kbtui.search.query.fusion import Comparison
    from kbtui.search.query.parser import Query

    Scores = NDArray[np.float64]


# Fitted weights: the intercept, then in the order of `Evidence.features`.
BY_WORDS = (-12.73, 15.73, -3.56, 3.8, 3.23)
BY_BOTH = (-16.8, 18.95, -3.91, 1.14, 3.25, 28.03, -20.41)
# Smoothing: a small corpus can't tell common words from rare ones.
_SMOOTHING_PASSAGES = 50
# With a smaller share of vectors, relevance is lexical.
_MIN_VECTOR_SHARE = 0.8
# Words without topic; models write "the user" in their queries.
_SMALL_TALK_WORDS = """
    hello hi hey thanks thank thx lot ok okay yes yep please bye goodbye hallo danke bitte tschüss
    ja bonjour salut merci hola gracias user user's
    say said tell told know remember mention mentioned again many much
"""
_SMALL_TALK = frozenset(_SMALL_TALK_WORDS.split())
# The weight of a part of a word, and of a longer word with it as a prefix.
_PARTIAL_WEIGHT = 0.8
_MIN_PREFIX = 4
_POSSESSIVE = ("'s", "\N{RIGHT SINGLE QUOTATION MARK}s")
_SUBJECT = re.compile(
    r"\b(?:do|does|did|has|have|had|is|was|will|would|can|could|should|might)\s+([^\W\d_]{3,}\b)",
    re.IGNORECASE,
)
_DATES = frozenset([*calendar.month_name, *calendar.day_name])
# Decay of relevance behind the best hit: by coverage, and by cosine.
_COVERAGE_DECAY = 1.6
_COSINE_DECAY = 3.2


@dataclass(frozen=True)
class Evidence:
    """The features of a query and a corpus that predict whether there is an answer.

    Attributes:
        words: The number of the query's content words.
        unknown: The share of them, weighted by rarity, that no document has.
        missing_names: The share of the query's names (see `_names`) that no document has.
        coverage: The share of the words, weighted by rarity, that each document has.
        cosines: The similarity of each document, NaN without a vector; None if not compared.
        best_coverage: The highest coverage.
        best_cosine: The highest cosine.
        is_near: Whether a document is nearer than by chance.
    """

    words: int
    unknown: float
    missing_names: float
    coverage: Scores
    cosines: Scores | None
    best_coverage: float
    best_cosine: float
    is_near: bool = False

    def features(self) -> tuple[float, ...]:
        """Return the features in the order of `BY_WORDS` or `BY_BOTH`, without the intercept."""
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
        """Whether some document probably answers the query."""
        return self.answered >= RELEVANT

    @property
    def is_near_by_chance(self) -> bool:
        """Whether there is probably no answer, and no similarity above chance."""
        return self.cosines is not None and not self.is_answered and not self.is_near

    @cached_property
    def answered(self) -> float:
        """The probability, in 0..1, that any document answers the query."""
        constant, *weights = BY_WORDS if self.cosines is None else BY_BOTH
        total = constant + sum([w * x for w, x in zip(weights, self.features(), strict=True)])
        return 1 / (1 + math.exp(-total))

    def relevance(self, number: int) -> float:
        """Return how likely a document answers the query, in 0..1.

        If the query probably has an answer, all hits count as relevant, decaying with the distance
        to the best features, as the first hit often isn't the answer.
        """
        answered = self.answered
        if answered < RELEVANT:
            return answered
        decay = 0.0
        if self.best_coverage:
            decay += _COVERAGE_DECAY * (1 - float(self.coverage[number]) / self.best_coverage)
        if self.cosines is not None and np.isfinite(self.cosines[number]):
            decay += _COSINE_DECAY * (self.best_cosine - float(self.cosines[number]))
        return RELEVANT + (answered - RELEVANT) * math.exp(-decay)


def gather_evidence(
    corpus: Corpus, query: Query, comparison: Comparison | None, mask: Mask
) -> Evidence:
    """Measure the evidence for an answer in the documents of `mask`."""
    words = list(_content_words(corpus, query.text))
    whole = sum([weight for weight, _, _ in words]) or 1.0
    unknown = 0.0
    names = _names(query.text)
    is_missing: list[bool] = []  # one per name
    coverage = np.zeros(corpus.size)
    for weight, word, terms in words:
        found = [corpus.impacts(term)[0] for term in terms]
        if len(found) == 1:
            coverage[found[0]] += weight / whole * min(terms.values())
        else:
            held = np.zeros(corpus.size)
            for ids, share in zip(found, terms.values(), strict=True):
                held[ids] = np.maximum(held[ids], share)
            coverage += weight / whole * held
        missing = not any(mask[ids].any() for ids in found)
        unknown += weight / whole * missing
        if word in names:
            is_missing.append(missing)
    cosines = comparison.likeness if comparison is not None and comparison.is_calibrated else None
    if cosines is not None and np.isfinite(cosines).sum() < _MIN_VECTOR_SHARE * corpus.count:
        cosines = None
    return Evidence(
        words=len(words),
        unknown=unknown,
        missing_names=sum(is_missing) / max(1, len(is_missing)),
        coverage=coverage,
        cosines=cosines,
        best_coverage=float(coverage[mask].max(initial=0.0)),
        best_cosine=0.0 if cosines is None else float(np.nanmax(cosines, initial=0.0, where=mask)),
        is_near=comparison is not None
        and bool((comparison.likeness >= comparison.chances)[mask].any()),
    )


@lru_cache(maxsize=16)
def _names(text: str) -> frozenset[str]:
    """Return the words that are probably names: capitalised, possessive, or after an auxiliary."""
    found = {match[1] for match in _SUBJECT.finditer(text)}
    for start, end, _ in analyser.spans(text):
        if (start and text[start].isupper()) or text[start:end].endswith(_POSSESSIVE):
            found.add(text[start:end])
    return frozenset(found - _DATES)


def _topic_words(text: str) -> Sequence[tuple[str, Sequence[str]]]:
    """Return a query's words without stop words and small talk, or all words, with their terms."""
    all_words = [(text[start:end], terms) for start, end, terms in analyser.spans(text) if terms]
    topical = [each for each in all_words if each[0].casefold() not in _SMALL_TALK]
    kept = set(content_words([word for word, _ in topical], text))
    content = [each for each in topical if each[0] in kept]
    return all_words if not content and topical == all_words else content


def _content_words(corpus: Corpus, text: str) -> Iterator[tuple[float, str, dict[str, float]]]:
    """Yield each content word as ``(weight by rarity, word, weighted terms)``.

    A word that no passage has weighs most, as the query then asks for something absent.
    """
    passages = corpus.count + _SMOOTHING_PASSAGES
    for word, terms in islice(_topic_words(text), MAX_TERMS):
        shares = {term: _PARTIAL_WEIGHT if i else 1.0 for i, term in enumerate(terms)}
        shares |= dict.fromkeys(analyser.second_terms(word, corpus.languages), _PARTIAL_WEIGHT)
        if len(word) >= _MIN_PREFIX and not any(map(corpus.knows, shares)):
            longer = corpus.expand(terms[0], _WRITTEN)
            shares = dict.fromkeys(longer, _PARTIAL_WEIGHT)
        held = max([len(corpus.impacts(term)[0]) for term in shares], default=0)
        yield math.log((passages + 1) / (held + 0.5)), word, shares


_WRITTEN = ("title", "headings", "label", "tags", "body")
_PREFIX_WEIGHT = 0.8
_SHORT_QUERY = 4  # terms
_SECOND_WEIGHT = 0.5
_TITLE_BOOST = 2.2
# The assistant's messages count less than the user's.
_ASSISTANT_WEIGHT = 0.8


@dataclass(frozen=True)
class Ranking:
    """The scores of all documents of a corpus, combined and separate, and the matching terms."""

    fused: Fused
    lexical: Scores
    semantic: Scores | None
    terms: frozenset[str]
    evidence: Evidence
    recency: Scores | None = None

    @cached_property
    def word_scores(self) -> Scores:
        """The lexical scores of all candidates."""
        return self.lexical[self.fused.candidates]

    @cached_property
    def cosines(self) -> Scores:
        """The cosines of all candidates."""
        return self.lexical[:0] if self.semantic is None else self.semantic[self.fused.candidates]


def rank(
    corpus: Corpus,
    query: Query,
    scope: Sequence[str],
    comparison: Comparison | None = None,
    weights: tuple[float, float] = (0.7, 0.3),
    *,
    half_lives: Mapping[str, float] = MappingProxyType({}),
    excluded: Mask | None = None,
    texts: Texts = lambda _numbers: {},
) -> Ranking:
    """Score all documents of some folders.

    Args:
        corpus: The documents.
        query: The query.
        scope: The folders.
        comparison: The semantic comparison, if there is one.
        weights: The weights of semantic and lexical scores.
        half_lives: Days in which a document's score halves, by folder.
        excluded: Documents to exclude.
        texts: Returns the texts of chunks, for phrases.
    """
    mask = corpus.live & corpus.holding("scope", scope)
    if excluded is not None:
        mask &= ~excluded
    terms = weighted_terms(corpus, query)
    held = frozenset(terms)
    if query.operators is None:
        lexical = corpus.scores(terms.items())
    else:
        from kbtui.search.query import operators

        found = operators.run(corpus, query.operators, terms, texts)
        lexical, held = found.scores, found.terms
        mask &= found.mask
    lexical[_title_matches(corpus, query)] *= _TITLE_BOOST
    lifts = raised(corpus, query.text, _names(query.text), lexical, terms)
    evidence = gather_evidence(corpus, query, comparison, mask)
    if comparison is not None and not analyser.is_unspaced(query.text):
        # Pairs of characters have no other forms, and few are all in one passage.
        by_meaning, by_words = weights
        unsaid = (1 - evidence.best_coverage) ** 2
        weights = (by_meaning * comparison.weight**unsaid, by_words)
    fused = fuse(
        lexical,
        comparison,
        mask,
        weights,
        live=corpus.live,
        raised=lifts,
        best_of_series=corpus.best_of_series,
    )
    if not query.has_words:
        fused = Fused(np.where(mask, 1.0, 0.0), mask)
    elif (by_assistant := corpus.holding("said", (ASSISTANT, ELSEWHERE))).any():
        lowered = np.where(by_assistant, _ASSISTANT_WEIGHT * fused.scores, fused.scores)
        fused = replace(fused, scores=lowered)
    semantic = comparison.cosines if comparison is not None else None
    recency = _recency(corpus, half_lives)
    if recency is not None and query.has_words:
        fused = replace(fused, scores=fused.scores * recency)
    return Ranking(fused, lexical, semantic, held, evidence, recency)


def _recency(corpus: Corpus, half_lives: Mapping[str, float]) -> Scores | None:
    """Return the recency factor of each document: 0.5 after a half-life, 1 without a past date."""
    if not any(half_lives.values()):
        return None
    left = np.ones(corpus.size)
    ages = np.maximum(local_day().toordinal() - corpus.days("updated"), 0)
    for folder, days in sorted(half_lives.items()):
        if days:
            inside = corpus.holding("scope", [folder.strip("/")]) & np.isfinite(ages)
            left[inside] = 0.5 ** (ages[inside] / days)
    return left


def _title_matches(corpus: Corpus, query: Query) -> NDArray[np.int32]:
    """Return the numbers of documents whose title and aliases have all terms of a short query."""
    terms = query.terms()
    if not 0 < len(terms) <= _SHORT_QUERY:
        return np.empty(0, dtype=np.int32)
    titled = [corpus.postings("title", term)[0] for term in terms]
    return reduce(partial(np.intersect1d, assume_unique=True), titled)


def weighted_terms(corpus: Corpus, query: Query) -> dict[str, float]:
    """Return the weighted terms to score by; unknown terms are expanded as prefixes."""
    found: dict[str, float] = {}
    beginnings: list[str] = []
    for term, word in query.terms().items():
        if corpus.knows(term):
            found[term] = corpus.rarity(term)
        elif len(term) > 1 or analyser.is_unspaced(term):
            beginnings += [term, analyser.fold(word)]
        for form in analyser.second_terms(word, corpus.languages):
            if corpus.knows(form):
                found.setdefault(form, _SECOND_WEIGHT * corpus.rarity(form))
    for prefix in dict.fromkeys(beginnings):
        for term in corpus.expand(prefix, _WRITTEN):
            found.setdefault(term, _PREFIX_WEIGHT * corpus.rarity(term))
    return found
