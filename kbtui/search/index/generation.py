"""One generation of the index: the words index and its state, made by one chunker and analyser.

A folder of its own, so that another version of either builds a new one beside it. What is on disk
is checked when it is opened: segments of the words index by checksum, chunks by checksum as they
are read, and both against each other. Whatever is wrong, the generation is deleted and built again.
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
# Beyond this many segments the smallest are written as one.
_MANY_SEGMENTS = 8
# Beyond that many this isn't left to idle moments: each holds files open, in every process.
_TOO_MANY_SEGMENTS = 24
_MUCH_DELETED = 200
_TRIES = 5
_BRIEFLY = 1.0  # seconds for a change to be finished


def generation_name(limits: ChunkLimits) -> str:
    """The folder of the generation that these settings and this version make."""
    parts = (
        store.VERSION,
        lexical.VERSION,
        analyser.VERSION,
        limits.identity(),
        metadata.version("whoosh-reloaded"),  # its stemmer
    )
    return f"g{store.VERSION}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


class Generation:
    """An open generation. Writing is for who holds the cache lock; anybody may read."""

    def __init__(self, folder: Path) -> None:
        """Open or make the generation in `folder`.

        Raises:
            Exception: of any kind, where what is there is damaged.
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
        """True once all files were indexed."""
        return self.store.get("complete") == "1"

    def mark_complete(self) -> None:
        """All files are indexed now."""
        if not self.complete:
            self.store.put("complete", "1")

    def corpus(self) -> Corpus:
        """The present state, which other processes may have changed."""
        with self._lock:
            revision = self.store.revision()
            if self._view is None or self._view[0] != revision:
                self._view = (revision, self._load())
            return self._view[1]

    def _load(self) -> Corpus:
        for _ in range(_TRIES - 1):
            # Another process may replace the files between two looks at the folder.
            with suppress(FileNotFoundError):
                return self._lexical.corpus(self.store.segments())
        with _undisturbed(self.folder.parent):  # what is missing now is lost
            return self._lexical.corpus(self.store.segments())

    def commit(self, documents: Sequence[tuple[IndexedDocument, str]], gone: Sequence[str]) -> None:
        """Put changed files in, given with their blobs, and take the ones in `gone` out."""
        added, removed = self.store.begin(documents, gone)
        segments = self._lexical.write(self.store.segments(), added, removed)
        self._let_count(segments, removed, gone)
        if len(segments) > _TOO_MANY_SEGMENTS:
            self.tidy()

    def _let_count(
        self, segments: Sequence[SegmentFile], removed: Sequence[int], gone: Sequence[str]
    ) -> None:
        """Finish a change of the words index: from now on it is made of these segments."""
        self.store.finish(removed, gone, segments)
        self._lexical.sweep(segments)

    def tidy(self) -> bool:
        """Write small segments as one, and those that are mostly deleted again; tells if it did."""
        segments = self.store.segments()
        live = {file: self._lexical.live(file) for file in segments}
        wasteful = {
            file for file in segments if len(file.deleted) > max(_MUCH_DELETED, len(live[file]))
        }
        smallest = _smallest(segments, {file: len(live[file]) for file in segments})
        moved = sorted({chunk for file in {*wasteful, *smallest} for chunk in live[file]})
        if not wasteful and not smallest:
            return False
        rows = self.store.rows(moved)
        documents = (lexical_document(rows[number]) for number in moved if number in rows)
        self._let_count(self._lexical.write(segments, documents, moved), [], [])
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
            self.let_go()

    def let_go(self) -> None:
        """Say that the folder may be deleted; what is open stays readable."""
        if self._in_use >= 0:
            os.close(self._in_use)
            self._in_use = -1


def remove_generation(folder: Path) -> bool:
    """Delete a generation that no process has open; tells if it is gone."""
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
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}


class CacheBusyError(Exception):
    """Another process is writing the index."""


def _smallest(
    segments: Sequence[SegmentFile], sizes: Mapping[SegmentFile, int]
) -> list[SegmentFile]:
    """The small segments to be written as one, where there are many.

    The large ones stay: only what together is no larger than the next is moved.
    """
    if len(segments) <= _MANY_SEGMENTS:
        return []
    by_size = sorted(segments, key=sizes.__getitem__)
    taken = _MANY_SEGMENTS // 2
    together = sum(sizes[file] for file in by_size[:taken])
    while taken < len(by_size) and sizes[by_size[taken]] <= together:
        together += sizes[by_size[taken]]
        taken += 1
    return by_size[:taken]


