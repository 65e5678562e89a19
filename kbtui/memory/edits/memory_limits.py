"""Keeps MEMORY.md short: lines that exceed its limits move into the entry of their subject.

It is in every prompt, so it has a limit of 60 lines and a token budget. Lines about an existing
entry move first, then the oldest; the ten newest never do. The user's own lines stay: only Dream
moves them, and asks first.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.history import LineOrigin
from kbtui.knowledge.format.facts import Fact, plain_fact
from kbtui.knowledge.format.lines import heading_of, split_lines
from kbtui.knowledge.library.overlay import shown_text
from kbtui.memory.edits.memory_file import FACTS, MEMORY, is_statement
from kbtui.models.port import estimate_tokens
from kbtui.text import clean_line

if TYPE_CHECKING:
    from kbtui.memory.edits.working_copy import WorkingCopy

MOST_LINES = 60
_NEARLY_FULL = 0.85


def fullness(text: str, most_tokens: int) -> float:
    """Return how full MEMORY.md is: 1.0 at the limit of lines or tokens."""
    lines = count_lines(text)
    tokens = estimate_tokens(text) / most_tokens if most_tokens else 0.0
    return max(lines / MOST_LINES, tokens)


def count_lines(text: str) -> int:
    """Return the number of statements in MEMORY.md."""
    return sum(map(is_statement, split_lines(text)))


def is_near_full(text: str, most_tokens: int) -> bool:
    """Return whether a person should know that MEMORY.md is nearly full."""
    return fullness(text, most_tokens) >= _NEARLY_FULL


def trim_memory(copy: WorkingCopy, day: date, most_tokens: int = 0) -> int:
    """Move lines out of MEMORY.md until it is within its limits; return how many."""
    moved = 0
    for line, heading in _movable_lines(copy):
        if fullness(shown_text(copy.files.data(MEMORY)), most_tokens) <= 1.0:
            break
        try:
            moved += _move(copy, line, heading, day)
        except KbtuiError:  # the line is there twice, or its entry can't be changed
            continue
    return moved


def _move(copy: WorkingCopy, line: str, heading: str, day: date) -> bool:
    # Whoever only counts lines has no working copy, and so no use for these.
    from kbtui.memory.edits.operations import keep_in_entry, without_line

    subjects = copy.services.subjects
    named = [path for path in subjects.named_in(line) if copy.files.exists(path)]
    if len(named) == 1:
        entry = copy.files.parsed(named[0])
        fact = Fact(line, entry.type or "topic", entry.title)
    else:
        fact = Fact(line, "fact", heading or FACTS)
    make, *_ = keep_in_entry(fact, day)
    if copy.perform(make).proposed:
        return False
    return not copy.perform(without_line(MEMORY, line)).proposed


def _movable_lines(copy: WorkingCopy) -> list[tuple[str, str]]:
    """Return the lines that may move with their headings, in the order of moving."""
    text = shown_text(copy.files.data(MEMORY))
    origins = copy.services.history.blame(MEMORY, text=text) if text else ()
    found: list[tuple[bool, datetime, int, str, str]] = []
    heading = ""
    for number, line in enumerate(split_lines(text)):
        if title := heading_of(line):
            heading = clean_line(title[1])
        elif is_statement(line):
            when = _written_by_machine(origins[number]) if number < len(origins) else None
            if when is not None:
                has_entry = bool(copy.services.subjects.named_in(line))
                found.append((not has_entry, when, number, plain_fact(line), heading))
    newest = sorted(found, key=lambda each: each[1:3])[-10:]
    leaving = sorted(each for each in found if each not in newest)
    return [(line, heading) for _, _, _, line, heading in leaving]


def _written_by_machine(origin: LineOrigin) -> datetime | None:
    """Return when a machine wrote a line; None for a person's or an unrecorded one."""
    return None if origin.actor.writes_human_text else origin.time
