"""Search by meaning: a queue of models, best first, each with the vectors that it has made.

A search asks the best that has read enough, or the one that has read most. Behind the model of the
settings there may be the one that was used before, with its vectors, and, where much has no vector
yet, a rough one made from the real one, which embeds everything within moments.
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
from kbtui.search.embedding.prepared import ClosingError, explain
from kbtui.search.embedding.vectors import VectorStore
from kbtui.search.index.store import KEY_BYTES
from kbtui.search.query.fusion import ROUGH, Comparison, DocumentRows, VectorKind
from kbtui.search.results import IndexStatus, Preparation, State
from kbtui.settings import BUNDLED_EMBEDDING_MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.embedding.embedder import Embedder
    from kbtui.search.embedding.prepared import EmbeddingModel
    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import ChunkRow, TreeIndex
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.parser import Query

    Keys = dict[int, tuple[bytes, ...]]
    Passage = tuple[bytes, int, int]  # its key, its chunk, and which of the chunk's it is


ModelState = Literal["waiting", "preparing", "ready", "failed"]
# Small, so that neither closing nor somebody who types waits long; what is stored at once is what a
# kill can lose.
_BATCH = 4
_STORED_AT_ONCE = 128
_SYNC_EMBED_LIMIT = 32  # passages
# A commit of which less has vectors is searched by words alone.
_MOST_OF_A_TREE = 0.8
_WORTH_ROUGH = 500  # passages: the model itself takes well over half a minute for them
_ROUGH_BATCH = 1024
_MOST_OF_A_CORPUS = 0.9
_ASKED_FOR = 50


_AS_USUAL = VectorKind()


@dataclass(eq=False)
class _Reader:
    """A model in the queue, and what it has read: a row a passage.

    Attributes:
        embedder: Makes its vectors, and those of questions.
        folder: Where they are kept.
        kind: What is measured of vectors of its kind.
        vectors: Those there are.
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
        """Which vectors belong to which document of a corpus; kept for each that it is `of`."""
        found = self._views.get(of)
        if found is None or not found.fits(corpus, len(self.vectors), busy=busy):
            found = self._views[of] = DocumentRows(corpus, self.vectors, keys())
        return found

    def compare(self, text: str, view: DocumentRows) -> Comparison:
        """Compare a query with the documents of a view.

        Raises:
            KbtuiError: the model fails.
        """
        vector = self.embedder.query(text)
        is_calibrated = self.kind is not ROUGH and self.embedder.name == BUNDLED_EMBEDDING_MODEL
        matrix = self.vectors.matrix
        return Comparison(vector, view, matrix, is_calibrated=is_calibrated, kind=self.kind)


