"""One generation of the index: the words index and its state, made by one chunker and analyser.

A folder of its own, so that another version of either builds a new one beside it. What is on disk
is checked when it is opened: files of the words index by checksum, chunks by checksum as they are
read, and both against each other. Whatever is wrong, the generation is deleted and built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
import zlib
from contextlib import suppress
from importlib import metadata
from itertools import accumulate
from typing import TYPE_CHECKING

from kbtui.search.index import analyser, lexical, store
from kbtui.search.index.bm25f import PostingsCache
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.rows import DamagedStoreError, lexical_document
from kbtui.search.index.store import StateStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunker import ChunkLimits, Document

_STATE = "state.sqlite"
_LEXICAL = "lexical"
_IN_USE = "in-use"
# Beyond this many segments the smallest are written as one.
_MANY_SEGMENTS = 8
_MUCH_DELETED = 200
_TRIES = 5


def generation_name(limits: ChunkLimits) -> str:
    """The folder of the generation that these settings and this version make."""
    parts = (
        store.VERSION,
        lexical.VERSION,
        analyser.VERSION,
        limits.identity(),
        metadata.version("whoosh-reloaded"),
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
                # Checked before Whoosh looks at them, as it unpickles.
                self._check_files()
                self._lexical = LexicalIndex(folder / _LEXICAL, PostingsCache())
                self._check_counts()
            except BaseException:
                self.store.close()
                raise
        except BaseException:
            os.close(self._in_use)
            raise

    @property
    def complete(self) -> bool:
        """Whether all files were indexed once."""
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
                return self._lexical.corpus()
        return self._lexical.corpus()

    def commit(self, documents: Sequence[tuple[Document, str]], gone: Sequence[str]) -> None:
        """Put changed files in, given with their blobs, and take the ones in `gone` out."""
        added, removed = self.store.begin(documents, gone)
        if added or removed:
            self._lexical.write(map(lexical_document, added), removed)
        self.store.finish(removed, gone, self._describe())

    def tidy(self) -> bool:
        """Write small segments as one, and those that are mostly deleted anew; tells if it did."""
        sizes = self._lexical.segment_sizes()
        wasteful = [
            i for i, (gone, live) in enumerate(sizes) if gone > max(_MUCH_DELETED, len(live))
        ]
        smallest: list[int] = []
        if len(sizes) > _MANY_SEGMENTS:
            by_size = sorted(range(len(sizes)), key=lambda i: len(sizes[i][1]))
            totals = list(accumulate(len(sizes[i][1]) for i in by_size))
            # The large ones stay: only what together is no larger than the next is moved.
            smallest = by_size[: _MANY_SEGMENTS // 2]
            for place in range(_MANY_SEGMENTS // 2, len(by_size)):
                if len(sizes[by_size[place]][1]) <= totals[place - 1]:
                    smallest = by_size[: place + 1]
        moved = sorted({int(chunk) for i in {*wasteful, *smallest} for chunk in sizes[i][1]})
        if not wasteful and not smallest:
            return False
        rows = self.store.rows(moved)
        self._lexical.write((lexical_document(rows[n]) for n in moved if n in rows), moved)
        self.store.finish([], [], self._describe())
        return True

    def _describe(self) -> str:
        """The files of the words index with their sizes and checksums."""
        known = json.loads(self.store.get("lexical", "{}"))
        files = {}
        for file in self._lexical.files():
            entry = known.get(file.name)
            files[file.name] = entry or [file.stat().st_size, zlib.crc32(file.read_bytes())]
        return json.dumps(files)

    def _check_files(self) -> None:
        described = json.loads(self.store.get("lexical", "{}"))
        for name, (size, expected) in described.items():
            file = self.folder / _LEXICAL / name
            if not file.exists() and self.store.has_marks():
                continue  # replaced by a change that wasn't finished
            data = file.read_bytes()
            if len(data) != size or zlib.crc32(data) != expected:
                raise DamagedStoreError(f"{name} of the words index has changed")

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
