"""Fuses the lexical and the semantic ranking into one.

Scores are standardised by the mean and standard deviation of each ranking's hundred best, so that
neither range dominates, and added with weights. A passage also gets a share of the best score in
its file, or in the notes of the same title beside it, as a conversation mostly answers a question
in several turns. Before that, the query vector is moved towards the best passages (Rocchio
relevance feedback). All constants were tuned on all judged sets, with one configuration;
`tests/benchmarks/README.md` lists the alternatives tried.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.embedding.prepared import MULTILINGUAL_LANGUAGES
from kbtui.search.index.language import ENGLISH

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kbtui.search.embedding.vectors import Matrix, VectorStore
    from kbtui.search.index.bm25f import Corpus, Mask

    Scores = NDArray[np.float64]
    _Places = NDArray[np.int64] | slice


# With the default weights 0.7 and 0.3, the effective ratio is about 2 to 3, which measured best.
_SEMANTIC_SHARE = 0.3
_SERIES_SHARE = 0.3
# Documents without any word of the query must be among so many semantically nearest.
MAX_SEMANTIC_ONLY = 100
_SAMPLE = 100  # the sample of best scores whose mean and deviation are measured
_FEEDBACK = 3
# Lower bounds of the deviation, as the order of nearly equal scores is mostly chance: for cosines,
# and as a share of the highest lexical score.
_MIN_COSINE_DEVIATION = 0.02
_MIN_SPREAD = 0.05
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class VectorKind:
    """Measured parameters of a kind of vectors.

    `deviation` is the typical standard deviation of a query's best cosines; the geometric mean with
    the actual one is used. `feedback` is how far a query moves towards its best documents. `chance`
    is the cosine of most nearest passages to unrelated questions. `common` is the share of the mean
    of all passages that is taken from passages and queries before they are compared; less of few
    passages, and half of that of `few`. If thresholds were `measured_whole`, they hold for cosines
    with the mean, and the scale of those without it is about the same. A model that is read for
    `english` alone has no passages in other languages in its mean.
    """

    deviation: float = 0.06
    feedback: float = 0.3
    chance: float = 0.35
    common: float = 0.0
    few: int = 600
    measured_whole: bool = True
    english: bool = False


BUNDLED = VectorKind(common=0.5, english=True)
ROUGH = VectorKind(deviation=0.1, feedback=0.6)
# With `chance` as brought to the bundled model's scale.
SECOND = VectorKind(feedback=0.1, chance=0.18, common=1.0, few=50, measured_whole=False)
# The languages of the multilingual model besides English.
FOREIGN = tuple(code for code in MULTILINGUAL_LANGUAGES if code != ENGLISH)
# How far meaning outweighs words where a question in another language than English has none of its
# words in any passage: most are inflected, and only few languages are stemmed.
_SECOND_WEIGHT = 32.0
# Maps centred cosines of the multilingual model to the same share of answers among the bundled
# one's. Measured on questions with and without an answer, to xquad and to notes of a sentence or
# two: the nearest passage is at 0.48 and 0.16 to 0.19 for the bundled one, at 0.37 to 0.39 (xquad)
# or 0.32 to 0.34, and at 0.15 to 0.23 for the other.
_SECOND_SCALE, _SECOND_SHIFT = 1.5, -0.03


@dataclass(frozen=True, slots=True)
class Fused:
    """Fused `scores` in 0..1 for all documents; `candidates` are those that may be shown.

    `unit` is one standard deviation on the scale of `scores`.
    """

    scores: Scores
    candidates: Mask
    unit: float = 0.0


def fuse(
    lexical: Scores,
    comparison: Comparison | None,
    mask: Mask,
    weights: tuple[float, float],
    *,
    live: Mask | None = None,
    raised: Scores | None = None,
    best_of_series: Callable[[Scores], Scores] = lambda scores: scores,
) -> Fused:
    """Fuse BM25 scores with cosines; `weights` are (semantic, lexical).

    For a document without a vector, the lexical score stands in for the semantic one, and for one
    in another language than the query the semantic for the lexical one, so that it is neither
    favoured nor penalised. Lexical matches always remain candidates. Filters (`mask`) don't
    change the order of the rest, as all statistics are over the `live` documents. Documents are
    `raised` by so many standard deviations besides.
    """
    live = np.ones(len(mask), dtype=np.bool_) if live is None else live
    by_words = mask & (lexical > 0)
    words, no_words = _standardise(lexical, live, _MIN_SPREAD * float(lexical.max(initial=0.0)))
    lifts = 0.0 if raised is None else raised
    if comparison is None or not (live & np.isfinite(comparison.cosines)).any():
        return _rescale(words + lifts, no_words, live, best_of_series, by_words)
    share = _semantic_share(weights)
    deviation, abroad = comparison.kind.deviation, comparison.abroad
    total, _ = _weighted_sum(words, comparison.cosines, live, share, deviation, abroad)
    cosines = comparison.with_feedback(
        best_first(_rounded(total + lifts), live, _FEEDBACK)[:_FEEDBACK]
    )
    total, lowest = _weighted_sum(words, cosines, live, share, deviation, abroad)
    floor = share * lowest + (1 - share) * no_words
    candidates = by_words | _nearest(cosines, mask & np.isfinite(cosines))
    return _rescale(total + lifts, floor, live, best_of_series, candidates)


def _semantic_share(weights: tuple[float, float]) -> float:
    semantic, lexical = weights[0] * _SEMANTIC_SHARE, weights[1]
    return semantic / (semantic + lexical) if semantic + lexical else 0.5


def _weighted_sum(
    words: Scores,
    cosines: Scores,
    live: Mask,
    share: float,
    deviation: float,
    abroad: Mask | None = None,
) -> tuple[Scores, float]:
    """Return the weighted sum of both scores, and the lowest semantic one."""
    known = np.isfinite(cosines) & live
    lowest = float(cosines[known].min())
    filled = np.where(np.isfinite(cosines), cosines, lowest)
    semantic, _ = _standardise(filled, known, _MIN_COSINE_DEVIATION, deviation)
    if abroad is not None:
        words = np.where(abroad, np.maximum(words, semantic), words)
    joined: Scores = share * np.where(known, semantic, words) + (1 - share) * words
    return joined, float(semantic[known].min())


def _standardise(
    scores: Scores, among: Mask, minimum: float, typical: float | None = None
) -> tuple[Scores, float]:
    """Standardise scores by the best of them; return the result, and what 0 is mapped to."""
    found = scores[among & (scores > 0)]  # few, where words are looked for
    if len(found) < _SAMPLE:
        found = scores[among]
    if not len(found):
        return np.zeros_like(scores), 0.0
    limit = min(_SAMPLE, len(found))
    best = np.sort(np.partition(found, -limit)[-limit:])
    deviation = max(float(best.std()), minimum) or 1.0
    if typical is not None:
        deviation = math.sqrt(deviation * typical)
    mean = float(best.mean())
    return (scores - mean) / deviation, -mean / deviation


def _rescale(
    scores: Scores,
    floor: float,
    live: Mask,
    best_of_series: Callable[[Scores], Scores],
    candidates: Mask,
) -> Fused:
    """Add each series' share and rescale to 0..1, where 1 is the best of all."""
    shared = _rounded(scores + _SERIES_SHARE * best_of_series(scores))
    highest = float(shared[live].max(initial=floor))
    lowest = floor * (1 + _SERIES_SHARE)
    width = highest - lowest
    if width < 10**-_DIGITS:
        return Fused(np.ones_like(shared), candidates)
    return Fused(_rounded(np.clip((shared - lowest) / width, 0, 1)), candidates, 1 / width)