class Semantic:
    """The embedding side of one index.

    `load` and `embed_missing` are for a background thread; `compare` is for any.
    """

    def __init__(
        self,
        folder: Path,
        model: EmbeddingModel,
        is_withheld: Callable[[ChunkRow], bool] = lambda _row: False,
        first: Callable[[], tuple[str, ...]] = tuple,
        apart: Callable[[], Preparation] | None = None,
    ) -> None:
        """Take the folder of the vectors, and the model to load.

        Args:
            folder: Holds a folder a model.
            model: The one to load.
            is_withheld: Says what a model elsewhere must not see.
            first: The files to embed before all others at the moment, the last of them first.
            apart: Has another process do what there is no time for, and tells how far that is.
        """
        self.state: ModelState = "waiting"
        self.message = ""
        self.preparation: Preparation | None = None  # as it was when nobody waited for it
        self.pace = Pace()
        self._folder = folder
        self._model = model
        self._is_withheld = is_withheld
        self._first = first
        self._apart = apart
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._queue: list[_Reader] = []  # best first: the model of the settings, once it is loaded
        self._has_looked = False  # for an earlier model
        self._wanted: frozenset[int] = frozenset()  # chunks whose vectors are to be made first
        self._left = 0
        self._counted = -1  # the last chunk that was looked at for vectors
        self._keys = _KeysOfChunks()

    @property
    def name(self) -> str:
        """The model's name, once it is loaded."""
        return self._queue[0].embedder.name if self._queue else ""

    @property
    def embedded(self) -> int:
        """How many passages have a vector."""
        return len(self._queue[0].vectors) if self._queue else 0

    def load(self, stop: threading.Event) -> bool:
        """Load the model, preparing it if needed; tells whether it is there now."""
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
            return True

    def _open(self, embedder: Embedder, kind: VectorKind = _AS_USUAL) -> _Reader:
        """Open the vectors of a model.

        Raises:
            StorageError: they can't be kept.
        """
        try:
            return _Reader(embedder, self._folder / embedder.identity, kind)
        except OSError as error:
            embedder.close()
            raise _not_kept(error) from error

    def _rough(self, stop: threading.Event) -> _Reader | None:
        """The rough model, last in the queue; it is made if it has to be."""
        if self._queue[-1].kind is ROUGH:
            return self._queue[-1]
        rough = self._queue[0].embedder.rough(stop)
        if rough is None:
            return None
        reader = self._open(rough, ROUGH)
        with self._lock:
            self._queue.append(reader)
        return reader

    def _find_earlier(self) -> None:
        """Put the model that was used last before this one second, if it can be loaded."""
        if self._has_looked:
            return
        self._has_looked = True
        known = {reader.embedder.identity for reader in self._queue}
        folders = [
            each for each in self._folder.iterdir() if each.is_dir() and each.name not in known
        ]
        for folder in sorted(folders, key=lambda each: each.stat().st_mtime, reverse=True):
            embedder = self._model.earlier(folder.name)
            if embedder is not None:
                self._queue.insert(1, self._open(embedder))
                break

    def get_ready(self, store: StateStore, stop: threading.Event, *, wait: bool) -> None:
        """Load the model and embed what is missing: all of it, or what takes a moment only.

        The rest is left to a process of its own.

        Raises:
            KbtuiError: the model fails.
        """
        if not wait and not self._is_at_hand():
            return
        if self.load(stop) and self.left(store):
            missing = self.count_missing(store)
            if missing and (wait or missing <= _SYNC_EMBED_LIMIT):
                self.embed_missing(store, stop)
            elif missing and self._apart is not None:
                self.preparation = self._apart()

    def _is_at_hand(self) -> bool:
        """True if the model is prepared; if not, a process of its own is to see to that."""
        self.preparation = self._model.preparation()
        if not self.preparation.is_done and self._apart is not None:
            self.preparation = self._apart()
        return self.preparation.is_done

    def retry(self) -> None:
        """Let `load` try again after a failure."""
        with self._loading:
            if self.state == "failed":
                self.state, self.message = "waiting", ""

    def answer(
        self,
        asked: Query,
        corpus: Corpus,
        store: StateStore,
        stop: threading.Event,
        *,
        load: bool,
        wait: bool,
    ) -> tuple[Comparison | None, str]:
        """Compare by meaning, if the model is there; and what to say where it isn't all there.

        With `load`, the model is loaded and what takes a moment is embedded before; with `wait`,
        whatever it takes.
        """
        try:
            if load:
                self.get_ready(store, stop, wait=wait)
        except KbtuiError as error:
            return None, explain(error)
        compared = self.compare(asked.text, corpus, store) if asked.has_words else None
        return compared, notice_of(store, self)

    def compare(self, text: str, corpus: Corpus, store: StateStore) -> Comparison | None:
        """Compare a query with every document; None without a model, or where it fails."""
        if not self._queue or not text.strip():
            return None
        reader, view = self._best(corpus, store)
        found = self._compare(reader, text, view)
        if found is not None and reader is not self._queue[0]:
            nearest = np.argsort(-np.nan_to_num(found.cosines, nan=-1.0), kind="stable")
            self._wanted = frozenset(corpus.chunks[nearest[:_ASKED_FOR]].tolist())
        return found

    def _best(self, corpus: Corpus, store: StateStore) -> tuple[_Reader, DocumentRows]:
        """The first in the queue that has read enough of a corpus, or who has read most of it."""
        with self._lock:
            read: list[tuple[_Reader, DocumentRows]] = []
            for reader in self._in_turn():
                view = reader.view(
                    corpus, lambda: self._keys.read(store), "now", busy=self.left(store) != 0
                )
                if len(view.documents) >= _MOST_OF_A_CORPUS * corpus.count:
                    return reader, view
                read.append((reader, view))
            return max(read, key=lambda each: len(each[1].documents))

    def _in_turn(self) -> Iterator[_Reader]:
        """The queue; an earlier model is looked for when the best one isn't enough."""
        yield self._queue[0]
        with suppress(OSError, StorageError):
            self._find_earlier()
        yield from self._queue[1:]

    def compare_tree(
        self, text: str, tree: TreeIndex, stop: threading.Event, *, load: bool, wait: bool
    ) -> tuple[Comparison | None, str]:
        """Compare a query with the files of a commit, by the vectors that are there anyway.

        Nothing is embedded for it: where too few of its passages have a vector, words decide.

        Args:
            text: The query.
            tree: The files of the commit.
            stop: Ends the loading.
            load: Load the model, if it is prepared.
            wait: Prepare it as well.

        Returns:
            The comparison, None where there is none; and what to say, if the model isn't there.
        """
        if load and (wait or self._is_at_hand()):
            self.load(stop)
        if not self._queue:
            return None, self.message or _while_preparing(self.preparation)
        best = self._queue[0]

        def keys() -> Keys:
            best.vectors.refresh()
            return {number: _split(held) for number, held in tree.passage_keys()}

        with self._lock:
            view = best.view(tree.corpus, keys, "then", busy=False)
        if len(view.documents) < _MOST_OF_A_TREE * tree.corpus.count or not text.strip():
            return None, ""
        return self._compare(best, text, view), self.message

    def _compare(self, reader: _Reader, text: str, view: DocumentRows) -> Comparison | None:
        try:
            found = reader.compare(text, view)
        except KbtuiError as error:
            self.message = explain(error)
            return None
        self.message = ""
        return found

    def left(self, store: StateStore) -> int:
        """How many passages still have no vector; -1 while nobody has counted the newest."""
        return self._left if store.last_chunk() == self._counted else -1

    def count_missing(self, store: StateStore) -> int:
        """Count the passages that still have no vector."""
        return len(self._count(store))

    def _count(self, store: StateStore) -> list[Passage]:
        last = store.last_chunk()
        waiting = self._missing(store, self._queue[0]) if self._queue else []
        self._left, self._counted = len(waiting), last
        return waiting

    def embed_missing(
        self,
        store: StateStore,
        stop: threading.Event,
        progress: Callable[[int, int], None] = lambda _done, _left: None,
        *,
        roughly_first: bool = False,
        seconds: float = math.inf,
    ) -> int:
        """Embed every passage that has no vector, or what there is time for; tells how many it did.

        What is open and what it is linked with goes first, and what a question was near to; then
        what was written last. With `roughly_first`, the rough model embeds all before, if that is
        worth it.

        Raises:
            KbtuiError: the model failed (a remote one may), what is done is stored; or there is no
                room for it.
        """
        if not self._queue:
            return 0
        best, until = self._queue[0], time.monotonic() + seconds
        best.vectors.refresh()
        waiting = self._count(store)

        def goes_on(done: int) -> bool:
            self._left, self.message = len(waiting), ""
            progress(done, len(waiting))
            return not stop.is_set() and time.monotonic() < until

        try:
            if roughly_first and len(waiting) >= _WORTH_ROUGH and (rough := self._rough(stop)):
                missing = self._missing(store, rough)
                self._read(rough, missing, store, lambda _: not stop.is_set(), _ROUGH_BATCH)
            done = self._read(best, waiting, store, goes_on, _BATCH)
        except KbtuiError as error:
            self.message, self._counted = explain(error), -1
            raise
        finally:
            self._left = len(waiting)
        if not waiting:
            self._drop_others()
            with suppress(OSError):  # where there is no room, many files are read as well
                self.tidy(store)
        return done

    def _read(
        self,
        reader: _Reader,
        waiting: list[Passage],
        store: StateStore,
        goes_on: Callable[[int], bool],
        size: int,
    ) -> int:
        """Have passages read, a batch at a time, and taken off; tells how many it did.

        Raises:
            KbtuiError: the model failed, or there is no room; what is done is stored.
        """
        done, first = 0, tuple[str, ...]()
        pending: list[tuple[bytes, NDArray[np.float32]]] = []
        try:
            while waiting and goes_on(done):
                wanted, self._wanted = dict.fromkeys(self._wanted, 1), frozenset()
                if self._first() != first:
                    first = self._first()
                    for rank, path in enumerate(first, 2):
                        wanted |= dict.fromkeys(store.chunks_in(path), rank)
                if wanted:
                    waiting.sort(key=lambda each: wanted.get(each[1], 0))
                batch = waiting[-size:]
                del waiting[-size:]
                made = self._embed(batch, store, reader)
                pending += made
                done += len(made)
                if len(pending) >= _STORED_AT_ONCE:
                    _keep(reader, pending)
        finally:
            _keep(reader, pending)
        return done

    def _embed(
        self, batch: list[Passage], store: StateStore, reader: _Reader
    ) -> list[tuple[bytes, NDArray[np.float32]]]:
        rows = store.rows([chunk for _, chunk, _ in batch])
        batch = self._sendable(batch, rows, reader)
        found = [
            (key, rows[chunk].chunk.passage_texts()[n]) for key, chunk, n in batch if chunk in rows
        ]
        vectors = reader.embedder.documents([text for _, text in found]) if found else ()
        return [(key, vector) for (key, _), vector in zip(found, vectors, strict=True)]

    def _missing(self, store: StateStore, reader: _Reader) -> list[Passage]:
        """Passages without a vector; the newest come last."""
        found: dict[bytes, Passage] = {}
        is_local = reader.embedder.is_local
        for chunk, keys, hidden in store.passage_keys():
            for n, key in enumerate(_split(keys) if is_local or not hidden else ()):
                if key not in reader.vectors:
                    found[key] = (key, chunk, n)
        waiting = list(found.values())
        if is_local:
            return waiting
        rows = store.rows(sorted({chunk for _, chunk, _ in waiting}))
        return self._sendable(waiting, rows, reader)

    def _sendable(
        self, waiting: list[Passage], rows: Mapping[int, ChunkRow], reader: _Reader
    ) -> list[Passage]:
        """What a model may see: all of it, where it runs on this machine."""
        if reader.embedder.is_local:
            return waiting
        files: dict[str, bool] = {}
        for _, chunk, _ in waiting:
            if chunk in rows and rows[chunk].path not in files:
                files[rows[chunk].path] = self._is_withheld(rows[chunk])
        return [item for item in waiting if item[1] in rows and not files[rows[item[1]].path]]

    def _drop_others(self) -> None:
        """Let go of all but the best, which has read all; rough vectors are thrown away."""
        with self._lock:
            others, self._queue[1:] = self._queue[1:], []
        for reader in others:
            reader.embedder.close()
            if reader.kind is ROUGH:
                shutil.rmtree(reader.folder, ignore_errors=True)

    def tidy(self, store: StateStore) -> bool:
        """Write the vectors in fewer files, if there are many."""
        if not self._queue or not self._queue[0].vectors.is_scattered:
            return False
        wanted = {key for _, keys, _ in store.passage_keys() for key in _split(keys)}
        return self._queue[0].vectors.compact(wanted)

    def close(self) -> None:
        """Let go of the models."""
        readers, self._queue = self._queue, []
        for reader in readers:
            reader.embedder.close()


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


