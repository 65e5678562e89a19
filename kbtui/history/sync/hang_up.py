"""Ending a wait for a web server at once when a sync is stopped."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

from kbtui.history.sync.remote import SyncCancelledError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
                except SyncCancelledError:
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
