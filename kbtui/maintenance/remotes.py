"""The place that each workspace is synced with, remembered beside the user's own settings.

Not in the workspace: that may be a shared folder, and must not choose where notes are sent to. An
address may hold a token, so the file is readable by its owner only.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import platformdirs

from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.workspace.layout import Workspace

_NAME = "remotes.json"


class Remotes:
    """The remote that is remembered for one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._key = os.fspath(workspace.root)

    def get(self) -> str | None:
        """The address; None where none is known."""
        found = self._all().get(self._key)
        return found if isinstance(found, str) and found else None

    def put(self, address: str) -> None:
        """Remember an address.

        Raises:
            StorageError: The file system refused.
        """
        known = self._all()
        if known.get(self._key) == address:
            return
        known[self._key] = address
        folder = _folder()
        with storage_errors(f"Can't write {folder / _NAME}"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False).encode()
        files.write_machine_file(folder, _NAME, data)

    def _all(self) -> dict[str, object]:
        try:
            value = json.loads((_folder() / _NAME).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


def _folder() -> Path:
    return platformdirs.user_state_path("kbtui", appauthor=False)
