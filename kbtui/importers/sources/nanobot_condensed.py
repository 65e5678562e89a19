"""What nanobot had condensed of its sessions, which is looked for after each answer."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kbtui.errors import StorageError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.records.archive import Archive
from kbtui.text import json_object
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import read_lines
from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
LOG = ".jsonl"
ROLES = ("system", "user", "assistant", "tool")  # a tuple: values from files may be unhashable
CONSOLIDATED = "last_consolidated"
CONVERTED = "converted"


def count_consolidated(workspace: Workspace, history: History, archive: Archive) -> int:
    """Record in the archive what nanobot had condensed, and return the number of sessions."""
    due = [file for file in _condensed(workspace) if not archive.covered(_name(file))]
    for file in due:
        session, messages = _name(file), (1, _consolidated_in(file))
        text = f"nanobot had condensed messages 1 to {messages[1]} of {session} before."
        with history.change(Actor.IMPORT, text, Origin(session=session)) as change:
            archive.stage(
                change, text, session=session, messages=messages, timestamp=_modified(file)
            )
    return len(due)


def _condensed(workspace: Workspace) -> Iterator[Path]:
    """Yield the logs whose first line says that nanobot had condensed a part of them."""
    for file in sorted(workspace.sessions.glob(f"[!.]*{LOG}")):
        try:
            if is_file(file) and _consolidated_in(file):
                yield file
        except StorageError as error:  # retried at the next start
            log.warning("%s", error)


def is_file(file: Path) -> bool:
    """Return whether a file is one, and no link."""
    return os.path.isfile(file) and not file.is_symlink()


def _consolidated_in(file: Path) -> int:
    """Return how many messages nanobot had condensed, of those it wrote (which have no ids)."""
    first = first_of(file)
    count = count_of(first.get(CONSOLIDATED))
    if not count or CONVERTED in first:
        return count
    records = read_lines(file).records
    return min(count, sum(1 for each in records if each.get("role") in ROLES and "id" not in each))


def first_of(file: Path) -> Mapping[str, Any]:
    """Return the first record of a log; empty if it is none."""
    with storage_errors(f"Can't read {file.name}"), file.open("rb") as stream:
        line = stream.readline(64 * 1024)
    return json_object(line) or {}


def count_of(value: Any) -> int:
    """Return a number from a file if it is a count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _modified(file: Path) -> datetime:
    with storage_errors(f"Can't read {file.name}"):
        return datetime.fromtimestamp(file.stat().st_mtime).astimezone()


def _name(file: Path) -> str:
    return file.name.removesuffix(LOG)
