"""Semantic search: a queue of models, best first, each with its stored vectors.

A search uses the first model with enough vectors, or the one with most. After the configured model
there may be the previously used one, which answers while another is prepared as well, and, if many
vectors are missing, a rough model distilled from the configured one, which embeds everything within
moments.

Beside the bundled model, which reads English, stands a multilingual one. It has a second vector of
each passage in another language that it knows and, once a question was asked in one, of all.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from kbtui.errors import KbtuiError, StorageError
from kbtui.search.embedding.embedder import PreparedEmbedder
from kbtui.search.embedding.prepared import BY_WORDS, ClosingError, explain
from kbtui.search.embedding.vectors import VectorStore
from kbtui.search.index.language import language_of
from kbtui.search.index.store import KEY_BYTES
from kbtui.search.query.fusion import (
    FOREIGN,
    ROUGH,
    SECOND,
    Comparison,
    DocumentRows,
    JoinedComparison,
    VectorKind,
    foreign_documents,
)
from kbtui.search.query.similar import Space
from kbtui.search.results import IndexStatus, Preparation, State
from kbtui.settings import BUNDLED_EMBEDDING_MODEL
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.embedding.embedder import Embedder
    from kbtui.search.embedding.prepared import EmbeddingModel
    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import ChunkRow, TreeIndex
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.parser import Query

    Keys = dict[int, tuple[bytes, ...]]
    Passage = tuple[bytes, int, int]  # key, chunk id, index within the chunk


ModelState = Literal["waiting", "preparing", "ready", "failed"]
# Small, so that neither closing nor typing is delayed.
_BATCH = 4
_STORE_BATCH = 128  # the most that a killed process loses
_SYNC_EMBED_LIMIT = 32  # passages
# A commit with a smaller share of vectors is only searched lexically.
_MIN_TREE_SHARE = 0.8
_ROUGH_FROM = 500  # passages, for which the model itself takes well over half a minute
_ROUGH_BATCH = 1024
_MIN_CORPUS_SHARE = 0.9
_PRIORITISED = 50
_SECOND_BATCH = 32
_OF_ALL = "all"  # a file that tells that the second model reads English passages as well


_DEFAULT_KIND = VectorKind()


@dataclass(eq=False)
class _ModelVectors:
    """A model in the queue with its stored vectors, one row per passage.

    Attributes:
        embedder: Embeds passages and queries.
        folder: Where the vectors are stored.
        kind: The measured parameters of this kind of vectors.
        vectors: The store of the vectors.
    """

    embedder: Embedder
    folder: Path
    kind: VectorKind
    vectors: VectorStore = field(init=False)
    _views: dict[str, DocumentRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vectors = VectorStore(self.folder, self.embedder.dimension)

    def view(
        self, corpus: Corpus, keys: Callable[[], Keys], of: str, *, busy: bool
    ) -> DocumentRows:
        """Return the mapping of a corpus's documents to vectors, cached under the name `of`."""
        found = self._views.get(of)
        if found is None or not found.fits(corpus, len(self.vectors), busy=busy):
            found = self._views[of] = DocumentRows(
                corpus, self.vectors, keys(), centred=self.kind.centred
            )
        return found

    @property
    def is_calibrated(self) -> bool:
        """Whether it is known how similar answers are: only for the bundled model."""
        return self.kind is not ROUGH and self.embedder.name == BUNDLED_EMBEDDING_MODEL

    def compare(self, text: str, view: DocumentRows) -> Comparison:
        """Compare a query with the documents of a view.

        Raises:
            KbtuiError: the model fails.
        """
        vector = self.embedder.query(text)
        matrix = self.vectors.matrix
        return Comparison(vector, view, matrix, is_calibrated=self.is_calibrated, kind=self.kind)


