"""The workspace lock: one writer at a time, across threads and processes.

It is a kernel lock (flock), so it can't outlive its holder, and no stale lock blocks a restart. The
content of the lock file only tells waiting processes who holds it. (The package filelock falls back
to a lock that can outlive its holder if a file system has no flock; here such a workspace is
read-only.)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from kbtui.errors import StorageError, WorkspaceBusyError
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import Workspace

_TAKEN = {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK}
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class WorkspaceLock:
    """The lock of one workspace; reentrant within a thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.machine / "lock"
        self._threads = threading.RLock()
        self._depth = 0

    @contextlib.contextmanager
    def hold(self, timeout: float = 5.0) -> Iterator[None]:
        """Hold the lock for the block, waiting up to `timeout` seconds.

        Raises:
            WorkspaceBusyError: Another thread or process holds it; the message names the process.
            WorkspaceGoneError: The workspace isn't at its path any more.
            StorageError: The file system has no working locks.
        """
        deadline = time.monotonic() + timeout
        if not self._threads.acquire(timeout=timeout):
            raise WorkspaceBusyError(
                "Another task of this program is writing.", "Try again in a moment."
            )
        try:
            self._workspace.confirm()
            if self._depth:
                yield from self._enter()
                return
            file = open_lock(self._file)
            try:
                self._acquire(file, deadline)
                self._workspace.confirm()  # this may have taken seconds
                yield from self._enter()
            finally:
                os.close(file)
        finally:
            self._threads.release()

    def _enter(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _acquire(self, file: int, deadline: float) -> None:
        while not try_lock(file):
            if time.monotonic() >= deadline:
                raise WorkspaceBusyError(
                    f"The workspace is being written by {_holder(file)}.",
                    "Try again when it is done, or close that program.",
                )
            # A random delay keeps waiting processes out of step, so that none starves.
            time.sleep(random.uniform(0.002, 0.01))  # noqa: S311
        with contextlib.suppress(OSError):  # on a full disk the holder is just not named
            os.ftruncate(file, 0)
            os.pwrite(file, _describe_self(), 0)


def open_lock(file: Path) -> int:
    """Open a lock file, creating it if needed; closing it releases the lock.

    Raises:
        StorageError: The file system refused.
    """
    with storage_errors("Can't lock the workspace"):
        return os.open(file, _FLAGS, 0o600)


def try_lock(file: int) -> bool:
    """Try to take the lock of an open lock file; return False if it is taken.

    Raises:
        StorageError: The file system has no working locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise StorageError(
            f"The file system of the workspace has no working locks ({error.strerror}).",
            "Put the workspace on a local disk; until then it can only be read.",
        ) from error
    return True


def _describe_self() -> bytes:
    command = Path(sys.argv[0] or "python").name
    holder = {"pid": os.getpid(), "command": command, "since": time.strftime("%H:%M:%S")}
    return json.dumps(holder).encode()


def _holder(file: int) -> str:
    """Describe the holder of the lock from the lock file, which may not be written yet."""
    try:
        holder = json.loads(os.pread(file, 1000, 0))
        return f"{holder['command']} (process {holder['pid']}, since {holder['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another program"
