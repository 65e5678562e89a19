"""Leaves out of one part of a prompt what another says: a fact stands in it once.

Lines are compared by the stems of their telling words. A line that says as much with other numbers,
in a file that was changed later, is taken for what holds now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kbtui.knowledge.catalog.catalog import entry_line
from kbtui.models.port import estimate_tokens
from kbtui.offline.language import telling_terms
from kbtui.offline.lines import TextLine, lines_of
from kbtui.views.view import View

_SAME = 0.8  # of a line's words, for another to say it
_ALIKE = 0.5  # of the other's words, where the numbers differ
_TOGETHER = 60.0  # seconds; files of one commit are written one after the other


@dataclass(frozen=True, slots=True)
class _Statement:
    words: frozenset[str]
    numbers: frozenset[str]
    when: float

    def is_said_by(self, other: _Statement) -> bool:
        """True if another says this, or what took its place."""
        alike = len(self.words & other.words)
        if not self.words or alike < _SAME * len(self.words):
            return False
        if self.numbers <= other.numbers:
            return True
        is_later = other.when >= self.when - _TOGETHER
        return bool(other.numbers) and is_later and alike >= _ALIKE * len(other.words)


class Known:
    """The lines that stand in a prompt already."""

    def __init__(self) -> None:
        self._said: list[_Statement] = []

    def add(self, text: str, when: float) -> None:
        """Take the lines of a text in, which was written at a time (seconds since 1970)."""
        self._said += [_statement(line.text, when) for line in lines_of(text)]

    def add_catalogue(self, view: View, text: str, most_tokens: int) -> None:
        """Take in what the catalogue says of the subjects of a text."""
        if not text.strip():
            return
        listed = view.catalogue(text, most_tokens, estimate_tokens)
        lines = set(listed.splitlines())
        slugs = {line[2:].partition(":")[0] for line in lines}
        for info in view.library.infos():
            if info.slug in slugs and (line := entry_line(info)) in lines:
                self.add(line, info.mtime_ns / 1e9)

    def and_whole(self, texts: Iterable[str]) -> Known:
        """The same, and texts that say something as a whole, and take the place of nothing."""
        more = Known()
        more._said = [*self._said, *(_statement(text, float("-inf")) for text in texts)]
        return more

    def without(self, text: str, when: float) -> str:
        """A text that was written at a time, without what is known; "" where nothing is left."""
        found = list(lines_of(text))
        known = [line for line in found if self._holds(_statement(line.text, when))]
        if len(known) == len(found):
            return ""
        for line in reversed(known):
            start, end = _span(text, line)
            text = text[:start] + text[end:]
        return text

    def _holds(self, statement: _Statement) -> bool:
        return any(statement.is_said_by(each) for each in self._said)


def _statement(text: str, when: float) -> _Statement:
    return _Statement(*_terms(text), when)


@lru_cache(maxsize=4_096)
def _terms(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The telling words of a text, and its numbers."""
    terms = telling_terms(text)
    numbers = frozenset(term for term in terms if any(map(str.isdigit, term)))
    return frozenset(terms) - numbers, numbers


def _span(text: str, line: TextLine) -> tuple[int, int]:
    """Where a line stands; of an item with its bullet and the end of the line."""
    if not line.item:
        return line.start, line.end
    end = text.find("\n", line.end)
    return text.rfind("\n", 0, line.start) + 1, len(text) if end < 0 else end + 1
