"""The work on one session: condensing, and the note of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, WorkspaceBusyError
from kbtui.memory.background.jobs import CONDENSING, NOTING, WorkerEvent
from kbtui.memory.consolidation.consolidator import Outcome, Trigger

if TYPE_CHECKING:
    from kbtui.memory.consolidation.consolidator import Consolidator, Progress
    from kbtui.memory.consolidation.notes import SessionMemoryWriter
    from kbtui.memory.consolidation.page import Pending

    Tell = Callable[[WorkerEvent], None]


def _nobody(_event: WorkerEvent) -> None:
    """Told what happens, says nothing."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The outcome of a session; with an `error` it must be looked at again later."""

    outcome: Outcome | None = None
    notice: str = ""
    error: KbtuiError | None = None


class SessionWork:
    """Condenses a session, and at its end writes its note."""

    def __init__(
        self, pending: Pending, consolidator: Consolidator, notes: SessionMemoryWriter
    ) -> None:
        self._pending = pending
        self._consolidator = consolidator
        self._notes = notes

    async def run(self, session: str, *, closing: bool, tell: Tell = _nobody) -> SessionReport:
        """Do what there is to do about a session, to its end if `closing`; reports errors."""
        try:
            if await asyncio.to_thread(self._is_untouched, session):
                return SessionReport()
            trigger = await asyncio.to_thread(self._consolidator.trigger, session)
            if closing:
                trigger = Trigger.CLOSED
            if trigger is None:
                return SessionReport()
            outcome = await self.condense(session, trigger, tell)
            if closing:
                await self._write_notes(session, outcome, tell)
        except KbtuiError as error:
            return SessionReport(notice="" if _is_quiet(error) else str(error), error=error)
        return SessionReport(outcome, outcome.notice, outcome.error)

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
    ) -> Outcome:
        """Condense a session, or `everything` that is pending of it; nothing is raised."""
        tell(WorkerEvent("started", CONDENSING, session, f"Condensing {session}"))
        outcome = await self._consolidator.run(
            session,
            everything=everything or trigger in (Trigger.CLOSED, Trigger.IDLE),
            trigger=trigger,
            on_progress=progress_teller(tell),
        )
        tell(WorkerEvent("finished", CONDENSING, session, outcome=outcome))
        return outcome

    async def _write_notes(self, session: str, outcome: Outcome, tell: Tell) -> None:
        tell(WorkerEvent("started", NOTING, session, f"Writing the notes of {session}"))
        await self._notes.write_session_memory(session, outcome.title)
        tell(WorkerEvent("finished", NOTING, session))


def progress_teller(tell: Tell) -> Callable[[Progress], None]:
    """Make events of the progress of condensing."""

    def told(progress: Progress) -> None:
        text = f"Condensing {progress.session}, {progress.page} of {progress.pages}"
        pages = (progress.page, progress.pages)
        tell(WorkerEvent("progress", CONDENSING, progress.session, text, *pages))

    return told


def _is_quiet(error: KbtuiError) -> bool:
    """True if an error is no news to a person: another program is at the same work."""
    return isinstance(error, WorkspaceBusyError)
