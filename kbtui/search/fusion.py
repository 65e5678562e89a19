"""Joins the two rankings, by words and by meaning, into one.

A weighted sum of scores that are normalised for each query. Of the methods tried on LoCoMo,
chunking_eval and Cranfield (min-max, z-scores, raw cosines, reciprocal ranks with k from 10 to 60)
this was the best or level with it on each; reciprocal ranks lost 2 to 10 points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbtui.search.bm25f import Mask

    Scores = NDArray[np.float64]

# Cosines of one model crowd together, so the whole of their span counts as this much of BM25's:
# with the weights 0.7 and 0.3 both then count alike, which measured best.
SEMANTIC_SPAN = 0.45
# Where all cosines are alike, their order is mostly chance.
_LEAST_SPAN = 0.3
# What no word of the query is in must be among the nearest by meaning.
MOST_BY_MEANING_ALONE = 100


@dataclass(frozen=True, slots=True)
class Fused:
    """`scores` in 0..1 for all documents; `candidates` are those that may be shown."""

    scores: Scores
    candidates: Mask


def fuse(
    lexical: Scores,
    semantic: Scores | None,
    mask: Mask,
    weights: tuple[float, float],
) -> Fused:
    """Join BM25 scores with cosines; `weights` are those of meaning and of words.

    `semantic` is NaN where a document has no vector (yet): its words then speak for both, so it
    is neither favoured nor lost. A document that only its words speak for always stays.
    """
    highest = float(lexical[mask].max(initial=0.0))
    words = lexical / highest if highest > 0 else np.zeros_like(lexical)
    by_words = mask & (lexical > 0)
    if semantic is None or not np.isfinite(semantic).any():
        return Fused(_even(words), by_words)
    known = np.isfinite(semantic)
    top = float(semantic[known].max())
    span = max(top - float(semantic[known].min()), _LEAST_SPAN)
    meaning = np.where(known, np.clip(1 - (top - semantic) / span, 0, 1), words)
    heavy, light = weights[0] * SEMANTIC_SPAN, weights[1]
    total = heavy + light or 1.0
    scores = (heavy * meaning + light * words) / total
    return Fused(_even(scores), by_words | _nearest(semantic, mask & known))


def _nearest(semantic: Scores, allowed: Mask) -> Mask:
    nearest: Mask = np.zeros(len(semantic), dtype=np.bool_)
    if allowed.any():
        found = semantic[allowed]
        most = min(MOST_BY_MEANING_ALONE, len(found))
        least = np.partition(found, -most)[-most]
        nearest[allowed] = found >= least
    return nearest


def best_first(scores: Scores, candidates: Mask, most: int) -> NDArray[np.int64]:
    """The numbers of the best candidates, best first, all that tie with the last included."""
    numbers = np.flatnonzero(candidates)
    found = scores[numbers]
    if len(numbers) > most:
        least = np.partition(found, -most)[-most]
        numbers, found = numbers[found >= least], found[found >= least]
    order: NDArray[np.int64] = numbers[np.argsort(-found, kind="stable")]
    return order


def rank_of(values: Scores, number: int, candidates: Mask) -> int | None:
    """The place of a document in one of the lists; None if it isn't in it."""
    value = values[number]
    if not np.isfinite(value) or value <= 0:
        return None
    return int((values[candidates] > value).sum()) + 1


def _even(scores: Scores) -> Scores:
    """Drop the last digits, which depend on the order in which numbers were added up."""
    rounded: Scores = np.round(scores, 9)
    return rounded
