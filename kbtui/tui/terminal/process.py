"""The process of the app: signals that tell it to end, garbage collection, turns of threads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE_SECONDS = 3.0
_COLLECT_RARELY = (10_000, 5, 40)
"""New objects until the garbage collector visits the youngest, and how many times more for each
older generation."""
_SWITCH_SECONDS = 0.001
"""How long a thread may keep the others waiting; with Python's 5 ms, a key that passes the reader,
the event loop and the writer waits three times behind whatever indexes or streams meanwhile."""


class SignalWatch:
    """Saves, then leaves, when the process is told to end; the terminal is restored in any case.

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
        timer = threading.Timer(_PATIENCE_SECONDS, os._exit, (code,))
        timer.daemon = True
        timer.start()
        self._save()
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._leave, code)


def collect_rarely() -> None:
    """Make full garbage collections rare; called once, when the app starts.

    Each visits every object that there is. With an app, its libraries and 10,000 entries in memory
    that takes 0.1 to 0.6 s, in whichever thread it happens, and no other thread runs meanwhile.
    """
    gc.set_threshold(*_COLLECT_RARELY)


def spare_what_stays() -> None:
    """Never again visit what exists now; called after something large was loaded.

    Nearly all of it lives until the end. What is garbage at this moment, and part of a cycle, stays
    in memory: a price paid once for each call, so this is for milestones and not for every day.
    Without `collect_rarely` nothing is done: then the process is somebody else's.
    """
    if gc.get_threshold() == _COLLECT_RARELY:
        gc.freeze()


def switch_often() -> None:
    """Let no thread keep the others waiting for long; called once, when the app starts."""
    sys.setswitchinterval(_SWITCH_SECONDS)
