"""The worker: makes memory in a background thread, never blocking a turn.

After each turn it checks whether the session must be condensed. When a session is closed, it
condenses the rest and writes its notes; in between it condenses idle sessions and runs due jobs.
What can't be done now is deferred and retried. A person is told about a problem once.
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
from kbtui.memory.consolidation.consolidator import CondensingOutcome, Trigger
from kbtui.memory.consolidation.due import LEFT_AFTER, LONGEST_TURN, ONE_TURN_CHANNEL
from kbtui.sessions.store import SessionStore
from kbtui.settings import MemorySettings

T = TypeVar("T")
log = logging.getLogger(__name__)
TICK_SECONDS = 30.0
_JOB_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Step:
    """A unit of work: its name, its session, and the coroutine function that does it."""

    name: str
    session: str | None
    text: str
    work: Callable[[], Coroutine[Any, Any, None]]


class BackgroundWorker:
    """Runs memory work one step at a time, polling every `TICK_SECONDS` for due work."""

    def __init__(
        self,
        sessions: SessionStore,
        work: SessionWork,
        budget: Budget,
        settings: MemorySettings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare without starting; `confirm` is `Workspace.confirm`, of which work depends."""
        self._confirm = confirm
        self._sessions = sessions
        self._work = work
        self._budget = budget
        self._settings = settings
        self._clock = clock
        self._queue = SessionQueue()
        self._submitted: deque[_Step] = deque()
        self._jobs: dict[str, Job] = {}
        self._job_pauses: dict[str, datetime] = {}
        self._quiet_since: dict[str, tuple[datetime, bool]] = {}
        self._notified: dict[str, set[str]] = {}
        self._consent = ""
        self._running: WorkerEvent | None = None
        self._listeners: Listeners[WorkerEvent] = Listeners()
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = self._abandoned = False

    # Called from any thread ------------------------------------------------------------------

    def start(self) -> None:
        """Start the worker's thread; returns at once."""
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._main()), name="worker", daemon=True
                )
                self._thread.start()

    def turn_ended(self, session: str) -> None:
        """Report that a turn of a session has ended; returns at once."""
        if self._settings.consolidate:
            self._queue.enqueue(session)
            self._wake_up()

    def session_closed(self, session: str) -> None:
        """Report that a session is over (``/new``, leaving); returns at once."""
        self._queue.enqueue(session, closing=True)
        self._wake_up()

    def condense(
        self, session: str, *, everything: bool = False, by_model: bool = False
    ) -> Future[CondensingOutcome]:
        """Condense a session once the running work is done (``/compact``).

        `by_model` is as in `Consolidator.run`.
        """
        work = partial(self._work.condense, everything=everything, by_model=by_model)
        condense = partial(work, session, Trigger.ASKED, self._emit)
        return self.submit(CONDENSING, condense, session)

    def submit(
        self, name: str, work: Callable[[], Coroutine[Any, Any, T]], session: str | None = None
    ) -> Future[T]:
        """Run a coroutine on the worker's loop after the running work; events have its name."""
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
            self._submitted.append(_Step(name, session, f"Running {name}", run))
        self._wake_up()
        return future

    def add_job(self, job: Job) -> None:
        """Run a job whenever it is due."""
        with self._lock:
            self._jobs[job.name] = job
        self._wake_up()

    def agree(self, model: str, *, yes: bool) -> None:
        """Record whether a paid model may be used in the background, and continue.

        Raises:
            StorageError: It can't be recorded.
        """
        self._budget.agree(model, yes=yes)
        with self._lock:
            self._consent = ""
            self._notified.clear()
            self._job_pauses.clear()
        self._queue.retry_now()
        self._wake_up()

    def status(self) -> WorkerStatus:
        """Return what the worker is doing."""
        with self._lock:
            active, consent = self._running, self._consent
            runs = self._thread is not None and self._thread.is_alive()
        waiting = self._queue.waiting
        money = (consent, self._budget.spent_today(), self._budget.daily_usd)
        if not runs:
            return WorkerStatus("stopped", "", "", None, waiting, *money)
        if active is not None:
            return WorkerStatus("working", active.text, active.job, active.session, waiting, *money)
        if waiting:
            text = "Some conversations are condensed later"
            return WorkerStatus("waiting", text, "", None, waiting, *money)
        return WorkerStatus("idle", "", "", None, (), *money)

    def subscribe(self, listener: Callable[[WorkerEvent], None]) -> Callable[[], None]:
        """Call `listener` with each event, in the worker's thread; return the unsubscriber."""
        return self._listeners.add(listener)

    def report_progress(self, job: str, text: str, page: int = 0, pages: int = 0) -> None:
        """Report the progress of a job that runs on this worker; called on its loop."""
        self._emit(WorkerEvent("progress", job, None, text, page, pages))

    def cancel(self) -> None:
        """Cancel the running work; what isn't written stays pending."""
        with self._lock:
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def close(self, timeout: float = 5.0) -> None:
        """Finish closed sessions, up to a timeout; the rest is done after the next start."""
        with self._lock:
            self._stopping = True
            thread = self._thread
        self._wake_up()
        if thread is None:
            return
        thread.join(timeout)
        if thread.is_alive():
            self._abandoned = True
            self.cancel()
            thread.join(timeout)

    def _wake_up(self) -> None:
        with self._lock:
            if self._loop is not None and self._wake is not None:
                self._loop.call_soon_threadsafe(self._wake.set)

    # In the worker's thread ------------------------------------------------------------------

    async def _main(self) -> None:
        with self._lock:
            self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        try:
            self._sweep()
            while not self._abandoned:
                step = self._next_if_possible()
                if step is not None:
                    await self._run_step(step)
                elif self._stopping:
                    break
                else:
                    await self._wait_for_work(self._wake)
        finally:
            with self._lock:
                self._loop = self._wake = None

    def _next_if_possible(self) -> _Step | None:
        """Return the next step; none if that can't be told, as the workspace was moved, say."""
        try:
            return self._next()
        except KbtuiError as error:
            log.info("there is no background work now: %s", error)
            return None

    def _next(self) -> _Step | None:
        """Return the next step: submitted work first, then sessions, then jobs."""
        with self._lock:
            if self._submitted and not self._stopping:
                return self._submitted.popleft()
        self._confirm()
        now = self._clock()
        queued = self._queue.dequeue(now, closing_only=self._stopping)
        if queued is not None:
            return _Step(CONDENSING, queued.session, "", lambda: self._process(queued))
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

    async def _run_step(self, step: _Step) -> None:
        """Run one step; neither its cancellation nor a bug in it ends the worker."""
        if step.text:
            self._emit(WorkerEvent("started", step.name, step.session, step.text))
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
                self._notify(step.name, step.session, f"{step.name} failed. The log says why.")
        finally:
            with self._lock:
                self._task = None
            if (active := self._running) is not None:
                self._emit(WorkerEvent("finished", active.job, active.session))

    async def _wait_for_work(self, wake: asyncio.Event) -> None:
        """Wait for work, for one tick at most; after a tick, look for idle sessions."""
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await wake.wait()
        except TimeoutError:
            self._sweep()
        wake.clear()

    def _sweep(self) -> None:
        """Enqueue the sessions that have been idle long enough, each at most twice."""
        idle = timedelta(minutes=self._settings.idle_minutes)
        if not self._settings.consolidate or not idle:
            return
        try:
            self._confirm()
            infos = self._sessions.list()
        except KbtuiError as error:
            log.info("sessions can't be listed: %s", error)
            return
        for info in infos:
            if info.untouched:
                continue  # imported: condensed only on request
            is_one_turn = info.channel == ONE_TURN_CHANNEL
            quiet = self._clock() - info.updated
            since = (info.updated, quiet >= LONGEST_TURN)  # until then it may still be answered
            is_quiet = quiet >= (LEFT_AFTER if is_one_turn else idle)
            if is_quiet and self._quiet_since.get(info.id) != since:
                self._quiet_since[info.id] = since
                if not is_one_turn or self._work.due.is_pending(info.id):
                    self._queue.enqueue(info.id, closing=is_one_turn)

    async def _process(self, queued: SessionJob) -> None:
        """Work on a session, and defer it if that isn't possible now."""
        try:
            outcome = await self._work.run(
                queued.session, closing=queued.closing, on_event=self._emit
            )
        except BaseException as error:
            # Cancelled, or a bug: nothing would enqueue it again before the next turn.
            self._queue.defer(queued, KbtuiError(str(error) or "It was stopped."), self._clock())
            raise
        if outcome.error is not None:
            self._queue.defer(queued, outcome.error, self._clock())
        if isinstance(outcome.error, ConsentNeededError) and not outcome.error.refused:
            self._ask_consent(CONDENSING, outcome.error)
        elif outcome.notice:
            self._notify(CONDENSING, queued.session, outcome.notice)
        elif outcome.error is None and outcome.kind != "nothing":
            self._notified.pop(CONDENSING, None)  # it works again, so the next problem is news

    async def _job(self, job: Job) -> None:
        self._job_pauses[job.name] = self._clock() + _JOB_PAUSE
        try:
            report = await job.run()
        except KbtuiError as error:
            report = JobReport(error=error)
        if isinstance(report.error, ConsentNeededError) and not report.error.refused:
            self._ask_consent(job.name, report.error)
        elif report.error is not None and not isinstance(report.error, WorkspaceBusyError):
            self._notify(job.name, None, str(report.error))
        else:
            self._notified.pop(job.name, None)
            if report.text:
                self._emit(WorkerEvent("notice", job.name, text=report.text))

    def _ask_consent(self, job: str, error: ConsentNeededError) -> None:
        with self._lock:
            self._consent = error.model
        if self._is_news(job, error.model):
            self._emit(WorkerEvent("consent", job, text=str(error), model=error.model))

    def _notify(self, job: str, session: str | None, text: str) -> None:
        """Notify the user, once until the job succeeds again."""
        if self._is_news(job, text):
            self._emit(WorkerEvent("notice", job, session, text))

    def _is_news(self, job: str, text: str) -> bool:
        notified = self._notified.setdefault(job, set())
        if text in notified:
            return False
        notified.add(text)
        return True

    def _emit(self, event: WorkerEvent) -> None:
        if event.kind in ("started", "progress"):
            self._running = event
        elif event.kind == "finished":
            self._running = None
        self._listeners.tell(event)
