"""The one branch of the history: where it points to, and how it is moved without a race.

git's own protocol is kept (a lock file beside the ref, renamed into place), so that a real git that
packs or pushes refs at the same moment can't lose a move.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, StorageError
from kbtui.workspace.durable import (
    FileBatch,
    storage_errors,
    sync_folder,
    temporary_name,
    write_all,
)

if TYPE_CHECKING:
    from pathlib import Path

NAME = "refs/heads/main"
_HEX = 40
_PACKED = "packed-refs"
_PACKED_HEAD = "# pack-refs with: peeled fully-peeled sorted \n"


class Branch:
    """The branch of the repository in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / NAME
        self._lock = self._file.with_name("main.lock")

    def head(self) -> str | None:
        """The commit that the branch points to, None before the first.

        Raises:
            StorageError: What stands there is no commit id.
        """
        text = self._read()
        if text is None:
            return None
        if len(text) != _HEX or not all(char in "0123456789abcdef" for char in text):
            raise StorageError(
                f"{self._file} is damaged.",
                "Restore .kbtui/history.git from a backup, or move it away to start a new history;"
                " your notes are not affected.",
            )
        return text

    def _read(self) -> str | None:
        """The branch's own file, else git's file of packed refs."""
        with storage_errors("Can't read the history"):
            with contextlib.suppress(FileNotFoundError):
                return self._file.read_text("ascii", "replace").strip()
            with contextlib.suppress(FileNotFoundError):
                packed = (self._folder / _PACKED).read_text("ascii", "replace")
                for line in packed.splitlines():
                    identifier, _, name = line.partition(" ")
                    if name == NAME:
                        return identifier
        return None

    def move(self, old: str | None, new: str) -> None:
        """Let the branch point to `new`, if it still points to `old`.

        Raises:
            ConflictError: The branch is somewhere else, or a git program holds it.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._take_lock(new)
            self._check(old)
            self._lock.rename(self._file)
        except BaseException:
            with contextlib.suppress(OSError):  # what stopped us is worse
                self.clear_lock(new)
            raise
        sync_folder(self._file.parent)

    def name_alone(self, commit: str) -> None:
        """Let git's file of packed refs name nothing but this branch; at no moment it lacks it.

        The branch may stand only there, so the file is replaced and not removed.
        """
        if (self._folder / _PACKED).exists():
            with FileBatch(self._folder) as batch:
                batch.write(_PACKED, f"{_PACKED_HEAD}{commit} {NAME}\n".encode())
                batch.sync()

    def _take_lock(self, new: str) -> None:
        """Make the lock appear with its content in one step, so that it tells whose it is."""
        temporary = self._lock.with_name(temporary_name())
        try:
            _write_synced(temporary, f"{new}\n".encode())
            os.link(temporary, self._lock)
        except FileExistsError as error:
            raise ConflictError(
                "A git program is writing the history.",
                f"Wait for it to finish; if none is running, remove {self._lock}.",
            ) from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def _check(self, expected: str | None) -> None:
        if self.head() != expected:
            raise ConflictError("The history moved on meanwhile.", "Try again.")

    def clear_lock(self, commit: str) -> None:
        """Remove the lock if it is the one of our own move to `commit`."""
        with contextlib.suppress(FileNotFoundError):
            if self._lock.read_bytes() == f"{commit}\n".encode():
                self._lock.unlink()


def _write_synced(file: Path, data: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
