"""Keys typed while the app is still being imported.

Until a program turns canonical mode off, the terminal echoes keys, holds them back until the end of
the line, and turns Enter into what Ctrl+J sends. Doing so first thing leaves them to the app as
they were typed. This module is loaded before Textual.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_INPUT_FLAGS, _LOCAL_FLAGS = 0, 3
_saved_attributes: list[list[Any]] = []


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Turn echo and canonical mode off, and restore the terminal's attributes on exit.

    Ctrl+C still interrupts. Does nothing without `termios` or without a terminal.
    """
    try:
        import termios
    except ImportError:
        yield
        return
    try:
        original = termios.tcgetattr(sys.stdin)
    except termios.error:
        yield
        return
    raw = original.copy()
    raw[_INPUT_FLAGS] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
    raw[_LOCAL_FLAGS] &= ~(termios.ECHO | termios.ICANON)
    _saved_attributes.append(original)
    try:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, raw)
        yield
    finally:
        _saved_attributes.clear()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, original)


def saved_attributes() -> list[Any] | None:
    """Return the attributes to restore on exit and while an editor runs; None if unchanged."""
    return _saved_attributes[0] if _saved_attributes else None
