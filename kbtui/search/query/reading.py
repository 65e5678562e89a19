"""The queue of models that read a workspace for meaning: a row each, and one loop that reads.

A row is a model, what it reads, and how far it is. In the order in which they answer, there are

- the configured model, which reads all passages;
- the one that was used before, which reads no more, and answers until the first has read enough;
- a rough one, distilled from the first if many vectors are missing, which reads within moments.

Beside the bundled model, which reads English, stands a multilingual one. It has a second vector of
each passage in another language that it knows and, once a question was asked in one, of all.

Where a model runs is its embedder's matter. What a command has no time for is left to a detached
process, which has a queue of its own.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from kbtui.errors import KbtuiError, StorageError
from kbtui.search.embedding.child_embedder import UnfitError
from kbtui.search.embedding.embedder import CanBeRough, PreparedEmbedder
from kbtui.search.embedding.prepared import ClosingError
from kbtui.search.embedding.vectors import VectorStore
from kbtui.search.index.language import language_of
from kbtui.search.index.store import KEY_BYTES
from kbtui.search.query.fusion import (
    BUNDLED,
    FOREIGN,
    ROUGH,
    SECOND,
    DocumentRows,
    VectorKind,
    foreign_documents,
)
from kbtui.search.results import Preparation
from kbtui.settings import BUNDLED_EMBEDDING_MODEL
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.embedding.embedder import Embedder
    from kbtui.search.embedding.prepared import EmbeddingModel
    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import ChunkRow
    from kbtui.search.index.store import StateStore

    Keys = dict[int, tuple[bytes, ...]]
    Passage = tuple[bytes, int, int]  # key, chunk id, index within the chunk
    Vector = tuple[bytes, NDArray[np.float32]]  # with its key


RowState = Literal["waiting", "preparing", "ready", "failed", "closed"]
# Small, so that neither closing nor typing is delayed.
_BATCH = 4
_STORE_BATCH = 128  # the most that a killed process loses
_SYNC_EMBED_LIMIT = 32  # passages
_ROUGH_FROM = 500  # passages, for which the model itself takes well over half a minute
_ROUGH_BATCH = 1024
_SECOND_BATCH = 32
_MINUTE = 60
_HOUR = 3_600
_MIN_SECONDS = 3.0
_OF_ALL = "all"  # a file that tells that the multilingual model reads English passages as well


class Documents(NamedTuple):
    """What questions are compared with: a corpus, its passages' keys, and a name to cache by."""

    corpus: Corpus
    keys: Callable[[], Keys]
    name: str


