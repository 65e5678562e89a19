"""Being told to end: the draft is saved and the terminal restored, however that happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE = 3.0


class SignalWatch:
    """Saves, then leaves, when the process is told to end.

    The handlers are Python's own and not the event loop's: with its terminal gone, the loop can be
    stuck in a write. For the same reason the process ends by itself where leaving takes too long.

    Args:
        save: Keeps what must not be lost; called at once, in the main thread.
        leave: Ends the app with an exit code; called by the event loop.
    """

    def __init__(self, save: Callable[[], None], leave: Callable[[int], None]) -> None:
        self._save = save
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        # Signals belong to the main thread; an app that runs in another one is a test's.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._told) for number in _SIGNALS}
        else:
            self._before = {}

    def stop(self) -> None:
        """Give the signals back to who had them."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _told(self, number: int, _frame: FrameType | None) -> None:
        code = 128 + number
        timer = threading.Timer(_PATIENCE, os._exit, (code,))
        timer.daemon = True
        timer.start()
        self._save()
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._leave, code)
