"""Unsaved text of the editor, kept beside the workspace until it is saved or given up."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from kbtui.tui.terminal.state import read_state, workspace_state, write_state

if TYPE_CHECKING:
    from pathlib import Path


class Draft(NamedTuple):
    """What was typed, and the hash of the file that it was typed over (None: there was none)."""

    text: str
    base: str | None
    base_text: str


def _file(root: Path, path: str) -> Path:
    name = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return workspace_state(root) / "edits" / f"{name}.json"


def keep_draft(root: Path, path: str, draft: Draft) -> bool:
    """Store a draft; False where the disk refuses."""
    record = {"path": path, **draft._asdict()}
    return write_state(_file(root, path), json.dumps(record, ensure_ascii=True))


def find_draft(root: Path, path: str) -> Draft | None:
    """The draft of a file, if one was left."""
    try:
        record = json.loads(read_state(_file(root, path)))
        if record["path"] != path:
            return None
        return Draft(str(record["text"]), record["base"], str(record["base_text"]))
    except (ValueError, KeyError, TypeError):
        return None


def drop_draft(root: Path, path: str) -> None:
    """Forget a draft that was saved or given up."""
    with contextlib.suppress(OSError):
        _file(root, path).unlink()