@dataclass(eq=False)
class Row:
    """A row of the queue: a model, what it reads, and how far it is.

    Attributes:
        folder: Where models of this kind have a folder of vectors each.
        make: Loads the model, preparing it if needed; returns None if there is no such model.
        preparation: Returns whether that is quick.
        kind: The measured parameters of this kind of vectors; those of the bundled model follow
            from its name.
        batch: The number of passages that it reads at once.
        state: How far the model is.
        message: Why it can't be had, or what failed when it read.
        left: The passages that it has still to read, as of the last batch.
        embedder: The model; only once it is ready.
        vectors: Its vectors, one row per passage; only once it is ready.
    """

    folder: Path
    make: Callable[[threading.Event], Embedder | None] = lambda _stop: None
    preparation: Callable[[], Preparation] = lambda: Preparation("prepared")
    kind: VectorKind = field(default_factory=VectorKind)
    batch: int = 0
    state: RowState = "waiting"
    message: str = ""
    left: int = 0
    embedder: Embedder = field(init=False)
    vectors: VectorStore = field(init=False)
    _is_unfit: bool = False
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _views: dict[str, DocumentRows] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded, and its vectors are open."""
        return self.state == "ready"

    @property
    def is_to_come(self) -> bool:
        """Whether the model has still to be loaded, and nothing is known to prevent it."""
        return self.state in {"waiting", "preparing"}

    @property
    def name(self) -> str:
        """The model's name; empty until it is loaded."""
        return self.embedder.name if self.is_ready else ""

    @property
    def remark(self) -> str:
        """A sentence about how the model runs here, mostly empty."""
        embedder = self.embedder if self.is_ready else None
        return embedder.remark if isinstance(embedder, PreparedEmbedder) else ""

    @property
    def embedded(self) -> int:
        """The number of passages with a vector, as far as they are open."""
        return len(self.vectors) if self.is_ready else 0

    @property
    def is_calibrated(self) -> bool:
        """Whether it is known how similar answers are: only for the bundled model."""
        return self.kind is not ROUGH and self.embedder.name == BUNDLED_EMBEDDING_MODEL

    def load(self, stop: threading.Event) -> bool:
        """Load the model, preparing it if needed; return whether it is ready."""
        with self._loading:
            if self.state == "waiting":
                self.state = "preparing"
                try:
                    embedder = self.make(stop)
                    if embedder is not None:
                        self._open(embedder)
                    self.state = "failed" if embedder is None else "ready"
                except ClosingError:
                    self.state = "waiting"
                except KbtuiError as error:
                    self.state, self.message = "failed", error.message
                    self._is_unfit = isinstance(error, UnfitError)
            return self.is_ready

    def _open(self, embedder: Embedder) -> None:
        """Open the vectors of a model, or take over those of the former preparation.

        Raises:
            StorageError: they can't be stored.
        """
        place = self.folder / embedder.identity
        try:
            if isinstance(embedder, PreparedEmbedder) and embedder.former and not place.exists():
                with suppress(FileNotFoundError):
                    (self.folder / embedder.former).rename(place)
            self.vectors = VectorStore(place, embedder.dimension)
        except OSError as error:
            embedder.close()
            raise _storage_error(error) from error
        self.embedder = embedder
        if self.is_calibrated and self.kind == VectorKind():
            self.kind = BUNDLED

    def retry(self) -> None:
        """Let `load` try again after a failure, unless this processor can't run the model."""
        with self._loading:
            if self.state == "failed" and not self._is_unfit:
                self.state, self.message = "waiting", ""

    def view(self, of: Documents, *, busy: bool) -> DocumentRows:
        """Return the mapping of documents to vectors; it is cached."""
        found = self._views.get(of.name)
        if found is None or not found.fits(of.corpus, len(self.vectors), busy=busy):
            self.vectors.refresh()
            found = self._views[of.name] = DocumentRows(
                of.corpus, self.vectors, of.keys(), self.kind
            )
        return found

    def add(self, found: list[Vector]) -> None:
        """Store vectors, and empty the list.

        Raises:
            StorageError: there is no room.
        """
        if found:
            keys, vectors = [key for key, _ in found], np.stack([vector for _, vector in found])
            found.clear()
            try:
                self.vectors.add(keys, vectors)
            except OSError as error:
                raise _storage_error(error) from error

    def close(self) -> None:
        """Release the model, for good."""
        if self.is_ready:
            self.embedder.close()
        self.state = "closed"