def _keep(reader: _Reader, pending: list[tuple[bytes, NDArray[np.float32]]]) -> None:
    """Store what was made, and empty the list.

    Raises:
        StorageError: there is no room.
    """
    if pending:
        keys, vectors = [key for key, _ in pending], np.stack([vector for _, vector in pending])
        pending.clear()
        try:
            reader.vectors.add(keys, vectors)
        except OSError as error:
            raise _not_kept(error) from error


def _not_kept(error: OSError) -> StorageError:
    return StorageError(
        f"What was read for meaning can't be kept: {error.strerror or error}",
        "Make room on the disk, or let the cache folder be written.",
    )


def _split(keys: bytes) -> tuple[bytes, ...]:
    return tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))


PREPARING = "Preparing the embedding model, once; searching by words meanwhile."
UNPREPARED = "The embedding model isn't prepared."
PREPARING_APART = (
    "Preparing the embedding model in the background, once; searching by words meanwhile."
)
_MINUTE = 60
_LEAST_SECONDS = 3.0


class Pace:
    """Estimates how long something takes from how fast it went so far."""

    def __init__(self) -> None:
        self._started = 0.0
        self._first_left = 0

    def left(self, left: int) -> str:
        """How long `left` more will take, as people say it; empty while that isn't known."""
        now = time.monotonic()
        if not self._started or left > self._first_left:
            self._started, self._first_left = now, left
        done, passed = self._first_left - left, now - self._started
        if not left or not done or passed < _LEAST_SECONDS:
            return ""
        seconds = left * passed / done
        if seconds < _MINUTE:
            return "under a minute left"
        return f"about {round(seconds / _MINUTE)} min left"


