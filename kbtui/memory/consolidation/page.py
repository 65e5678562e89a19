"""A page: the messages that are condensed by one call, and end up in one archive entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.memory.records.dates import local, stamp
from kbtui.memory.records.transcript import said_by_user

if TYPE_CHECKING:
    from datetime import date, datetime

    from kbtui.memory.records.ranges import Range
    from kbtui.memory.records.transcript import Conversation
    from kbtui.sessions.slices import Unit
    from kbtui.sessions.store import SessionMessage


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive units of a conversation.

    Of a `private` page, whose answers drew on private entries, only what the user said is worked
    on, and only without a model: what those entries say must not get into memory that other
    models read.
    """

    conversation: Conversation
    units: tuple[Unit, ...]
    private: bool = False

    @property
    def session(self) -> str:
        """The session that it is of."""
        return self.conversation.id

    @property
    def messages(self) -> tuple[SessionMessage, ...]:
        """Its messages in order."""
        return tuple(message for unit in self.units for message in unit.messages)

    @property
    def range(self) -> Range:
        """The ids of its first and its last message."""
        return self.units[0].first, self.units[-1].last

    @property
    def text(self) -> str:
        """All that a model is shown of it, a line for each message."""
        return "".join(self.conversation.line(each) for each in self.messages if self.shows(each))

    @property
    def numbered(self) -> str:
        """The same, each message with its number, so that a model can say which one says what."""
        lines = (self.conversation.line(each) for each in self.messages if self.shows(each))
        shown = (each for each in self.messages if self.shows(each))
        return "".join(
            line.replace("]", f" #{each.id}]", 1) for each, line in zip(shown, lines, strict=True)
        )

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """The messages that a model isn't shown, with the reasons."""
        return self.conversation.dropped(*self.range)

    @property
    def shown(self) -> int:
        """How many messages a model is shown."""
        return sum(map(self.shows, self.messages))

    @property
    def timestamp(self) -> str:
        """When it begins, as the archive writes it."""
        first = next(filter(self.shows, self.messages), self.messages[0])
        return stamp(first.time)

    @property
    def day(self) -> date:
        """The day of its last message, in the user's time zone."""
        return local(self.messages[-1].time).date()

    @property
    def said(self) -> list[tuple[datetime, str]]:
        """The words of the user in it, and when they were said."""
        return said_by_user(self.messages)

    def shows(self, message: SessionMessage) -> bool:
        """True if a model is shown a message of it."""
        allowed = not self.private or message.role == "user"
        return allowed and self.conversation.shown(message)

    def halves(self) -> tuple[Page, Page] | None:
        """It in two, at a turn's end where there is one near the middle; None: it is one unit."""
        if len(self.units) < 2:  # noqa: PLR2004 - two halves
            return None
        middle = len(self.units) // 2
        turns = [n for n in range(1, len(self.units)) if self.units[n].starts_turn] or [middle]
        cut = min(turns, key=lambda number: abs(number - middle))
        first, second = (
            Page(self.conversation, units, self.private)
            for units in (self.units[:cut], self.units[cut:])
        )
        return (first, second) if first.shown and second.shown else None