class Semantic:
    """The semantic part of one index.

    `load` and `embed_missing` are for a background thread, `compare` for any thread.
    """

    def __init__(
        self,
        folder: Path,
        model: EmbeddingModel,
        is_hidden: Callable[[ChunkRow], bool] = lambda _row: False,
        priority_paths: Callable[[], tuple[str, ...]] = tuple,
        start_detached: Callable[[], Preparation] | None = None,
        *,
        second: EmbeddingModel | None = None,
        second_before: EmbeddingModel | None = None,
        corpus: Callable[[], Corpus] | None = None,
    ) -> None:
        """Create it; the models aren't loaded yet.

        Args:
            folder: Contains a folder of vectors per model.
            model: The model to load.
            is_hidden: Whether a remote model must not see a passage.
            priority_paths: Returns the files to embed before all others, the last of them first.
            start_detached: Leaves work to a detached process, and returns the state of the model.
            second: The multilingual model; None if the first reads all languages, or none is there.
            second_before: The multilingual model beside the bundled one, whose vectors answer as
                well while another model takes the place of both.
            corpus: Returns the current documents, whose languages call for the second model.
        """
        self.state: ModelState = "waiting"
        self.message = ""
        self.preparation: Preparation | None = None  # as of the last search without waiting
        self.pace = Pace()
        self._folder = folder
        self._model = model
        self._is_hidden = is_hidden
        self._priority_paths = priority_paths
        self._start_detached = start_detached
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        # The configured model, once it is loaded, and a rough one.
        self._queue: list[_ModelVectors] = []
        self._previous: _ModelVectors | None = None
        self._second_of_previous: _ModelVectors | None = None
        self._second_before = second_before
        self._tried_previous = False
        self._is_retired = False
        self._priority_chunks: frozenset[int] = frozenset()  # chunks to embed first
        self._left = 0
        self._last_counted = -1  # the last chunk id when `_left` was counted
        self._keys = _KeyCache()
        self._second_model = second
        self._second: _ModelVectors | None = None
        self._second_message = ""
        self._corpus = corpus

    @property
    def name(self) -> str:
        """The model's name; empty until it is loaded."""
        return self._queue[0].embedder.name if self._queue else ""

    @property
    def remark(self) -> str:
        """A sentence about how the model runs here, mostly empty."""
        embedder = self._queue[0].embedder if self._queue else None
        return embedder.remark if isinstance(embedder, PreparedEmbedder) else ""

    @property
    def second_status(self) -> tuple[str, int, str]:
        """The multilingual model's name, empty until it is loaded, its vectors, and a problem."""
        if self._second is None:
            return "", 0, self._second_message
        return self._second.embedder.name, len(self._second.vectors), ""

    @property
    def embedded(self) -> int:
        """The number of passages with a vector."""
        return len(self._queue[0].vectors) if self._queue else 0

    @property
    def standing_in(self) -> str:
        """The name of the model that answers until the configured one is prepared, if any."""
        is_coming = not self._queue and self.state in {"waiting", "preparing"}
        return self._previous.embedder.name if is_coming and self._previous else ""

    def retire(self) -> None:
        """Embed no more, as another object takes over; what is being asked is still answered."""
        self._is_retired = True

    def load(self, stop: threading.Event) -> bool:
        """Load the model, preparing it if needed; return whether it is ready."""
        with self._loading:
            if self.state in {"ready", "failed"}:
                return self.state == "ready"
            self.state = "preparing"
            try:
                embedder = self._model.load(stop)
                self._queue = [self._open(embedder)]
            except ClosingError:
                self.state = "waiting"
                return False
            except KbtuiError as error:
                self.state, self.message = "failed", explain(error)
                return False
            self.state = "ready"
        self._load_second(stop, prepare=False)
        return True

    def _load_second(self, stop: threading.Event, *, prepare: bool) -> _ModelVectors | None:
        """Return the second model if any passage calls for it; None if it can't be had.

        Without `prepare`, only one that is prepared is loaded.
        """
        with self._loading:
            if self._second is None and self._needs_second() and self._second_model is not None:
                if not prepare and not self._second_model.preparation().is_done:
                    return None
                try:
                    self._second = self._open(self._second_model.load(stop), SECOND)
                except ClosingError:
                    return None
                except KbtuiError as error:
                    self._second_model, self._second_message = None, error.message
            return self._second

    def _needs_second(self) -> bool:
        """Return whether a passage is to be read by the second model."""
        if self._second_model is None or self._corpus is None:
            return False
        return self._reads_all or bool(foreign_documents(self._corpus()).any())

    @property
    def _reads_all(self) -> bool:
        """Whether the second model reads English passages as well."""
        return (self._second_folder / _OF_ALL).exists()

    @property
    def _second_folder(self) -> Path:
        return self._folder.with_name(f"{self._folder.name}-second")

    def _note_language(self, text: str) -> None:
        """Have the second model read all passages, if a question is in one of its languages."""
        if self._second_model is None or self._reads_all or language_of(text) not in FOREIGN:
            return
        with suppress(OSError):
            self._second_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._second_folder / _OF_ALL).touch(mode=0o600)
            self._last_counted = -1

    def _missing_second(self, store: StateStore) -> list[Passage]:
        """Return the passages that the second model has still to read, newest last."""
        if self._second is None or self._corpus is None:
            return []
        among: Container[int] | None = None
        if not self._reads_all:
            corpus = self._corpus()
            among = set(corpus.chunks[foreign_documents(corpus)].tolist())
        return self._missing(store, self._second, among)

    def _has_unprepared_second(self) -> bool:
        """Return whether the second model is called for, and has still to be prepared."""
        return (
            self._second is None
            and self._needs_second()
            and self._second_model is not None
            and self._second_model.preparation().state in {"waiting", "preparing"}
        )

    def _open(self, embedder: Embedder, kind: VectorKind = _DEFAULT_KIND) -> _ModelVectors:
        """Open the vectors of a model, or take over those of the former preparation.

        Raises:
            StorageError: they can't be stored.
        """
        try:
            folder = self._second_folder if kind is SECOND else self._folder
            place = folder / embedder.identity
            if isinstance(embedder, PreparedEmbedder) and embedder.former and not place.exists():
                with suppress(FileNotFoundError):
                    (folder / embedder.former).rename(place)
            return _ModelVectors(embedder, place, kind)
        except OSError as error:
            embedder.close()
            raise _storage_error(error) from error

    def _rough(self, stop: threading.Event) -> _ModelVectors | None:
        """Return the rough model, last in the queue, building it if needed; None if it can't be."""
        if self._queue[-1].kind is ROUGH:
            return self._queue[-1]
        rough = self._queue[0].embedder.rough(stop)
        if rough is None:
            return None
        model = self._open(rough, ROUGH)
        with self._lock:
            self._queue.append(model)
        return model

    def _find_previous(self) -> None:
        """Open the vectors of the most recently used other model, if it loads."""
        if self._tried_previous:
            return
        self._tried_previous = True
        known = {model.embedder.identity for model in self._queue}
        folders = [
            each for each in self._folder.iterdir() if each.is_dir() and each.name not in known
        ]
        for folder in sorted(folders, key=lambda each: each.stat().st_mtime, reverse=True):
            embedder = self._model.earlier(folder.name)
            if embedder is not None:
                self._previous = self._open(embedder)
                self._open_second_of(embedder)
                break

    def _open_second_of(self, previous: Embedder) -> None:
        """Open the multilingual vectors beside those of the bundled model, if there are some."""
        model = self._second_before
        if model is None or previous.name != BUNDLED_EMBEDDING_MODEL:
            return
        if self._second_folder.is_dir() and model.preparation().is_done:
            with suppress(KbtuiError, ClosingError):
                self._second_of_previous = self._open(model.load(threading.Event()), SECOND)

    def get_ready(self, store: StateStore, stop: threading.Event, *, wait: bool) -> None:
        """Load the model and embed missing passages: all if `wait`, else only a few.

        More than a few are left to a detached process.

        Raises:
            KbtuiError: the model fails.
        """
        if not wait and not self._is_prepared():
            return
        if self.load(stop) and (self.left(store) or self._has_unprepared_second()):
            missing = self.count_missing(store)
            is_little = missing <= _SYNC_EMBED_LIMIT and not self._has_unprepared_second()
            if wait or (missing and is_little):
                self.embed_missing(store, stop)
            elif not is_little and self._start_detached is not None:
                self.preparation = self._start_detached()

    def _is_prepared(self) -> bool:
        """Return whether the model is prepared; if not, start a detached process for it."""
        self.preparation = self._model.preparation()
        if not self.preparation.is_done and self._start_detached is not None:
            self.preparation = self._start_detached()
        return self.preparation.is_done

    def retry(self) -> None:
        """Let `load` try again after a failure."""
        with self._loading:
            if self.state == "failed":
                self.state, self.message = "waiting", ""

    def answer(
        self,
        query: Query,
        corpus: Corpus,
        store: StateStore,
        stop: threading.Event,
        *,
        load: bool,
        wait: bool,
    ) -> tuple[Comparison | None, str]:
        """Compare a query with a corpus; return the result, if any, and a notice or ``""``.

        With `load`, first load the model and embed a few missing passages; with `wait`, all.
        """
        if query.has_words:
            self._note_language(query.text)
        try:
            if load:
                self.get_ready(store, stop, wait=wait)
        except KbtuiError as error:
            return None, explain(error)
        compared = self.compare(query.text, corpus, store) if query.has_words else None
        return compared, notice_of(store, self)

    def compare(self, text: str, corpus: Corpus, store: StateStore) -> Comparison | None:
        """Compare a query with every document; return None without a model, or if it fails."""
        best = self._best(corpus, store) if text.strip() else None
        if best is None:
            return None
        model, view = best
        found = self._compare(model, text, view)
        if found is not None and model is not next(iter(self._queue), None):
            nearest = np.argsort(-np.nan_to_num(found.cosines, nan=-1.0), kind="stable")
            self._priority_chunks = frozenset(corpus.chunks[nearest[:_PRIORITISED]].tolist())
        second = self._second_beside(model)
        return self._join(found, second, text, corpus, lambda: self._keys.read(store), "now")

    def _second_beside(self, model: _ModelVectors) -> _ModelVectors | None:
        return self._second_of_previous if model is self._previous else self._second

    def _join(
        self,
        first: Comparison | None,
        second: _ModelVectors | None,
        text: str,
        corpus: Corpus,
        keys: Callable[[], Keys],
        of: str,
    ) -> Comparison | None:
        """Join a comparison with that of the second model, if it has vectors of the corpus."""
        if first is None or second is None:
            return first
        with self._lock:
            view = second.view(corpus, keys, of, busy=self._left != 0)
        found = self._compare(second, text, view) if len(view.documents) else None
        if found is None:
            return first
        foreign, language = foreign_documents(corpus), language_of(text)
        is_foreign = language in FOREIGN
        if not language:  # a few words: probably in the language of most passages
            is_foreign = 2 * int(foreign.sum()) > corpus.count
        if not is_foreign:
            return JoinedComparison(first, found, foreign, abroad=foreign)
        return JoinedComparison(first, found, corpus.live)

    def _best(self, corpus: Corpus, store: StateStore) -> tuple[_ModelVectors, DocumentRows] | None:
        """Return the first model with enough vectors of a corpus, or the one with most, if any."""
        with self._lock:
            read: list[tuple[_ModelVectors, DocumentRows]] = []
            for model in self._candidates():
                view = model.view(
                    corpus, lambda: self._keys.read(store), "now", busy=self.left(store) != 0
                )
                if len(view.documents) >= _MIN_CORPUS_SHARE * corpus.count:
                    return model, view
                read.append((model, view))
            return max(read, key=lambda each: len(each[1].documents), default=None)

    def _candidates(self) -> Iterator[_ModelVectors]:
        """Yield the queue; after the first model, a previously used one.

        That comes first while the configured model is being prepared, but not while it is loaded.
        """
        yield from self._queue[:1]
        if self._queue or (self.state != "failed" and not self._model.preparation().is_done):
            with suppress(OSError, StorageError):
                self._find_previous()
            if self._previous is not None:
                yield self._previous
        yield from self._queue[1:]

    def spaces(self, corpus: Corpus, store: StateStore) -> list[Space]:
        """Return the vectors to compare notes by: the best model's, and the multilingual one's."""
        best = self._best(corpus, store)
        if best is None:
            return []
        model, view = best
        found = [Space(model.embedder, view, model.vectors.matrix, model.is_calibrated)]
        second = self._second_beside(model)
        if second is not None:
            with self._lock:
                view = second.view(
                    corpus, lambda: self._keys.read(store), "now", busy=self._left != 0
                )
            found.append(Space(second.embedder, view, second.vectors.matrix, is_second=True))
        return found

    def compare_tree(
        self, text: str, tree: TreeIndex, stop: threading.Event, *, load: bool, wait: bool
    ) -> tuple[Comparison | None, str]:
        """Compare a query with the files of a commit, using existing vectors only.

        Args:
            text: The query.
            tree: The files of the commit.
            stop: Cancels loading.
            load: Load the model, if it is prepared.
            wait: Prepare it as well.

        Returns:
            The comparison, or None if too few passages have vectors; and a notice or ``""``.
        """
        if load and (wait or self._is_prepared()):
            self.load(stop)
        if not self._queue:
            return None, self.message or _preparation_notice(self.preparation)
        best = self._queue[0]

        def keys() -> Keys:
            best.vectors.refresh()
            return {number: _split_keys(held) for number, held in tree.passage_keys()}

        with self._lock:
            view = best.view(tree.corpus, keys, "then", busy=False)
        if len(view.documents) < _MIN_TREE_SHARE * tree.corpus.count or not text.strip():
            return None, ""

        def second_keys() -> Keys:
            if self._second is not None:
                self._second.vectors.refresh()
            return {number: _split_keys(held) for number, held in tree.passage_keys()}

        found = self._compare(best, text, view)
        joined = self._join(found, self._second, text, tree.corpus, second_keys, "then")
        return joined, self.message

    def _compare(self, model: _ModelVectors, text: str, view: DocumentRows) -> Comparison | None:
        try:
            found = model.compare(text, view)
        except KbtuiError as error:
            self.message = explain(error)
            return None
        self.message = ""
        return found

    def left(self, store: StateStore) -> int:
        """Return the number of passages without a vector; -1 if chunks were added since."""
        return self._left if store.last_chunk() == self._last_counted else -1

    def count_missing(self, store: StateStore) -> int:
        """Count the passages without a vector."""
        first, second = self._count(store)
        return len(first) + len(second)

    def _count(self, store: StateStore) -> tuple[list[Passage], list[Passage]]:
        """Return what the first and the second model have still to read, and count it."""
        last = store.last_chunk()
        first = self._missing(store, self._queue[0]) if self._queue else []
        second = self._missing_second(store)
        self._left, self._last_counted = len(first) + len(second), last
        return first, second

    def embed_missing(
        self,
        store: StateStore,
        stop: threading.Event,
        progress: Callable[[int, int], None] = lambda _done, _left: None,
        *,
        roughly_first: bool = False,
        seconds: float = math.inf,
    ) -> int:
        """Embed passages without a vector for at most `seconds`, and return their number.

        Open and linked files come first, then chunks near to recent queries, then the newest. With
        `roughly_first`, the rough model embeds all of them before, if there are many.

        Raises:
            KbtuiError: the model failed, or there is no room; finished batches are stored.
        """
        if not self._queue:
            return 0
        best, deadline = self._queue[0], time.monotonic() + seconds
        best.vectors.refresh()
        second = self._load_second(stop, prepare=True)
        if second is not None:
            second.vectors.refresh()
        waiting, foreign = self._count(store)

        def should_continue(done: int) -> bool:
            self._left, self.message = len(waiting) + len(foreign), ""
            progress(done, self._left)
            is_over = stop.is_set() or self._is_retired
            return not is_over and time.monotonic() < deadline

        try:
            if roughly_first and len(waiting) >= _ROUGH_FROM and (rough := self._rough(stop)):
                missing = self._missing(store, rough)
                self._embed_all(rough, missing, store, lambda _: not stop.is_set(), _ROUGH_BATCH)
            done = 0
            if second is not None:
                done = self._embed_all(second, foreign, store, should_continue, _SECOND_BATCH)
            done += self._embed_all(best, waiting, store, should_continue, _BATCH)
        except KbtuiError as error:
            self.message, self._last_counted = explain(error), -1
            raise
        finally:
            self._left = len(waiting) + len(foreign)
        if not waiting:
            self._close_others()
            with suppress(OSError):  # compaction is optional
                self.tidy(store)
        return done

    def _embed_all(
        self,
        model: _ModelVectors,
        waiting: list[Passage],
        store: StateStore,
        should_continue: Callable[[int], bool],
        size: int,
    ) -> int:
        """Embed passages in batches, removing them from `waiting`, and return their number.

        Raises:
            KbtuiError: the model failed, or there is no room; finished batches are stored.
        """
        done, priority_paths = 0, tuple[str, ...]()
        pending: list[tuple[bytes, NDArray[np.float32]]] = []
        try:
            while waiting and should_continue(done):
                priorities, self._priority_chunks = (
                    dict.fromkeys(self._priority_chunks, 1),
                    frozenset(),
                )
                if self._priority_paths() != priority_paths:
                    priority_paths = self._priority_paths()
                    for rank, path in enumerate(priority_paths, 2):
                        priorities |= dict.fromkeys(store.chunks_in(path), rank)
                if priorities:
                    waiting.sort(key=lambda each: priorities.get(each[1], 0))
                batch = waiting[-size:]
                del waiting[-size:]
                vectors = self._embed_batch(batch, store, model)
                pending += vectors
                done += len(vectors)
                if len(pending) >= _STORE_BATCH:
                    _store(model, pending)
        finally:
            _store(model, pending)
        return done

    def _embed_batch(
        self, batch: list[Passage], store: StateStore, model: _ModelVectors
    ) -> list[tuple[bytes, NDArray[np.float32]]]:
        rows = store.rows([chunk for _, chunk, _ in batch], passages=True)
        batch = self._sendable(batch, rows, model)
        found = [
            (key, rows[chunk].chunk.passage_texts()[n]) for key, chunk, n in batch if chunk in rows
        ]
        vectors = model.embedder.documents([text for _, text in found]) if found else ()
        return [(key, vector) for (key, _), vector in zip(found, vectors, strict=True)]

    def _missing(
        self, store: StateStore, model: _ModelVectors, among: Container[int] | None = None
    ) -> list[Passage]:
        """Return the passages without a vector, newest last; only those of the chunks `among`."""
        found: dict[bytes, Passage] = {}
        is_local = model.embedder.is_local
        for chunk, keys, hidden in store.passage_keys():
            if among is not None and chunk not in among:
                continue
            for n, key in enumerate(_split_keys(keys) if is_local or not hidden else ()):
                if key not in model.vectors:
                    found[key] = (key, chunk, n)
        waiting = list(found.values())
        if is_local:
            return waiting
        rows = store.rows(sorted({chunk for _, chunk, _ in waiting}))
        return self._sendable(waiting, rows, model)

    def _sendable(
        self, waiting: list[Passage], rows: Mapping[int, ChunkRow], model: _ModelVectors
    ) -> list[Passage]:
        """Drop passages that a remote model must not see; a local one may see all."""
        if model.embedder.is_local:
            return waiting
        files: dict[str, bool] = {}
        for _, chunk, _ in waiting:
            if chunk in rows and rows[chunk].path not in files:
                files[rows[chunk].path] = self._is_hidden(rows[chunk])
        return [item for item in waiting if item[1] in rows and not files[rows[item[1]].path]]

    def _close_others(self) -> None:
        """Close all models but the configured ones, and delete rough vectors."""
        with self._lock:
            others = [*self._queue[1:], *filter(None, [self._previous, self._second_of_previous])]
            self._queue[1:] = []
            self._previous = self._second_of_previous = None
        for model in others:
            model.embedder.close()
            if model.kind is ROUGH:
                shutil.rmtree(model.folder, ignore_errors=True)

    def tidy(self, store: StateStore) -> bool:
        """Merge the vector files if there are many; return whether there were."""
        models = (*self._queue[:1], *filter(None, [self._second]))
        scattered = [model.vectors for model in models if model.vectors.is_scattered]
        if not scattered:
            return False
        in_use = {key for _, keys, _ in store.passage_keys() for key in _split_keys(keys)}
        return sum(vectors.compact(in_use) for vectors in scattered) > 0

    def close(self) -> None:
        """Release the models."""
        beside = (self._second, self._previous, self._second_of_previous)
        models, self._queue = [*self._queue, *filter(None, beside)], []
        self._second = self._previous = self._second_of_previous = None
        for model in models:
            model.embedder.close()


