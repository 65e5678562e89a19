"""Search by meaning: the model, the vectors of all passages, and the cosines of one query."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Literal

import numpy as np

from kbtui.errors import KbtuiError, StorageError
from kbtui.search.prepared import StoppedError, explain
from kbtui.search.progress import Pace
from kbtui.search.store import KEY_BYTES
from kbtui.search.vectors import VectorStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.bm25f import Corpus
    from kbtui.search.embedder import Embedder
    from kbtui.search.prepared import EmbeddingModel
    from kbtui.search.store import StateStore
    from kbtui.search.vectors import Matrix

State = Literal["waiting", "preparing", "ready", "failed"]
# Small, so that closing doesn't wait long; what is stored at once is what a kill can lose.
_BATCH = 16
_STORED_AT_ONCE = 128
_A_MOMENT = 32  # passages
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


class Semantic:
    """The embedding side of one index.

    `load` and `embed_missing` are for a background thread; `compare` is for any.
    """

    def __init__(
        self,
        folder: Path,
        model: EmbeddingModel,
        is_private: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        """Take the folder of the vectors, and the model to load."""
        self.state: State = "waiting"
        self.message = ""
        self.pace = Pace()
        self._folder = folder
        self._model = model
        self._is_private = is_private
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._embedder: Embedder | None = None
        self._vectors: VectorStore | None = None
        self._view: _View | None = None
        self._left = 0
        self._counted = -1  # the last chunk that was looked at for vectors
        self._keys = _KeysOfChunks()

    @property
    def name(self) -> str:
        """The model's name, once it is loaded."""
        return self._embedder.name if self._embedder else ""

    @property
    def embedded(self) -> int:
        """How many passages have a vector."""
        return len(self._vectors) if self._vectors else 0

    def load(self, stop: threading.Event) -> bool:
        """Load the model, preparing it if needed; tells whether it is there now."""
        with self._loading:
            if self.state in {"ready", "failed"}:
                return self.state == "ready"
            self.state = "preparing"
            try:
                embedder = self._model.load(stop)
                self._vectors = self._open_vectors(embedder)
            except StoppedError:
                self.state = "waiting"
                return False
            except KbtuiError as error:
                self.state, self.message = "failed", explain(error)
                return False
            self._embedder = embedder
            self.state = "ready"
            return True

    def _open_vectors(self, embedder: Embedder) -> VectorStore:
        try:
            return VectorStore(self._folder / embedder.identity, embedder.dimension)
        except OSError as error:
            embedder.close()
            raise _not_kept(error) from error

    def get_ready(self, store: StateStore, stop: threading.Event, *, wait: bool) -> None:
        """Load the model and embed what is missing: all of it, or what takes a moment only.

        Raises:
            KbtuiError: the model isn't there, or fails.
        """
        if not wait and not self._model.is_prepared():
            return
        if self.load(stop) and self.left(store):
            missing = self.count_missing(store)
            if missing and (wait or missing <= _A_MOMENT):
                self.embed_missing(store, stop)

    def retry(self) -> None:
        """Let `load` try again after a failure."""
        with self._loading:
            if self.state == "failed":
                self.state, self.message = "waiting", ""

    def compare(self, text: str, corpus: Corpus, store: StateStore) -> Comparison | None:
        """Compare a query with every document; None without a model, or where it fails."""
        if self._embedder is None or self._vectors is None or not text.strip():
            return None
        try:
            vector = self._embedder.query(text)
        except KbtuiError as error:
            self.message = explain(error)
            return None
        self.message = ""
        return Comparison(vector, self._view_of(corpus, store), self._vectors.matrix)

    def left(self, store: StateStore) -> int:
        """How many passages still have no vector; -1 while nobody has counted the newest."""
        return self._left if store.last_chunk() == self._counted else -1

    def count_missing(self, store: StateStore) -> int:
        """Count the passages that still have no vector."""
        return len(self._count(store))

    def _count(self, store: StateStore) -> list[tuple[bytes, int, int]]:
        last = store.last_chunk()
        waiting = self._missing(store)
        self._left, self._counted = len(waiting), last
        return waiting

    def embed_missing(
        self,
        store: StateStore,
        stop: threading.Event,
        progress: Callable[[int, int], None] = lambda _done, _left: None,
    ) -> int:
        """Embed every passage that has no vector; tells how many it did.

        Raises:
            KbtuiError: the model failed (a remote one may), what is done is stored; or there is no
                room for it.
        """
        if self._embedder is None or self._vectors is None:
            return 0
        self._vectors.refresh()
        waiting = self._count(store)
        done = 0
        pending: list[tuple[bytes, NDArray[np.float32]]] = []
        try:
            while waiting and not stop.is_set():
                batch = waiting[-_BATCH:]
                del waiting[-_BATCH:]
                pending += self._embed(batch, store)
                if len(pending) >= _STORED_AT_ONCE:
                    done += self._store(pending)
                self._left, self.message = len(waiting) + len(pending), ""
                progress(done + len(pending), len(waiting))
            done += self._store(pending)
        except KbtuiError as error:
            self.message, self._counted = explain(error), -1
            raise
        finally:
            done += self._store(pending)
            self._left = len(waiting)
        return done

    def tidy(self, store: StateStore) -> bool:
        """Write the vectors in fewer files, if there are many."""
        if self._vectors is None:
            return False
        return self._vectors.compact(
            {key for _, keys, _ in store.passage_keys() for key in _split(keys)}
        )

    def close(self) -> None:
        """Let go of the model."""
        embedder, self._embedder = self._embedder, None
        if embedder is not None:
            embedder.close()

    def _embed(
        self, batch: list[tuple[bytes, int, int]], store: StateStore
    ) -> list[tuple[bytes, NDArray[np.float32]]]:
        rows = store.rows([chunk for _, chunk, _ in batch])
        found = [(key, rows[chunk].passage_texts()[n]) for key, chunk, n in batch if chunk in rows]
        if not found or self._embedder is None:
            return []
        vectors = self._embedder.documents([text for _, text in found])
        return [(key, vectors[i]) for i, (key, _) in enumerate(found)]

    def _store(self, pending: list[tuple[bytes, NDArray[np.float32]]]) -> int:
        count = len(pending)
        if pending and self._vectors is not None:
            keys, vectors = [key for key, _ in pending], np.stack([v for _, v in pending])
            pending.clear()
            try:
                self._vectors.add(keys, vectors)
            except OSError as error:
                raise _not_kept(error) from error
        return count

    def _missing(self, store: StateStore) -> list[tuple[bytes, int, int]]:
        """Passages without a vector, as ``(key, chunk, number)``; the newest come last."""
        if self._vectors is None or self._embedder is None:
            return []
        found: dict[bytes, tuple[bytes, int, int]] = {}
        for chunk, keys, private in store.passage_keys():
            if private and not self._embedder.is_local:
                continue
            for n, key in enumerate(_split(keys)):
                if key not in self._vectors:
                    found[key] = (key, chunk, n)
        waiting = list(found.values())
        if not self._embedder.is_local:
            waiting = self._without_private(waiting, store)
        return waiting

    def _without_private(
        self, waiting: list[tuple[bytes, int, int]], store: StateStore
    ) -> list[tuple[bytes, int, int]]:
        rows = store.rows(sorted({chunk for _, chunk, _ in waiting}))
        return [
            item for item in waiting if item[1] in rows and not self._is_private(rows[item[1]].path)
        ]

    def _view_of(self, corpus: Corpus, store: StateStore) -> _View:
        with self._lock:
            vectors = self._vectors
            assert vectors is not None  # noqa: S101 — told to mypy; `scores` has looked
            view = self._view
            if view is None or not view.fits(corpus, len(vectors), busy=self.left(store) != 0):
                view = self._view = _View(corpus, vectors, self._keys.read(store))
            return view


