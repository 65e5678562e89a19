"""Pages: unarchived messages, each page condensed by one call into one archive entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from kbtui.knowledge.format.facts import Fact
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.dates import local
from kbtui.memory.records.ranges import Range
from kbtui.memory.records.tombstones import Tombstones
from kbtui.memory.records.transcript import (
    SessionTranscript,
    questions_in,
    read_conversation,
    said_by_user,
    tokens_of,
)
from kbtui.sessions.slices import Unit, pages, split_units
from kbtui.sessions.store import SessionMessage
from kbtui.text import moment
from kbtui.views.view import View
from kbtui.workspace.jsonl import read_lines
from kbtui.workspace.layout import Workspace


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive units of a conversation.

    If some of its answers are `withheld`, only the user's words are used, and without a model: the
    answers must not get into memory, which any model reads.
    """

    conversation: SessionTranscript
    units: tuple[Unit, ...]

    @property
    def withheld(self) -> bool:
        """Whether some of its answers must not get into memory."""
        return any(map(self.conversation.withholds, self.units))

    @property
    def session(self) -> str:
        """The id of its session."""
        return self.conversation.id

    @property
    def messages(self) -> tuple[SessionMessage, ...]:
        """Its messages in order."""
        return tuple(message for unit in self.units for message in unit.messages)

    @property
    def range(self) -> Range:
        """The ids of its first and last message."""
        return self.units[0].first, self.units[-1].last

    @property
    def text(self) -> str:
        """The text shown to a model, one line per message."""
        return "".join(self.conversation.line(each) for each in self.messages if self.shows(each))

    def numbered(self, *, brief: bool = False, only: Collection[int] | None = None) -> str:
        """Return the text with message ids, so that a model can cite them.

        If `brief`, answers are reduced to their questions; `only` selects messages by id.
        """
        lines = []
        shown_ones = filter(self.shows, self.messages)
        for each in (each for each in shown_ones if only is None or each.id in only):
            shown = replace(each, content=" ".join(questions_in(each.content))) if brief else each
            if each.role == "user" or shown.content:
                line = self.conversation.line(each if each.role == "user" else shown)
                lines.append(line.replace("]", f" #{each.id}]", 1))
        return "".join(lines)

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """The messages that a model isn't shown, with the reasons."""
        return self.conversation.dropped(*self.range)

    @property
    def shown(self) -> int:
        """The number of messages that a model is shown."""
        return sum(map(self.shows, self.messages))

    @property
    def timestamp(self) -> str:
        """The time of its first shown message, as the archive writes it."""
        first = next(filter(self.shows, self.messages), self.messages[0])
        return moment(first.time)

    @property
    def day(self) -> date:
        """The date of its last message, in the user's time zone."""
        return local(self.messages[-1].time).date()

    def time_of(self, fact: Fact) -> datetime | None:
        """Return when a fact was said, in the user's time zone, if its message is known."""
        times = {each.id: each.time for each in self.messages if each.role == "user"}
        return local(times[fact.message]) if fact.message in times else None

    def text_of(self, fact: Fact) -> str:
        """Return the message that states a fact, or "" if it isn't known."""
        said = (each.content for each in self.messages if each.role == "user")
        numbers = (each.id for each in self.messages if each.role == "user")
        return dict(zip(numbers, said, strict=True)).get(fact.message or 0, "")

    @property
    def said(self) -> list[tuple[datetime, str]]:
        """The user's messages, each with its time."""
        return said_by_user(self.messages)

    @property
    def spoken(self) -> list[SessionMessage]:
        """The shown messages, without a model's reasoning."""
        shown = filter(self.shows, self.messages)
        return [replace(each, content=self.conversation.spoken(each)) for each in shown]

    def shows(self, message: SessionMessage) -> bool:
        """Return whether a model is shown a message."""
        allowed = message.role == "user" or message.id not in self.conversation.withheld
        return allowed and self.conversation.shown(message)

    def halves(self) -> tuple[Page, Page] | None:
        """Split the page in two, if possible between turns near the middle, or return None."""
        if len(self.units) < 2:  # two halves
            return None
        middle = len(self.units) // 2
        turns = [n for n in range(1, len(self.units)) if self.units[n].starts_turn] or [middle]
        cut = min(turns, key=lambda number: abs(number - middle))
        first, second = (
            Page(self.conversation, units) for units in (self.units[:cut], self.units[cut:])
        )
        return (first, second) if first.shown and second.shown else None


@dataclass(eq=False)
class Pending:
    """Reads sessions, even open ones, and compares them with the archive.

    `view` is what memory may tell.
    """

    workspace: Workspace
    view: View
    archive: Archive
    tombstones: Tombstones

    def conversation(self, session: str) -> SessionTranscript:
        """Return a session as it is on disk."""
        lines = read_lines(self.workspace.sessions / f"{session}.jsonl")
        forgotten = self.tombstones.dropped(session)
        return read_conversation(session, lines.records, self.view.sessions.withheld, forgotten)

    def parts(
        self, conversation: SessionTranscript, *, closed: bool = False, by_model: bool = False
    ) -> list[list[Unit]]:
        """Return unarchived messages as gapless runs of units; `closed` as in `split_units`.

        With `by_model`, include those that no model has condensed.
        """
        covered = self.archive.covered(conversation.id, by_model=by_model)
        return [split_units(part, closed=closed) for part in conversation.pending(covered)]

    def tokens(self, session: str, *, by_model: bool = False) -> int:
        """Estimate the tokens of a session's unarchived messages; `by_model` as in `parts`."""
        parts = self.parts(self.conversation(session), by_model=by_model)
        units = (unit for part in parts for unit in part)
        return sum(each.as_prompt().tokens for unit in units for each in unit.messages)


def pages_for(
    conversation: SessionTranscript, units: Iterable[Unit], limit: int, count: Callable[[str], int]
) -> list[Page]:
    """Group units into pages of at most `limit` tokens, withheld ones apart from the rest.

    Pages with only messages that the ledger drops are left out.
    """
    cut = pages(units, limit, tokens_of(conversation, count), conversation.withholds)
    found = [Page(conversation, tuple(page)) for page in cut]
    return [page for page in found if any(map(conversation.shown, page.messages))]
