"""Background threads that keep the lexical index, document texts and vectors up to date.

They drive the index through `IndexTasks`. A fourth thread watches for outside edits.
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

_STEP_ASIDE_SECONDS = 0.3
_MAX_STEP_ASIDE_SECONDS = 1.0
_POLL_SECONDS = 0.05


class Pause:
    """Lets the foreground pause background work between batches.

    Attributes:
        stopped: Work is paused while this is True.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._until = 0.0

    def step_aside(self) -> None:
        """Pause the work for a moment; cheap to call."""
        self._until = time.monotonic() + _STEP_ASIDE_SECONDS

    def wait(self, end: threading.Event) -> None:
        """Block while paused, or until `end` is set; for steps aside at most a second."""
        since = time.monotonic()
        while not end.is_set():
            now = time.monotonic()
            steps_aside = now < self._until and now - since < _MAX_STEP_ASIDE_SECONDS
            if not self.stopped and not steps_aside:
                return
            end.wait(_POLL_SECONDS)


_LOG = logging.getLogger(__name__)
_SETTLED_SECONDS = 1.1  # a file is adopted once it has been stable for a second
_IDLE_SECONDS = 5.0
_RETRY_SECONDS = 300.0
_NICENESS = 5
_Result = TypeVar("_Result")


class IndexTasks(Protocol):
    """The methods of `SearchIndex` that background threads call."""

    @property
    def on_outside_edit(self) -> Callable[[], None] | None:
        """Callback for after the first sync, and for when outside edits have settled."""

    def sync(self) -> IndexReport:
        """Index all changed files."""

    def refresh(self, paths: Iterable[str]) -> None:
        """Queue changed files for indexing."""

    def refresh_now(self) -> IndexReport | None:
        """Index the queued files."""

    def read_documents(self) -> int:
        """Extract the text of queued documents and return their number."""

    def tidy(self) -> None:
        """Merge the index into fewer files."""

    def load_model(self) -> bool:
        """Load the embedding model, and return whether it is ready."""

    def embed_missing(self) -> int:
        """Embed passages that have no vector, and return their number."""


class Background:
    """The background threads of a search index."""

    def __init__(self, index: IndexTasks, layout: Layout, areas: Sequence[str]) -> None:
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
            ("kbtui-index", self._index_loop),
            ("kbtui-documents", self._read_documents),
        ]
        if semantic:
            jobs.append(("kbtui-embed", self._embed_loop))
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
        # Last, as the index thread starts it.
        self._watcher.stop()

    def wake(self) -> None:
        """Wake the index thread, for files that were queued."""
        self._wake.set()

    def embed_soon(self) -> None:
        """Wake the embedding thread, for passages that another model has to read now."""
        self._embed.set()

    def sync_soon(self) -> None:
        """Request a sync of all files."""
        self._sync_wanted.set()
        self._wake.set()

    def _changed_outside(self, paths: set[str] | None) -> None:
        if paths is None:
            self.sync_soon()
            return
        with self._lock:
            self._settled_at = time.monotonic() + _SETTLED_SECONDS
        self._index.refresh(paths)

    def _index_loop(self) -> None:
        _lower_priority()
        last_sweep = 0.0
        idle_since = time.monotonic()
        tidied = False
        while not self._stop.is_set():
            has_changes = False
            if self._sync_wanted.is_set() or time.monotonic() - last_sweep >= self._sweep_seconds:
                has_changes = self._sweep(is_first=not last_sweep)
                last_sweep = time.monotonic()
            if self._guarded(self._index.refresh_now) or has_changes:
                self._embed.set()
                idle_since, tidied = time.monotonic(), False
            self._documents.set()
            self._notify_if_settled()
            if not tidied and time.monotonic() - idle_since > _IDLE_SECONDS:
                self._guarded(self._index.tidy)
                tidied = True
            self._wake.wait(self._timeout(last_sweep, tidied=tidied))
            self._wake.clear()

    def _sweep(self, *, is_first: bool) -> bool:
        """Sync all files, and return whether any had changed."""
        self._sync_wanted.clear()
        report = self._guarded(self._index.sync)
        self._watcher.follow()
        has_changes = bool(report and (report.added or report.changed or report.removed))
        if is_first or has_changes or report is None:  # there, what is wrong is said
            self._notify_outside_edit()
        return has_changes

    def _timeout(self, last_sweep: float, *, tidied: bool) -> float:
        """Return the seconds until the next task is due."""
        timeout = last_sweep + self._sweep_seconds - time.monotonic()
        with self._lock:
            if self._settled_at is not None:
                timeout = min(timeout, _SETTLED_SECONDS / 4)
        return max(0.01, timeout if tidied else min(timeout, _IDLE_SECONDS))

    def _notify_if_settled(self) -> None:
        with self._lock:
            if self._settled_at is None or time.monotonic() < self._settled_at:
                return
            self._settled_at = None
        self._notify_outside_edit()

    def _notify_outside_edit(self) -> None:
        callback = self._index.on_outside_edit
        if callback is not None:
            self._guarded(callback)

    def _read_documents(self) -> None:
        """Read documents whenever all text files have been indexed."""
        _lower_priority()
        while not self._stop.is_set():
            self._documents.wait()
            self._documents.clear()
            self._guarded(self._index.read_documents)

    def _embed_loop(self) -> None:
        _lower_priority()
        while not self._stop.is_set():
            if self._guarded(self._index.load_model):
                done = self._guarded(self._index.embed_missing)
                self._embed.wait(_RETRY_SECONDS if done is None else None)
            else:
                # It may become available later, e.g. once fetched.
                self._embed.wait(_RETRY_SECONDS)
            self._embed.clear()

    @staticmethod
    def _guarded(work: Callable[[], _Result]) -> _Result | None:
        """Run `work` and log any error; the next sweep retries."""
        try:
            return work()
        except (KbtuiError, OSError) as error:
            _LOG.warning("Search in the background: %s", error)
        except Exception:  # noqa: BLE001 — a damaged index raises anything; the thread must survive
            _LOG.exception("Search in the background")
        return None


