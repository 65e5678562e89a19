"""People first: background work leaves a model server on this machine to whoever is talking.

Such a server answers one request at a time, or several at the speed of one. So while somebody waits
for an answer, in any process and workspace of this user, a request of the background to the same
server is given up and made again afterwards.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")
log = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.5
_TOOL_SECONDS: Final = 2.0
"""After an answer: if it calls a tool, the next request follows, and the server is to keep what it
has read of the conversation."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Turns:
    """The turns that people take at one server.

    Who talks holds a shared lock on a file, which the kernel frees with the process. Where there
    can be no such file, nobody waits for anybody.
    """

    def __init__(self, server: str, folder: Path | None = None) -> None:
        """`folder` is where the user's state is; for tests."""
        state = folder or platformdirs.user_state_path("kbtui", appauthor=False)
        digest = blake2b(server.rstrip("/").encode(), digest_size=8).hexdigest()
        self._file = state / "talking" / digest

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Have the background wait during the block, and for a moment after it."""
        lock = self._open()
        try:
            if lock is not None:
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_SH)
            yield
        finally:
            if lock is not None:
                with suppress(OSError):
                    os.pwrite(lock, b"\n", 0)  # the time of the file is when a turn ended
                os.close(lock)

    async def after(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns, called when nobody talks, and again if somebody begins to."""
        while True:
            while self._is_taken():  # noqa: ASYNC110 - by another process, which sends no event
                await asyncio.sleep(_POLL_SECONDS)
            answer = asyncio.ensure_future(ask())
            try:
                while not answer.done():
                    await asyncio.wait([answer], timeout=_POLL_SECONDS)
                    if not answer.done() and self._is_taken():
                        break
                else:
                    return answer.result()
                log.info("a request of the background waits for a person's turn")
            finally:
                if not answer.done():
                    answer.cancel()
                    await asyncio.wait([answer])

    def _is_taken(self) -> bool:
        """Return whether somebody talks, or did a moment ago."""
        lock = self._open()
        if lock is None:
            return False
        try:
            found = os.fstat(lock)
            if found.st_size and 0 <= time.time() - found.st_mtime < _TOOL_SECONDS:
                return True
            return not (_is_free(lock) or _is_free(lock))  # once for another who looks
        finally:
            os.close(lock)

    def _open(self) -> int | None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._file, _FLAGS, 0o600)
        except OSError:
            return None


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(0.01)
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True
