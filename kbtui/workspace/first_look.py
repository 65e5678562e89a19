"""The note that a workspace is to be opened at, once: who makes one leaves it for the app."""

from __future__ import annotations

from kbtui.workspace import files
from kbtui.workspace.layout import MACHINE, Workspace

_FILE = f"{MACHINE}/first-look"
_LONGEST = 4_096


def leave_first_look(workspace: Workspace, path: str) -> None:
    """Let the app show a note when it opens the workspace for the first time."""
    files.write_machine_file(workspace.root, _FILE, f"{path}\n".encode())


def take_first_look(workspace: Workspace) -> str | None:
    """The path of that note, given once; None where there is none to show."""
    file = workspace.root / _FILE
    try:
        with file.open("rb") as stream:
            text = stream.read(_LONGEST).decode().strip()
        file.unlink()
    except (OSError, UnicodeDecodeError):
        return None
    return text if files.is_path(text) and files.exists(workspace, text) else None
