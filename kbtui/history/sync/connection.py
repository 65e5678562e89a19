"""A line to another machine that may fall silent: waits a while, and only as long as wanted."""

from __future__ import annotations

import contextlib
import io
import os
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from kbtui.errors import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.history.sync.remote import Watcher


_LOOK_SECONDS = 0.2


class HangUp:
    """Notes the connections that a pool manager of urllib3's makes, and can cut them."""

    def __init__(self, manager: Any) -> None:
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        self._sockets: list[socket.socket] = []
        manager.pool_classes_by_scheme = {
            "http": self._noting(HTTPConnectionPool),
            "https": self._noting(HTTPSConnectionPool),
        }

    def _noting(self, pool: Any) -> Any:
        sockets = self._sockets

        def connect(connection: Any) -> None:
            pool.ConnectionCls.connect(connection)
            sockets.append(connection.sock)

        noting = type("NotingConnection", (pool.ConnectionCls,), {"connect": connect})
        return type("NotingPool", (pool,), {"ConnectionCls": noting})

    @contextlib.contextmanager
    def when_stopped(self, watcher: Watcher) -> Iterator[None]:
        """Cut all connections of the block as soon as somebody wants it to end."""
        done = threading.Event()

        def look() -> None:
            while not done.wait(_LOOK_SECONDS):
                try:
                    watcher.check()
                except StoppedError:
                    self._cut()

        thread = threading.Thread(target=look, name="hang-up", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _cut(self) -> None:
        for each in list(self._sockets):
            with contextlib.suppress(OSError):  # it may be closed already
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class Line(io.RawIOBase):
    """Both directions of a connection, as file descriptors.

    Args:
        coming: What is read from.
        going: What is written to; may be the same.
        watcher: May stop the waiting.
        seconds: How long the other end may be silent.

    Attributes:
        kept: What has to live as long as the line.
    """

    def __init__(self, coming: int, going: int, watcher: Watcher, seconds: float) -> None:
        super().__init__()
        self._coming = coming
        self._going = going
        self._watcher = watcher
        self._seconds = seconds
        self._ends: list[Callable[[], None]] = []
        self.kept: object = None
        for descriptor in (coming, going):
            os.set_blocking(descriptor, False)
        self.read_fully = io.BufferedReader(self).read

    def on_end(self, end: Callable[[], None]) -> None:
        """Add what ends the connection when it is waited for no longer."""
        self._ends.append(end)

    def readable(self) -> bool:
        """It can be read from."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Wait for something; nothing is the end.

        Raises:
            TimeoutError: The other end is silent.
            StoppedError: Nobody wants to wait any longer.
        """
        self._wait(self._coming, going=False)
        data = os.read(self._coming, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def has_come(self) -> bool:
        """True if something can be read at once."""
        return bool(select.select([self._coming], [], [], 0)[0])

    def send(self, data: bytes) -> int:
        """Write all of it; raises as `readinto`."""
        rest = memoryview(data)
        while rest:
            self._wait(self._going, going=True)
            rest = rest[os.write(self._going, rest) :]
        return len(data)

    def _wait(self, descriptor: int, *, going: bool) -> None:
        deadline = time.monotonic() + self._seconds
        look = select.poll()
        look.register(descriptor, select.POLLOUT if going else select.POLLIN)
        try:
            while True:
                self._watcher.check()
                left = deadline - time.monotonic()
                if look.poll(1000 * max(0.0, min(_LOOK_SECONDS, left))):
                    return
                if left <= 0:
                    raise TimeoutError("timed out")  # noqa: TRY301 — the line is given up below
        except BaseException:
            for end in self._ends:
                end()
            raise