class _KeyCache:
    """A cache of every chunk's passage keys; ids only grow, so only new ones are read."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[bytes, ...]] = {}
        self._store: StateStore | None = None

    def read(self, store: StateStore) -> dict[int, tuple[bytes, ...]]:
        if self._store is not store:
            self._keys, self._store = {}, store
        after = max(self._keys, default=0)
        for chunk, keys, _ in store.passage_keys(after):
            self._keys[chunk] = _split_keys(keys)
        return self._keys


def _store(model: _ModelVectors, pending: list[tuple[bytes, NDArray[np.float32]]]) -> None:
    """Store the pending vectors, and empty the list.

    Raises:
        StorageError: there is no room.
    """
    if pending:
        keys, vectors = [key for key, _ in pending], np.stack([vector for _, vector in pending])
        pending.clear()
        try:
            model.vectors.add(keys, vectors)
        except OSError as error:
            raise _storage_error(error) from error


def _storage_error(error: OSError) -> StorageError:
    return StorageError(
        f"What was read for meaning can't be kept: {error.strerror or error}",
        "Make room on the disk, or let the cache folder be written.",
    )


def _split_keys(keys: bytes) -> tuple[bytes, ...]:
    return tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))


_BY_WORDS_MEANWHILE = "searching by words meanwhile"
PREPARING = f"Preparing the embedding model, once; {_BY_WORDS_MEANWHILE}."
UNPREPARED = "The embedding model isn't prepared."
PREPARING_DETACHED = (
    f"Preparing the embedding model in the background, once; {_BY_WORDS_MEANWHILE}."
)
_MINUTE = 60
_HOUR = 3_600
_MIN_SECONDS = 3.0


class Pace:
    """Estimates the remaining time of a task from its progress so far."""

    def __init__(self) -> None:
        self._started = 0.0
        self._first_left = 0

    def left(self, left: int) -> str:
        """Format the estimated time for `left` more items; empty while it is unknown."""
        now = time.monotonic()
        if not self._started or left > self._first_left:
            self._started, self._first_left = now, left
        done, passed = self._first_left - left, now - self._started
        if not left or not done or passed < _MIN_SECONDS:
            return ""
        seconds = left * passed / done
        if seconds < _MINUTE:
            return "under a minute left"
        if seconds < _HOUR:
            return f"about {round(seconds / _MINUTE)} min left"
        return f"about {counted(round(seconds / _HOUR), 'hour')} left"


def status_of(
    store: StateStore, semantic: Semantic | None, activity: str, *, synced: bool
) -> IndexStatus:
    """Return the current status; `semantic` is None if semantic search is off."""
    state, message = _state(store, semantic, activity, synced=synced)
    embedded = semantic.embedded if semantic else 0
    name = semantic.name if semantic else ""
    left = max(0, semantic.left(store)) if semantic else 0
    remark = semantic.remark if semantic else ""
    return IndexStatus(state, *store.counts(), embedded, message, name, left, remark=remark)


def notice_of(store: StateStore, semantic: Semantic) -> str:
    """Return the notice for a search while semantic search is incomplete, or ``""``."""
    if semantic.message:
        return semantic.message
    if semantic.state != "ready":
        notice = _preparation_notice(semantic.preparation)
        return _with_name(notice, semantic.standing_in)
    if not semantic.left(store):
        return ""
    if semantic.preparation is not None and semantic.preparation.why:
        return f"{_percentage(store, semantic)} % is read for meaning. {semantic.preparation.why}"
    return f"{_progress_message(store, semantic)}."


def _with_name(notice: str, model: str) -> str:
    """Name the model that answers meanwhile, if any, in place of words."""
    if not model:
        return notice
    return notice.replace(_BY_WORDS_MEANWHILE, f"{model} answers meanwhile").replace(
        BY_WORDS, f"{model} answers until then."
    )


def _preparation_notice(found: Preparation | None) -> str:
    """Return the notice while the model isn't loaded; None means this process prepares it."""
    if found is None:
        return PREPARING
    if found.state == "preparing":
        return PREPARING_DETACHED
    return f"{found.why or UNPREPARED} {BY_WORDS}"


def _state(
    store: StateStore, semantic: Semantic | None, activity: str, *, synced: bool
) -> tuple[State, str]:
    if activity or not synced:
        return "syncing", activity
    if semantic is None or semantic.state == "failed":
        return "lexical-only", semantic.message if semantic else ""
    if semantic.state != "ready":
        return "preparing", _with_name(PREPARING, semantic.standing_in)
    if semantic.left(store):
        return "embedding", _progress_message(store, semantic)
    return "ready", ""


def _progress_message(store: StateStore, semantic: Semantic) -> str:
    left = semantic.left(store)
    if left < 0:
        return "Reading for meaning"
    done = f"Reading for meaning: {_percentage(store, semantic)} %"
    estimate = semantic.pace.left(left)
    return f"{done}, {estimate}" if estimate else done


def _percentage(store: StateStore, semantic: Semantic) -> int:
    """Return the percentage of passages with a vector."""
    return 100 * semantic.embedded // max(1, semantic.embedded + semantic.left(store))
