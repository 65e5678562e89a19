"""What the keeper runs, and what it tells about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from kbtui.errors import KbtuiError
    from kbtui.memory.consolidation.consolidator import Outcome

CONDENSING = "consolidate"
FLUSHING = "flush"
NOTING = "session-notes"


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

    The keeper runs one job at a time, between the work on sessions. A job takes the memory lock
    itself, and keeps in mind when it ran last.
    """

    @property
    def name(self) -> str:
        """How it is called in events and in `Keeper.run_job`."""
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
class KeeperEvent:
    """What the keeper tells; listeners are called in its thread.

    Attributes:
        kind: ``started``, ``progress`` and ``finished`` of a job; ``notice``: a person should be
            told `text`, which comes once; ``consent``: a person must say whether `model` may be
            used in the background (`Keeper.agree`).
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
class KeeperStatus:
    """What the keeper is at.

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
