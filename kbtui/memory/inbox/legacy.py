"""The inbox of older versions, one JSON file per proposal, until a migration imports it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kbtui.errors import KbtuiError, WorkspaceBusyError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.inbox.rejections import FOLDER
from kbtui.memory.records.ranges import read_range
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_LOCK_TIMEOUT = 0.5  # seconds that startup waits for another writer


@dataclass(frozen=True, slots=True)
class OlderProposal:
    """A proposal as stored in its file.

    Attributes:
        id: Its id.
        created: When it was made.
        actor: Who proposed it.
        reason: Why.
        origin: What it comes from.
        texts: The new text of each file, None to delete it.
        bases: The content of each file that it was made from, None if there was no file.
        was: Fingerprints from before a person reworded it.
    """

    id: str
    created: datetime
    actor: Actor
    reason: str
    origin: Origin
    texts: Mapping[str, str | None]
    bases: Mapping[str, bytes | None]
    was: Sequence[str]


def old_files(workspace: Workspace) -> Sequence[Path]:
    """Return the remaining files of such proposals."""
    folder = workspace.root / FOLDER
    return sorted(file for file in folder.glob("[!.]*.json") if file.is_file())


def import_older(
    workspace: Workspace, history: History, take: Callable[[OlderProposal], None]
) -> None:
    """Pass each proposal to `take` and remove its file; unreadable ones stay.

    Raises:
        WorkspaceBusyError: Another process is writing.
    """
    for file in old_files(workspace):
        try:
            with history.alone(_LOCK_TIMEOUT):
                take(_read(workspace, file))
                file.unlink(missing_ok=True)
        except WorkspaceBusyError:
            raise
        except (OSError, KbtuiError, ValueError, KeyError, TypeError, RecursionError):
            continue


def _read(workspace: Workspace, file: Path) -> OlderProposal:
    value = json.loads(file.read_bytes())
    edits = {files.checked_path(each["path"]): each for each in value["edits"]}
    olds = {path: each.get("base_text") for path, each in edits.items()}
    return OlderProposal(
        file.name.removesuffix(".json"),
        datetime.fromisoformat(value["created"]),
        Actor(value["actor"]),
        str(value["reason"]),
        Origin(**{**value["origin"], "messages": read_range(value["origin"].get("messages"))}),
        {path: each["text"] for path, each in edits.items()},
        {path: _as_file(workspace, path, old) for path, old in olds.items()},
        [each for each in value.get("was", ()) if isinstance(each, str)],
    )


def _as_file(workspace: Workspace, path: str, text: str | None) -> bytes | None:
    """Return a text as bytes: the file's own, if it has this text, for its BOM and encoding."""
    if text is None:
        return None
    if files.exists(workspace, path):
        data = files.read_bytes(workspace, path)
        if files.text_of(data) == text:
            return data
    return text.encode("utf-8", "replace")