def _nearest(semantic: Scores, allowed: Mask) -> Mask:
    nearest: Mask = np.zeros(len(semantic), dtype=np.bool_)
    if allowed.any():
        found = semantic[allowed]
        limit = min(MAX_SEMANTIC_ONLY, len(found))
        minimum = np.partition(found, -limit)[-limit]
        nearest[allowed] = found >= minimum
    return nearest


def best_first(scores: Scores, candidates: Mask, limit: int) -> NDArray[np.int64]:
    """Return the numbers of the best candidates, best first, including all ties with the last."""
    numbers = np.flatnonzero(candidates)
    found = scores[numbers]
    if len(numbers) > limit:
        minimum = np.partition(found, -limit)[-limit]
        numbers, found = numbers[found >= minimum], found[found >= minimum]
    order: NDArray[np.int64] = numbers[np.argsort(-found, kind="stable")]
    return order


def rank_of(value: float, among: Scores) -> int | None:
    """Return the 1-based rank of a value in `among`; None if it is NaN or not positive."""
    if not np.isfinite(value) or value <= 0:
        return None
    return int((among > value).sum()) + 1


def _rounded(scores: Scores) -> Scores:
    """Round off the last digits, which depend on the order of additions."""
    result: Scores = np.round(scores, _DIGITS)
    return result


