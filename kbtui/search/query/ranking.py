"""Scores every document of a corpus for one query: by words, by meaning, and both joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS
from kbtui.search.index.rows import ASSISTANT
from kbtui.search.query import parser as query
from kbtui.search.query import relevance
from kbtui.search.query.fusion import Fused, fuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.fusion import Meaning
    from kbtui.search.query.parser import Query
    from kbtui.search.query.relevance import Evidence

    Scores = NDArray[np.float64]
    from kbtui.search.query.parser import Condition


_BEGINNING_WEIGHT = 0.8
_SHORT_QUERY = 4  # terms
_TITLED = 1.3
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
    meaning: Meaning | None = None,
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
    elif (second_hand := corpus.holding("said", (ASSISTANT,))).any():
        lowered = np.where(second_hand, _SECOND_HAND * fused.scores, fused.scores)
        fused = replace(fused, scores=lowered)
    semantic = meaning.cosines if meaning is not None else None
    recency = _recency(corpus, half_lives)
    if recency is not None and asked.has_words:
        fused = replace(fused, scores=fused.scores * recency)
    evidence = relevance.gather(corpus, asked, meaning, mask)
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
        for term in corpus.expand(beginning, ("title", "headings", "tags", "body")):
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
            mask = _holds(corpus, condition.value, ("headings",))
        case "created" | "updated":
            since, until = query.days(condition.value) or ("", "")
            known = corpus.expand("", (condition.field,), most=1_000_000)
            mask = corpus.holding(condition.field, [d for d in known if since <= d <= until])
        case "path":
            known = corpus.expand("", ("path",), most=10_000_000)
            mask = corpus.holding("path", [p for p in known if value in analyser.fold(p)])
        case _:
            mask = corpus.holding(condition.field, [value])
    return ~mask if condition.negated else mask
