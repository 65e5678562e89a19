"""When was it said? One answer for every line of a workspace.

It is, in this order: the time of the message that it was made of; the day in a journal's name, or
in the line; the commit that wrote it, unless that only recorded what was there (the first opening,
an import, a sync); else `created`, or `updated` where the note has one line. If all that is known
is the day on which a vault was opened or an export imported, it isn't known.

What was said later is told by an order, not by a clock: within one file the lower line is later,
else the order of the commits decides. Only what has neither is compared by its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbtui.errors import KbtuiError
from kbtui.history.change import SHIPPED, Actor
from kbtui.knowledge.entries.entry import parse_entry
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.edits.grounding import ground_of
from kbtui.memory.records.dates import local
from kbtui.memory.records.journal import day_of
from kbtui.offline.lines import lines_of
from kbtui.workspace.layout import is_recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.history.change import Commit
    from kbtui.history.history import LineOrigin
    from kbtui.sessions.store import SessionMessage

_DAY = r"\d{4}-\d\d-\d\d"
_IN_LINE = re.compile(rf"^[\s>*+\-\[\](#]*({_DAY})\b|\(said ({_DAY})\)")
_STEP = 1e-6  # seconds between the lines of one commit


class Said(NamedTuple):
    """When something was said: its day where it was said, and a Unix time to order it by."""

    day: date
    moment: float


class _History(Protocol):
    def blame(self, path: str, *, text: str) -> Sequence[LineOrigin]:
        """Return the commit that wrote each line."""

    def commit(self, rev: str) -> Commit:
        """Return a commit."""

    def moments(self) -> Mapping[str, float]:
        """Return the time of each commit on the branch, none later than one after it."""


class _Sessions(Protocol):
    def read(self, ref: str) -> Sequence[SessionMessage]:
        """Return the messages of a conversation."""


class SaidTimes:
    """Tells of the lines of one workspace when they were said."""

    def __init__(self, history: _History, sessions: _Sessions, now: Callable[[], datetime]) -> None:
        self._history = history
        self._sessions = sessions
        self.now = now
        self._recorded: dict[str, Commit] = {}

    def of_message(self, message: SessionMessage) -> Said | None:
        """Return when a message was said; None if its time is one to come: the clock was wrong."""
        if message.time > self.now():
            return None
        return Said(local(message.time).date(), message.time.timestamp())

    def of_lines(
        self, path: str, text: str, numbers: Iterable[int] | None = None
    ) -> dict[int, Said]:
        """Return when lines of a file's text were said, by their number from 1, where it is known.

        Args:
            path: The file.
            text: Its text.
            numbers: The lines; None: all that aren't blank.
        """
        lines = split_lines(text)
        file = _File(path, text, self._origins(path, text))
        wanted = numbers if numbers is not None else range(1, len(lines) + 1)
        found = {}
        for number in wanted:
            line = lines[number - 1] if 0 < number <= len(lines) else ""
            if line.strip() and (said := self._of_line(file, number, line)) is not None:
                found[number] = said
        return found

    def _origins(self, path: str, text: str) -> Sequence[LineOrigin]:
        with suppress(KbtuiError):
            if is_recorded(path):
                return self._history.blame(path, text=text)
        return ()

    def _of_line(self, file: _File, number: int, line: str) -> Said | None:
        origin = file.origins[number - 1] if number <= len(file.origins) else None
        if origin is not None and (told := self._of_source(origin, line)) is not None:
            return told
        moment = self._written(file.path, origin) if origin is not None else None
        day = _day_in(line) or day_of(file.path)
        if moment is None:
            day = day or self._noted_on(file, origin)
            return Said(day, _moment_of(day) + number * _STEP) if day else None
        return Said(day or _day_of_moment(moment), moment + number * _STEP)

    def _noted_on(self, file: _File, origin: LineOrigin | None) -> date | None:
        """Return the day in a note's properties, unless it is that of its opening or import."""
        day = file.noted_on
        recorded = origin.time if origin is not None else None
        return None if recorded is not None and local(recorded).date() == day else day

    def _of_source(self, origin: LineOrigin, line: str) -> Said | None:
        """Return when the message was said that a machine made a line of."""
        meant = said_of_source(origin, line, self._sessions.read)
        if not isinstance(meant, datetime) or meant > self.now():
            return None
        return Said(local(meant).date(), meant.timestamp())

    def _written(self, path: str, origin: LineOrigin) -> float | None:
        """Return when a line was written; None if its commit only recorded what was there."""
        now = self.now().timestamp()
        if origin.commit is None:
            return now
        commit = self._recorded.get(origin.commit)
        if commit is None:
            commit = self._recorded[origin.commit] = self._history.commit(origin.commit)
        if commit.is_found or commit.body == SHIPPED or commit.actor in {Actor.IMPORT, Actor.SYNC}:
            return None
        if commit.is_outside and any(
            each.path == (origin.path or path) and each.kind == "added" for each in commit.paths
        ):
            return None
        return min(self._history.moments().get(commit.id, commit.time.timestamp()), now)


def said_of_source(
    origin: LineOrigin, line: str, read: Callable[[str], Sequence[SessionMessage]]
) -> datetime | date | None:
    """Return when that was said of which a machine made a line; `read` reads a conversation."""
    source = origin.origin
    if origin.actor.writes_human_text or source.session is None or source.messages is None:
        return None
    first, last = source.messages
    try:
        messages = read(source.session)
    except KbtuiError:
        return None
    return ground_of(each for each in messages if first <= each.id <= last).said(line)


class _File:
    """A file's text with the origins of its lines."""

    def __init__(self, path: str, text: str, origins: Sequence[LineOrigin]) -> None:
        self.path = path
        self.origins = origins
        self._text = text

    @cached_property
    def noted_on(self) -> date | None:
        """The day in the note's properties: `created`, or `updated` where it has one line.

        Else `date`, as notes of sites and blogs have it.
        """
        found = parse_entry(self.path, self._text.encode("utf-8", "replace"))
        is_one_line = sum(1 for _ in lines_of(self._text)) == 1
        dated = found.frontmatter.get("date")
        for shown in (found.updated if is_one_line else None, found.created, dated):
            with suppress(ValueError):
                return date.fromisoformat(str(shown or "")[:10])
        return None


def _day_in(line: str) -> date | None:
    match = _IN_LINE.search(line)
    with suppress(ValueError):
        return date.fromisoformat(match[1] or match[2]) if match else None
    return None


def _moment_of(day: date) -> float:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.combine(day, time(12)).astimezone().timestamp()
    return datetime.combine(day, time(12), UTC).timestamp()


def _day_of_moment(moment: float) -> date:
    return local(datetime.fromtimestamp(moment, UTC)).date()
