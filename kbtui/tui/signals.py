"""Being told to end: the terminal is restored and the draft saved, however that happens."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE = 3.0


def on_signals(leave: Callable[[int], None]) -> None:
    """Call `leave` with the exit code when the process is told to end.

    A terminal that is gone can block whoever writes to it, so the process ends by itself when
    leaving takes too long.
    """
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _left, leave, 128 + number)


def off_signals() -> None:
    """Take the handlers away again."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.remove_signal_handler(number)


def _left(leave: Callable[[int], None], code: int) -> None:
    timer = threading.Timer(_PATIENCE, os._exit, (code,))
    timer.daemon = True
    timer.start()
    leave(code)
