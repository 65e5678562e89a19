"""Progress records of imports: each import is a batch with small files in ``.kbtui/imports``.

They record what is imported, when it began and ended, which sessions memory was made of, and which
files were written outside the history. Losing them loses only the point to resume from: sessions
and commits name their batch too.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbtui.history.change import new_batch_id
from kbtui.text import json_object
from kbtui.workspace.durable import make_folder, storage_errors
from kbtui.workspace.files import write_machine_file
from kbtui.workspace.layout import MACHINE, Workspace

_FOLDER = f"{MACHINE}/imports"


@dataclass(frozen=True, slots=True)
class Batch:
    """One import, identified by its `id`, and its progress files."""

    workspace: Workspace
    id: str

    def read(self) -> dict[str, Any]:
        """Return the recorded fields, empty if there are none."""
        try:
            return json_object(self._file(".json").read_bytes()) or {}
        except OSError:
            return {}

    def update(self, **more: Any) -> None:
        """Add or replace fields of the record."""
        data = json.dumps({**self.read(), **more}, ensure_ascii=False).encode("utf-8", "replace")
        write_machine_file(self.workspace, f"{_FOLDER}/{self.id}.json", data)

    def mark_remembered(self, session: str) -> None:
        """Record that memory was made of a session; not synced, so a crash may lose it."""
        self._append(".done", session)

    def remembered(self) -> frozenset[str]:
        """Return the sessions that memory was made of."""
        return frozenset(self._lines(".done"))

    def add_file(self, path: str, blob: str) -> None:
        """Record a file about to be written outside the history, and its blob id."""
        parts = path.split("/")
        for folder in ("/".join(parts[:end]) for end in range(1, len(parts))):
            if not self.workspace.place(folder).exists():
                self._append(".files", f"- {folder}")
        self._append(".files", f"{blob} {path}")

    def added_files(self) -> list[tuple[str, str]]:
        """Return the paths and blob ids of the files recorded by `add_file`."""
        found = [line.partition(" ") for line in self._lines(".files")]
        return [(path, blob) for blob, _, path in found if path and blob != "-"]

    def folders(self) -> list[str]:
        """Return the folders created for those files, inner ones first."""
        found = {line[2:] for line in self._lines(".files") if line.startswith("- ")}
        return sorted(found, reverse=True)

    def _append(self, suffix: str, line: str) -> None:
        with storage_errors("Can't write down how far the import is"):
            file = self._file(suffix)
            make_folder(self.workspace, _FOLDER)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{line}\n")

    def _lines(self, suffix: str) -> list[str]:
        try:
            return self._file(suffix).read_text("utf-8", "replace").split("\n")[:-1]
        except OSError:
            return []

    def forget(self) -> None:
        """Delete the progress files, once nothing was imported or it was undone."""
        for suffix in (".json", ".done", ".files"):
            with contextlib.suppress(OSError):
                self._file(suffix).unlink()

    def _file(self, suffix: str) -> Path:
        return self.workspace.place(f"{_FOLDER}/{self.id}{suffix}")


def batches(workspace: Workspace) -> list[Batch]:
    """Return all batches on record, oldest first."""
    found = [Batch(workspace, file.stem) for file in workspace.place(_FOLDER).glob("*.json")]
    return sorted(found, key=lambda batch: (_number(batch), batch.id))


def _number(batch: Batch) -> int:
    """Return the place of a batch among the others, whatever the clock said; 0 of an old one."""
    number = batch.read().get("number")
    return number if isinstance(number, int) else 0


def resume_or_begin(workspace: Workspace, path: Path, source: str) -> Batch:
    """Return the unfinished import of a path from a source, or record a new one."""
    place = str(path.resolve())
    others = batches(workspace)
    for batch in reversed(others):
        known = batch.read()
        if known.get("path") == place and known.get("source") == source and "ended" not in known:
            return batch
    batch = Batch(workspace, new_batch_id(datetime.now(UTC)))
    number = 1 + (_number(others[-1]) if others else 0)
    batch.update(path=place, source=source, begun=timestamp(), number=number)
    return batch


def timestamp() -> str:
    """Return the current time in UTC as ISO 8601, for the records."""
    return datetime.now(UTC).isoformat(timespec="seconds")
