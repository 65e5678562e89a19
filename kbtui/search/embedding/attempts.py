"""Attempts at preparing a model: one at a time, and none by itself soon after one that failed.

What is known of them lies in the folder of the prepared models, which all workspaces of a user
share. The locks are the kernel's, so that whoever is killed holds none.
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
_WRITING = ".lock"
_APART = ".apart"
_FAILED = "failed.json"


@contextmanager
def alone(models: Path) -> Iterator[None]:
    """Write into the folder of models alone for the block; waits for whoever does so now."""
    with (models / _WRITING).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(models: Path) -> int | None:
    """The lock of the one process that goes on after a command; None while there is one.

    It belongs to the open file: a child that is handed it holds it until it ends.

    Raises:
        OSError: the folder can't be written.
    """
    models.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(models / _APART, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def is_under_way(models: Path) -> bool:
    """True if some process prepares a model, or has begun to see to it."""
    return any(_is_held(models / name) for name in (_WRITING, _APART))


def _is_held(lock: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def remember_failure(models: Path, fingerprint: str, error: KbtuiError) -> None:
    """Keep in mind that a model couldn't be prepared; in vain where nothing can be kept."""
    told = {"fingerprint": fingerprint, "message": error.message, "at": time.time()}
    with suppress(OSError):
        (models / _FAILED).write_text(json.dumps(told), "utf-8")


def forget_failure(models: Path) -> None:
    """A model was prepared."""
    with suppress(OSError):
        (models / _FAILED).unlink(missing_ok=True)


def last_failure(models: Path, fingerprint: str) -> tuple[str, float] | None:
    """Why a model couldn't be prepared, and for how many more seconds that counts."""
    with suppress(OSError, KeyError, TypeError):
        told = json_object((models / _FAILED).read_bytes()) or {}
        left = told["at"] + REMEMBERED_SECONDS - time.time()
        # A time to come is that of a clock that was wrong.
        if told["fingerprint"] == fingerprint and 0 < left <= REMEMBERED_SECONDS:
            return str(told["message"]), left
    return None
