"""Joins the two rankings, by words and by meaning, into one.

Each score is told in deviations from the mean of its own hundred best (so that one list's spread
doesn't drown the other's), the two are added up with weights, and a passage gets a share of the
best one of its file: where a conversation answers a question, it mostly does so in several turns.
Before that the question is moved a little towards the passages that answer best (Rocchio's
feedback, on vectors). Chosen by measurement on all judged sets, with one configuration for all;
`tests/benchmarks/README.md` has what was tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Mask

    Scores = NDArray[np.float64]

# With the weights 0.7 and 0.3 the two then count about 2 to 3, which measured best.
MEANING_SHARE = 0.3
SHARE_OF_FILE = 0.3
# What no word of the query is in must be among the nearest by meaning.
MOST_BY_MEANING_ALONE = 100
_BEST = 100  # that tell how far the scores of a query lie apart
_FED_BACK = 3
# How far the best cosines of a query mostly lie apart; a query's own measure counts as much.
_COSINES_APART = 0.06
# Where all are nearly alike, their order is mostly chance: for cosines, and as a share of a score.
_LEAST_COSINES_APART = 0.02
_LEAST_APART = 0.05
_DIGITS = 7


class Meaning(Protocol):
    """One query compared by meaning with every document."""

    @property
    def cosines(self) -> Scores:
        """The cosine of each document; NaN where it has no vector (yet)."""

    @property
    def is_calibrated(self) -> bool:
        """True if it is known how near an answer is: of the bundled model only."""

    def nearer(self, numbers: NDArray[np.int64]) -> Scores:
        """The cosines of the query when it is moved towards some documents."""


@dataclass(frozen=True, slots=True)
class Fused:
    """`scores` in 0..1 for all documents; `candidates` are those that may be shown.

    `unit` is what one deviation makes in a score.
    """

    scores: Scores
    candidates: Mask
    unit: float = 0.0


def fuse(
    lexical: Scores,
    meaning: Meaning | None,
    mask: Mask,
    weights: tuple[float, float],
    *,
    live: Mask | None = None,
    best_of_file: Callable[[Scores], Scores] = lambda scores: scores,
) -> Fused:
    """Join BM25 scores with cosines; `weights` are those of meaning and of words.

    A document without a vector has its words speak for both, so it is neither favoured nor lost.
    One that only its words speak for always stays. Filters (`mask`) never reorder what is left:
    all is measured over the `live` documents.
    """
    live = np.ones(len(mask), dtype=np.bool_) if live is None else live
    by_words = mask & (lexical > 0)
    words, no_words = _in_deviations(lexical, live, _LEAST_APART * float(lexical.max(initial=0.0)))
    if meaning is None or not (live & np.isfinite(meaning.cosines)).any():
        return _spread(words, no_words, live, best_of_file, by_words)
    share = _share_of_meaning(weights)
    total, _ = _join(words, meaning.cosines, live, share)
    cosines = meaning.nearer(best_first(_even(total), live, _FED_BACK)[:_FED_BACK])
    total, lowest = _join(words, cosines, live, share)
    floor = share * lowest + (1 - share) * no_words
    candidates = by_words | _nearest(cosines, mask & np.isfinite(cosines))
    return _spread(total, floor, live, best_of_file, candidates)


def _share_of_meaning(weights: tuple[float, float]) -> float:
    heavy, light = weights[0] * MEANING_SHARE, weights[1]
    return heavy / (heavy + light) if heavy + light else 0.5


def _join(words: Scores, cosines: Scores, live: Mask, share: float) -> tuple[Scores, float]:
    """The weighted sum; and where the scale of meaning ends below."""
    known = np.isfinite(cosines) & live
    lowest = float(cosines[known].min())
    filled = np.where(np.isfinite(cosines), cosines, lowest)
    meant, _ = _in_deviations(filled, known, _LEAST_COSINES_APART, _COSINES_APART)
    joined: Scores = share * np.where(known, meant, words) + (1 - share) * words
    return joined, float(meant[known].min())


def _in_deviations(
    scores: Scores, among: Mask, least: float, usual: float | None = None
) -> tuple[Scores, float]:
    """Scores in deviations from the mean of the best of them; and what a score of 0 is then."""
    found = scores[among]
    if not len(found):
        return np.zeros_like(scores), 0.0
    most = min(_BEST, len(found))
    best = np.sort(np.partition(found, -most)[-most:])
    apart = max(float(best.std()), least) or 1.0
    if usual is not None:
        apart = math.sqrt(apart * usual)
    mean = float(best.mean())
    return (scores - mean) / apart, -mean / apart


def _spread(
    scores: Scores,
    floor: float,
    live: Mask,
    best_of_file: Callable[[Scores], Scores],
    candidates: Mask,
) -> Fused:
    """Add each file's share, and spread what comes out over 0..1: 1 is the best of all files."""
    shared = _even(scores + SHARE_OF_FILE * best_of_file(scores))
    highest = float(shared[live].max(initial=floor))
    lowest = floor * (1 + SHARE_OF_FILE)
    width = highest - lowest
    if width < 10**-_DIGITS:
        return Fused(np.ones_like(shared), candidates)
    return Fused(_even(np.clip((shared - lowest) / width, 0, 1)), candidates, 1 / width)


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


def rank_of(value: float, among: Scores) -> int | None:
    """The place of a value in a list that holds it; None if it speaks for nothing."""
    if not np.isfinite(value) or value <= 0:
        return None
    return int((among > value).sum()) + 1


def _even(scores: Scores) -> Scores:
    """Drop the last digits, which depend on the order in which numbers were added up."""
    rounded: Scores = np.round(scores, _DIGITS)
    return rounded
