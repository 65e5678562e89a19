"""Keys typed while the app is only being imported.

Until a program asks for keys as they are, the terminal shows them, keeps them back until the end of
the line, and makes of Enter what Ctrl+J sends. Asking first thing leaves them to the app as typed.
This is loaded before Textual is.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_INPUT, _LOCAL = 0, 3
_before: list[list[Any]] = []


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keep keys for the app from now on; in the end the terminal is as it was.

    Ctrl+C still interrupts. Where there are no such terminals, everything stays as it is.
    """
    try:
        import termios
    except ImportError:
        yield
        return
    try:
        found = termios.tcgetattr(sys.stdin)
    except termios.error:
        yield
        return
    wanted = found.copy()
    wanted[_INPUT] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
    wanted[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
    _before.append(found)
    try:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, wanted)
        yield
    finally:
        _before.clear()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, found)


def hand_over(driver: object) -> None:
    """Tell who reads the keys from now on how the terminal is to be left, or lent to an editor."""
    if _before and hasattr(driver, "attrs_before"):
        driver.attrs_before = _before[0]
