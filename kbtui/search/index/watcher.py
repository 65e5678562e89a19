"""Notices edits from outside: what changed under some folders, soon after it did."""

from __future__ import annotations

import logging
import threading
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOG = logging.getLogger(__name__)
_DEBOUNCE_MS = 200
_STEP_MS = 50


class Watcher:
    """Watches folders of a workspace in a thread of its own, as long as that is possible."""

    def __init__(
        self, root: Path, areas: Sequence[str], changed: Callable[[set[str]], None]
    ) -> None:
        """`changed` is told the workspace paths, in the watching thread."""
        self._root = root
        self._areas = areas
        self._changed = changed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched: set[Path] = set()

    def follow(self) -> None:
        """Start watching; again if a folder came or went since."""
        folders = {self._root / area for area in self._areas if (self._root / area).is_dir()}
        running = self._thread is not None and self._thread.is_alive()
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
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                paths = {path for _, name in changes if (path := self._relative(name))}
                if paths and not stop.is_set():
                    self._changed(paths)
        except (OSError, RuntimeError) as error:
            # Too many folders for this machine, or one vanished: the sweep finds edits as well.
            _LOG.info("Folders can't be watched: %s", error)

    def _relative(self, name: str) -> str:
        try:
            path = Path(name).relative_to(self._root).as_posix()
        except ValueError:
            return ""
        hidden = any(part.startswith(".") for part in path.split("/"))
        return "" if hidden else unicodedata.normalize("NFC", path)
