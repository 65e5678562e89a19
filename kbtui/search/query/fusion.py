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
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kbtui.search.embedding.vectors import Matrix, VectorStore
    from kbtui.search.index.bm25f import Corpus, Mask

    Scores = NDArray[np.float64]


# With the weights 0.7 and 0.3 the two then count about 2 to 3, which measured best.
MEANING_SHARE = 0.3
SHARE_OF_FILE = 0.3
# What no word of the query is in must be among the nearest by meaning.
MOST_BY_MEANING_ALONE = 100
_BEST = 100  # that tell how far the scores of a query lie apart
_FED_BACK = 3
# Where all are nearly alike, their order is mostly chance: for cosines, and as a share of a score.
_LEAST_COSINES_APART = 0.02
_LEAST_APART = 0.05
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class VectorKind:
    """What is measured of a kind of vectors.

    `apart` is how far the best cosines of a query mostly lie apart; a query's own measure counts
    as much. `feedback` is how far a query moves towards what answers it best.
    """

    apart: float = 0.06
    feedback: float = 0.3


ROUGH = VectorKind(apart=0.1, feedback=0.6)


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
    meaning: Comparison | None,
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
    apart = meaning.kind.apart
    total, _ = _join(words, meaning.cosines, live, share, apart)
    cosines = meaning.nearer(best_first(_even(total), live, _FED_BACK)[:_FED_BACK])
    total, lowest = _join(words, cosines, live, share, apart)
    floor = share * lowest + (1 - share) * no_words
    candidates = by_words | _nearest(cosines, mask & np.isfinite(cosines))
    return _spread(total, floor, live, best_of_file, candidates)


def _share_of_meaning(weights: tuple[float, float]) -> float:
    heavy, light = weights[0] * MEANING_SHARE, weights[1]
    return heavy / (heavy + light) if heavy + light else 0.5


def _join(
    words: Scores, cosines: Scores, live: Mask, share: float, apart: float
) -> tuple[Scores, float]:
    """The weighted sum; and where the scale of meaning ends below."""
    known = np.isfinite(cosines) & live
    lowest = float(cosines[known].min())
    filled = np.where(np.isfinite(cosines), cosines, lowest)
    meant, _ = _in_deviations(filled, known, _LEAST_COSINES_APART, apart)
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


# How much the direction of a whole document counts beside that of its nearest passage.
_WHOLE = 0.3
# In a large corpus the moved query is compared with the nearest documents only: picking them out
# costs more than it saves in a small one.
_COMPARED_AGAIN = 2000
_FEW = 2
_SUMMED_AT_ONCE = 1000  # documents
_TINY = 1e-9
_LEAST_SECONDS_BETWEEN_VIEWS = 1.0


