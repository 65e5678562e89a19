"""Scores every document of a corpus for one query: by words, by meaning, and both joined."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.rows import ASKED
from kbtui.search.query import relevance
from kbtui.search.query.conditions import demanded
from kbtui.search.query.fusion import Fused, fuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.fusion import Meaning
    from kbtui.search.query.parser import Query
    from kbtui.search.query.relevance import Evidence
    from kbtui.search.query.reorder import Direction

    Scores = NDArray[np.float64]

_BEGINNING_WEIGHT = 0.8
_SHORT_QUERY = 4  # terms
_TITLED = 1.3
# What kbtui said itself counts less than what it was told.
_ASSISTANT = "assistant"
_SECOND_HAND = 0.8


@dataclass(frozen=True, slots=True)
class Weights:
    """How much meaning and words count, and in how many days what is in a folder loses half.

    `links`, `neighbours` and `diversity` reorder the best hits; see `kbtui.search.query.reorder`.
    """

    meaning: float = 0.7
    words: float = 0.3
    half_lives: Mapping[str, float] = field(default_factory=dict)
    diversity: float = 0.0
    links: float = 0.0
    neighbours: float = 0.0

    def reordering(self) -> list[tuple[str, float]]:
        """What reorders the best hits, one after the other, with its share."""
        names = ("links", "neighbours", "diversity")
        return [(name, share) for name in names if (share := getattr(self, name))]


def _no_direction(_number: int) -> None:
    return None


@dataclass(frozen=True)
class Ranking:
    """The scores of all documents of a corpus, joined and apart, and what matched."""

    fused: Fused
    lexical: Scores
    semantic: Scores | None
    terms: frozenset[str]
    evidence: Evidence
    recency: Scores | None = None
    weights: Weights = field(default_factory=Weights)
    direction: Direction = _no_direction
    boosts: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

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
    meaning: Meaning | None = None,
    weights: Weights = Weights(),
    *,
    statements_only: bool = False,
) -> Ranking:
    """Score every document of some folders; with `statements_only` of what somebody told kbtui."""
    mask = demanded(corpus, asked, scope)
    if statements_only:
        mask &= ~corpus.holding("said", (_ASSISTANT, ASKED))
    terms = weighted_terms(corpus, asked)
    lexical = corpus.scores(terms.items())
    lexical[_titled(corpus, asked)] *= _TITLED
    fused = fuse(
        lexical,
        meaning,
        mask,
        (weights.meaning, weights.words),
        live=corpus.live,
        best_of_file=corpus.best_of_file,
    )
    if not asked.has_words:
        fused = Fused(np.where(mask, 1.0, 0.0), mask)
    elif (second_hand := corpus.holding("said", (_ASSISTANT,))).any():
        lowered = np.where(second_hand, _SECOND_HAND * fused.scores, fused.scores)
        fused = replace(fused, scores=lowered)
    semantic = meaning.cosines if meaning is not None else None
    recency = _recency(corpus, weights.half_lives)
    if recency is not None and asked.has_words:
        fused = replace(fused, scores=fused.scores * recency)
    direction = meaning.direction if meaning is not None else _no_direction
    evidence = relevance.gather(corpus, asked, meaning, mask)
    return Ranking(
        fused, lexical, semantic, frozenset(terms), evidence, recency, weights, direction
    )


def _recency(corpus: Corpus, half_lives: Mapping[str, float]) -> Scores | None:
    """What is left of each score: half after a half-life; all of it without a date in the past."""
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
        for term in corpus.expand(beginning, ("title", "headings", "tags", "body")):
            found.setdefault(term, _BEGINNING_WEIGHT * corpus.rarity(term))
    return found
