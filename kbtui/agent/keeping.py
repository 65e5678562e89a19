"""Storing what the user said verbatim: in the journal, in MEMORY.md, or as a decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kbtui.agent.events import TurnChange
from kbtui.clock import local_now
from kbtui.history.change import Actor, Commit, Origin, describe
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.journal import Journal, JournalLine, with_dates
from kbtui.offline.message import Reading
from kbtui.workspace.layout import MEMORY, short_name

if TYPE_CHECKING:
    from kbtui.memory.recall.remembered import Remembering

DAILY_NOTES = (
    "What you state is kept beside your vault, in notes by day of its own. `/journal daily` (or"
    " `kbtui config set memory.journal daily`) puts it into your daily notes from now on, under"
    " “Journal”; `/journal own` leaves it so."
)


@dataclass(frozen=True, slots=True)
class Kept:
    """Where something was stored.

    Attributes:
        path: The file.
        line: The line in it, from 1.
        message: A sentence about it for the user.
        summary: The same in a few words.
        changes: The commits; none if it was known already.
        noted: The journal line, if it is one.
        notice: What else the user should know; may be empty.
    """

    path: str
    line: int
    message: str
    summary: str
    changes: tuple[TurnChange, ...] = ()
    noted: JournalLine | None = None
    notice: str = ""


@dataclass(eq=False)
class Keeping:
    """The store of the user's statements in one workspace."""

    library: Library
    journal: Journal
    remembering: Remembering
    now: Callable[[], datetime] = local_now

    def keep(self, reading: Reading, origin: Origin) -> Kept:
        """Store what a message says where it belongs; raises as `committed`."""
        if reading.kind == "remember":
            return self._remember(reading.text, origin)
        if reading.kind == "decision" and not self.library.same_name("decision", reading.title):
            return self._add_decision(reading, origin)
        return self.note(reading.text, origin, task=reading.kind == "task")

    def note(self, text: str, origin: Origin, *, task: bool = False) -> Kept:
        """Store a text in the journal; raises as `Journal.keep`."""
        now = self.now()
        notice = DAILY_NOTES if self.journal.may_be_asked_about(now.date()) else ""
        noted = self.journal.keep(text, now, origin, task=task)
        if noted.commit is None:
            sentence = f"It stands in today's journal already ({noted.time})."
            return Kept(noted.path, noted.line, sentence, f"known since {noted.time}", noted=noted)
        what = "a task" if task else "noted"
        sentence = "Noted as a task." if task else "Noted."
        changes = _turn_changes(noted.commit, f"{what} {noted.time}")
        return Kept(
            noted.path, noted.line, sentence, f"{what} {noted.time}", changes, noted, notice
        )

    def _remember(self, text: str, origin: Origin) -> Kept:
        done = self.remembering.remember(text, origin)
        path = MEMORY
        if done.commit is None:
            return Kept(path, done.line, "MEMORY.md says so already.", "known already")
        changes = (TurnChange(done.commit, (path,), "remembered"),)
        message = "Remembered, for every conversation."
        return Kept(path, done.line, message, "remembered", changes, notice=done.warning)

    def _add_decision(self, reading: Reading, origin: Origin) -> Kept:
        from kbtui.memory.edits.editor import named_entries

        day = self.now().date()
        text = with_dates(reading.text, day)
        entry = self.library.create(
            "decision",
            reading.title,
            day=day,
            actor=Actor.YOU,
            origin=origin,
            sections={"Decision": text},
            related=named_entries(self.library.infos(), text),
        )
        sentence = f"Kept as a decision: [[{short_name(entry.path)}|{reading.title}]]."
        return Kept(
            entry.path, 1, sentence, f"{reading.title} created", _turn_changes(entry.commit)
        )


def _turn_changes(commit: Commit | None, summary: str = "") -> tuple[TurnChange, ...]:
    if commit is None:
        return ()
    paths = tuple(each.path for each in commit.paths)
    return (TurnChange(commit.id, paths, summary or describe(commit.paths)),)
