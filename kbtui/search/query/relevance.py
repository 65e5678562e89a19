"""How likely a hit answers the query, on a scale that compares between queries.

The score that orders hits says nothing of that: the best of a hundred wrong passages has a high
one. Relevance is a small logistic model over measures that are absolute: how much of the query's
telling words the passage holds and how much the best passage does, and how near both are by
meaning. Its weights are fitted on questions with and without an answer by
`tests/benchmarks/relevance.py`; words alone have weights of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.parser import Query

    Scores = NDArray[np.float64]

# A small corpus can't tell common words from rare ones: as if it had so many more passages.
_FURTHER_PASSAGES = 50
_BEGINNING = 0.8


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of a logistic model, in the order of `Evidence.features`."""

    bias: float
    weights: tuple[float, ...]

    def __call__(self, features: Iterable[float]) -> float:
        """A probability."""
        total = self.bias + sum(w * x for w, x in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


@dataclass(frozen=True)
class Evidence:
    """What speaks for the documents of a corpus being answers to one query.

    `coverage` is the share of the query's words, by their rarity, that each document holds;
    `cosines` are NaN where a document has no vector.
    """

    coverage: Scores
    cosines: Scores | None
    best_coverage: float
    best_cosine: float
    words: int

    def features(self, number: int) -> tuple[float, ...]:
        """Of one document."""
        return (self.best_coverage, float(self.coverage[number]))

    def relevance(self, number: int) -> float:
        """How likely a document answers the query, in 0..1."""
        cosine = float("nan") if self.cosines is None else float(self.cosines[number])
        covered = 0.7 * self.best_coverage + 0.3 * float(self.coverage[number])
        if not math.isfinite(cosine):
            return _WORDS((covered,))
        return _BOTH((covered, 0.7 * self.best_cosine + 0.3 * cosine))


_WORDS = Model(-4.0, (8.0,))
_BOTH = Model(-6.0, (5.0, 9.0))


def gather(corpus: Corpus, asked: Query, cosines: Scores | None, mask: Mask) -> Evidence:
    """Look at what the documents of `mask` hold of a query."""
    weights = _word_weights(corpus, asked)
    coverage = np.zeros(corpus.size)
    whole = sum(weight for weight, _ in weights) or 1.0
    for weight, terms in weights:
        held = np.zeros(corpus.size)
        for term, share in terms.items():
            ids = corpus.impacts(term)[0]
            held[ids] = np.maximum(held[ids], share)
        coverage += weight / whole * held
    best_cosine = 0.0
    if cosines is not None and (known := mask & np.isfinite(cosines)).any():
        best_cosine = float(cosines[known].max())
    best = float(coverage[mask].max(initial=0.0))
    return Evidence(coverage, cosines, best, best_cosine, len(weights))


def _word_weights(corpus: Corpus, asked: Query) -> list[tuple[float, Mapping[str, float]]]:
    """Each telling word of a query: its weight, and the terms that count for it with their share.

    A word that no passage holds weighs most: who asks for it asks for what isn't there.
    """
    every = corpus.count + _FURTHER_PASSAGES
    of_word: dict[str, list[str]] = {}
    for term, word in asked.terms().items():
        of_word.setdefault(word, []).append(term)
    found: list[tuple[float, Mapping[str, float]]] = []
    for terms in of_word.values():
        known = {term: 1.0 if i == 0 else _BEGINNING for i, term in enumerate(terms)}
        for term in terms:
            if not corpus.knows(term) and len(term) > 1:
                beginning = corpus.expand(term, ("title", "headings", "tags", "body"))
                known.update(dict.fromkeys(beginning, _BEGINNING))
        held = max((len(corpus.impacts(term)[0]) for term in known), default=0)
        found.append((math.log((every + 1) / (held + 0.5)), known))
    for start in asked.beginnings:
        begun = corpus.expand(analyser.fold(start), ("title", "headings", "tags", "body"))
        found.append((math.log(every + 1), dict.fromkeys(begun, 1.0)))
    return found
