"""Jobs that the worker runs, of Dream and of sessions, and what it tells about them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
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
from kbtui.memory.consolidation.page import Pending
from kbtui.memory.dream.dream import Dream
from kbtui.memory.dream.report import DreamProgress

CONDENSING = "consolidate"
NOTING = "session-notes"
DREAMING = "dream"


@dataclass(frozen=True, slots=True)
class JobReport:
    """The end of a job: `text` to be shown, if any; `error`: it is tried again later."""

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

    def next_due(self, now: datetime) -> datetime | None:
        """When it wants to run; in the past: now. None: not by itself."""

    async def run(self) -> JobReport:
        """Do it; cancelling leaves nothing half done.

        Raises:
            KbtuiError: as good as a report with that error.
        """


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """An event of the worker's; listeners are called in its thread.

    Attributes:
        kind: ``started``, ``progress`` and ``finished`` of a job; ``notice``: a person should be
            told `text`, which comes once; ``consent``: a person must say whether `model` may be
            used in the background (`BackgroundWorker.agree`).
        session: The session that the job works on, if it is one.
        page: Which page of `pages` is being worked on.
        outcome: How condensing a session ended.
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
    """The worker's state: ``idle``, ``working``, ``waiting`` (something is put off), ``stopped``.

    `text` is the same for people; `waiting` are the sessions that are put off, `consent` the model
    that a person must say yes or no to. `spent_usd` of `cap_usd` are spent today.
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
    """Says when Dream is due, and runs it; with `interval_hours` 0 it is never due by itself.

    When it ran last follows from its last commit; so one that is overdue runs soon after the
    start, once.
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


_BUSY = timedelta(seconds=15)
_BUDGET = timedelta(minutes=10)
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class SessionJob:
    """A session to look at; a `closing` one is condensed to its end, and its notes are written.

    `tries` is how often it was put off, `not_before` until when.
    """

    session: str
    closing: bool = False
    tries: int = 0
    not_before: datetime | None = None


class SessionQueue:
    """The sessions that are waiting, each once; for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[str, SessionJob] = {}

    def want(self, session: str, *, closing: bool = False) -> None:
        """Put a session on; one that is put off stays so, unless it is closing now."""
        with self._lock:
            known = self._wanted.get(session)
            if known is None or (closing and not known.closing):
                self._wanted[session] = SessionJob(session, closing=closing)

    def take(self, now: datetime, *, closing_only: bool = False) -> SessionJob | None:
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

    def put_off(self, wanted: SessionJob, error: KbtuiError, now: datetime) -> None:
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


def _nobody(_event: WorkerEvent) -> None:
    """Told what happens, says nothing."""


Tell = Callable[[WorkerEvent], None]


class SessionWork:
    """Condenses a session, and at its end writes its note."""

    def __init__(
        self, pending: Pending, consolidator: Consolidator, notes: SessionMemoryWriter
    ) -> None:
        self._pending = pending
        self._consolidator = consolidator
        self._notes = notes

    async def run(self, session: str, *, closing: bool, tell: Tell = _nobody) -> CondensingOutcome:
        """Do what there is to do about a session, to its end if `closing`; nothing is raised.

        With an error in the outcome it must be looked at again later.
        """
        try:
            if await asyncio.to_thread(self._is_untouched, session):
                return CondensingOutcome("nothing", session)
            trigger = await asyncio.to_thread(self._consolidator.trigger, session)
            if closing:
                trigger = Trigger.CLOSED
            if trigger is None:
                return CondensingOutcome("nothing", session)
            outcome = await self.condense(session, trigger, tell)
            if closing:
                await self._write_notes(session, outcome, tell)
            elif outcome.pages:
                await self._notes.renew(session)
        except KbtuiError as error:
            is_news = not isinstance(error, WorkspaceBusyError)  # else another does the same work
            notice = str(error) if is_news else ""
            return CondensingOutcome("postponed", session, notice=notice, error=error)
        return outcome

    def _is_untouched(self, session: str) -> bool:
        return self._pending.conversation(session).untouched

    def is_pending(self, session: str) -> bool:
        """True if something of a session isn't condensed yet; not on an event loop."""
        return bool(self._pending.parts(self._pending.conversation(session)))

    async def condense(
        self,
        session: str,
        trigger: Trigger,
        tell: Tell = _nobody,
        *,
        everything: bool = False,
        by_model: bool = False,
    ) -> CondensingOutcome:
        """Condense a session, or `everything` that is pending of it; nothing is raised.

        `by_model` as in `Consolidator.run`.
        """

        def on_page(page: int, pages: int) -> None:
            text = f"Condensing a conversation, {page} of {pages}"
            tell(WorkerEvent("progress", CONDENSING, session, text, page, pages))

        tell(WorkerEvent("started", CONDENSING, session, "Condensing a conversation"))
        outcome = await self._consolidator.run(
            session,
            everything=everything or trigger in (Trigger.CLOSED, Trigger.IDLE),
            by_model=by_model,
            trigger=trigger,
            on_page=on_page,
        )
        tell(WorkerEvent("finished", CONDENSING, session, outcome=outcome))
        return outcome

    async def _write_notes(self, session: str, outcome: CondensingOutcome, tell: Tell) -> None:
        tell(WorkerEvent("started", NOTING, session, "Writing the notes of a conversation"))
        await self._notes.write_session_memory(session, outcome.title)
        tell(WorkerEvent("finished", NOTING, session))
