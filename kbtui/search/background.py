"""The threads behind a running app: one keeps the words index up to date, one embeds, one warms."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from kbtui.errors import KbtuiError
from kbtui.search.index.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kbtui.search.search_index import SearchIndex

_LOG = logging.getLogger(__name__)
_SETTLED_SECONDS = 1.1  # an adopted file must have been stable for a second
_IDLE_SECONDS = 5.0
_RETRY_SECONDS = 300.0
_NICENESS = 5
_BREATH_SECONDS = 0.002
_Result = TypeVar("_Result")


class Background:
    """Runs a `SearchIndex` in threads until it is stopped."""

    def __init__(self, index: SearchIndex, root: Path, areas: Sequence[str]) -> None:
        self._index = index
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._embed = threading.Event()
        self._changed = threading.Event()
        self._sync_wanted = threading.Event()
        self._lock = threading.Lock()
        self._outside: set[str] = set()
        self._outside_since = 0.0
        self._watcher = Watcher(root, areas, self._changed_outside)
        self._threads: list[threading.Thread] = []
        self._sweep_seconds = 60.0

    def start(self, sweep_seconds: float, *, semantic: bool) -> None:
        """Start the threads."""
        self._sweep_seconds = sweep_seconds
        self._sync_wanted.set()
        jobs: list[tuple[str, Callable[[], None]]] = [
            ("kbtui-index", self._keep_up),
            ("kbtui-warm", self._warm_up),
        ]
        if semantic:
            jobs.append(("kbtui-embed", self._embed_all))
        for name, job in jobs:
            thread = threading.Thread(target=job, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop the threads and wait for them."""
        self._stop.set()
        self._wake.set()
        self._embed.set()
        self._changed.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        # Last, as the first thread is who starts it.
        self._watcher.stop()

    def wake(self) -> None:
        """There is something to refresh."""
        self._wake.set()

    def sync_soon(self) -> None:
        """All files are to be looked at."""
        self._sync_wanted.set()
        self._wake.set()

    def _changed_outside(self, paths: set[str]) -> None:
        with self._lock:
            self._outside |= paths
            self._outside_since = time.monotonic()
        self._index.refresh(paths)

    def _keep_up(self) -> None:
        _step_back()
        swept = 0.0
        idle_since = time.monotonic()
        tidied = False
        while not self._stop.is_set():
            if self._sync_wanted.is_set() or time.monotonic() - swept >= self._sweep_seconds:
                self._sync_wanted.clear()
                report = self._safely(self._index.sync)
                swept = time.monotonic()
                self._watcher.follow()
                self._changed.set()
                if report and (report.added or report.changed or report.removed):
                    self._embed.set()
                    idle_since, tidied = swept, False
            if self._safely(self._index.refresh_now):
                self._embed.set()
                self._changed.set()
                idle_since, tidied = time.monotonic(), False
            self._report_outside_edits()
            if not tidied and time.monotonic() - idle_since > _IDLE_SECONDS:
                self._safely(self._index.tidy)
                self._changed.set()
                tidied = True
            self._wake.wait(self._patience(swept, tidied=tidied))
            self._wake.clear()

    def _patience(self, swept: float, *, tidied: bool) -> float:
        """How long nothing needs to be done, unless somebody wakes us."""
        patience = swept + self._sweep_seconds - time.monotonic()
        with self._lock:
            if self._outside:
                patience = min(patience, _SETTLED_SECONDS / 4)
        return max(0.01, patience if tidied else min(patience, _IDLE_SECONDS))

    def _report_outside_edits(self) -> None:
        """Tell of edits that others made, once their files have settled."""
        with self._lock:
            if not self._outside or time.monotonic() - self._outside_since < _SETTLED_SECONDS:
                return
            paths, self._outside = frozenset(self._outside), set()
        hook = self._index.on_outside_edit
        if hook is not None:
            self._safely(lambda: hook(paths))

    def _warm_up(self) -> None:
        """Read what questions will need, whenever the index has changed; in small steps."""
        _step_back()
        while not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            self._safely(lambda: self._index.warm_up(lambda: not self._stop.wait(_BREATH_SECONDS)))

    def _embed_all(self) -> None:
        _step_back()
        while not self._stop.is_set():
            if self._index.load_model():
                done = self._safely(self._index.embed_missing)
                self._embed.wait(_RETRY_SECONDS if done is None else None)
            else:
                # Failed: perhaps it is there later, e.g. once it was fetched.
                self._embed.wait(_RETRY_SECONDS)
            self._embed.clear()

    @staticmethod
    def _safely(work: Callable[[], _Result]) -> _Result | None:
        """Do some work; what goes wrong is logged, and the next sweep tries again."""
        try:
            return work()
        except (KbtuiError, OSError) as error:
            _LOG.warning("Search in the background: %s", error)
            return None


def _step_back() -> None:
    """Lower this thread's priority, so that the screen comes first (Linux has it per thread)."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        except OSError as error:
            _LOG.debug("The priority can't be lowered: %s", error)
