"""The cosines of one query with every document of a corpus, by the vectors of its passages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbtui.search.embedding.vectors import Matrix, VectorStore
    from kbtui.search.index.bm25f import Corpus

# How far a query moves towards what answers it best; of 0 to 0.5 this measured best.
_FEEDBACK = 0.3
# How much the direction of a whole document counts beside that of its nearest passage.
_WHOLE = 0.3
# In a large corpus the moved query is compared with the nearest documents only: picking them out
# costs more than it saves in a small one.
_COMPARED_AGAIN = 4000
_FEW = 5
_TINY = 1e-9
_LEAST_SECONDS_BETWEEN_VIEWS = 1.0


class Comparison:
    """One query and the vectors of a corpus; see `fusion.Meaning`."""

    def __init__(
        self, query: NDArray[np.float32], view: View, matrix: Matrix, *, is_calibrated: bool
    ) -> None:
        self.is_calibrated = is_calibrated
        self._query = query
        self._view = view
        self._matrix = matrix
        self.cosines = view.nearest(matrix, query)

    def nearer(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Move the query towards the mean of these documents, and compare again."""
        towards = [mean for n in numbers.tolist() if (mean := self.direction(n)) is not None]
        if not towards:
            return self.cosines
        moved = self._query + _FEEDBACK * np.mean(towards, axis=0)
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


def _products(matrix: Matrix, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of a matrix and a vector, on one thread.

    BLAS would use all cores and take six times as long for it (21 ms to 1 for 14,000 rows), the
    more so while others are busy.
    """
    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return found


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), _TINY)
    return found


class View:
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
        for place in np.flatnonzero(counts > 1).tolist():
            rows = self.rows[self._starts[place] : self._starts[place] + counts[place]]
            lengths[place] = max(float(np.linalg.norm(matrix[rows].sum(axis=0))), _TINY)
        return lengths

    def nearest(self, matrix: Matrix, query: NDArray[np.float32]) -> NDArray[np.float64]:
        """How near each document is to the query; NaN without a vector."""
        found = np.full(self._corpus.size, np.nan)
        if len(self.rows):
            cosines = _products(matrix, query)[self.rows]
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
        ends = np.append(self._starts[1:], len(self.rows))
        counts = ends[chosen] - self._starts[chosen]
        starts = np.cumsum(counts) - counts
        places = np.repeat(self._starts[chosen] - starts, counts) + np.arange(counts.sum())
        cosines = _products(matrix[self.rows[places]], query)
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