def status_of(
    store: StateStore, meaning: Semantic | None, activity: str, *, synced: bool
) -> IndexStatus:
    """The status as it is now; without `meaning` only words are searched."""
    state, message = _state(store, meaning, activity, synced=synced)
    embedded = meaning.embedded if meaning else 0
    name = meaning.name if meaning else ""
    left = max(0, meaning.left(store)) if meaning else 0
    return IndexStatus(state, *store.counts(), embedded, message, name, left)


def notice_of(store: StateStore, meaning: Semantic) -> str:
    """The notice that a search gives where the model isn't all there."""
    if meaning.message:
        return meaning.message
    if meaning.state != "ready":
        return _while_preparing(meaning.preparation)
    if not meaning.left(store):
        return ""
    if meaning.preparation is not None and meaning.preparation.why:
        return f"{_share(store, meaning)} % is read for meaning. {meaning.preparation.why}"
    return f"{_embedding(store, meaning)}."


def _while_preparing(found: Preparation | None) -> str:
    """What to say while the model isn't there: it was found so; None: this process sees to it."""
    if found is None:
        return PREPARING
    if found.state == "preparing":
        return PREPARING_APART
    return f"{found.why or UNPREPARED} Searching by words."


def _state(
    store: StateStore, meaning: Semantic | None, activity: str, *, synced: bool
) -> tuple[State, str]:
    if activity or not synced:
        return "syncing", activity
    if meaning is None or meaning.state == "failed":
        return "lexical-only", meaning.message if meaning else ""
    if meaning.state != "ready":
        return "preparing", PREPARING
    if meaning.left(store):
        return "embedding", _embedding(store, meaning)
    return "ready", ""


def _embedding(store: StateStore, meaning: Semantic) -> str:
    left = meaning.left(store)
    if left < 0:
        return "Reading for meaning"
    done = f"Reading for meaning: {_share(store, meaning)} %"
    estimate = meaning.pace.left(left)
    return f"{done}, {estimate}" if estimate else done


def _share(store: StateStore, meaning: Semantic) -> int:
    """How much of a hundred is read for meaning."""
    return 100 * meaning.embedded // max(1, meaning.embedded + meaning.left(store))