class ReadingQueue:
    """The rows of one index, and their work.

    `load` and `read` are for a background thread, the rest is for any thread.
    """

    def __init__(
        self,
        folder: Path,
        model: EmbeddingModel,
        stop: threading.Event,
        corpus: Callable[[], Corpus],
        *,
        second: EmbeddingModel | None = None,
        second_before: EmbeddingModel | None = None,
        is_hidden: Callable[[ChunkRow], bool] = lambda _row: False,
        priority_paths: Callable[[], tuple[str, ...]] = tuple,
        start_detached: Callable[[], Preparation] | None = None,
    ) -> None:
        """Create it; the models aren't loaded yet.

        Args:
            folder: Contains a folder of vectors per model.
            model: The configured model.
            stop: Set when the program is closing.
            corpus: Returns the current documents, whose languages call for the second model.
            second: The multilingual model; None if the first reads all languages, or none is there.
            second_before: The multilingual model beside the bundled one, whose vectors answer as
                well while another model takes the place of both.
            is_hidden: Whether a remote model must not see a passage.
            priority_paths: Returns the files to embed before all others, the last of them first.
            start_detached: Leaves work to a detached process, and returns the state of the model.
        """
        self.failure = ""  # of the model that was asked last
        self.pace = Pace()
        self.preparation: Preparation | None = None  # as of the last search without waiting
        self._folder = folder
        self._second_folder = folder.with_name(f"{folder.name}-second")
        self._model = model
        self._stop = stop
        self._corpus = corpus
        self._is_hidden = is_hidden
        self._priority_paths = priority_paths
        self._start_detached = start_detached
        self._priority_chunks: frozenset[int] = frozenset()  # chunks to embed first
        self._last_counted = -1  # the last chunk id when the rows' `left` was counted
        self.first = Row(folder, model.load, model.preparation, batch=_BATCH)
        self.before = Row(folder, self._load_before)
        self.rough = self._rough()
        self.second, self.second_before = map(self._multilingual, (second, second_before))

    def _rough(self) -> Row:
        return Row(self._folder, kind=ROUGH, batch=_ROUGH_BATCH)

    def _load_rough(self, goes_on: Callable[[], bool]) -> bool:
        """Load the rough model, or distil it, stepping aside as in reading; True if it is ready."""
        self.rough.make = partial(self._distil, goes_on)
        return self.rough.load(self._stop)

    def _distil(self, goes_on: Callable[[], bool], stop: threading.Event) -> Embedder | None:
        embedder = self.first.embedder
        if not isinstance(embedder, CanBeRough):
            return None
        return embedder.rough(lambda: goes_on() and not stop.is_set())

    def _multilingual(self, model: EmbeddingModel | None) -> Row:
        if model is None:
            return Row(self._second_folder, state="closed")
        return Row(self._second_folder, model.load, model.preparation, SECOND, _SECOND_BATCH)

    def _load_before(self, stop: threading.Event) -> Embedder | None:
        """Load the most recently used other model, if there is one."""
        with suppress(OSError):
            known = self.first.embedder.identity if self.first.is_ready else ""
            folders = [each for each in self._folder.iterdir() if each.is_dir()]
            for folder in sorted(folders, key=lambda each: each.stat().st_mtime, reverse=True):
                embedder = self._model.earlier(folder.name) if folder.name != known else None
                if embedder is not None:
                    self._load_second_before(embedder, stop)
                    return embedder
        return None

    def _load_second_before(self, before: Embedder, stop: threading.Event) -> None:
        """Load the multilingual model beside the bundled one, if it has read anything."""
        is_bundled = before.name == BUNDLED_EMBEDDING_MODEL
        has_read = is_bundled and self._second_folder.is_dir()
        if has_read and self.second_before.preparation().is_done:
            self.second_before.load(stop)

    @property
    def message(self) -> str:
        """Why the configured model can't be had, or what failed last."""
        return self.failure or self.first.message

    @property
    def standing_in(self) -> str:
        """The name of the model that answers until the configured one is prepared, if any."""
        return self.before.name if self.first.is_to_come else ""

    def answering(self) -> Iterator[Row]:
        """Yield the rows that can answer, best first.

        The model before answers while the configured one is being prepared, not while it is loaded.
        """
        if self.first.is_ready:
            yield self.first
        is_unprepared = self.first.is_to_come and not self.first.preparation().is_done
        if (self.first.is_ready or is_unprepared) and self.before.load(self._stop):
            yield self.before
        if self.rough.is_ready:
            yield self.rough

    def beside(self, row: Row) -> Row | None:
        """Return the multilingual model that answers together with a row's, if there is one."""
        beside = self.second_before if row is self.before else self.second
        return beside if beside.is_ready else None

    # What is to be read

    @property
    def _reads_all(self) -> bool:
        """Whether the multilingual model reads English passages as well."""
        return (self._second_folder / _OF_ALL).exists()

    def note_language(self, text: str) -> None:
        """Have the multilingual model read all passages, if a question is in one of its languages.

        It is written down, for other processes and for the next start.
        """
        is_had = self.second.is_ready or self.second.is_to_come
        if not is_had or self._reads_all or language_of(text) not in FOREIGN:
            return
        with suppress(OSError):
            self._second_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._second_folder / _OF_ALL).touch(mode=0o600)
            self._last_counted = -1

    def prioritize(self, chunks: frozenset[int]) -> None:
        """Read these chunks before others."""
        self._priority_chunks = chunks

    @property
    def _calls_for_second(self) -> bool:
        """Whether there are passages for the multilingual model, which isn't loaded yet."""
        if not self.second.is_to_come:
            return False
        return self._reads_all or bool(foreign_documents(self._corpus()).any())

    @property
    def is_busy(self) -> bool:
        """Whether passages have still to be read, as of the last count."""
        return self.first.left + self.second.left != 0

    def left(self, store: StateStore) -> int:
        """Return the number of passages without a vector; -1 if chunks were added since."""
        left = self.first.left + self.second.left
        return left if store.last_chunk() == self._last_counted else -1

    def count_missing(self, store: StateStore) -> int:
        """Count the passages without a vector."""
        return sum(len(passages) for _, passages in self._work(store))

    def _work(self, store: StateStore) -> list[tuple[Row, list[Passage]]]:
        """Return what is to be read, and by which rows, the next one first."""
        last = store.last_chunk()
        rows = (self.second, self.first)
        work = [(row, self._missing(store, row)) for row in rows if row.is_ready]
        for row, passages in work:
            row.left = len(passages)
        self._last_counted = last
        return work

    def _missing(self, store: StateStore, row: Row) -> list[Passage]:
        """Return the passages that a row has still to read, newest last."""
        among: Container[int] | None = None
        if row.kind is SECOND and not self._reads_all:
            corpus = self._corpus()
            among = set(corpus.chunks[foreign_documents(corpus)].tolist())
        row.vectors.refresh()
        found: dict[bytes, Passage] = {}
        is_local = row.embedder.is_local
        for chunk, keys, hidden in store.passage_keys():
            if among is not None and chunk not in among:
                continue
            for n, key in enumerate(split_keys(keys) if is_local or not hidden else ()):
                if key not in row.vectors:
                    found[key] = (key, chunk, n)
        waiting = list(found.values())
        if is_local:
            return waiting
        rows = store.rows(sorted({chunk for _, chunk, _ in waiting}))
        return self._sendable(waiting, rows, row)

    def _sendable(
        self, waiting: list[Passage], rows: Mapping[int, ChunkRow], row: Row
    ) -> list[Passage]:
        """Drop passages that a remote model must not see; a local one may see all."""
        if row.embedder.is_local:
            return waiting
        files: dict[str, bool] = {}
        for _, chunk, _ in waiting:
            if chunk in rows and rows[chunk].path not in files:
                files[rows[chunk].path] = self._is_hidden(rows[chunk])
        return [item for item in waiting if item[1] in rows and not files[rows[item[1]].path]]

    # Reading

    def load(self) -> bool:
        """Load the configured model, preparing it if needed; return whether it is ready.

        The one beside it is loaded as well, if passages call for it and it is prepared.
        """
        if not self.first.load(self._stop):
            return False
        if self._calls_for_second and self.second.preparation().is_done:
            self.second.load(self._stop)
        return True

    def load_for_search(self, *, wait: bool) -> bool:
        """Load the model, if it is prepared or may be waited for; return whether it is ready.

        If it is neither, a detached process prepares it.
        """
        if not wait:
            self.preparation = self.first.preparation()
            if not self.preparation.is_done:
                self._leave_the_rest()
                return False
        return self.load()

    def get_ready(self, store: StateStore, *, wait: bool) -> None:
        """Load the model and read: all if `wait`, else a few passages or none.

        What a search that doesn't wait has no time for is left to a detached process.

        Raises:
            KbtuiError: the model failed, or there is no room.
        """
        if not self.load_for_search(wait=wait):
            return
        is_unprepared = self._calls_for_second and self.second.preparation().state != "failed"
        if not (is_unprepared or self.left(store)):
            return
        if wait or (self.count_missing(store) <= _SYNC_EMBED_LIMIT and not is_unprepared):
            self.read(store)
        else:
            self._leave_the_rest()

    def _leave_the_rest(self) -> None:
        """Have a detached process prepare and read, where one may be started."""
        if self._start_detached is not None:
            self.preparation = self._start_detached()

    def read(
        self,
        store: StateStore,
        goes_on: Callable[[], bool] = lambda: True,
        *,
        roughly_first: bool = False,
        seconds: float = math.inf,
    ) -> int:
        """Embed passages without a vector for at most `seconds`, and return their number.

        Open and linked files come first, then chunks near to recent queries, then the newest. With
        `roughly_first`, the rough model reads all of them before, if there are many.

        Args:
            store: Has the passages.
            goes_on: Called before each batch, of the distilling as well; returns False to stop.
            roughly_first: Whether somebody asks meanwhile.
            seconds: When to stop.

        Raises:
            KbtuiError: the configured model failed, or there is no room; finished batches are
                stored.
        """
        if not self.first.is_ready:
            return 0
        deadline, done = time.monotonic() + seconds, 0
        if self._calls_for_second:
            self.second.load(self._stop)
        work = self._work(store)
        if roughly_first and self.first.left >= _ROUGH_FROM and self._load_rough(goes_on):
            work.insert(0, (self.rough, self._missing(store, self.rough)))

        def is_time() -> bool:
            self.failure = ""
            return goes_on() and not self._stop.is_set() and time.monotonic() < deadline

        for row, passages in work:
            try:
                done += self._read_all(row, passages, store, is_time)
                row.message = ""
            except KbtuiError as error:
                if row is self.first:
                    self.failure, self._last_counted = error.message, -1
                    raise
                # The configured model goes on without it.
                row.message, row.left = error.message, 0
        if not self.first.left:
            self._close_others()
            with suppress(OSError):  # compaction is optional
                self.tidy(store)
        return done

    def _read_all(
        self, row: Row, waiting: list[Passage], store: StateStore, is_time: Callable[[], bool]
    ) -> int:
        """Embed passages in batches, removing them from `waiting`, and return their number.

        Raises:
            KbtuiError: the model failed, or there is no room; finished batches are stored.
        """
        done, priority_paths = 0, tuple[str, ...]()
        pending: list[Vector] = []
        try:
            while waiting:
                row.left = len(waiting)
                if not is_time():
                    break
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
                batch = waiting[-row.batch :]
                del waiting[-row.batch :]
                vectors = self._read_batch(batch, store, row)
                pending += vectors
                done += len(vectors)
                if len(pending) >= _STORE_BATCH:
                    row.add(pending)
        finally:
            row.add(pending)
            row.left = len(waiting)
        return done

    def _read_batch(self, batch: list[Passage], store: StateStore, row: Row) -> list[Vector]:
        rows = store.rows([chunk for _, chunk, _ in batch], passages=True)
        batch = self._sendable(batch, rows, row)
        found = [
            (key, rows[chunk].chunk.passage_texts()[n]) for key, chunk, n in batch if chunk in rows
        ]
        vectors = row.embedder.documents([text for _, text in found]) if found else ()
        return [(key, vector) for (key, _), vector in zip(found, vectors, strict=True)]

    def _close_others(self) -> None:
        """Close the rows that stood in, as the configured model has read all."""
        self.before.close()
        self.second_before.close()
        rough, self.rough = self.rough, self._rough()
        if rough.is_ready:
            rough.close()
            shutil.rmtree(rough.folder / rough.embedder.identity, ignore_errors=True)

    def tidy(self, store: StateStore) -> bool:
        """Merge the vector files if there are many; return whether there were."""
        rows = (row for row in (self.first, self.second) if row.is_ready)
        scattered = [row.vectors for row in rows if row.vectors.is_scattered]
        if not scattered:
            return False
        in_use = {key for _, keys, _ in store.passage_keys() for key in split_keys(keys)}
        return sum(vectors.compact(in_use) for vectors in scattered) > 0

    def close(self) -> None:
        """Release the models."""
        for row in (self.first, self.before, self.rough, self.second, self.second_before):
            row.close()


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


def _storage_error(error: OSError) -> StorageError:
    return StorageError(
        f"What was read for meaning can't be kept: {error.strerror or error}",
        "Make room on the disk, or let the cache folder be written.",
    )


def split_keys(keys: bytes) -> tuple[bytes, ...]:
    """Return a chunk's passage keys, from their stored form."""
    return tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))
