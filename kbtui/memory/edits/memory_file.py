"""MEMORY.md, which is in every prompt: facts are added and corrected line by line.

Other lines stay byte for byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from kbtui.knowledge.format.document import Part, read
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.knowledge.format.lines import bullet_of, heading_of, split_lines

FACTS = "Facts"
# Headings created in a file without any, with prefixes of the words that belong below them.
_FIRST_HEADINGS = {
    "User Preferences": "favor prefe likes loves hates",
    "Skills": "skill langu speak fluen",
}
_PREFIX = 5  # length of the prefix by which words count as forms of one
_SHORTEST = 3
_BOM = "\ufeff"


def with_facts(text: str, facts: Iterable[str], section: str = "") -> str:
    """Add facts that the text doesn't have in any wording; see `normalise`.

    They go below the heading `section` or a similar one. Without `section`, below the heading whose
    words and lines have most in common with them, or else a fixed one.
    """
    memory = _Memory(text)
    for fact in map(plain_fact, facts):
        if (key := normalise(fact)) and not memory.has(key):
            memory.insert(section or memory.section_for(fact), f"- {fact}")
    return memory.text


def with_correction(text: str, old: str, new: str) -> str:
    """Replace a line, or part of one, that is no longer true; an empty `new` removes it.

    The text stays unchanged unless `old` occurs exactly once.
    """
    memory = _Memory(text)
    places = memory.find(plain_fact(old))
    if len(places) == 1:
        memory.replace(*places[0], plain_fact(new))
    return memory.text


class _Memory:
    """MEMORY.md while it is edited, as lines with their line endings."""

    def __init__(self, text: str) -> None:
        self._mark = _BOM if text.startswith(_BOM) else ""
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._lines = split_lines(text.removeprefix(_BOM))

    @property
    def text(self) -> str:
        return self._mark + "".join(self._lines)

    def replace(self, number: int, start: int, end: int, new: str) -> None:
        line = self._lines[number]
        changed = line[:start] + new + line[end:]
        if changed == line:
            return
        others = {line_key(each) for at, each in enumerate(self._lines) if at != number}
        if not _content(changed).strip(" .,;:") or line_key(changed) in others:
            del self._lines[number]
        else:
            self._lines[number] = changed

    def find(self, old: str) -> list[tuple[int, int, int]]:
        """Return where a text occurs: as whole lines, or else as whole words within lines."""
        if not old:
            return []
        lines = [(at, line) for at, line in enumerate(self._lines) if is_statement(line)]
        whole = [
            (at, len(bullet_of(line)), len(line.rstrip()))
            for at, line in lines
            if _content(line) == old
        ]
        pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
        return whole or [
            (at, *match.span()) for at, line in lines for match in pattern.finditer(line)
        ]

    def has(self, key: str) -> bool:
        return any(line_key(line) == key for line in self._lines if is_statement(line))

    def insert(self, section: str, line: str) -> None:
        line += self._end
        place = self._section(section)
        if place is None:
            heading = f"{'#' * self._level()} {section}{self._end}"
            gap = [self._end] if self._lines and self._lines[-1].strip() else []
            self._put(len(self._lines), [*gap, heading, self._end, line])
            return
        start, end = place
        last = end
        while last > start and not self._lines[last - 1].strip():
            last -= 1
        before = [self._end] if last == start else []
        after = [self._end] if last == end < len(self._lines) else []
        self._put(last, [*before, line, *after])

    def _put(self, at: int, lines: list[str]) -> None:
        if at:
            last = self._lines[at - 1]
            self._lines[at - 1] = last if last.endswith("\n") else last + self._end
        self._lines[at:at] = lines

    def section_for(self, fact: str) -> str:
        """Return the heading that a fact belongs below, existing or not."""
        stems = _stems(fact)
        shares = {name: self._score(stems, name, place) for name, place in self._sections()}
        best = max(shares, key=lambda name: shares[name], default="")
        if best and shares[best] >= 1:
            return best
        first = (name for name, words in _FIRST_HEADINGS.items() if stems & _stems(words))
        return next(first, FACTS)

    def _score(self, stems: frozenset[str], name: str, place: tuple[int, int]) -> float:
        """Score a section for a fact: one per stem of its heading, up to two for its best line."""
        lines = [_stems(line) for line in self._lines[slice(*place)] if is_statement(line)]
        alike = max((len(stems & each) / len(each) for each in lines if each), default=0.0)
        return len(stems & _stems(name)) + 2 * alike

    def _sections(self) -> list[tuple[str, tuple[int, int]]]:
        """Return the headings, each with the range of lines down to the next heading."""
        found = self._parts
        ends = [*(each.line for each in found[1:]), len(self._lines)]
        return [(each.title, (each.first, end)) for each, end in zip(found, ends, strict=False)]

    @property
    def _parts(self) -> tuple[Part, ...]:
        return read("".join(self._lines)).parts

    def _section(self, name: str) -> tuple[int, int] | None:
        """Return the lines below the heading with this name, or with the same stems."""
        found, stems = self._sections(), _stems(name)
        same = (place for each, place in found if each.casefold() == name.casefold())
        like = (place for each, place in found if stems and _stems(each) == stems)
        return next(chain(same, like), None)

    def _level(self) -> int:
        """Return the level of the file's sections: below a lone title, or else the most common."""
        depths = [each.level for each in self._parts]
        if depths == [1] and not any(map(bullet_of, self._lines)):
            return 2
        inner = depths[1:] if len(depths) > 1 and depths[0] < min(depths[1:]) else depths
        return Counter(inner).most_common(1)[0][0] if inner else 1


def _stems(text: str) -> frozenset[str]:
    """Return the prefixes of a line's words, without those that only mean the user."""
    words = normalise(text).split()
    return frozenset(word[:_PREFIX] for word in words if len(word) >= _SHORTEST) - {"user"}


def _content(line: str) -> str:
    return line[len(bullet_of(line)) :].rstrip()


def is_statement(line: str) -> bool:
    """Return whether a line is neither blank nor a heading."""
    return bool(line.strip()) and heading_of(line) is None


def line_key(line: str) -> str:
    """Return the key for comparing lines: without bullets, case and punctuation."""
    heading = heading_of(line)
    return normalise(plain_fact(line)) if heading is None else f"# {normalise(heading[1])}"