def _lower_priority() -> None:
    """Lower this thread's priority in favour of the UI (on Linux, priorities are per thread)."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        except OSError as error:
            _LOG.debug("The priority can't be lowered: %s", error)


_DEBOUNCE_MS = 200
_STEP_MS = 50
_HEARTBEAT_MS = 1000


class Watcher:
    """A file watcher for folders of a workspace, in its own thread, where the system allows it."""

    def __init__(
        self, layout: Layout, areas: Sequence[str], changed: Callable[[set[str] | None], None]
    ) -> None:
        """Create a stopped watcher.

        Args:
            layout: The workspace's layout.
            areas: The areas whose folders are watched.
            changed: Called in the watching thread with changed workspace paths; or with None when
                watching starts or a folder appears or disappears, as changes may have been missed.
        """
        self._layout = layout
        self._areas = areas
        self._changed = changed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched: set[Path] = set()
        self._active_watch: threading.Event | None = None
        self._folders_changed = threading.Event()

    def running(self) -> object | None:
        """Return a token that identifies the current watch, or None if there is none.

        While it stays the same, every change is reported shortly after it was made.
        """
        is_alive = self._thread is not None and self._thread.is_alive()
        return self._active_watch if is_alive and self._active_watch is self._stop else None

    def follow(self) -> None:
        """Start watching, or restart if the set of folders has changed."""
        running = self._thread is not None and self._thread.is_alive()
        if running and self._layout.in_place and not self._folders_changed.is_set():
            return  # walk over all folders only after an event for one of them
        self._folders_changed.clear()
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
        """Stop watching, and wait for the thread to end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._watched = set()

    def _watch(self, stop: threading.Event, folders: set[Path]) -> None:
        import watchfiles

        try:
            for changes in watchfiles.watch(
                *folders,
                watch_filter=None,
                recursive=not self._layout.in_place,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=stop,
                rust_timeout=_HEARTBEAT_MS,
                yield_on_timeout=True,  # the first yield shows that watching has started
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if self._active_watch is not stop:
                    self._active_watch = stop
                    self._folders_changed.set()
                    self._changed(None)
                if any(Path(name) in folders or Path(name).is_dir() for _, name in changes):
                    self._folders_changed.set()
                paths = {path: Path(name) for _, name in changes if (path := self._relative(name))}
                if paths and not stop.is_set():
                    self._changed(set(paths))
                    if any(map(_may_be_folder, paths.values())):
                        self._changed(None)
        except (OSError, RuntimeError) as error:
            # Too many folders for this machine, or one vanished: sweeps find edits as well.
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
    """Return whether `place` is a folder, or is gone and may have been one."""
    return place.is_dir() or (place.suffix.lower() != ".md" and not place.exists())
