"""The jobs that the worker runs (Dream and sessions), and the events it reports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from kbtui.errors import BudgetError, KbtuiError, WorkspaceBusyError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.memory.consolidation.consolidator import (
    CondensingOutcome,
    Consolidator,
    Trigger,
)
from kbtui.memory.consolidation.notes import SessionMemoryWriter
from kbtui.memory.dream.dream import Dream
from kbtui.memory.dream.report import DreamProgress

CONDENSING = "consolidate"
NOTING = "session-notes"
DREAMING = "dream"


@dataclass(frozen=True, slots=True)
class JobReport:
    """The result of a job: `text` to show, if any; after an `error` the job is retried later."""

    text: str = ""
    changed: bool = False
    error: KbtuiError | None = None


class Job(Protocol):
    """A recurring background job, such as Dream.

    The worker runs one job at a time, between its work on sessions. A job acquires the memory lock
    itself, and remembers when it last ran.
    """

    @property
    def name(self) -> str:
        """Its name in events and in `BackgroundWorker.run_job`."""

    def next_due(self, now: datetime) -> datetime | None:
        """Return when the job is due (now, if in the past), or None if it isn't."""

    async def run(self) -> JobReport:
        """Run the job; cancelling it leaves nothing half done.

        Raises:
            KbtuiError: Equivalent to a report with that error.
        """


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """An event of the worker; listeners are called in its thread.

    Attributes:
        kind: ``started``, ``progress`` and ``finished`` of a job; ``notice``: show `text` to the
            user, once; ``consent``: ask the user whether `model` may be used in the background
            (`BackgroundWorker.agree`).
        session: The session that the job works on, if any.
        page: The page, of `pages`, in progress.
        outcome: The result of condensing a session.
    """

    kind: Literal["started", "progress", "finished", "notice", "consent"]
    job: str
    session: str | None = None
    text: str = ""
    page: int = 0
    pages: int = 0
    model: str = ""
    outcome: CondensingOutcome | None = None


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The worker's state: ``idle``, ``working``, ``waiting`` (work is deferred) or ``stopped``.

    `text` says the same for people; `waiting` are the deferred sessions, `consent` is the model
    that the user must accept or refuse. Today `spent_usd` of `cap_usd` were spent.
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
    """Schedules and runs Dream; with `interval_hours` 0 it is never due by itself.

    The last run is taken from its last commit, so an overdue run happens once, soon after start.
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
        """Return when Dream is due, or None while there is nothing new."""
        if not self._interval or not self._dream.has_news():
            return None
        if self._tried is None:
            last = next(iter(self._history.log(actor=Actor.DREAM, limit=1)), None)
            # A last run to come means that the clock was wrong.
            return now if last is None or last.time > now else last.time + self._interval
        return self._tried + self._interval

    async def run(self) -> JobReport:
        """Run Dream, as in `Job`."""
        self._tried = self._clock()
        report = await self._dream.run(on_progress=self._on_progress)
        if report.error is not None:
            return JobReport(error=report.error)
        text = report.text if report.diffs or report.suggestions else ""
        return JobReport(text, changed=report.commit is not None)


_BUSY = timedelta(seconds=15)
_BUDGET = timedelta(minutes=10)
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class SessionJob:
    """A queued session; if `closing`, it is condensed to its end and its notes are written.

    It was deferred `tries` times, the last time until `not_before`.
    """

    session: str
    closing: bool = False
    tries: int = 0
    not_before: datetime | None = None


class SessionQueue:
    """A thread-safe queue of sessions, each in it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queued: dict[str, SessionJob] = {}

    def enqueue(self, session: str, *, closing: bool = False) -> None:
        """Enqueue a session; a deferred one stays deferred unless it is closing now."""
        with self._lock:
            known = self._queued.get(session)
            if known is None or (closing and not known.closing):
                self._queued[session] = SessionJob(session, closing=closing)

    def dequeue(self, now: datetime, *, closing_only: bool = False) -> SessionJob | None:
        """Dequeue the next session that is ready, closing ones first."""
        with self._lock:
            ready = [
                queued
                for queued in self._queued.values()
                if (queued.not_before is None or queued.not_before <= now)
                and (queued.closing or not closing_only)
            ]
            if not ready:
                return None
            chosen = next((queued for queued in ready if queued.closing), ready[0])
            return self._queued.pop(chosen.session)

    def defer(self, queued: SessionJob, error: KbtuiError, now: datetime) -> None:
        """Requeue a session for later; soon, if only another process was working on it."""
        with self._lock:
            later = replace(
                queued, tries=queued.tries + 1, not_before=now + _pause(error, queued.tries)
            )
            known = self._queued.get(queued.session)
            if known is not None and known.closing:
                later = replace(later, closing=True)
            self._queued[queued.session] = later

    def retry_now(self) -> None:
        """Retry deferred sessions immediately."""
        with self._lock:
            for session, queued in self._queued.items():
                self._queued[session] = replace(queued, not_before=None)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The deferred sessions."""
        with self._lock:
            return tuple(name for name, each in self._queued.items() if each.not_before)


def _pause(error: KbtuiError, tries: int) -> timedelta:
    if isinstance(error, WorkspaceBusyError):
        return _BUSY
    if isinstance(error, BudgetError):
        return _BUDGET
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << min(tries, 10)))


def _ignore(_event: WorkerEvent) -> None:
    """Ignore an event."""


OnEvent = Callable[[WorkerEvent], None]


class SessionWork:
    """Condenses a session, and writes its note when it is closed."""

    def __init__(self, consolidator: Consolidator, notes: SessionMemoryWriter) -> None:
        self.due = consolidator.due
        self._consolidator = consolidator
        self._notes = notes

    async def run(
        self, session: str, *, closing: bool, on_event: OnEvent = _ignore
    ) -> CondensingOutcome:
        """Run what is due for a session, to its end if `closing`; never raises.

        If the outcome has an error, the session must be looked at again later.
        """
        try:
            if await asyncio.to_thread(self._is_untouched, session):
                return CondensingOutcome("nothing", session)
            trigger = await asyncio.to_thread(self.due.trigger, session)
            if closing:
                trigger = Trigger.CLOSED
            if trigger is None:
                return CondensingOutcome("nothing", session)
            outcome = await self.condense(session, trigger, on_event)
            if closing:
                await self._write_notes(session, outcome, on_event)
            elif outcome.pages:
                await self._notes.renew(session)
        except KbtuiError as error:
            is_news = not isinstance(error, WorkspaceBusyError)  # else another one does it
            notice = str(error) if is_news else ""
            return CondensingOutcome("postponed", session, notice=notice, error=error)
        return outcome

    def _is_untouched(self, session: str) -> bool:
        return self.due.pending.conversation(session).untouched

    async def condense(
        self,
        session: str,
        trigger: Trigger,
        on_event: OnEvent = _ignore,
        *,
        everything: bool = False,
        by_model: bool = False,
    ) -> CondensingOutcome:
        """Condense a session, or `everything` pending of it; never raises.

        `by_model` is as in `Consolidator.run`.
        """

        def on_page(page: int, pages: int) -> None:
            text = f"Condensing a conversation, {page} of {pages}"
            on_event(WorkerEvent("progress", CONDENSING, session, text, page, pages))

        on_event(WorkerEvent("started", CONDENSING, session, "Condensing a conversation"))
        outcome = await self._consolidator.run(
            session,
            everything=everything or trigger in (Trigger.CLOSED, Trigger.IDLE),
            by_model=by_model,
            trigger=trigger,
            on_page=on_page,
        )
        if by_model and outcome.pages:
            with suppress(KbtuiError):  # the next run renews them
                await self._notes.renew(session)
        on_event(WorkerEvent("finished", CONDENSING, session, outcome=outcome))
        return outcome

    async def _write_notes(
        self, session: str, outcome: CondensingOutcome, on_event: OnEvent
    ) -> None:
        on_event(WorkerEvent("started", NOTING, session, "Writing the notes of a conversation"))
        await self._notes.write_session_memory(session, outcome.title)
        on_event(WorkerEvent("finished", NOTING, session))
