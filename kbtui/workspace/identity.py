"""The id of a workspace, which tells whether the folder at a path is still the one that was opened.

A folder can be moved, deleted, unmounted or replaced while it is open. Whatever is written after
that would land in a stranger's folder, or in the empty shell of a stick's mount point.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from pathlib import Path

from kbtui.errors import WorkspaceGoneError

_FORMAT = re.compile(r"[0-9a-f]{32}")
_Stamp = tuple[int, int, int, int]


def new_id() -> str:
    """Return an id for a workspace."""
    return secrets.token_hex(16)


def read_id(file: Path) -> str:
    """Return the id in a file; empty if there is none."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if _FORMAT.fullmatch(text) else ""


class Identity:
    """The identity of one open workspace.

    Args:
        root: Its folder.
        file: The file with its id, in the folder of kbtui's own files.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file
        self._id = read_id(file)
        self._stamp = self._look()
        self._folder = _folder_of(file)

    @property
    def id(self) -> str:
        """The id; empty if it has none, as in a folder that was never writable."""
        return self._id

    def renew(self, identifier: str) -> None:
        """Take another id, which was just written: a copied workspace becomes one of its own."""
        self._id = identifier
        self._stamp = self._look()

    def confirm(self) -> None:
        """Make sure that the workspace is still at its path; called before each write.

        The id is read only if the file isn't the one that was read last, by device, inode and time:
        a disk that was mounted again has others, and is the same workspace nevertheless.

        Raises:
            WorkspaceGoneError: It isn't.
        """
        stamp = self._look()
        if stamp is not None and stamp == self._stamp:
            return
        found = read_id(self._file)
        if found and not self._id and _folder_of(self._file) == self._folder:
            self._id = found  # another process has given it one
        if found != self._id or (not found and _folder_of(self._file) != self._folder):
            raise WorkspaceGoneError(
                f"The workspace is no longer at {self._root}: {self._what_is_there()}.",
                "Bring the folder back, or open it where it is now: `kbtui -w FOLDER`. Nothing was"
                " written.",
            )
        self._stamp, self._folder = stamp, _folder_of(self._file)

    def _look(self) -> _Stamp | None:
        with contextlib.suppress(OSError):
            status = self._file.stat()
            return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        return None

    def _what_is_there(self) -> str:
        if read_id(self._file):
            return "another workspace is there"
        if self._file.parent.is_dir():
            return "the one there isn't it, as it has no id"
        if self._root.is_dir():
            return "the folder there is no workspace"
        return "the folder was moved, deleted or unmounted"


def _folder_of(file: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = file.parent.stat()
        return status.st_dev, status.st_ino
    return None
