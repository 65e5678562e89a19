"""Decides which facts enter durable memory; the rest is only a note of the day.

MEMORY.md and entries get what was asked for, facts about a person, project or decision that the
user mentioned, facts that recur in another session, and those marked as lasting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.facts import Fact, plain_fact
from kbtui.memory.comparing.figures import figures_and_dates
from kbtui.memory.consolidation.answer import LASTING, NOTED
from kbtui.memory.consolidation.page import Page
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.memory_file import is_statement
from kbtui.offline.borrowed import sentences_with_owner
from kbtui.offline.language import begins, of_all, significant_terms
from kbtui.sessions.store import SessionMessage
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_SPOKEN_OF = frozenset({"person", "project", "decision"})
_FLUSH = re.compile(r"## Flush at [^(\n]*\(session: (?P<session>[^)\n]*)\)")
_MAX_DAYS = 90  # daily notes
_MIN_SHARE = 0.6
_MIN_STEMS = 2  # stems


@dataclass(frozen=True, slots=True)
class LineTerms:
    """The content of a line: its stems, and its numbers other than dates."""

    stems: frozenset[str]
    numbers: frozenset[str]

    def matches(self, other: LineTerms) -> bool:
        """Return whether the other line says about the same."""
        minimum = min(_MIN_STEMS, len(self.stems))
        shared = len(self.stems & other.stems)
        is_like = shared >= max(minimum, _MIN_SHARE * min(len(self.stems), len(other.stems)))
        return bool(self.stems) and is_like and self.numbers <= other.numbers


def line_terms(line: str) -> LineTerms:
    """Return the terms of a line."""
    figures, _ = figures_and_dates(line)
    stems = (each for each in significant_terms(line) if not any(char.isdigit() for char in each))
    return LineTerms(frozenset(stems), frozenset(each for one in figures for each in one.readings))


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides which facts of a page last; `noted` are other sessions' notes, oldest first."""

    page: Page
    ground: Ground
    noted: tuple[str, ...]
    earlier: tuple[LineTerms, ...]

    def lasts(self, fact: Fact) -> bool:
        """Return whether a fact is more than a note of the day."""
        if fact.importance == NOTED:
            return False
        said = (each for each in self.page.messages if each.id == fact.message)
        if fact.importance >= LASTING or any(map(_asks, said)):
            return True
        subject = set(significant_terms(fact.subject))
        is_spoken_of = fact.kind in _SPOKEN_OF and subject and subject <= self.ground.terms
        return bool(is_spoken_of) or any(map(line_terms(fact.text).matches, self.earlier))


def gate_of(page: Page, ground: Ground, workspace: Workspace) -> Gate:
    """Return the gate for a page; reads the notes of recent days."""
    days = sorted(workspace.memory.glob("????-??-??.md"), reverse=True)
    texts = [f"memory/{file.name}" for file in islice(days, _MAX_DAYS)]
    noted = tuple(
        line for path in reversed(texts) for line in _notes_of_others(workspace, path, page.session)
    )
    return Gate(page, ground, noted, tuple(map(line_terms, noted)))


def _notes_of_others(workspace: Workspace, path: str, session: str) -> Iterator[str]:
    """Yield the notes of a day that other sessions left."""
    try:
        lines: Iterable[str] = files.read_text(workspace, path).splitlines()
    except KbtuiError:
        return
    other = False
    for line in lines:
        if line.startswith("#"):
            heading = _FLUSH.match(line)
            other = heading is not None and heading["session"] != session
        elif other and is_statement(line):
            yield plain_fact(line)


def _asks(message: SessionMessage) -> bool:
    """Return whether a message asks to remember something."""
    return any(
        begins(each, of_all("remember")) is not None
        for each, is_borrowed in sentences_with_owner(message.content)
        if not is_borrowed
    )
