"""MEMORY.md is kept lean: what no longer needs the spotlight moves into the entry of its subject.

It stands in every prompt, so it has at most 60 lines and keeps within its token budget. What an
entry is about goes first, then the oldest, and the newest never. Lines that the user wrote stay:
only Dream moves them, and asks.
"""

from __future__ import annotations

from datetime import date, datetime

from kbtui.errors import KbtuiError
from kbtui.history.history import LineOrigin
from kbtui.knowledge.format.facts import Fact, plain_fact
from kbtui.knowledge.format.lines import heading_of, split_lines
from kbtui.knowledge.library.overlay import shown_text
from kbtui.memory.edits.memory_file import FACTS, MEMORY, is_statement
from kbtui.memory.edits.operations import keep_in_entry, without_line
from kbtui.memory.edits.working_copy import WorkingCopy
from kbtui.models.port import estimate_tokens
from kbtui.text import clean_line

MOST_LINES = 60
_NEAR = 0.85


def fullness(text: str, most_tokens: int) -> float:
    """How full MEMORY.md is: 1.0 where it has all the lines or tokens that it may have."""
    lines = count_lines(text)
    tokens = estimate_tokens(text) / most_tokens if most_tokens else 0.0
    return max(lines / MOST_LINES, tokens)


def count_lines(text: str) -> int:
    """The lines of MEMORY.md that say something."""
    return sum(map(is_statement, split_lines(text)))


def is_near_full(text: str, most_tokens: int) -> bool:
    """True if a person should know that MEMORY.md is nearly as long as it may be."""
    return fullness(text, most_tokens) >= _NEAR


def make_lean(copy: WorkingCopy, day: date, most_tokens: int = 0) -> int:
    """Move lines out of MEMORY.md until it is as short as it may be; how many were moved."""
    moved = 0
    for line, heading in _leaving(copy):
        if fullness(shown_text(copy.files.data(MEMORY)), most_tokens) <= 1.0:
            break
        try:
            moved += _move(copy, line, heading, day)
        except KbtuiError:  # it stands there twice, or its entry can't be changed
            continue
    return moved


def _move(copy: WorkingCopy, line: str, heading: str, day: date) -> bool:
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


def _leaving(copy: WorkingCopy) -> list[tuple[str, str]]:
    """The lines that may go with their headings, in the order in which they go."""
    text = shown_text(copy.files.data(MEMORY))
    origins = copy.services.history.blame(MEMORY, text=text) if text else ()
    found: list[tuple[bool, datetime, int, str, str]] = []
    heading = ""
    for number, line in enumerate(split_lines(text)):
        if title := heading_of(line):
            heading = clean_line(title[1])
        elif is_statement(line):
            when = _written(origins[number]) if number < len(origins) else None
            if when is not None:
                is_told = bool(copy.services.subjects.named_in(line))
                found.append((not is_told, when, number, plain_fact(line), heading))
    newest = sorted(found, key=lambda each: each[1:3])[-10:]
    leaving = sorted(each for each in found if each not in newest)
    return [(line, heading) for _, _, _, line, heading in leaving]


def _written(origin: LineOrigin) -> datetime | None:
    """When a machine wrote a line; None: a person did, or it isn't recorded yet."""
    return None if origin.actor.writes_human_text else origin.time
