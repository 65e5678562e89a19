"""Knowing what others changed without a look at every file at every call.

A watcher tells which files changed; the history's newest commit tells of other programs of ours at
once, which a watcher does a moment later. All files are looked at where no watcher runs, and now
and then in any case, as there are disks that tell nothing.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.search.background import Watcher
from kbtui.workspace.layout import BOOTSTRAP_FILES
from kbtui.workspace.scan import AREAS, IGNORE_FILE

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase

_MOST_COMMITS = 50
_FOLDERS = tuple(area for area in AREAS if area not in BOOTSTRAP_FILES)
_Stamp = tuple[int, int]


class KeepingUp:
    """Keeps the library and the search of one workspace as new as its files.

    Args:
        kb: The workspace, open.
        seconds: Look at all files after so long, whatever the watcher says.
    """

    def __init__(self, kb: KnowledgeBase, seconds: float) -> None:
        self._kb = kb
        self._seconds = seconds
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._changed: set[str] = set()
        self._watcher = Watcher(kb.workspace, _FOLDERS, self._note)
        self._looked_at = float("-inf")
        self._watch: object = None
        self._head: str | None = None
        self._ignored: _Stamp | None = None

    def catch_up(self) -> set[str] | None:
        """Take note of what changed since the last call; gives the paths, None: look at all."""
        with self._lock:
            paths = self._news()
        if paths is None:
            self._kb.library.refresh()
        else:
            self._kb.library.mark(paths)
        return paths

    def close(self) -> None:
        """Stop watching."""
        self._watcher.stop()

    def _news(self) -> set[str] | None:
        """The files to look at, None for all; the lock is held."""
        self._watcher.follow()
        watch = self._watcher.running()
        now = time.monotonic()
        committed, ignored = self._committed(), self._ignore_stamp()
        with self._telling:
            told, self._changed = self._changed, set()
        is_sure = watch is not None and watch is self._watch and ignored == self._ignored
        self._watch, self._ignored = watch, ignored
        if not is_sure or now - self._looked_at > self._seconds or committed is None:
            self._looked_at = now
            return None
        if any(self._is_folder(path) for path in told):
            self._looked_at = now
            return None
        return told | committed | set(BOOTSTRAP_FILES)

    def _note(self, paths: set[str]) -> None:
        """Keep what the watcher tells, in its thread."""
        with self._telling:
            self._changed |= paths

    def _committed(self) -> set[str] | None:
        """The files of the commits since the last call; None if that is more than a few."""
        history = self._kb.history
        before, self._head = self._head, history.head()
        if before == self._head:
            return set()
        paths: set[str] = set()
        try:
            for commit in history.log(limit=_MOST_COMMITS):
                if commit.id == before:
                    return paths
                paths |= {n for c in commit.paths for n in (c.path, c.old_path) if n}
        except KbtuiError:
            pass
        return None

    def _ignore_stamp(self) -> _Stamp | None:
        try:
            status = (self._kb.workspace.root / IGNORE_FILE).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _is_folder(self, path: str) -> bool:
        """True if a change may be that of a folder, of whose files nothing is told."""
        place = self._kb.workspace.place(path)
        return not path.lower().endswith(".md") and (place.is_dir() or not place.exists())
