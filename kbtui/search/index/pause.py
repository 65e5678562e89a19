"""When bulk work steps aside: for a moment while somebody types, or until it is let go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_MOMENT = 0.3
_LONGEST = 1.0
_LOOK_AGAIN = 0.05


class Pause:
    """Asked by the worker between two batches; told by whoever needs the machine.

    Attributes:
        stopped: The work rests until this is False again.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._until = 0.0

    def step_aside(self) -> None:
        """Rest for a moment from now on; costs nothing to call."""
        self._until = time.monotonic() + _MOMENT

    def wait(self, end: threading.Event) -> None:
        """Rest as long as is wanted, but for steps aside at most a second; `end` ends it."""
        since = time.monotonic()
        while not end.is_set():
            now = time.monotonic()
            aside = now < self._until and now - since < _LONGEST
            if not self.stopped and not aside:
                return
            end.wait(_LOOK_AGAIN)