class Comparison:
    """One query compared by meaning with every document of a corpus.

    Attributes:
        cosines: How near each document is; NaN where it has no vector (yet).
        is_calibrated: It is known how near an answer is: of the bundled model only.
        kind: What is measured of vectors of its kind.
    """

    def __init__(
        self,
        query: NDArray[np.float32],
        view: DocumentRows,
        matrix: Matrix,
        *,
        is_calibrated: bool,
        kind: VectorKind = VectorKind(),
    ) -> None:
        self.is_calibrated = is_calibrated
        self.kind = kind
        self._query = query
        self._view = view
        self._matrix = matrix
        self.cosines = view.nearest(matrix, query)

    def nearer(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Move the query towards the mean of these documents, and compare again."""
        towards = [mean for n in numbers.tolist() if (mean := self.direction(n)) is not None]
        if not towards:
            return self.cosines
        moved = self._query + self.kind.feedback * np.mean(towards, axis=0)
        return self._view.nearest_again(self._matrix, _unit(moved), self.cosines)

    def direction(self, number: int) -> NDArray[np.float32] | None:
        """The direction of a whole document; None if it has no vector."""
        rows = self._view.rows_of(number)
        return _unit(self._matrix[rows].mean(axis=0)) if len(rows) else None


def _of_documents(
    cosines: NDArray[np.float32], starts: NDArray[np.int64], lengths: NDArray[np.float32]
) -> NDArray[np.float32]:
    """How near documents are, by the cosines of their passages: the nearest one, and all as one."""
    nearest = np.maximum.reduceat(cosines, starts)
    whole = np.add.reduceat(cosines, starts) / lengths
    return ((1 - _WHOLE) * nearest + _WHOLE * whole).astype(np.float32, copy=False)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), _TINY)
    return found


class DocumentRows:
    """Which rows of the matrix belong to which document of a corpus."""

    def __init__(
        self, corpus: Corpus, vectors: VectorStore, keys: dict[int, tuple[bytes, ...]]
    ) -> None:
        self._corpus = corpus
        self._count = len(vectors)
        self._made = time.monotonic()
        none: tuple[bytes, ...] = ()
        of_document = [keys.get(chunk, none) for chunk in corpus.chunks.tolist()]
        counts = np.fromiter(map(len, of_document), dtype=np.int64, count=len(of_document))
        rows = vectors.rows([key for found in of_document for key in found])
        owners = np.repeat(np.arange(len(of_document)), counts)
        known = rows >= 0
        self.rows = rows[known]
        self.documents, self._starts = np.unique(owners[known], return_index=True)
        self._lengths = self._lengths_of_sums(vectors.matrix)

    def _lengths_of_sums(self, matrix: Matrix) -> NDArray[np.float32]:
        """How long the sum of a document's vectors is: 1 where there is one vector only."""
        counts = np.diff(np.append(self._starts, len(self.rows)))
        lengths = np.ones(len(counts), dtype=np.float32)
        several = np.flatnonzero(counts > 1)
        for start in range(0, len(several), _SUMMED_AT_ONCE):
            chosen = several[start : start + _SUMMED_AT_ONCE]
            rows, starts = self._rows_of_all(chosen)
            sums = np.add.reduceat(matrix[rows], starts)
            lengths[chosen] = np.maximum(np.linalg.norm(sums, axis=1), _TINY)
        return lengths

    def _rows_of_all(
        self, chosen: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of some documents, one behind the other, and where those of each begin."""
        ends = np.append(self._starts[1:], len(self.rows))
        counts = ends[chosen] - self._starts[chosen]
        starts = np.cumsum(counts) - counts
        places = np.repeat(self._starts[chosen] - starts, counts) + np.arange(counts.sum())
        return self.rows[places], starts

    def nearest(self, matrix: Matrix, query: NDArray[np.float32]) -> NDArray[np.float64]:
        """How near each document is to the query; NaN without a vector."""
        found = np.full(self._corpus.size, np.nan)
        if len(self.rows):
            cosines = matrix.products(query)[self.rows]
            found[self.documents] = _of_documents(cosines, self._starts, self._lengths)
        return found

    def nearest_again(
        self, matrix: Matrix, query: NDArray[np.float32], before: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compare with a query close to the one before: with what was near to that one."""
        if len(self.documents) <= _FEW * _COMPARED_AGAIN:
            return self.nearest(matrix, query)
        least = np.partition(before[self.documents], -_COMPARED_AGAIN)[-_COMPARED_AGAIN]
        chosen = np.flatnonzero(before[self.documents] >= least)
        rows, starts = self._rows_of_all(chosen)
        cosines = matrix.products(query, rows)
        found = before.copy()
        found[self.documents[chosen]] = _of_documents(cosines, starts, self._lengths[chosen])
        return found

    def rows_of(self, number: int) -> NDArray[np.int64]:
        """The rows of the matrix that are passages of a document."""
        place = int(np.searchsorted(self.documents, number))
        if place == len(self.documents) or self.documents[place] != number:
            return self.rows[:0]
        end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self.rows)
        return self.rows[self._starts[place] : end]

    def fits(self, corpus: Corpus, count: int, *, busy: bool) -> bool:
        """True if this is still the view to use; while vectors are being made, for a second."""
        recent = time.monotonic() - self._made < _LEAST_SECONDS_BETWEEN_VIEWS
        return self._corpus is corpus and (self._count == count or (busy and recent))
