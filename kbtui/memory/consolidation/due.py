"""What is due to be condensed, which is told without loading anything that condenses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from kbtui.memory.consolidation.page import Pending as Pending
from kbtui.memory.records.transcript import SessionTranscript
from kbtui.sessions.store import SessionStore
from kbtui.sessions.window import always_fits, session_window
from kbtui.settings import Settings

LONGEST_TURN = timedelta(minutes=15)
ONE_TURN_CHANNEL = "cli"  # of ``kbtui ask``, whose sessions nobody closes
LEFT_AFTER = timedelta(hours=1)


class Trigger(StrEnum):
    """Why a conversation is condensed."""

    FULL = "full"
    IDLE = "idle"
    CLOSED = "closed"
    ASKED = "asked"


@dataclass(eq=False)
class Due:
    """Tells which sessions are to be condensed.

    Args:
        pending: Reads unarchived messages.
        settings: Limits and triggers.
        clock: Returns the time, timezone-aware.
        room: Returns the tokens that a session has in chat prompts; None: as many as the settings
            allow.
    """

    pending: Pending
    settings: Settings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    room: Callable[[], int] | None = None

    def trigger(self, session: str) -> Trigger | None:
        """Return why a session should be condensed now, or None; not for an event loop."""
        conversation = self.pending.conversation(session)
        parts = self.pending.parts(conversation)
        if not parts:
            return None
        idle = timedelta(minutes=self.settings.memory.idle_minutes)
        last = conversation.messages[-1]
        if last.role != "assistant" or last.tool_calls:
            idle = idle and max(idle, LONGEST_TURN)  # it may still be answered
        if idle and self.clock() - last.time >= idle:
            return Trigger.IDLE
        return Trigger.FULL if parts[0][0].last <= self.last_outside_prompt(conversation) else None

    def last_outside_prompt(self, conversation: SessionTranscript) -> int:
        """Return the id of the last message that no longer fits into prompts, or 0."""
        context = self.settings.context
        if self.room is not None and always_fits(conversation.messages, context.memory_window):
            return 0  # the room needs the whole prompt
        window = session_window(
            conversation.messages,
            most_tokens=context.session_tokens if self.room is None else self.room(),
            most_messages=context.memory_window,
        )
        return window.left[-1].id if window.left else 0

    def abandoned(self, sessions: SessionStore) -> list[str]:
        """Return the abandoned single-turn sessions that aren't condensed, oldest first.

        One with a time to come is left: the clock was wrong.
        """
        now = self.clock()
        found = [
            info.id
            for info in sessions.list()
            if info.channel == ONE_TURN_CHANNEL
            and not timedelta() <= now - info.updated < LEFT_AFTER
        ]
        return [each for each in reversed(found) if self.is_pending(each)]

    def is_pending(self, session: str) -> bool:
        """Return whether a session has messages to condense; not for an event loop."""
        return bool(self.pending.parts(self.pending.conversation(session)))
