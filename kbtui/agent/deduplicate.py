"""Removal of duplicates between the parts of a prompt: each fact appears once.

Lines are compared by the stems of their significant words. A line with the same words but other
numbers, in a file changed later, is taken to replace the older one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kbtui.knowledge.catalog.catalog import entry_line
from kbtui.models.port import estimate_tokens
from kbtui.offline.language import significant_terms
from kbtui.offline.lines import TextLine, lines_of
from kbtui.views.view import View

_MIN_SHARED = 0.8  # the share of a line's words that another must have to cover it
_MIN_SHARED_OF_OTHER = 0.5  # the same, of the other's words, if the numbers differ
_CLOCK_TOLERANCE = 60.0  # seconds; files of one commit are written one after the other


@dataclass(frozen=True, slots=True)
class _Statement:
    words: frozenset[str]
    numbers: frozenset[str]
    when: float

    def is_covered_by(self, other: _Statement) -> bool:
        """Return whether another statement says this, or what replaced it."""
        shared = len(self.words & other.words)
        if not self.words or shared < _MIN_SHARED * len(self.words):
            return False
        if self.numbers <= other.numbers:
            return True
        is_later = other.when >= self.when - _CLOCK_TOLERANCE
        return (
            bool(other.numbers) and is_later and shared >= _MIN_SHARED_OF_OTHER * len(other.words)
        )


class Known:
    """The lines already in a prompt."""

    def __init__(self) -> None:
        self._statements: list[_Statement] = []

    def add(self, text: str, when: float) -> None:
        """Add the lines of a text written at a Unix time."""
        self._statements += [_statement(line.text, when) for line in lines_of(text)]

    def add_catalogue(self, view: View, text: str, most_tokens: int) -> None:
        """Add the catalogue's lines about the subjects of a text."""
        if not text.strip():
            return
        listed = view.catalogue(text, most_tokens, estimate_tokens)
        lines = set(listed.splitlines())
        slugs = {line[2:].partition(":")[0] for line in lines}
        for info in view.library.infos():
            if info.slug in slugs and (line := entry_line(info)) in lines:
                self.add(line, info.mtime_ns / 1e9)

    def with_texts(self, texts: Iterable[str]) -> Known:
        """Return a copy with texts that count as one statement each and replace nothing."""
        more = Known()
        more._statements = [*self._statements, *(_statement(text, float("-inf")) for text in texts)]
        return more

    def without(self, text: str, when: float) -> str:
        """Return a text written at a time without known lines; "" if nothing is left."""
        found = list(lines_of(text))
        known = [line for line in found if self._covers(_statement(line.text, when))]
        if len(known) == len(found):
            return ""
        for line in reversed(known):
            start, end = _span(text, line)
            text = text[:start] + text[end:]
        return text

    def _covers(self, statement: _Statement) -> bool:
        return any(statement.is_covered_by(each) for each in self._statements)


def _statement(text: str, when: float) -> _Statement:
    return _Statement(*_terms(text), when)


@lru_cache(maxsize=4_096)
def _terms(text: str) -> tuple[frozenset[str], frozenset[str]]:
    terms = significant_terms(text)
    numbers = frozenset(term for term in terms if any(map(str.isdigit, term)))
    return frozenset(terms) - numbers, numbers


def _span(text: str, line: TextLine) -> tuple[int, int]:
    """Return the span of a line; of an item with its bullet and line end."""
    if not line.item:
        return line.start, line.end
    end = text.find("\n", line.end)
    return text.rfind("\n", 0, line.start) + 1, len(text) if end < 0 else end + 1
