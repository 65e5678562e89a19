"""Locks and failure records for preparing models: one attempt at a time, with a retry delay.

They are files in the folder of prepared models, which all workspaces of a user share. The locks are
`flock` locks, so a killed process holds none.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kbtui.errors import KbtuiError
from kbtui.text import json_object

REMEMBERED_SECONDS = 3600.0
_WRITE_LOCK = ".lock"
_DETACHED_LOCK = ".apart"
_FAILED = "failed.json"


@contextmanager
def write_lock(models: Path) -> Iterator[None]:
    """Hold the write lock on the folder of models for the block, waiting for it if needed."""
    with (models / _WRITE_LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(models: Path) -> int | None:
    """Acquire the lock of the detached process; return its descriptor, or None if it is held.

    The lock belongs to the open file: a child that inherits the descriptor holds it until it ends.

    Raises:
        OSError: the folder can't be written.
    """
    models.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(models / _DETACHED_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def is_under_way(models: Path) -> bool:
    """Return whether a process is preparing a model, or has been started for it."""
    return any(_is_held(models / name) for name in (_WRITE_LOCK, _DETACHED_LOCK))


def _is_held(lock: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def remember_failure(models: Path, fingerprint: str, error: KbtuiError) -> None:
    """Record that a model couldn't be prepared, if the folder can be written."""
    record = {"fingerprint": fingerprint, "message": error.message, "at": time.time()}
    with suppress(OSError):
        (models / _FAILED).write_text(json.dumps(record), "utf-8")


def forget_failure(models: Path) -> None:
    """Delete the record of a failure."""
    with suppress(OSError):
        (models / _FAILED).unlink(missing_ok=True)


def last_failure(models: Path, fingerprint: str) -> tuple[str, float] | None:
    """Return why a model couldn't be prepared, and the seconds until a retry; None if it may."""
    with suppress(OSError, KeyError, TypeError):
        record = json_object((models / _FAILED).read_bytes()) or {}
        left = record["at"] + REMEMBERED_SECONDS - time.time()
        # A time in the future means that the clock was wrong.
        if record["fingerprint"] == fingerprint and 0 < left <= REMEMBERED_SECONDS:
            return str(record["message"]), left
    return None
