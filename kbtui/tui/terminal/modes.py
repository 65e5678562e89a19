"""The last resort for the terminal: its modes turned off when the app can't do it any more.

Usually the driver does this. It can't if the process has to end while its main thread is stuck, or
if starting or stopping the driver has failed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading

from kbtui.tui.terminal import first_keys

_TERMINAL = 2  # the descriptor that Textual writes to
_OFF = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"  # the mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # focus, pastes, sizes, the kitty protocol
    "\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"  # wrapped lines, the usual screen, cursor and colours
)
_are_on = threading.Event()


def turned_on() -> None:
    """Remember that the driver has taken the terminal."""
    _are_on.set()


def turned_off() -> None:
    """Remember that the driver has given the terminal back."""
    _are_on.clear()


def turn_off() -> None:
    """Give the terminal back unless the driver has; never waits, and works in any thread."""
    if not _are_on.is_set():
        return
    _are_on.clear()
    import termios

    with contextlib.suppress(OSError, termios.error):
        if os.tcgetpgrp(_TERMINAL) != os.getpgrp():
            return  # another program has it
        _write(_OFF)
        if (attributes := first_keys.saved_attributes()) is not None:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
            termios.tcsetattr(_TERMINAL, termios.TCSANOW, attributes)


def say(sentence: str, patience: float = 0.0) -> None:
    """Write the last words of a process, which waits so many seconds for a terminal held up."""
    with contextlib.suppress(OSError):
        _write(f"{sentence}\n", patience)


def _write(text: str, patience: float = 0.0) -> None:
    poll = select.poll()
    poll.register(_TERMINAL, select.POLLOUT)
    if poll.poll(patience * 1000):
        os.write(_TERMINAL, text.encode())
