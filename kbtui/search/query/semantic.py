"""Search by meaning: the model, and the vectors of all passages.

Where much has no vector yet, a rough model made from the real one embeds everything first, and
questions are compared by that until the real one has caught up; or by the model that was used
before, where its vectors are still there.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kbtui.errors import KbtuiError, StorageError
from kbtui.search.embedding.prepared import StoppedError, explain
from kbtui.search.embedding.vectors import VectorStore
from kbtui.search.index.store import KEY_BYTES
from kbtui.search.query.fusion import ROUGH, Comparison, VectorKind, View
from kbtui.search.results import IndexStatus, Preparation, State
from kbtui.settings import BUNDLED_EMBEDDING_MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.embedding.embedder import Embedder
    from kbtui.search.embedding.prepared import EmbeddingModel
    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.rows import ChunkRow, TreeIndex
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.parser import Query


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


@dataclass(slots=True)
class _Substitute:
    """A model that stands in for the real one, and what it has embedded."""

    embedder: Embedder
    folder: Path
    vectors: VectorStore
    view: View | None = None


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
        self._embedder: Embedder | None = None
        self._vectors: VectorStore | None = None
        self._view: View | None = None
        self._tree_view: View | None = None
        self._rough: _Substitute | None = None
        self._earlier: _Substitute | None = None
        self._has_looked = False  # for an earlier model
        self._wanted: frozenset[int] = frozenset()  # chunks whose vectors are to be made first
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
            with suppress(OSError):
                self._open_rough(stop, make=False)
            self.state = "ready"
            return True

    def _open_rough(self, stop: threading.Event, *, make: bool) -> _Substitute | None:
        """The rough model with its vectors; without `make` only if there are some already."""
        if self._rough is None and self._embedder is not None:
            rough = self._embedder.rough(stop, make=make)
            if rough is not None:
                folder = self._folder / rough.identity
                if make or folder.is_dir():
                    self._rough = _Substitute(rough, folder, VectorStore(folder, rough.dimension))
        return self._rough

    def _find_earlier(self) -> _Substitute | None:
        """The model that was used last before this one, with its vectors, if it can be loaded."""
        if not self._has_looked and self._embedder is not None:
            self._has_looked = True
            folders = {
                folder: folder.stat().st_mtime
                for folder in self._folder.iterdir()
                if folder.is_dir() and folder.name != self._embedder.identity
            }
            for folder in sorted(folders, key=folders.__getitem__, reverse=True):
                embedder = self._model.earlier(folder.name)
                if embedder is not None:
                    vectors = VectorStore(folder, embedder.dimension)
                    self._earlier = _Substitute(embedder, folder, vectors)
                    break
        return self._earlier

    def _open_vectors(self, embedder: Embedder) -> VectorStore:
        try:
            return VectorStore(self._folder / embedder.identity, embedder.dimension)
        except OSError as error:
            embedder.close()
            raise _not_kept(error) from error

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
        if self._embedder is None or self._vectors is None or not text.strip():
            return None
        view = self._view_of(corpus, store)
        if len(view.documents) < _MOST_OF_A_CORPUS * corpus.count:
            found = self._compare_meanwhile(text, corpus, store, len(view.documents))
            if found is not None:
                return found
        vector = self._embed_query(text)
        return None if vector is None else self._comparison(vector, view, self._vectors)

    def _compare_meanwhile(
        self, text: str, corpus: Corpus, store: StateStore, known: int
    ) -> Comparison | None:
        """Compare by another model, where it knows more documents than the real one does."""
        chosen: tuple[_Substitute, View] | None = None
        with self._lock:
            with suppress(OSError):
                self._find_earlier()
            for each in filter(None, (self._earlier, self._rough)):
                if each.view is None or not each.view.fits(corpus, len(each.vectors), busy=True):
                    each.view = View(corpus, each.vectors, self._keys.read(store))
                if len(each.view.documents) > known:
                    chosen, known = (each, each.view), len(each.view.documents)
        if chosen is None:
            return None
        substitute, view = chosen
        vector = substitute.embedder.query(text)
        kind = ROUGH if substitute is self._rough else VectorKind()
        matrix = substitute.vectors.matrix
        found = Comparison(vector, view, matrix, is_calibrated=False, kind=kind)
        nearest = np.argsort(-np.nan_to_num(found.cosines, nan=-1.0), kind="stable")[:_ASKED_FOR]
        self._wanted = frozenset(corpus.chunks[nearest].tolist())
        return found

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
        if self._vectors is None or self._embedder is None:
            return None, self.message or _while_preparing(self.preparation)
        view = self._view_of_tree(tree, self._vectors)
        if len(view.documents) < _MOST_OF_A_TREE * tree.corpus.count:
            return None, ""
        vector = self._embed_query(text)
        if vector is None:
            return None, self.message
        return self._comparison(vector, view, self._vectors), ""

    def _comparison(
        self, vector: NDArray[np.float32], view: View, vectors: VectorStore
    ) -> Comparison:
        bundled = self.name == BUNDLED_EMBEDDING_MODEL
        return Comparison(vector, view, vectors.matrix, is_calibrated=bundled)

    def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        if self._embedder is None or not text.strip():
            return None
        try:
            vector = self._embedder.query(text)
        except KbtuiError as error:
            self.message = explain(error)
            return None
        self.message = ""
        return vector

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
        if self._embedder is None or self._vectors is None:
            return 0
        self._vectors.refresh()
        waiting = self._count(store)
        if roughly_first and len(waiting) >= _WORTH_ROUGH:
            self._embed_roughly(waiting, store, stop)
        done = 0
        until = time.monotonic() + seconds
        first: tuple[str, ...] = ()
        pending: list[tuple[bytes, NDArray[np.float32]]] = []
        try:
            while waiting and not stop.is_set() and time.monotonic() < until:
                wanted, self._wanted = dict.fromkeys(self._wanted, 1), frozenset()
                if self._first() != first:
                    first = self._first()
                    for rank, path in enumerate(first, 2):
                        wanted |= dict.fromkeys(store.chunks_in(path), rank)
                if wanted:
                    waiting.sort(key=lambda each: wanted.get(each[1], 0))
                batch = waiting[-_BATCH:]
                del waiting[-_BATCH:]
                pending += self._embed(batch, store, self._embedder)
                if len(pending) >= _STORED_AT_ONCE:
                    done += self._store(pending)
                self._left, self.message = len(waiting) + len(pending), ""
                progress(done + len(pending), len(waiting))
            done += self._store(pending)
            if not waiting:
                self._drop_substitutes()
                with suppress(OSError):  # where there is no room, many files are read as well
                    self.tidy(store)
        except KbtuiError as error:
            self.message, self._counted = explain(error), -1
            raise
        finally:
            done += self._store(pending)
            self._left = len(waiting)
        return done

    def _embed_roughly(
        self, waiting: list[tuple[bytes, int, int]], store: StateStore, stop: threading.Event
    ) -> None:
        """Embed passages by the rough model, as far as they aren't."""
        try:
            rough = self._open_rough(stop, make=True)
            if rough is None:
                return
            missing = [each for each in reversed(waiting) if each[0] not in rough.vectors]
            for start in range(0, len(missing), _ROUGH_BATCH):
                if stop.is_set():
                    return
                made = self._embed(missing[start : start + _ROUGH_BATCH], store, rough.embedder)
                if made:
                    rough.vectors.add([key for key, _ in made], np.stack([v for _, v in made]))
        except OSError as error:
            raise _not_kept(error) from error

    def _drop_substitutes(self) -> None:
        """Throw the rough vectors away and let go of the earlier model: all have their own."""
        with self._lock:
            rough, self._rough = self._rough, None
            earlier, self._earlier = self._earlier, None
        if rough is not None:
            shutil.rmtree(rough.folder, ignore_errors=True)
        if earlier is not None:
            earlier.embedder.close()

    def tidy(self, store: StateStore) -> bool:
        """Write the vectors in fewer files, if there are many."""
        if self._vectors is None or not self._vectors.is_scattered:
            return False
        return self._vectors.compact(
            {key for _, keys, _ in store.passage_keys() for key in _split(keys)}
        )

    def close(self) -> None:
        """Let go of the model."""
        embedder, self._embedder = self._embedder, None
        earlier, self._earlier = self._earlier, None
        if embedder is not None:
            embedder.close()
        if earlier is not None:
            earlier.embedder.close()

    def _embed(
        self,
        batch: list[tuple[bytes, int, int]],
        store: StateStore,
        embedder: Embedder | None,
    ) -> list[tuple[bytes, NDArray[np.float32]]]:
        rows = store.rows([chunk for _, chunk, _ in batch])
        batch = self._sendable(batch, rows)
        found = [(key, rows[chunk].passage_texts()[n]) for key, chunk, n in batch if chunk in rows]
        if not found or embedder is None:
            return []
        vectors = embedder.documents([text for _, text in found])
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
            rows = store.rows(sorted({chunk for _, chunk, _ in waiting}))
            waiting = self._sendable(waiting, rows)
        return waiting

    def _sendable(
        self, waiting: list[tuple[bytes, int, int]], rows: Mapping[int, ChunkRow]
    ) -> list[tuple[bytes, int, int]]:
        """What the model may see: all of it, where it runs on this machine."""
        if self._embedder is None or self._embedder.is_local:
            return waiting
        files: dict[str, bool] = {}
        for _, chunk, _ in waiting:
            if chunk in rows and rows[chunk].path not in files:
                files[rows[chunk].path] = self._is_withheld(rows[chunk])
        return [item for item in waiting if item[1] in rows and not files[rows[item[1]].path]]

    def _view_of(self, corpus: Corpus, store: StateStore) -> View:
        with self._lock:
            vectors = self._vectors
            assert vectors is not None  # noqa: S101 — told to mypy; `scores` has looked
            view = self._view
            if view is None or not view.fits(corpus, len(vectors), busy=self.left(store) != 0):
                view = self._view = View(corpus, vectors, self._keys.read(store))
            return view

    def _view_of_tree(self, tree: TreeIndex, vectors: VectorStore) -> View:
        with self._lock:
            view = self._tree_view
            if view is None or not view.fits(tree.corpus, len(vectors), busy=False):
                vectors.refresh()
                keys = {number: _split(held) for number, held in tree.passage_keys()}
                view = self._tree_view = View(tree.corpus, vectors, keys)
            return view


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
