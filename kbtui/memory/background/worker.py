"""The worker: makes memory in the background, in a thread of its own, and never blocks a turn.

After each turn it looks whether the session is to be condensed; when a session is closed it
condenses the rest and writes its notes; in between it condenses what has been quiet and runs the
jobs that are due. What can't be done now is put off and tried again. A person is told once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from kbtui.errors import KbtuiError, WorkspaceBusyError
from kbtui.listeners import Listeners
from kbtui.memory.background.budget import Budget, ConsentNeededError
from kbtui.memory.background.jobs import (
    CONDENSING,
    Job,
    JobReport,
    SessionJob,
    SessionQueue,
    SessionWork,
    WorkerEvent,
    WorkerStatus,
)
from kbtui.memory.consolidation.consolidator import LONGEST_TURN, CondensingOutcome, Trigger
from kbtui.sessions.store import SessionStore
from kbtui.settings import MemorySettings

T = TypeVar("T")
log = logging.getLogger(__name__)
TICK_SECONDS = 30.0
ONE_TURN_CHANNEL = "cli"  # of ``kbtui ask``, which nobody ever closes
LEFT_AFTER = timedelta(hours=1)
_JOB_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to run: its name, the session that it is about, and what runs it."""

    name: str
    session: str | None
    text: str
    work: Callable[[], Coroutine[Any, Any, None]]


