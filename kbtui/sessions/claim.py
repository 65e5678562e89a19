"""One process at a time per open session at most.

Each open session is claimed by a lock file under ``.kbtui/``; the kernel lets go of it when the
process ends, however that happens. The log itself can't carry the lock: it is locked for the
moment of each append.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Claim:
    """A held claim; `release` gives it up."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path, session_id: str) -> Claim:
        """Claim a session for this process.

        Raises:
            ConflictError: another process has it open.
            StorageError: the lock file can't be made.
        """
        file = folder / f"{session_id}.lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                descriptor = os.open(file, _FLAGS, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                    os.close(descriptor)
                    raise _taken(session_id, holder) from None
                if _is_still(file, descriptor):
                    break
                os.close(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise StorageError(f"Can't open the session {session_id}: {error.strerror}.") from error
        return cls(file, descriptor)

    def release(self) -> None:
        """Give the session up; a second call does nothing."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            # While it is still locked: whoever waits for it sees that the name is gone.
            self._file.unlink()
        os.close(self._descriptor)
        self._descriptor = None


def _is_still(file: Path, descriptor: int) -> bool:
    """Whether the locked file is the one that the name stands for, not one just removed."""
    try:
        named = file.stat()
    except FileNotFoundError:
        return False
    return named.st_ino == os.fstat(descriptor).st_ino


def _taken(session_id: str, holder: str) -> ConflictError:
    by = f" by process {holder}" if holder.isdecimal() else ""
    return ConflictError(
        f"The session {session_id} is open in another window{by}.",
        "Close it there, or start another one with /new.",
    )
