"""How far Dream has read the archive: ``memory/cursors.json``, committed with its work.

There is one cursor per origin. If the file is lost or damaged, the last state in the log is used,
so nothing is read twice; a restore to an earlier state is respected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Change
from kbtui.history.history import History
from kbtui.memory.records.archive_lines import ArchiveEntry
from kbtui.text import json_object
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

CURSORS = "memory/cursors.json"
DREAM = "dream"
_OLD_CURSOR = ".dream_cursor"


class Cursors:
    """Reads and advances Dream's cursors; those of other readers are left alone."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        self._workspace = workspace
        self._history = history

    def seen(self) -> dict[str, int]:
        """Return the last cursor of each origin that Dream has seen."""
        state = read_cursors(self._file())
        if state is None:
            state = self._from_log()
        if state is None:
            state = {DREAM: self._nanobot_cursor()}
        return dict(state.get(DREAM, {}))

    def at(self, commit: str) -> dict[str, int]:
        """Return the last cursor of each origin that Dream had seen as of a commit."""
        try:
            state = read_cursors(self._history.read(CURSORS, commit))
        except NotFoundError:
            return {}
        return dict((state or {}).get(DREAM, {}))

    def stage(self, change: Change, entries: Iterable[ArchiveEntry]) -> dict[str, int]:
        """Advance Dream's cursors past `entries` in a running change, and return them.

        They never move back. The entries of an origin must be the next ones that Dream hadn't seen.
        """
        seen = self.seen()
        for entry in entries:
            seen[entry.origin] = max(seen.get(entry.origin, 0), entry.cursor)
        state = read_cursors(self._file()) or self._from_log() or {}
        state[DREAM] = dict(sorted(seen.items()))
        text = json.dumps(state, indent=2, sort_keys=True, ensure_ascii=False)
        change.write(CURSORS, f"{text}\n")
        return seen

    def _file(self) -> bytes | None:
        try:
            return files.read_bytes(self._workspace, CURSORS)
        except KbtuiError:
            return None

    def _from_log(self) -> dict[str, dict[str, int]] | None:
        """Return the newest readable state in the log; empty if the file was restored away."""
        for commit in self._history.log(CURSORS, limit=50):
            try:
                state = read_cursors(self._history.read(CURSORS, commit.id))
            except NotFoundError:
                if commit.is_restoration:
                    return {}
                continue
            if state is not None:
                return state
        return None

    def _nanobot_cursor(self) -> dict[str, int]:
        try:
            text = (self._workspace.memory / _OLD_CURSOR).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return {}
        return {"": int(text)} if text.isdecimal() else {}


def read_cursors(data: bytes | None) -> dict[str, dict[str, int]] | None:
    """Parse the cursors file into cursors by reader and origin; None if it isn't a JSON object."""
    value = json_object(data)
    if value is None:
        return None
    return {reader: _origins(each) for reader, each in value.items() if isinstance(each, dict)}


def _origins(value: Mapping[str, Any]) -> dict[str, int]:
    return {
        origin: cursor
        for origin, cursor in value.items()
        if isinstance(cursor, int) and not isinstance(cursor, bool) and cursor >= 0
    }
