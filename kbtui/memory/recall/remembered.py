"""The lines of MEMORY.md with their authors, and editing one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, KbtuiError, NotFoundError
from kbtui.history.change import Actor
from kbtui.knowledge.format.facts import plain_fact
from kbtui.knowledge.format.lines import heading_of, split_lines
from kbtui.memory.edits.memory_limits import (
    MOST_LINES as MOST_LINES,
    count_lines as count_lines,
    fitted,
    is_near_full as is_near_full,
)
from kbtui.memory.recall.remember import Remembering as Remembering
from kbtui.memory.recall.said import said_of_source
from kbtui.memory.recall.usage import uses_of
from kbtui.memory.records.dates import ages, local
from kbtui.models.port import estimate_tokens
from kbtui.text import clean_line
from kbtui.workspace.files import blob_id, text_of
from kbtui.workspace.layout import MEMORY

if TYPE_CHECKING:
    from kbtui.history.history import History, LineOrigin
    from kbtui.knowledge.library.library import Library
    from kbtui.sessions.store import SessionStore
    from kbtui.views.view import View


_NOTE_TOKENS = 40  # of the words about what is left out
_BULLET = re.compile(r"(\s*(?:[-*+]\s+|\d+[.)]\s+)?)(.*)")


@dataclass(frozen=True, slots=True)
class RememberedLine:
    """A non-blank line, verbatim, and its origin; a heading has no origin."""

    line: int
    raw: str
    origin: LineOrigin | None = None

    @property
    def is_heading(self) -> bool:
        """Whether the line is a heading."""
        return heading_of(self.raw) is not None

    @property
    def text(self) -> str:
        """The text without its bullet."""
        heading = heading_of(self.raw)
        return clean_line(heading[1] if heading is not None else _parts(self.raw)[1])


def _parts(raw: str) -> tuple[str, str]:
    found = _BULLET.fullmatch(raw)
    return (found[1], found[2]) if found is not None else ("", raw)


def remembered(history: History, library: Library) -> tuple[RememberedLine, ...]:
    """Return the lines and headings of MEMORY.md; none if there is no such file."""
    try:
        text = text_of(library.read(MEMORY))
        origins = history.blame(MEMORY, text=text)
    except NotFoundError:
        return ()
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    return tuple(
        RememberedLine(number, raw, None if heading_of(raw) is not None else origins[number - 1])
        for number, raw in enumerate(lines, 1)
        if raw.strip()
    )


def said_days(view: View, text: str) -> dict[int, date]:
    """Return when the lines of MEMORY.md were said that don't tell it themselves, by line number.

    These are the ones with an age, or a word like *ago*. Left out is of what isn't known when.
    """
    lines = split_lines(text)
    numbers = [number for number, line in enumerate(lines) if ages(line)]
    if not numbers:
        return {}
    try:
        origins = view.history.blame(MEMORY, text)
    except KbtuiError:
        return {}
    said = ((number, _said_on(view, lines[number], origins[number])) for number in numbers)
    return {number + 1: day for number, day in said if day is not None}


def _said_on(view: View, line: str, origin: LineOrigin) -> date | None:
    """Return when a line was said: when a person wrote it, or said what it was made of."""
    if origin.time is None or origin.actor.writes_human_text:
        return local(origin.time).date() if origin.time is not None else None
    when = said_of_source(origin, line, view.sessions.messages)
    return when.date() if isinstance(when, datetime) else when


def with_said_days(view: View, text: str, today: date) -> str:
    """Return the text of MEMORY.md with what `said_days` tells behind its lines."""
    lines = split_lines(text)
    for number, day in said_days(view, text).items():
        line = lines[number - 1]
        end = len(line.rstrip())
        lines[number - 1] = f"{line[:end]} · {said_label(day, today)}{line[end:]}"
    return "".join(lines)


def memory_for_prompt(
    sessions: SessionStore, view: View, text: str, today: date, most_tokens: int
) -> str:
    """Return the text of MEMORY.md for a prompt, or what `fitted` chooses if it is too long."""
    shown = with_said_days(view, text, today)
    if most_tokens <= 0 or not text:
        return ""
    if estimate_tokens(shown) <= most_tokens:
        return shown
    facts = [plain_fact(line) for line in split_lines(text)]
    used = uses_of(sessions, facts, today)
    try:
        origins = view.history.blame(MEMORY, text)
    except KbtuiError:
        origins = ()

    def told(number: int) -> datetime | None:
        return origins[number].time if number < len(origins) else None

    kept = fitted(
        split_lines(shown), most_tokens - _NOTE_TOKENS, told, lambda number: used[facts[number]]
    ).rstrip()
    count = f"{count_lines(kept)} of {count_lines(text)} lines"
    note = f"(cut: read {MEMORY} shows all of it; here are {count})"
    return f"{kept}\n{note}" if kept else ""


def said_label(day: date, today: date) -> str:
    """Return when something was said, for people: ``said 26 November``."""
    year = f" {day.year}" if day.year != today.year else ""
    return f"said {day.day} {day:%B}{year}"


def change_fact(library: Library, fact: RememberedLine, text: str) -> None:
    """Replace the text of a line; its bullet and its line ending stay.

    Raises:
        KbtuiError: The line has changed, or can't be written.
    """
    data = library.read(MEMORY)
    lines = split_lines(text_of(data))
    there = lines[fact.line - 1] if fact.line <= len(lines) else ""
    if there.rstrip("\r\n") != fact.raw:
        raise ConflictError("The line is another one by now.", "Try it again.")
    lines[fact.line - 1] = f"{_parts(fact.raw)[0]}{clean_line(text)}{there[len(fact.raw) :]}"
    library.write(
        MEMORY,
        "".join(lines),
        expecting=blob_id(data),
        actor=Actor.YOU,
        reason="a line of the memory was edited",
    )