class Comparison:
    """One query and the vectors of a corpus; see `fusion.Meaning`."""

    def __init__(self, query: NDArray[np.float32], view: _View, matrix: Matrix) -> None:
        self._query = query
        self._view = view
        self._matrix = matrix
        self.cosines = view.nearest(matrix, query)

    def nearer(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Move the query towards the mean of these documents, and compare again."""
        towards = [mean for n in numbers.tolist() if (mean := self._mean_of(n)) is not None]
        if not towards:
            return self.cosines
        moved = self._query + _FEEDBACK * np.mean(towards, axis=0)
        return self._view.nearest_again(self._matrix, _unit(moved), self.cosines)

    def _mean_of(self, number: int) -> NDArray[np.float32] | None:
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


class _KeysOfChunks:
    """The passage keys of every chunk; ids only grow, so only new ones are read."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[bytes, ...]] = {}
        self._store: StateStore | None = None

    def read(self, store: StateStore) -> dict[int, tuple[bytes, ...]]:
        if self._store is not store:
            self._keys, self._store = {}, store
        after = max(self._keys, default=0)
        for chunk, keys, _ in store.passage_keys(after):
            self._keys[chunk] = _split(keys)
        return self._keys


class _View:
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
        """Whether this is still the view to use; while vectors are being made, for a second."""
        recent = time.monotonic() - self._made < _LEAST_SECONDS_BETWEEN_VIEWS
        return self._corpus is corpus and (self._count == count or (busy and recent))


def _not_kept(error: OSError) -> StorageError:
    return StorageError(
        f"What was read for meaning can't be kept: {error.strerror or error}",
        "Make room on the disk, or let the cache folder be written.",
    )


def _split(keys: bytes) -> tuple[bytes, ...]:
    return tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))
