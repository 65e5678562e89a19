"""Generations of the index: each is built by one version of chunker and analyser.

A generation has its own folder, so that a new version is built beside the old one. Its files are
validated: segments by checksum when they are opened, chunks by checksum when they are read, and
their counts against each other. A damaged generation is deleted and rebuilt.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from kbtui.cache import discard
from kbtui.derived import is_transient
from kbtui.errors import StorageError
from kbtui.search.index import analyser, lexical, store
from kbtui.search.index.bm25f import Corpus
from kbtui.search.index.chunk_rows import DamagedStoreError, lexical_document
from kbtui.search.index.chunker import ChunkLimits, IndexedDocument
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.segment import SegmentFile
from kbtui.search.index.store import VERSION, StateStore

_STATE = "state.sqlite"
_LEXICAL = "lexical"
_IN_USE = "in-use"
# Above this number of segments, the smallest are merged when idle.
_MANY_SEGMENTS = 8
# Above this number, they are merged at once: each holds a file open, in every process.
_TOO_MANY_SEGMENTS = 24
_MIN_DELETED = 200
_LOAD_ATTEMPTS = 5
_LOCK_WAIT_SECONDS = 1.0  # to wait for a change in progress


def generation_name(limits: ChunkLimits) -> str:
    """Return the folder name of the generation for these settings and this version."""
    parts = (
        store.VERSION,
        lexical.VERSION,
        analyser.VERSION,
        limits.identity(),
        metadata.version("PyStemmer"),
    )
    return f"g{store.VERSION}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


class Generation:
    """An open generation; writing requires the cache lock, reading doesn't."""

    def __init__(self, folder: Path) -> None:
        """Open or create the generation in `folder`.

        Raises:
            Exception: of any type, if the files are damaged.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._in_use = os.open(folder / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._in_use, fcntl.LOCK_SH)
        self._lock = threading.RLock()
        self._view: tuple[int, Corpus] | None = None
        try:
            self.store = StateStore(folder / _STATE)
            try:
                self._lexical = LexicalIndex(folder / _LEXICAL)
                self._check_counts()
            except BaseException:
                self.store.close()
                raise
        except BaseException:
            os.close(self._in_use)
            raise

    @property
    def complete(self) -> bool:
        """Whether all files have been indexed once."""
        return self.store.get("complete") == "1"

    def mark_complete(self) -> None:
        """Record that all files have been indexed."""
        if not self.complete:
            self.store.put("complete", "1")

    def corpus(self) -> Corpus:
        """Return a snapshot of the current state, including changes by other processes."""
        with self._lock:
            revision = self.store.revision()
            if self._view is None or self._view[0] != revision:
                self._view = (revision, self._load())
            return self._view[1]

    def _load(self) -> Corpus:
        for _ in range(_LOAD_ATTEMPTS - 1):
            # Another process may replace the files meanwhile.
            with suppress(FileNotFoundError):
                return self._lexical.corpus(self.store.segments())
        with _try_lock(self.folder.parent):  # files missing under the lock are lost
            return self._lexical.corpus(self.store.segments())

    def commit(
        self, documents: Sequence[tuple[IndexedDocument, str]], deleted: Sequence[str]
    ) -> None:
        """Index changed files, given with their blobs, and remove those in `deleted`."""
        added, removed = self.store.begin(documents, deleted)
        segments = self._lexical.write(self.store.segments(), added, removed)
        self._finish(segments, removed, deleted)
        if len(segments) > _TOO_MANY_SEGMENTS:
            self.tidy()

    def _finish(
        self, segments: Sequence[SegmentFile], removed: Sequence[int], deleted: Sequence[str]
    ) -> None:
        """Finish a change: make `segments` the live ones, and delete unused files."""
        self.store.finish(removed, deleted, segments)
        self._lexical.sweep(segments)

    def tidy(self) -> bool:
        """Merge small segments, rewrite mostly deleted ones, and return whether there were any."""
        segments = self.store.segments()
        live = {file: self._lexical.live(file) for file in segments}
        wasteful = {
            file for file in segments if len(file.deleted) > max(_MIN_DELETED, len(live[file]))
        }
        smallest = _merge_candidates(segments, {file: len(live[file]) for file in segments})
        rewritten = sorted({chunk for file in {*wasteful, *smallest} for chunk in live[file]})
        if not wasteful and not smallest:
            return False
        rows = self.store.rows(rewritten)
        documents = (lexical_document(rows[number]) for number in rewritten if number in rows)
        self._finish(self._lexical.write(segments, documents, rewritten), [], [])
        return True

    def _check_counts(self) -> None:
        if not self.store.has_marks() and self._load().count != self.store.counts()[1]:
            raise DamagedStoreError("the words index and the stored chunks differ")

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._view = None
            self._lexical.close()
            self.store.close()
            self.release()

    def release(self) -> None:
        """Release the shared lock, so that the folder may be deleted; open files stay readable."""
        if self._in_use >= 0:
            os.close(self._in_use)
            self._in_use = -1


def remove_generation(folder: Path) -> bool:
    """Delete a generation unless a process has it open; return whether it is gone."""
    try:
        descriptor = os.open(folder / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


_LOG = logging.getLogger(__name__)
_LOCK_FILE = "lock"
_POLL_SECONDS = 0.02
_RESOURCE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}


class CacheBusyError(Exception):
    """Another process is writing the index."""


def _merge_candidates(
    segments: Sequence[SegmentFile], sizes: Mapping[SegmentFile, int]
) -> list[SegmentFile]:
    """Choose the small segments to merge, if there are many.

    Large ones stay: a segment is added only if it isn't larger than all smaller ones together.
    """
    if len(segments) <= _MANY_SEGMENTS:
        return []
    by_size = sorted(segments, key=sizes.__getitem__)
    number = _MANY_SEGMENTS // 2
    total = sum(sizes[file] for file in by_size[:number])
    while number < len(by_size) and sizes[by_size[number]] <= total:
        total += sizes[by_size[number]]
        number += 1
    return by_size[:number]


class Generations:
    """The generations of one workspace's index, in its cache folder."""

    def __init__(self, folder: Path, limits: ChunkLimits) -> None:
        """Open the current generation; until it is complete, an older complete one serves."""
        self.rebuilt = ""
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._name = generation_name(limits)
        self._lock = threading.RLock()
        self._writer = threading.RLock()
        self.building = self._open_current()
        self.serving = self._open_previous() or self.building

    @property
    def folder(self) -> Path:
        """The cache folder of this index."""
        return self._folder

    def swap(self) -> None:
        """Mark the built generation complete, serve from it, and delete the others."""
        with self._lock:
            self.building.mark_complete()
            if self.serving is not self.building:
                self.serving.release()
                self.serving = self.building
            for other in self._others():
                remove_generation(other)

    def reset(self, timeout: float) -> None:
        """Replace all generations with an empty one.

        Raises:
            StorageError: another process holds the lock for longer than `timeout` seconds.
        """
        try:
            with self.writing(timeout), self._lock:
                for generation in {self.building, self.serving}:
                    _retire(generation)
                self.serving = self.building = self._open_current()
        except CacheBusyError:
            raise StorageError(
                "Another process is writing the search index.", "Try again when it is done."
            ) from None

    def replace_damaged(self, damaged: Generation, reason: Exception) -> None:
        """Replace a damaged generation, unless it has been replaced already."""
        with self._lock:
            if damaged not in {self.building, self.serving}:
                return
            _LOG.warning("The search index is rebuilt: %s: %s", type(reason).__name__, reason)
            self.rebuilt = f"{type(reason).__name__}: {reason}"
            _retire(damaged)
            if damaged is self.building:
                self.building = self._open_current()
            self.serving = self.building

    @contextmanager
    def writing(self, timeout: float) -> Iterator[Generation]:
        """Hold the cache lock, for threads and processes, and yield the generation to write.

        Raises:
            CacheBusyError: another process holds it for longer than `timeout` seconds.
        """
        with self._writer:
            descriptor = _open_lock(self._folder / _LOCK_FILE)
            try:
                _acquire(descriptor, time.monotonic() + timeout)
                yield self.building
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Close all generations, and delete a temporary folder."""
        with self._lock:
            for generation in {self.building, self.serving}:
                generation.close()
            self._drop_temporary()

    def _open_current(self) -> Generation:
        """Open or rebuild the current generation, in a temporary folder if need be."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._open_or_replace(self._folder / self._name)
        except (OSError, sqlite3.OperationalError) as error:
            if self._temporary is not None:
                raise StorageError(f"The search index can't be kept: {error}") from error
            _LOG.warning("The search index is kept in a temporary folder: %s", error)
        try:
            self._temporary = tempfile.TemporaryDirectory(prefix="kbtui-search-")
            self._folder = Path(self._temporary.name)
            return Generation(self._folder / self._name)
        except (OSError, sqlite3.OperationalError) as error:
            self._drop_temporary()
            raise StorageError(
                f"The search index can't be kept: {error}.", "Free some space on that disk."
            ) from error

    def _drop_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _open_or_replace(self, folder: Path) -> Generation:
        with suppress(Exception):  # files that are damaged, or just being changed, raise anything
            return Generation(folder)
        with _try_lock(self._folder):
            try:
                return Generation(folder)
            except Exception as error:
                if is_out_of_resources(error):
                    raise  # the files may be intact
                _LOG.warning("The search index can't be read: %s: %s", type(error).__name__, error)
                self.rebuilt = f"{type(error).__name__}: {error}"
                discard(folder)
                return Generation(folder)

    def _open_previous(self) -> Generation | None:
        """Open a complete generation of another version while the current one is incomplete."""
        if self.building.complete:
            return None
        for folder in self._others():
            if not folder.name.startswith(f"g{VERSION}-"):
                continue
            # Ignore any damage: it only serves until the current one is complete.
            with suppress(Exception):
                generation = Generation(folder)
                if generation.complete:
                    return generation
                generation.close()
        return None

    def _others(self) -> list[Path]:
        return [
            folder
            for folder in sorted(self._folder.glob("g*-*"))
            if folder.is_dir() and folder.name != self._name
        ]


def _retire(generation: Generation) -> None:
    """Delete a generation's files; running searches keep it open until they finish."""
    generation.release()
    discard(generation.folder)


def is_out_of_resources(error: Exception) -> bool:
    """Return whether an error is due to the machine's limits rather than a damaged index."""
    if isinstance(error, OSError):
        return error.errno in _RESOURCE_ERRORS
    return is_transient(error)


def _open_lock(file: Path) -> int:
    """Open the lock file, deleting a folder of that name."""
    if file.is_dir():
        discard(file)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _try_lock(folder: Path) -> Iterator[None]:
    """Hold the cache lock for the block if it can be acquired soon; else run without it."""
    descriptor = _open_lock(folder / _LOCK_FILE)
    try:
        with suppress(CacheBusyError):
            _acquire(descriptor, time.monotonic() + _LOCK_WAIT_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise CacheBusyError from None
            time.sleep(_POLL_SECONDS)
        else:
            return
