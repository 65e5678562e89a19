"""The time here: that of the zone which the machine has by now, however long a process runs.

Python reads the machine's zone once. A process that stays open over a flight would go on writing
into the days of the place that it was started in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, datetime

_FOLLOW: Callable[[], None] = getattr(time, "tzset", lambda: None)  # Windows has none


def follow_zone() -> None:
    """Read the machine's zone again, for everything that converts times to local ones."""
    _FOLLOW()


def local_now() -> datetime:
    """Return the time, in the machine's present zone."""
    follow_zone()
    return datetime.now().astimezone()


def local_day() -> date:
    """Return the day, in the machine's present zone."""
    return local_now().date()


class DayWatch:
    """Tells when the local day or the zone has become another one."""

    def __init__(self, now: Callable[[], datetime] = local_now) -> None:
        """Begin with the day that it is; `now` returns the local time, with its zone."""
        self._now = now
        self._last = self._look()

    def changed(self) -> bool:
        """Return whether day or zone are others than at the last call."""
        before, self._last = self._last, self._look()
        return self._last != before

    def _look(self) -> tuple[object, ...]:
        now = self._now()
        return now.date(), now.utcoffset(), now.tzname()
