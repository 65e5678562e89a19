"""The threads behind a running app: for the words index, for documents, and for vectors.

They know the index as `Work`, what they have it do; a fourth thread watches for outside edits.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from kbtui.errors import KbtuiError
from kbtui.search.results import IndexReport
from kbtui.workspace.layout import Layout
from kbtui.workspace.scan import folders_of

_MOMENT = 0.3
_LONGEST = 1.0
_LOOK_AGAIN = 0.05


class Pause:
    """Asked by the worker between two batches; told by whoever needs the machine.

    Attributes:
        stopped: The work rests until this is False again.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._until = 0.0

    def step_aside(self) -> None:
        """Rest for a moment from now on; costs nothing to call."""
        self._until = time.monotonic() + _MOMENT

    def wait(self, end: threading.Event) -> None:
        """Rest as long as is wanted, but for steps aside at most a second; `end` ends it."""
        since = time.monotonic()
        while not end.is_set():
            now = time.monotonic()
            aside = now < self._until and now - since < _LONGEST
            if not self.stopped and not aside:
                return
            end.wait(_LOOK_AGAIN)


_LOG = logging.getLogger(__name__)
_SETTLED_SECONDS = 1.1  # an adopted file must have been stable for a second
_IDLE_SECONDS = 5.0
_RETRY_SECONDS = 300.0
_NICENESS = 5
_Result = TypeVar("_Result")


class Work(Protocol):
    """The work that an index has; see `SearchIndex`, whose methods these are."""

    @property
    def on_outside_edit(self) -> Callable[[], None] | None:
        """Called after the first look at all files, and once what others edited has settled."""

    def sync(self) -> IndexReport:
        """Look at all files."""

    def refresh(self, paths: Iterable[str]) -> None:
        """Take note that files changed."""

    def refresh_now(self) -> IndexReport | None:
        """Index what `refresh` was told."""

    def read_documents(self) -> int:
        """Read the documents whose text isn't known; tells how many it did."""

    def tidy(self) -> None:
        """Write the index in fewer files."""

    def load_model(self) -> bool:
        """Get the embedding model ready; tells whether it is."""

    def embed_missing(self) -> int:
        """Embed what has no vector; tells how much it did."""