# The weight of a document's centroid, against that of its nearest passage.
_CENTROID = 0.3
# In a large corpus, the moved query is only compared with so many nearest documents; in a small
# one, selecting them costs more than it saves.
_RESCORED = 2000
_LARGE_FACTOR = 2
_BATCH = 1000  # documents
_EPSILON = 1e-9
_MIN_VIEW_SECONDS = 1.0


class Comparison:
    """The similarities of one query to all documents of a corpus.

    Attributes:
        cosines: The similarity of each document, for their order; NaN if it has no vector (yet).
        likeness: The same, as thresholds hold for it.
        is_calibrated: Whether it is known how similar answers are: only for the bundled model.
        kind: The measured parameters of this kind of vectors.
        abroad: The documents in another language than the query, whose words can't match.
        weight: The factor of the semantic weight where no passage has a word of the query.
    """

    abroad: Mask | None = None
    weight = 1.0

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
        self.cosines, self.likeness = view.nearest(matrix, query)

    @property
    def chances(self) -> NDArray[np.float64]:
        """The cosine that each document may have by chance."""
        return np.full(len(self.cosines), self.kind.chance)

    def with_feedback(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Move the query towards the mean of these documents, and return the new cosines."""
        towards = [mean for n in numbers.tolist() if (mean := self.centroid(n)) is not None]
        if not towards:
            return self.cosines
        moved = self._query + self.kind.feedback * np.mean(towards, axis=0)
        return self._view.rescore(self._matrix, unit(moved), self.cosines)

    def centroid(self, number: int) -> NDArray[np.float32] | None:
        """Return the unit centroid of a document's vectors; None if it has none."""
        rows = self._view.rows_of(number)
        return unit(self._matrix[rows].mean(axis=0)) if len(rows) else None


class JoinedComparison(Comparison):
    """One query compared by two models, each of them for the documents that it reads best."""

    def __init__(
        self,
        first: Comparison,
        second: Comparison,
        by_second: Mask,
        abroad: Mask | None = None,
    ) -> None:
        """Join two comparisons with the same corpus.

        Args:
            first: By the model that the weights and thresholds were measured with.
            second: By the multilingual model.
            by_second: The documents for which the second holds, if it has a vector of them.
            abroad: The documents in another language than the query; None if the query isn't in
                English, as the second model then holds for all, and words count less.
        """
        self.is_calibrated = first.is_calibrated
        self.kind = first.kind
        self._first, self._second, self._by_second = first, second, by_second
        self.weight = _SECOND_WEIGHT if abroad is None else first.weight
        self.abroad = None if abroad is None else abroad & np.isfinite(second.cosines)
        self.cosines = self._join(first.cosines, second.cosines)
        self.likeness = self._join(first.likeness, second.likeness)

    @property
    def chances(self) -> NDArray[np.float64]:
        """The cosine that each document may have by chance, by the model that holds for it."""
        return np.where(self._by_second, SECOND.chance, self.kind.chance)

    def with_feedback(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Move the query of each model towards these documents, and return the new cosines."""
        first, second = (each.with_feedback(numbers) for each in (self._first, self._second))
        return self._join(first, second)

    def _join(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(self._by_second & np.isfinite(second), as_first(second), first)


def as_first(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring cosines of the multilingual model to the bundled one's scale."""
    return np.minimum(_SECOND_SCALE * cosines + _SECOND_SHIFT, 1.0)


def foreign_documents(corpus: Corpus) -> Mask:
    """Return the documents in a language that the second model reads, and the first doesn't.

    Those whose language can't be told count where most others are.
    """
    foreign = corpus.holding("language", FOREIGN)
    english = corpus.holding("language", (ENGLISH,))
    if foreign.any() and (foreign & corpus.live).sum() > (english & corpus.live).sum():
        known = [language.decode() for language in corpus.terms_from("language")]
        foreign |= ~corpus.holding("language", known)
    return foreign & corpus.live


def _document_cosines(
    cosines: NDArray[np.float32], ranges: Ranges, lengths: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Combine the cosines of passages per document: of the nearest one and of the centroid."""
    nearest = cosines[ranges.starts]
    if not ranges.further:
        return nearest
    whole = nearest.copy()
    for documents, places in ranges.further:
        found = cosines[places]
        nearest[documents] = np.maximum(nearest[documents], found)
        whole[documents] += found
    whole /= lengths
    return np.float32(1 - _CENTROID) * nearest + np.float32(_CENTROID) * whole


class Ranges:
    """Where the rows of each of some documents stand: most have one, and few have many.

    Attributes:
        starts: The place of each document's first row.
        further: The documents with a second row and its place, those with a third, and so on; so
            they are combined in half the time that `reduceat` takes.
    """

    def __init__(self, starts: NDArray[np.int64], end: int) -> None:
        self.starts = starts
        counts = np.diff(np.append(starts, end))
        longer = [np.flatnonzero(counts > n) for n in range(1, int(counts.max(initial=1)))]
        self.further = [(each, starts[each] + n) for n, each in enumerate(longer, 1)]


def _norms_of_sums(vectors: NDArray[np.float32], starts: NDArray[np.int64]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.linalg.norm(np.add.reduceat(vectors, starts), axis=1)
    return np.maximum(found, _EPSILON)


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a vector of the same direction and of length 1."""
    found: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), _EPSILON)
    return found


class Centre:
    """What all vectors have in common, and vectors without it.

    A small encoder puts all that people write about their days close together, whatever it says.
    Without the mean, what is particular to a text counts (Mu and Viswanath, 2018,
    arXiv:1702.01417, whose principal components are no help here).
    """

    def __init__(
        self, matrix: Matrix, rows: NDArray[np.int64], typical: Mask, kind: VectorKind
    ) -> None:
        """Measure the mean of some rows.

        Args:
            matrix: All vectors, of length 1.
            rows: The rows of the passages that are compared.
            typical: Those of them, one at least, that make the mean.
            kind: How much of it is taken, as that of few rows is mostly chance.
        """
        count = int(typical.sum())
        share = min(kind.common, count / (count + kind.few))
        total = matrix.weighted_sum(np.bincount(rows[typical], minlength=len(matrix)))
        whole = (total / count).astype(np.float32)
        self._mean: NDArray[np.float32] = np.float32(share) * whole
        self._square = float(self._mean @ self._mean)
        self._left = float((whole - self._mean) @ self._mean)
        self._along = matrix.products(self._mean)[rows]
        squares = 1 - 2 * self._along + np.float32(self._square)
        self._lengths: NDArray[np.float32] = np.sqrt(np.maximum(squares, _EPSILON))
        self._usual_length = float(self._lengths[typical].mean())
        self._measured_whole = kind.measured_whole

    def cosines(
        self, products: NDArray[np.float32], query: NDArray[np.float32], places: _Places
    ) -> NDArray[np.float32]:
        """Return the cosines to a query, both without the mean, from its products with rows."""
        along, length = self._of(query)
        found: NDArray[np.float32] = products - self._along[places]
        found += np.float32(self._square - along)
        found /= self._lengths[places]
        found /= np.float32(length)
        return found

    def rescaled(
        self, cosines: NDArray[np.float32], query: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Bring cosines to a query back to the scale of those with the mean, in the same order."""
        if not self._measured_whole:
            return cosines
        along, length = self._of(query)
        usual = np.float32(length * self._usual_length)
        return cosines * usual + np.float32(along + self._left)

    def _of(self, query: NDArray[np.float32]) -> tuple[float, float]:
        """Return how far a query goes along the mean, and its length without it."""
        along = float(query @ self._mean)
        return along, math.sqrt(max(1 - 2 * along + self._square, _EPSILON))

    def rows(self, vectors: NDArray[np.float32], places: _Places) -> NDArray[np.float32]:
        """Return the unit vectors of the rows at these places without the mean."""
        found: NDArray[np.float32] = (vectors - self._mean) / self._lengths[places][:, None]
        return found


class DocumentRows:
    """The mapping from documents of a corpus to rows of the vector matrix."""

    def __init__(
        self,
        corpus: Corpus,
        vectors: VectorStore,
        keys: dict[int, tuple[bytes, ...]],
        kind: VectorKind = VectorKind(),
    ) -> None:
        """Find the rows.

        Args:
            corpus: The documents.
            vectors: The store of the rows.
            keys: The keys of each chunk's passages.
            kind: How they are compared.
        """
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
        owners = owners[known]
        self.documents, starts = np.unique(owners, return_index=True)
        matrix = vectors.matrix
        typical = corpus.live & ~foreign_documents(corpus) if kind.english else corpus.live
        typical = typical[owners]
        is_centred = kind.common > 0 and bool(typical.any())
        self._centre = Centre(matrix, self.rows, typical, kind) if is_centred else None
        self._ranges = Ranges(starts, len(self.rows))
        self._lengths, self._whole_lengths = self._lengths_of_sums(matrix)
        # Thresholds hold for something else than what orders documents.
        self._has_likeness = is_centred and kind.measured_whole

    def _lengths_of_sums(self, matrix: Matrix) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the norm of the sum of each document's vectors, without and with the mean.

        It is 1 for a single vector.
        """
        counts = np.diff(np.append(self._ranges.starts, len(self.rows)))
        lengths, whole = np.ones((2, len(counts)), dtype=np.float32)
        multiple = np.flatnonzero(counts > 1)
        for start in range(0, len(multiple), _BATCH):
            chosen = multiple[start : start + _BATCH]
            places, starts = self._places_of(chosen)
            found = matrix[self.rows[places]]
            whole[chosen] = lengths[chosen] = _norms_of_sums(found, starts)
            if self._centre is not None:
                lengths[chosen] = _norms_of_sums(self._centre.rows(found, places), starts)
        return lengths, whole

    def _places_of(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of some documents' rows, and the offset of each document's."""
        ends = np.append(self._ranges.starts[1:], len(self.rows))
        counts = ends[chosen] - self._ranges.starts[chosen]
        starts = np.cumsum(counts) - counts
        places = np.repeat(self._ranges.starts[chosen] - starts, counts) + np.arange(counts.sum())
        return places, starts

    def nearest(
        self, matrix: Matrix, query: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the cosine of each document to the query; NaN without a vector.

        First for their order, then as thresholds hold for it.
        """
        if not len(self.rows):
            nothing = np.full(self._corpus.size, np.nan)
            return nothing, nothing
        products = matrix.products(query)[self.rows]
        ordered = self._spread(self._of_documents(query, products))
        if not self._has_likeness:
            return ordered, ordered
        return ordered, self._spread(_document_cosines(products, self._ranges, self._whole_lengths))

    def _spread(self, found: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the figures of the documents that have a vector for all; NaN for the others."""
        spread = np.full(self._corpus.size, np.nan)
        spread[self.documents] = found
        return spread

    def _of_documents(
        self,
        query: NDArray[np.float32],
        products: NDArray[np.float32],
        chosen: NDArray[np.int64] | slice = slice(None),
        places: _Places = slice(None),
        ranges: Ranges | None = None,
    ) -> NDArray[np.float32]:
        """Return the cosines of all documents, or of the `chosen`, from products of their rows."""
        ranges = ranges or self._ranges
        if self._centre is None:
            return _document_cosines(products, ranges, self._lengths[chosen])
        cosines = self._centre.cosines(products, query, places)
        found = _document_cosines(cosines, ranges, self._lengths[chosen])
        return self._centre.rescaled(found, query)

    def rescore(
        self, matrix: Matrix, query: NDArray[np.float32], before: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compare a slightly moved query only with the documents nearest to the previous one."""
        if len(self.documents) <= _LARGE_FACTOR * _RESCORED:
            products = matrix.products(query)[self.rows]
            return self._spread(self._of_documents(query, products))
        minimum = np.partition(before[self.documents], -_RESCORED)[-_RESCORED]
        chosen = np.flatnonzero(before[self.documents] >= minimum)
        places, starts = self._places_of(chosen)
        products = matrix.products(query, self.rows[places])
        found = before.copy()
        ranges = Ranges(starts, len(places))
        found[self.documents[chosen]] = self._of_documents(query, products, chosen, places, ranges)
        return found

    def rows_of(self, number: int) -> NDArray[np.int64]:
        """Return the matrix rows of a document's passages."""
        place = int(np.searchsorted(self.documents, number))
        if place == len(self.documents) or self.documents[place] != number:
            return self.rows[:0]
        end = (
            self._ranges.starts[place + 1]
            if place + 1 < len(self._ranges.starts)
            else len(self.rows)
        )
        return self.rows[self._ranges.starts[place] : end]

    def fits(self, corpus: Corpus, count: int, *, busy: bool) -> bool:
        """Return whether this mapping is current, or while `busy` embedding, recent enough."""
        recent = time.monotonic() - self._made < _MIN_VIEW_SECONDS
        return self._corpus is corpus and (self._count == count or (busy and recent))
