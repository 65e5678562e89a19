"""Dream as a job of the keeper: every few hours, when there is something new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kbtui.history.change import Actor
from kbtui.memory.background.jobs import JobReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.memory.dream.dream import Dream
    from kbtui.memory.dream.report import DreamProgress

DREAMING = "dream"


class DreamJob:
    """Says when Dream is due, and runs it.

    When it ran last follows from its last commit; so one that is overdue runs soon after the
    start, once.

    Args:
        dream: What runs.
        history: When it last did.
        interval_hours: How often; 0: never by itself.
        clock: The time, aware.
        on_progress: Told how far it is.
    """

    name = DREAMING

    def __init__(
        self,
        dream: Dream,
        history: History,
        interval_hours: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_progress: Callable[[DreamProgress], None] | None = None,
    ) -> None:
        self._dream = dream
        self._history = history
        self._interval = timedelta(hours=interval_hours)
        self._clock = clock
        self._on_progress = on_progress
        self._tried: datetime | None = None

    def next_due(self, now: datetime) -> datetime | None:
        """See `Job`: nothing is due as long as nothing is new."""
        if not self._interval or not self._dream.has_news():
            return None
        if self._tried is None:
            last = next(iter(self._history.log(actor=Actor.DREAM, limit=1)), None)
            return now if last is None else last.time + self._interval
        return self._tried + self._interval

    async def run(self) -> JobReport:
        """See `Job`."""
        self._tried = self._clock()
        report = await self._dream.run(on_progress=self._on_progress)
        if report.error is not None:
            return JobReport(error=report.error)
        told = report.text if report.diffs or report.suggestions else ""
        return JobReport(told, changed=report.commit is not None)
