"""The inbox of older versions: a JSON file a proposal, until a migration lets them wait on."""

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

_BRIEFLY = 0.5  # seconds that a start waits for another writer


@dataclass(frozen=True, slots=True)
class OlderProposal:
    """A proposal as it stands in its file.

    Attributes:
        id: Its name.
        created: When it came.
        actor: Who proposed it.
        reason: Why.
        origin: What it comes from.
        texts: The new text of each file; None: it goes.
        bases: What each file held when that was made; None: it wasn't there.
        was: Fingerprints of what it was before a person reworded it.
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
    """The files of such proposals that are left."""
    folder = workspace.root / FOLDER
    return sorted(file for file in folder.glob("[!.]*.json") if file.is_file())


def take_over(
    workspace: Workspace, history: History, take: Callable[[OlderProposal], None]
) -> None:
    """Have all of them taken, and remove their files; what can't be read stays.

    Raises:
        WorkspaceBusyError: Somebody else is writing.
    """
    for file in old_files(workspace):
        try:
            with history.alone(_BRIEFLY):
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
    """The bytes of a text: the file's, where that says it, for its mark and encoding."""
    if text is None:
        return None
    if files.exists(workspace, path):
        data = files.read_bytes(workspace, path)
        if files.text_of(data) == text:
            return data
    return text.encode("utf-8", "replace")
