"""`Memory`: the facade of memory for front ends, created by the composition root on first use.

Creating it starts nothing; `start` starts the background worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from kbtui.memory.background.budget import (
    BackgroundModels,
    Budget as Budget,
    MeteredModel as MeteredModel,
)
from kbtui.memory.background.estimate import Estimate as Estimate, Unread, estimate as estimate
from kbtui.memory.background.jobs import DREAMING, DreamJob, SessionWork, WorkerEvent as WorkerEvent
from kbtui.memory.background.worker import BackgroundWorker
from kbtui.memory.consolidation.ask import condensed as condensed
from kbtui.memory.consolidation.consolidator import (
    CondensingOutcome as CondensingOutcome,
    Consolidator as Consolidator,
    Trigger as Trigger,
)
from kbtui.memory.consolidation.due import Due as Due
from kbtui.memory.consolidation.notes import SessionMemoryWriter
from kbtui.memory.consolidation.page_writer import MemoryWriter as MemoryWriter
from kbtui.memory.dream.dream import Dream
from kbtui.memory.dream.report import DreamProgress, DreamReport as DreamReport
from kbtui.memory.dream.writing import DreamChange as DreamChange, DreamLog
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.subjects import Subjects
from kbtui.memory.edits.working_copy import EditServices
from kbtui.memory.inbox.drafts import PlaceDraft as PlaceDraft, plan_diff as plan_diff
from kbtui.memory.inbox.evidence import Evidence as Evidence, EvidenceFinder as EvidenceFinder
from kbtui.memory.inbox.inbox import Inbox as Inbox
from kbtui.memory.recall.correcting import (
    CorrectedPlace as CorrectedPlace,
    Correcting,
    CorrectionPlan as CorrectionPlan,
    SaidBy as SaidBy,
)
from kbtui.memory.recall.forget import ForgetPlan as ForgetPlan, Forgetting
from kbtui.memory.recall.omissions import LeftOutMessage, left_out
from kbtui.memory.recall.remember import Remembering
from kbtui.memory.records.committing import MemoryLock
from kbtui.memory.records.ledger import Audit as Audit, Ledger
from kbtui.memory.services import Services
from kbtui.models.port import estimate_tokens

log = logging.getLogger(__name__)
CLOSE_SECONDS = 5.0


def _now() -> datetime:
    return datetime.now(UTC)


class Memory:
    """Everything that makes and keeps the memory of one workspace.

    `due` tells what is to be condensed and `remembering` adds facts, both by what is in `services`;
    `count_old` records in the archive what another program had condensed.
    """

    def __init__(
        self,
        services: Services,
        due: Due,
        remembering: Remembering,
        clock: Callable[[], datetime] = _now,
        count_old: Callable[[], None] = lambda: None,
    ) -> None:
        self._services = services
        workspace, history, library = services.workspace, services.history, services.library
        self.due = due
        self.count_old = count_old
        self.remembering = remembering
        self.archive = services.archive
        self.pending = due.pending
        self.tombstones = self.pending.tombstones
        self.ledger = Ledger(services.sessions, self.archive, history, self.tombstones)
        self.inbox = Inbox(workspace, history, self.tombstones)
        self.lock = MemoryLock(workspace)
        self.budget = Budget(services.settings.budget.daily_usd)
        self.models = BackgroundModels(services.models, services.settings, self.budget)
        subjects = Subjects(library, services.search)
        edited = EditServices(history, library, subjects, self.tombstones, services.sessions)
        self.editor = Editor(workspace, edited, self.inbox)
        self._build_consolidation(clock)
        self.dream = Dream(
            services,
            self.inbox,
            self.editor,
            self.pending,
            self.lock,
            lambda: self.models.get("dream"),
            clock,
        )
        self.dream_log = DreamLog(history, self.dream.standing)
        hours = services.settings.dream.interval_hours
        self._dreaming = DreamJob(self.dream, history, hours, clock, self.dreaming)
        self.worker.add_job(self._dreaming)
        self.forgetting = Forgetting(services, self.tombstones, self.inbox)
        self.correcting = Correcting(services, clock)

    def _build_consolidation(self, clock: Callable[[], datetime]) -> None:
        services, settings = self._services, self._services.settings.memory
        writer = MemoryWriter(
            services.workspace,
            services.history,
            self.archive,
            self.inbox,
            self.editor,
            settings.flush,
        )
        self.consolidator = Consolidator(
            self.due,
            services.seen_by,
            writer,
            self.lock,
            self._model,
        )
        self.session_notes = SessionMemoryWriter(
            services.workspace,
            services.history,
            self.pending,
            self.archive,
            self.lock,
            settings.session_notes,
        )
        self._work = SessionWork(self.consolidator, self.session_notes)
        self.worker = BackgroundWorker(
            services.sessions,
            self._work,
            self.budget,
            settings,
            clock,
            services.workspace.confirm,
        )

    def _model(self) -> MeteredModel:
        return self.models.get("consolidate")

    def evidence(self) -> EvidenceFinder:
        """Return what finds the messages behind proposals, for one look at the inbox."""
        return EvidenceFinder(self.archive, self._services.sessions)

    def dreaming(self, progress: DreamProgress) -> None:
        """Report a run's progress as the worker's; for ``Dream.run(on_progress=...)``."""
        self.worker.report_progress(DREAMING, progress.text, progress.step, progress.steps)

    def next_dream(self, now: datetime) -> datetime | None:
        """Return when Dream is due, or None if it isn't scheduled or nothing is new."""
        return self._dreaming.next_due(now)

    def start(self) -> None:
        """Start background work, if the workspace is writable."""
        if not self._services.workspace.writable:
            return
        self.count_old()
        self.worker.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finish what was begun, up to a timeout; the rest is done after the next start."""
        self.worker.close(timeout)

    def audit(self) -> Audit:
        """Account for every message."""
        return self.ledger.account()

    def left_out(self) -> list[LeftOutMessage]:
        """Return archived statements that no summary, note or entry has; reads files."""
        return list(left_out(self._services, self.pending))

    def unfinished(self, *, by_model: bool = False) -> list[str]:
        """Return the sessions with unarchived messages, oldest first; imported ones if continued.

        With `by_model`, include those of which a model has not condensed all that is archived.
        """
        infos = sorted(self._services.sessions.list(), key=lambda info: info.updated)
        waiting = (info.id for info in infos if not info.untouched)
        return [each for each in waiting if self.ledger.pending(each, by_model=by_model)]

    def unread(self) -> Unread | None:
        """Return the conversations that no model has condensed, and their cost; None without any.

        The other archive entries that Dream would read are in the cost, too.

        Raises:
            ModelAccessError: The model of the role ``consolidate`` needs a key that nobody gave.
        """
        if not any(entry.is_unread for entry in self.archive.entries()):
            return None
        sessions = self.unfinished(by_model=True)
        entries = [each for each in self.dream.waiting() if each.session not in sessions]
        tokens = sum(self.pending.tokens(each, by_model=True) for each in sessions)
        tokens += sum(estimate_tokens(each.content) for each in entries)
        cost = estimate(self._services.models, "consolidate", tokens, len(sessions))
        return Unread(tuple(sessions), tokens, cost, len(entries))

    async def consolidate(self, session: str, *, by_model: bool = False) -> CondensingOutcome:
        """Condense everything pending of a session; never raises, errors are in the outcome.

        `by_model` is as in `Consolidator.run`.
        """
        return await self._work.condense(session, Trigger.ASKED, everything=True, by_model=by_model)

    async def consolidate_if_due(self, session: str, seconds: float) -> CondensingOutcome | None:
        """Condense a session if due, then abandoned ones, within `seconds`.

        For programs that are about to exit. Returns the session's outcome, or None if it wasn't
        due.
        """
        if not self._services.settings.memory.consolidate or not self._services.workspace.writable:
            return None
        await asyncio.to_thread(self.count_old)
        outcome, sessions = None, self._services.sessions
        try:
            async with asyncio.timeout(seconds):
                trigger = await asyncio.to_thread(self.due.trigger, session)
                if trigger is not None:
                    outcome = await self._work.condense(session, trigger)
                for abandoned in await asyncio.to_thread(self.due.abandoned, sessions):
                    if abandoned != session:
                        await self._work.run(abandoned, closing=True)
        except TimeoutError:
            log.info("condensing took too long; it is done later")
            return CondensingOutcome("late", session)
        return outcome
