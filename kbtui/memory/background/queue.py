"""Which sessions are to be looked at, and when: what can't be done now is put off, not dropped."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kbtui.errors import BudgetError, WorkspaceBusyError

if TYPE_CHECKING:
    from kbtui.errors import KbtuiError

_BUSY = timedelta(seconds=15)
_BUDGET = timedelta(minutes=10)
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A session to look at.

    Attributes:
        session: Its id.
        closing: It is over: all of it is condensed, and its notes are written.
        tries: How often it was put off.
        not_before: Until when it is put off.
    """

    session: str
    closing: bool = False
    tries: int = 0
    not_before: datetime | None = None


class SessionQueue:
    """The sessions that are waiting, each once; for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[str, Wanted] = {}

    def want(self, session: str, *, closing: bool = False) -> None:
        """Put a session on; one that is put off stays so, unless it is closing now."""
        with self._lock:
            known = self._wanted.get(session)
            if known is None or (closing and not known.closing):
                self._wanted[session] = Wanted(session, closing=closing)

    def take(self, now: datetime, *, closing_only: bool = False) -> Wanted | None:
        """Take off the next session that may be worked on, those that are closing first."""
        with self._lock:
            ready = [
                wanted
                for wanted in self._wanted.values()
                if (wanted.not_before is None or wanted.not_before <= now)
                and (wanted.closing or not closing_only)
            ]
            if not ready:
                return None
            chosen = next((wanted for wanted in ready if wanted.closing), ready[0])
            return self._wanted.pop(chosen.session)

    def put_off(self, wanted: Wanted, error: KbtuiError, now: datetime) -> None:
        """Put a session on again for later: soon when only another process was at it."""
        with self._lock:
            later = replace(
                wanted, tries=wanted.tries + 1, not_before=now + _pause(error, wanted.tries)
            )
            known = self._wanted.get(wanted.session)
            if known is not None and known.closing:
                later = replace(later, closing=True)
            self._wanted[wanted.session] = later

    def forget_pauses(self) -> None:
        """Try again at once what was put off."""
        with self._lock:
            for session, wanted in self._wanted.items():
                self._wanted[session] = replace(wanted, not_before=None)

    def put_off_until(self) -> datetime | None:
        """When the first session that was put off may be tried again."""
        with self._lock:
            times = [each.not_before for each in self._wanted.values() if each.not_before]
            return min(times, default=None)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The sessions that are put off."""
        with self._lock:
            return tuple(name for name, each in self._wanted.items() if each.not_before)


def _pause(error: KbtuiError, tries: int) -> timedelta:
    if isinstance(error, WorkspaceBusyError):
        return _BUSY
    if isinstance(error, BudgetError):
        return _BUDGET
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << min(tries, 10)))
