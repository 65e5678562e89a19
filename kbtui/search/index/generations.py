"""Which generation answers and which is being built; and starting anew where one is damaged."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import StorageError
from kbtui.search.index.generation import Generation, generation_name, remove_generation
from kbtui.search.index.store import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.search.index.chunker import ChunkLimits

_LOG = logging.getLogger(__name__)
_LOCK_FILE = "lock"
_POLL_SECONDS = 0.02
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}


class CacheBusyError(Exception):
    """Another process is writing the index."""


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
        self._retired: list[Generation] = []
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
                self._retired.append(self.serving)
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
                    self._retire(generation)
                self.serving = self.building = self._open_wanted()
        except CacheBusyError:
            raise StorageError(
                "Another process is writing the search index.", "Try again when it is done."
            ) from None

    def start_anew(self, damaged: Generation, reason: Exception) -> None:
        """Replace a generation that can't be read; one that was replaced already stays."""
        with self._lock:
            if damaged not in {self.building, self.serving}:
                return
            _LOG.warning("The search index is built anew: %s: %s", type(reason).__name__, reason)
            self.rebuilt = f"{type(reason).__name__}: {reason}"
            self._retire(damaged)
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
            for generation in {self.building, self.serving, *self._retired}:
                generation.close()
            self._retired.clear()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None

    def _open_wanted(self) -> Generation:
        """Open the generation; a damaged one is deleted, an unusable cache replaced for now."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._open_or_replace(self._folder / self._name)
        except OSError as error:
            if self._temporary is not None:
                raise StorageError(f"The search index can't be kept: {error}") from error
            _LOG.warning("The search index is kept in a temporary folder: %s", error)
            self._temporary = tempfile.TemporaryDirectory(prefix="kbtui-search-")
            self._folder = Path(self._temporary.name)
            return Generation(self._folder / self._name)

    def _open_or_replace(self, folder: Path) -> Generation:
        try:
            return Generation(folder)
        except Exception as error:  # noqa: BLE001 — damaged files raise anything
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

    def _retire(self, generation: Generation) -> None:
        """Delete its files; searches that run on it may go on, as they have them open."""
        generation.let_go()
        _delete(generation.folder)
        self._retired.append(generation)


def is_no_room(error: Exception) -> bool:
    """Whether the machine is at its limits, rather than the index damaged."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    said = str(error)
    return isinstance(error, sqlite3.OperationalError) and ("full" in said or "locked" in said)


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
