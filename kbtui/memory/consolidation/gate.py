"""The gate before durable memory: what is said for the first time is a note of the day, no more.

MEMORY.md and entries get what was asked for, what is said of a person, a project or a decision that
the user spoke of, what comes again in another session, and what is said to be needed for good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.facts import Fact, plain_fact
from kbtui.memory.consolidation.answer import LASTING
from kbtui.memory.consolidation.page import Page
from kbtui.memory.edits.figures import figures_and_dates
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.memory_file import is_statement
from kbtui.offline.language import begins, of_all, telling_terms
from kbtui.offline.lines import sentences
from kbtui.sessions.store import SessionMessage
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_SPOKEN_OF = frozenset({"person", "project", "decision"})
_FLUSH = re.compile(r"## Flush at [^(\n]*\(session: (?P<session>[^)\n]*)\)")
_LOOKED_BACK = 90  # notes of days
_SAME = 0.6
_FEWEST = 2  # stems


@dataclass(frozen=True, slots=True)
class LineTerms:
    """What a line says: its stems, and its numbers but for dates."""

    stems: frozenset[str]
    numbers: frozenset[str]

    def is_said_by(self, other: LineTerms) -> bool:
        """True if the other one says about the same."""
        least = min(_FEWEST, len(self.stems))
        shared = len(self.stems & other.stems)
        is_like = shared >= max(least, _SAME * min(len(self.stems), len(other.stems)))
        return bool(self.stems) and is_like and self.numbers <= other.numbers


def note_of(line: str) -> LineTerms:
    """Read a line."""
    figures, _ = figures_and_dates(line)
    stems = (each for each in telling_terms(line) if not any(char.isdigit() for char in each))
    return LineTerms(frozenset(stems), frozenset(each for one in figures for each in one.readings))


@dataclass(frozen=True, slots=True)
class Gate:
    """Tells what of a page lasts; `earlier` are the notes that other sessions left."""

    page: Page
    ground: Ground
    earlier: tuple[LineTerms, ...]

    def lasts(self, fact: Fact) -> bool:
        """True if a fact is more than a note of its day."""
        if fact.importance >= LASTING or self._is_asked(fact):
            return True
        subject = set(telling_terms(fact.subject))
        is_spoken_of = fact.kind in _SPOKEN_OF and subject and subject <= self.ground.terms
        return bool(is_spoken_of) or self._comes_again(fact)

    def _is_asked(self, fact: Fact) -> bool:
        """True if the message that says it asks to remember something."""
        said = (each for each in self.page.messages if each.id == fact.message)
        return any(_asks(each) for each in said)

    def _comes_again(self, fact: Fact) -> bool:
        said = note_of(fact.text)
        return any(map(said.is_said_by, self.earlier))


def gate_of(page: Page, ground: Ground, workspace: Workspace) -> Gate:
    """The gate for a page; reads the notes of the last days."""
    days = sorted(workspace.memory.glob("????-??-??.md"), reverse=True)
    texts = (f"memory/{file.name}" for file in islice(days, _LOOKED_BACK))
    earlier = (line for path in texts for line in _noted(workspace, path, page.session))
    return Gate(page, ground, tuple(map(note_of, earlier)))


def _noted(workspace: Workspace, path: str, session: str) -> Iterator[str]:
    """The notes of a day that conversations other than this one left."""
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
    return any(begins(each, of_all("remember")) is not None for each in sentences(message.content))