class Background:
    """Does the work of an index in threads until it is stopped."""

    def __init__(self, index: Work, layout: Layout, areas: Sequence[str]) -> None:
        self._index = index
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._embed = threading.Event()
        self._documents = threading.Event()
        self._sync_wanted = threading.Event()
        self._lock = threading.Lock()
        self._settled_at: float | None = None
        self._watcher = Watcher(layout, areas, self._changed_outside)
        self._threads: list[threading.Thread] = []
        self._sweep_seconds = 60.0

    def start(self, sweep_seconds: float, *, semantic: bool) -> None:
        """Start the threads."""
        self._sweep_seconds = sweep_seconds
        self._sync_wanted.set()
        jobs: list[tuple[str, Callable[[], None]]] = [
            ("kbtui-index", self._keep_up),
            ("kbtui-documents", self._read_documents),
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
        self._documents.set()
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

    def _changed_outside(self, paths: set[str] | None) -> None:
        if paths is None:
            self.sync_soon()
            return
        with self._lock:
            self._settled_at = time.monotonic() + _SETTLED_SECONDS
        self._index.refresh(paths)

    def _keep_up(self) -> None:
        _step_back()
        swept = 0.0
        idle_since = time.monotonic()
        tidied = False
        while not self._stop.is_set():
            is_news = False
            if self._sync_wanted.is_set() or time.monotonic() - swept >= self._sweep_seconds:
                is_news = self._sweep(is_first=not swept)
                swept = time.monotonic()
            if self._safely(self._index.refresh_now) or is_news:
                self._embed.set()
                idle_since, tidied = time.monotonic(), False
            self._documents.set()
            self._report_outside_edits()
            if not tidied and time.monotonic() - idle_since > _IDLE_SECONDS:
                self._safely(self._index.tidy)
                tidied = True
            self._wake.wait(self._patience(swept, tidied=tidied))
            self._wake.clear()

    def _sweep(self, *, is_first: bool) -> bool:
        """Look at all files; tells if there was something new."""
        self._sync_wanted.clear()
        report = self._safely(self._index.sync)
        self._watcher.follow()
        is_news = bool(report and (report.added or report.changed or report.removed))
        if is_first or is_news:
            self._tell_outside()
        return is_news

    def _patience(self, swept: float, *, tidied: bool) -> float:
        """How long nothing needs to be done, unless somebody wakes us."""
        patience = swept + self._sweep_seconds - time.monotonic()
        with self._lock:
            if self._settled_at is not None:
                patience = min(patience, _SETTLED_SECONDS / 4)
        return max(0.01, patience if tidied else min(patience, _IDLE_SECONDS))

    def _report_outside_edits(self) -> None:
        """Tell of edits that others made, once their files have settled."""
        with self._lock:
            if self._settled_at is None or time.monotonic() < self._settled_at:
                return
            self._settled_at = None
        self._tell_outside()

    def _tell_outside(self) -> None:
        hook = self._index.on_outside_edit
        if hook is not None:
            self._safely(hook)

    def _read_documents(self) -> None:
        """Read documents once all that is text is indexed."""
        _step_back()
        while not self._stop.is_set():
            self._documents.wait()
            self._documents.clear()
            self._safely(self._index.read_documents)

    def _embed_all(self) -> None:
        _step_back()
        while not self._stop.is_set():
            if self._safely(self._index.load_model):
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
        except Exception:  # noqa: BLE001 — a damaged index raises anything, and the thread goes on
            _LOG.exception("Search in the background")
        return None


def _step_back() -> None:
    """Lower this thread's priority, so that the screen comes first (Linux has it per thread)."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        except OSError as error:
            _LOG.debug("The priority can't be lowered: %s", error)


_LOG = logging.getLogger(__name__)
_DEBOUNCE_MS = 200
_STEP_MS = 50
_BEAT_MS = 1000


class Watcher:
    """Watches folders of a workspace in a thread of its own, as long as that is possible."""

    def __init__(
        self, layout: Layout, areas: Sequence[str], changed: Callable[[set[str] | None], None]
    ) -> None:
        """`changed` is told workspace paths, in the watching thread; None: it must look at all.

        That is so when watching has begun, and when a folder came or went: of what happened before,
        and of the files in such a folder, nothing is told.
        """
        self._layout = layout
        self._areas = areas
        self._changed = changed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched: set[Path] = set()
        self._watching: threading.Event | None = None
        self._moved = threading.Event()

    def running(self) -> object | None:
        """The mark of the watch that goes on, from its beginning to its end; None without one.

        As long as it stays the same, every change is told a moment after it was made.
        """
        is_alive = self._thread is not None and self._thread.is_alive()
        return self._watching if is_alive and self._watching is self._stop else None

    def follow(self) -> None:
        """Start watching; again if a folder came or went since."""
        running = self._thread is not None and self._thread.is_alive()
        if running and self._layout.in_place and not self._moved.is_set():
            return  # the walk over all folders is for when one of them said so
        self._moved.clear()
        folders = set(folders_of(self._layout, self._areas))
        if folders == self._watched and (running or not folders):
            return
        self.stop()
        self._watched = folders
        if folders:
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._watch, args=(self._stop, folders), name="kbtui-watch", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop watching; returns when the thread has ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._watched = set()

    def _watch(self, stop: threading.Event, folders: set[Path]) -> None:
        import watchfiles

        logging.getLogger("watchfiles").setLevel(logging.WARNING)
        try:
            for changes in watchfiles.watch(
                *folders,
                watch_filter=None,
                recursive=not self._layout.in_place,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=stop,
                rust_timeout=_BEAT_MS,
                yield_on_timeout=True,  # the first time says that it has begun
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if self._watching is not stop:
                    self._watching = stop
                    self._moved.set()
                    self._changed(None)
                if any(Path(name) in folders or Path(name).is_dir() for _, name in changes):
                    self._moved.set()
                paths = {path: Path(name) for _, name in changes if (path := self._relative(name))}
                if paths and not stop.is_set():
                    self._changed(set(paths))
                    if any(map(_may_be_folder, paths.values())):
                        self._changed(None)
        except (OSError, RuntimeError) as error:
            # Too many folders for this machine, or one vanished: the sweep finds edits as well.
            _LOG.info("Folders can't be watched: %s", error)

    def _relative(self, name: str) -> str:
        try:
            file = Path(name).relative_to(self._layout.root).as_posix()
        except ValueError:
            return ""
        path = self._layout.path_of(file)
        hidden = any(part.startswith(".") for part in path.split("/"))
        return "" if hidden else unicodedata.normalize("NFC", path)


def _may_be_folder(place: Path) -> bool:
    """True for a folder, and for what is gone and is no note."""
    return place.is_dir() or (place.suffix.lower() != ".md" and not place.exists())
