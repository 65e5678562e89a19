"""The list of sessions, from a cache: a log is only read again when it has changed."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kbtui.errors import StorageError
from kbtui.sessions.log_records import SessionLog
from kbtui.workspace.jsonl import read_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
_SUFFIX = ".jsonl"
_CACHE = "sessions.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a list shows of a session; `messages` counts what was said and not taken back."""

    id: str
    title: str
    created: datetime
    updated: datetime
    messages: int
    channel: str


class SessionList:
    """Knows all logs of a workspace by size and time of change."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[tuple[int, int], SessionInfo]] = {}
        self._loaded = False
        self._lock = threading.Lock()

    def refresh(self) -> list[SessionInfo]:
        """Look for new and changed logs; the one last spoken in comes first."""
        with self._lock:
            if not self._loaded:
                self._known = _load(self._workspace)
                self._loaded = True
            known = {name: self._look_at(file) for name, file in self._files().items()}
            current = {name: item for name, item in known.items() if item is not None}
            if current != self._known:
                self._known = current
                _store(self._workspace, current)
            infos = [info for _, info in current.values()]
        return sorted(infos, key=lambda info: (info.updated, info.id), reverse=True)

    def _files(self) -> dict[str, Path]:
        return {
            file.name.removesuffix(_SUFFIX): file
            for file in self._workspace.sessions.glob(f"[!.]*{_SUFFIX}")
            if file.is_file() and not file.is_symlink()
        }

    def _look_at(self, file: Path) -> tuple[tuple[int, int], SessionInfo] | None:
        session_id = file.name.removesuffix(_SUFFIX)
        try:
            status = file.stat()
            state = (status.st_size, status.st_mtime_ns)
            before = self._known.get(session_id)
            if before is not None and before[0] == state:
                return before
            whole = SessionLog.of(read_lines(file).records)
        except (OSError, StorageError) as error:
            log.warning("the session %s can't be read: %s", session_id, error)
            return None
        info = SessionInfo(
            session_id,
            whole.shown_title,
            whole.created,
            whole.updated,
            len(whole.messages),
            whole.channel,
        )
        return state, info


def _load(workspace: Workspace) -> dict[str, tuple[tuple[int, int], SessionInfo]]:
    """Read the cache; anything odd about it means that there is none."""
    try:
        value = json.loads((workspace.cache / _CACHE).read_bytes())
        if value["version"] != _VERSION:
            return {}
        return {name: _from_json(item) for name, item in value["sessions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _store(workspace: Workspace, known: Mapping[str, tuple[tuple[int, int], SessionInfo]]) -> None:
    sessions = {name: _as_json(state, info) for name, (state, info) in known.items()}
    try:
        file = workspace.cache / _CACHE
        scratch = file.with_suffix(".new")
        scratch.write_text(json.dumps({"version": _VERSION, "sessions": sessions}), "utf-8")
        scratch.replace(file)
    except OSError as error:
        log.info("the list of sessions can't be cached: %s", error)


def _as_json(state: tuple[int, int], info: SessionInfo) -> dict[str, Any]:
    times = {"created": info.created.isoformat(), "updated": info.updated.isoformat()}
    return {"state": state, **asdict(info), **times}


def _from_json(item: Mapping[str, Any]) -> tuple[tuple[int, int], SessionInfo]:
    size, changed = item["state"]
    info = SessionInfo(
        str(item["id"]),
        str(item["title"]),
        datetime.fromisoformat(item["created"]),
        datetime.fromisoformat(item["updated"]),
        int(item["messages"]),
        str(item["channel"]),
    )
    return (int(size), int(changed)), info