class BackgroundWorker:
    """Runs what makes memory, one thing at a time; looks every `TICK_SECONDS` for what is due."""

    def __init__(
        self,
        sessions: SessionStore,
        work: SessionWork,
        budget: Budget,
        settings: MemorySettings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._sessions = sessions
        self._work = work
        self._budget = budget
        self._settings = settings
        self._clock = clock
        self._queue = SessionQueue()
        self._asked: deque[_Step] = deque()
        self._jobs: dict[str, Job] = {}
        self._job_pauses: dict[str, datetime] = {}
        self._quiet_since: dict[str, tuple[datetime, bool]] = {}
        self._told: dict[str, set[str]] = {}
        self._consent = ""
        self._doing: WorkerEvent | None = None
        self._listeners: Listeners[WorkerEvent] = Listeners()
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = self._abandoned = False

    # From any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, in a thread of its own; returns at once."""
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
                self._thread.start()

    def turn_ended(self, session: str) -> None:
        """Say that something was said in a session; returns at once."""
        if self._settings.consolidate:
            self._queue.want(session)
            self._nudge()

    def session_closed(self, session: str) -> None:
        """Say that a session is over (``/new``, leaving); returns at once."""
        self._queue.want(session, closing=True)
        self._nudge()

    def left_sessions(self) -> list[str]:
        """The sessions of single turns that were left and aren't condensed, the oldest first."""
        found = [
            info.id
            for info in self._sessions.list()
            if info.channel == ONE_TURN_CHANNEL and self._clock() - info.updated >= LEFT_AFTER
        ]
        return [each for each in reversed(found) if self._work.is_pending(each)]

    def condense(
        self, session: str, *, everything: bool = False, by_model: bool = False
    ) -> Future[CondensingOutcome]:
        """Condense a session when what is running is done (``/compact``).

        `by_model` as in `Consolidator.run`.
        """
        work = partial(self._work.condense, everything=everything, by_model=by_model)
        asked = partial(work, session, Trigger.ASKED, self._tell)
        return self.submit(CONDENSING, asked, session)

    def submit(
        self, name: str, work: Callable[[], Coroutine[Any, Any, T]], session: str | None = None
    ) -> Future[T]:
        """Run something on the worker's loop behind what is running; events give its name."""
        future: Future[T] = Future()

        async def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(await work())
            except BaseException as error:
                future.set_exception(error)
                raise

        with self._lock:
            self._asked.append(_Step(name, session, f"Running {name}", run))
        self._nudge()
        return future

    def add_job(self, job: Job) -> None:
        """Run a job whenever it is due."""
        with self._lock:
            self._jobs[job.name] = job
        self._nudge()

    def agree(self, model: str, *, yes: bool) -> None:
        """Remember whether a paid model may be used in the background, and go on.

        Raises:
            StorageError: it can't be written down.
        """
        self._budget.agree(model, yes=yes)
        with self._lock:
            self._consent = ""
            self._told.clear()
            self._job_pauses.clear()
        self._queue.forget_pauses()
        self._nudge()

    def status(self) -> WorkerStatus:
        """The work that it is at."""
        with self._lock:
            doing, consent = self._doing, self._consent
            runs = self._thread is not None and self._thread.is_alive()
        waiting = self._queue.waiting
        money = (consent, self._budget.spent_today(), self._budget.daily_usd)
        if not runs:
            return WorkerStatus("stopped", "", "", None, waiting, *money)
        if doing is not None:
            return WorkerStatus("working", doing.text, doing.job, doing.session, waiting, *money)
        if waiting:
            text = "Some conversations are condensed later"
            return WorkerStatus("waiting", text, "", None, waiting, *money)
        return WorkerStatus("idle", "", "", None, (), *money)

    def subscribe(self, listener: Callable[[WorkerEvent], None]) -> Callable[[], None]:
        """Call `listener` with each event, in the worker's thread; returns what unsubscribes it."""
        return self._listeners.add(listener)

    def progressed(self, job: str, text: str, page: int = 0, pages: int = 0) -> None:
        """Tell how far a job is that runs on this worker; from its own loop."""
        self._tell(WorkerEvent("progress", job, None, text, page, pages))

    def cancel(self) -> None:
        """Stop what is running; what isn't written stays pending."""
        with self._lock:
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def close(self, timeout: float = 5.0) -> None:
        """Finish the sessions that were closed, for a while; the rest is for the next start."""
        with self._lock:
            self._stopping = True
            thread = self._thread
        self._nudge()
        if thread is None:
            return
        thread.join(timeout)
        if thread.is_alive():
            self._abandoned = True
            self.cancel()
            thread.join(timeout)

    def _nudge(self) -> None:
        with self._lock:
            if self._loop is not None and self._wake is not None:
                self._loop.call_soon_threadsafe(self._wake.set)

    # In the worker's thread ------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        with self._lock:
            self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        try:
            self._sweep()
            while not self._abandoned:
                step = self._next()
                if step is not None:
                    await self._do(step)
                elif self._stopping:
                    break
                else:
                    await self._rest(self._wake)
        finally:
            with self._lock:
                self._loop = self._wake = None

    def _next(self) -> _Step | None:
        """The next work: what is asked for comes first, then sessions, then jobs."""
        with self._lock:
            if self._asked and not self._stopping:
                return self._asked.popleft()
        now = self._clock()
        wanted = self._queue.take(now, closing_only=self._stopping)
        if wanted is not None:
            return _Step(CONDENSING, wanted.session, "", lambda: self._look_at(wanted))
        return None if self._stopping else self._due_job(now)

    def _due_job(self, now: datetime) -> _Step | None:
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            due = job.next_due(now)
            pause = self._job_pauses.get(job.name)
            if due is not None and due <= now and (pause is None or pause <= now):
                return _Step(job.name, None, f"Running {job.name}", lambda job=job: self._job(job))  # type: ignore[misc]
        return None

    async def _do(self, step: _Step) -> None:
        """Run one step; neither a cancelled one nor a bug in one ends the worker."""
        if step.text:
            self._tell(WorkerEvent("started", step.name, step.session, step.text))
        task = asyncio.ensure_future(step.work())
        with self._lock:
            self._task = task
        try:
            await asyncio.wait([task])
            error = None if task.cancelled() else task.exception()
            if isinstance(error, KbtuiError):
                log.info("%s was not done: %s", step.name, error)
            elif error is not None:
                log.error("%s failed", step.name, exc_info=error)
                self._notice(step.name, step.session, f"{step.name} failed. The log says why.")
        finally:
            with self._lock:
                self._task = None
            if (doing := self._doing) is not None:
                self._tell(WorkerEvent("finished", doing.job, doing.session))

    async def _rest(self, wake: asyncio.Event) -> None:
        """Wait until something is wanted, for one tick at most; then see what has gone quiet."""
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await wake.wait()
        except TimeoutError:
            self._sweep()
        wake.clear()

    def _sweep(self) -> None:
        """Want the sessions that have been quiet for long enough, each twice at most."""
        idle = timedelta(minutes=self._settings.idle_minutes)
        if not self._settings.consolidate or not idle:
            return
        try:
            infos = self._sessions.list()
        except KbtuiError as error:
            log.info("sessions can't be listed: %s", error)
            return
        for info in infos:
            if info.untouched:
                continue  # imported: whoever wants it condensed says so
            leaves = info.channel == ONE_TURN_CHANNEL
            quiet = self._clock() - info.updated
            since = (info.updated, quiet >= LONGEST_TURN)  # until then it may still be answered
            is_quiet = quiet >= (LEFT_AFTER if leaves else idle)
            if is_quiet and self._quiet_since.get(info.id) != since:
                self._quiet_since[info.id] = since
                if not leaves or self._work.is_pending(info.id):
                    self._queue.want(info.id, closing=leaves)

    async def _look_at(self, wanted: SessionJob) -> None:
        """Work on a session; put it off where that isn't possible now."""
        try:
            outcome = await self._work.run(wanted.session, closing=wanted.closing, tell=self._tell)
        except BaseException as error:
            # Stopped, or a defect: nobody would ask for it again before something new is said.
            self._queue.put_off(wanted, KbtuiError(str(error) or "It was stopped."), self._clock())
            raise
        if outcome.error is not None:
            self._queue.put_off(wanted, outcome.error, self._clock())
        if isinstance(outcome.error, ConsentNeededError) and not outcome.error.refused:
            self._ask_consent(CONDENSING, outcome.error)
        elif outcome.notice:
            self._notice(CONDENSING, wanted.session, outcome.notice)
        elif outcome.error is None and outcome.kind != "nothing":
            self._told.pop(CONDENSING, None)  # it works again: the next trouble is news

    async def _job(self, job: Job) -> None:
        self._job_pauses[job.name] = self._clock() + _JOB_PAUSE
        try:
            report = await job.run()
        except KbtuiError as error:
            report = JobReport(error=error)
        if isinstance(report.error, ConsentNeededError) and not report.error.refused:
            self._ask_consent(job.name, report.error)
        elif report.error is not None and not isinstance(report.error, WorkspaceBusyError):
            self._notice(job.name, None, str(report.error))
        else:
            self._told.pop(job.name, None)
            if report.text:
                self._tell(WorkerEvent("notice", job.name, text=report.text))

    def _ask_consent(self, job: str, error: ConsentNeededError) -> None:
        with self._lock:
            self._consent = error.model
        if self._is_news(job, error.model):
            self._tell(WorkerEvent("consent", job, text=str(error), model=error.model))

    def _notice(self, job: str, session: str | None, text: str) -> None:
        """Tell a person something, once as long as it stays the same."""
        if self._is_news(job, text):
            self._tell(WorkerEvent("notice", job, session, text))

    def _is_news(self, job: str, text: str) -> bool:
        told = self._told.setdefault(job, set())
        if text in told:
            return False
        told.add(text)
        return True

    def _tell(self, event: WorkerEvent) -> None:
        if event.kind in ("started", "progress"):
            self._doing = event
        elif event.kind == "finished":
            self._doing = None
        self._listeners.tell(event)
