"""Imports that were begun: each is a batch, with a small file of its own under ``.kbtui/imports``.

The file says what is being imported, until when, and which of its conversations memory was made of.
Without it nothing is lost but the place to go on at: sessions and commits name their batch.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbtui.text import json_object
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.files import write_machine_file
from kbtui.workspace.layout import MACHINE, Workspace

_FOLDER = f"{MACHINE}/imports"


@dataclass(frozen=True, slots=True)
class Batch:
    """One import."""

    workspace: Workspace
    id: str

    def read(self) -> dict[str, Any]:
        """What is known of it; empty where nothing is."""
        try:
            return json_object(self._file(".json").read_bytes()) or {}
        except OSError:
            return {}

    def note(self, **more: Any) -> None:
        """Write down more about it."""
        data = json.dumps({**self.read(), **more}, ensure_ascii=False).encode("utf-8", "replace")
        write_machine_file(self.workspace, f"{_FOLDER}/{self.id}.json", data)

    def remembered(self, session: str) -> None:
        """Note that memory was made of a session; it may be lost in a crash."""
        self._add(".done", session)

    def done(self) -> frozenset[str]:
        """The sessions that memory was made of."""
        return frozenset(self._lines(".done"))

    def keep(self, path: str, blob: str) -> None:
        """Note a file that is about to be brought beside the history, and its blob's id."""
        parts = path.split("/")
        for folder in ("/".join(parts[:end]) for end in range(1, len(parts))):
            if not self.workspace.place(folder).exists():
                self._add(".files", f"- {folder}")
        self._add(".files", f"{blob} {path}")

    def kept(self) -> list[tuple[str, str]]:
        """The paths and blobs of such files."""
        found = [line.partition(" ") for line in self._lines(".files")]
        return [(path, blob) for blob, _, path in found if path and blob != "-"]

    def folders(self) -> list[str]:
        """The folders that were made for them, the inner ones first."""
        found = {line[2:] for line in self._lines(".files") if line.startswith("- ")}
        return sorted(found, reverse=True)

    def _add(self, suffix: str, line: str) -> None:
        with storage_errors("Can't write down how far the import is"):
            file = self._file(suffix)
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{line}\n")

    def _lines(self, suffix: str) -> list[str]:
        try:
            return self._file(suffix).read_text("utf-8", "replace").split("\n")[:-1]
        except OSError:
            return []

    def forget(self) -> None:
        """Remove its files: nothing came, or it was taken back."""
        for suffix in (".json", ".done", ".files"):
            with contextlib.suppress(OSError):
                self._file(suffix).unlink()

    def _file(self, suffix: str) -> Path:
        return self.workspace.place(f"{_FOLDER}/{self.id}{suffix}")


def batches(workspace: Workspace) -> list[Batch]:
    """All that are known, the oldest first."""
    names = sorted(file.stem for file in workspace.place(_FOLDER).glob("*.json"))
    return [Batch(workspace, name) for name in names]


def begun(workspace: Workspace, path: Path, source: str) -> Batch:
    """The import of this path that was stopped, else a new one, which is noted."""
    place = str(path.resolve())
    for batch in reversed(batches(workspace)):
        known = batch.read()
        if known.get("path") == place and known.get("source") == source and "ended" not in known:
            return batch
    name = f"import-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    batch = Batch(workspace, name)
    batch.note(path=place, source=source, begun=stamp())
    return batch


def stamp() -> str:
    """The time now, as the files say it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
