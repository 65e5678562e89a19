"""What the worker runs, and what it tells about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol

from kbtui.history.change import Actor

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.errors import KbtuiError
    from kbtui.history.history import History
    from kbtui.memory.consolidation.consolidator import Outcome
    from kbtui.memory.dream.dream import Dream
    from kbtui.memory.dream.report import DreamProgress

CONDENSING = "consolidate"
FLUSHING = "flush"
NOTING = "session-notes"
DREAMING = "dream"


@dataclass(frozen=True, slots=True)
class JobReport:
    """How a job ended.

    Attributes:
        text: What a person should be told, ready to be shown; empty: nothing.
        changed: Whether anything was written.
        error: Why it could not be done; it is tried again later.
    """

    text: str = ""
    changed: bool = False
    error: KbtuiError | None = None


class Job(Protocol):
    """Something that is done again and again in the background, such as Dream.

    The worker runs one job at a time, between the work on sessions. A job takes the memory lock
    itself, and keeps in mind when it ran last.
    """

    @property
    def name(self) -> str:
        """How it is called in events and in `BackgroundWorker.run_job`."""
        ...

    def next_due(self, now: datetime) -> datetime | None:
        """When it wants to run; in the past: now. None: not by itself."""
        ...

    async def run(self) -> JobReport:
        """Do it; cancelling leaves nothing half done.

        Raises:
            KbtuiError: as good as a report with that error.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """What the worker tells; listeners are called in its thread.

    Attributes:
        kind: ``started``, ``progress`` and ``finished`` of a job; ``notice``: a person should be
            told `text`, which comes once; ``consent``: a person must say whether `model` may be
            used in the background (`BackgroundWorker.agree`).
        job: Which one.
        session: The session that it works on, if it is one.
        text: Ready to be shown.
        page: Which page of `pages` is being worked on.
        model: The model in question.
        outcome: How condensing a session ended.
    """

    kind: Literal["started", "progress", "finished", "notice", "consent"]
    job: str
    session: str | None = None
    text: str = ""
    page: int = 0
    pages: int = 0
    model: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What the worker is at.

    Attributes:
        state: ``idle``, ``working``, ``waiting`` (something is put off), or ``stopped``.
        text: The same for people; empty when idle.
        job: What it works on.
        session: Of which session.
        waiting: The sessions that are put off.
        consent: The model that a person must say yes or no to; empty: none.
        spent_usd: What background work has cost today.
        cap_usd: What it may cost a day.
    """

    state: Literal["idle", "working", "waiting", "stopped"]
    text: str = ""
    job: str = ""
    session: str | None = None
    waiting: tuple[str, ...] = ()
    consent: str = ""
    spent_usd: float = 0.0
    cap_usd: float = 0.0


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