class Generations:
    """The generations of one workspace's index, in its cache folder."""

    def __init__(self, folder: Path, limits: ChunkLimits) -> None:
        """Open the wanted generation; an older complete one answers until it is complete."""
        self.rebuilt = ""
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._name = generation_name(limits)
        self._lock = threading.RLock()
        self._writer = threading.RLock()
        self.building = self._open_wanted()
        self.serving = self._older() or self.building

    @property
    def folder(self) -> Path:
        """Where the caches of this index are."""
        return self._folder

    def swap(self) -> None:
        """All files are indexed: let the built generation answer, and delete the others."""
        with self._lock:
            self.building.mark_complete()
            if self.serving is not self.building:
                self.serving.let_go()
                self.serving = self.building
            for other in self._others():
                remove_generation(other)

    def renew(self, timeout: float) -> None:
        """Replace all generations with an empty one.

        Raises:
            StorageError: another process writes for longer than `timeout` seconds.
        """
        try:
            with self.writing(timeout), self._lock:
                for generation in {self.building, self.serving}:
                    _retire(generation)
                self.serving = self.building = self._open_wanted()
        except CacheBusyError:
            raise StorageError(
                "Another process is writing the search index.", "Try again when it is done."
            ) from None

    def start_over(self, damaged: Generation, reason: Exception) -> None:
        """Replace a generation that can't be read; one that was replaced already stays."""
        with self._lock:
            if damaged not in {self.building, self.serving}:
                return
            _LOG.warning("The search index is rebuilt: %s: %s", type(reason).__name__, reason)
            self.rebuilt = f"{type(reason).__name__}: {reason}"
            _retire(damaged)
            if damaged is self.building:
                self.building = self._open_wanted()
            self.serving = self.building

    @contextmanager
    def writing(self, timeout: float) -> Iterator[Generation]:
        """Hold the cache lock, of threads and processes, and give the generation to write.

        Raises:
            CacheBusyError: another process writes for longer than `timeout` seconds.
        """
        with self._writer:
            descriptor = _open_lock(self._folder / _LOCK_FILE)
            try:
                _take(descriptor, time.monotonic() + timeout)
                yield self.building
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            for generation in {self.building, self.serving}:
                generation.close()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None

    def _open_wanted(self) -> Generation:
        """Open the generation; a damaged one is deleted, an unusable cache replaced for now."""
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
            raise StorageError(
                f"The search index can't be kept: {error}.", "Free some space on that disk."
            ) from error

    def _open_or_replace(self, folder: Path) -> Generation:
        with suppress(Exception):  # damaged files raise anything; so do ones just being changed
            return Generation(folder)
        with _undisturbed(self._folder):
            try:
                return Generation(folder)
            except Exception as error:
                if is_no_room(error):
                    raise  # what is there may be whole
                _LOG.warning("The search index can't be read: %s: %s", type(error).__name__, error)
                self.rebuilt = f"{type(error).__name__}: {error}"
                _delete(folder)
                return Generation(folder)

    def _older(self) -> Generation | None:
        """A complete generation of another chunker or analyser, while ours isn't complete."""
        if self.building.complete:
            return None
        for folder in self._others():
            if not folder.name.startswith(f"g{VERSION}-"):
                continue
            # Whatever is wrong with it: it is only a help until ours is there.
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
    """Delete its files; searches that run on it go on, and with the last of them it is closed."""
    generation.let_go()
    _delete(generation.folder)


def is_no_room(error: Exception) -> bool:
    """True if the machine is at its limits, rather than the index damaged."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return is_transient(error)


def _delete(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.unlink(missing_ok=True)


def _open_lock(file: Path) -> int:
    """Open the lock file; a folder in its place is nothing of ours."""
    if file.is_dir():
        _delete(file)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _undisturbed(folder: Path) -> Iterator[None]:
    """Keep other processes from writing for the block, or go on where one does for long."""
    descriptor = _open_lock(folder / _LOCK_FILE)
    try:
        with suppress(CacheBusyError):
            _take(descriptor, time.monotonic() + _BRIEFLY)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise CacheBusyError from None
            time.sleep(_POLL_SECONDS)
        else:
            return
