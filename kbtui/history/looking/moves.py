"""Lines that a commit took out of one file and put into another, and the trailer that says so.

What moved is found by a rule in the real difference of the commit, never taken from what somebody
says about it: a statement that left one file and arrived in another, bullets, dates in front, case
and punctuation aside. Headings, frontmatter and what is too short to be told apart don't count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kbtui.history.looking.tracking import carried, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_FILES = 2_000
"""Files up to which a commit's moves are looked for."""
_MOST = 100
_MOST_LINES = 10_000
_MOST_SOURCES = 8  # of one line: a phrase that stands everywhere comes from nowhere
_SHORTEST = 10
_MARKER = re.compile(
    r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\d{4}-\d{2}-\d{2}:?\s+)?", re.ASCII
)
_WORD = re.compile(r"\w+")
_PLACE = re.compile(
    r"(?P<source>.+):(?P<from>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))? -> "
    r"(?P<target>[^>]+):(?P<to>[1-9]\d{0,8})(?:-\d+)?",
    re.ASCII,
)
_ESCAPES = (("%", "%25"), (">", "%3E"))


@dataclass(frozen=True, slots=True)
class Moved:
    """`count` lines that went from one file to another; both numbers are of the first, 1-based."""

    source: str
    source_line: int
    target: str
    target_line: int
    count: int = 1

    def __str__(self) -> str:
        """As the trailer has it: ``memory/MEMORY.md:12 -> knowledge/people/alice.md:31``."""
        old = _place(self.source, self.source_line, self.count)
        return f"{old} -> {_place(self.target, self.target_line, self.count)}"

    @classmethod
    def read(cls, value: str) -> Moved | None:
        """Read a trailer's value; None where it isn't one."""
        match = _PLACE.fullmatch(value)
        if match is None:
            return None
        first = int(match["from"])
        count = int(match["last"] or first) - first + 1
        if count < 1:
            return None
        source, target = (_unescaped(match[name]) for name in ("source", "target"))
        return cls(source, first, target, int(match["to"]), count)


class Rewritten(NamedTuple):
    """A file of a commit: its path, and its text before and after; empty where there was none."""

    path: str
    old_path: str
    old: str
    new: str


class _Line(NamedTuple):
    path: str
    number: int
    key: str


def find_moves_between(files: Iterable[Rewritten]) -> tuple[Moved, ...]:
    """Say which lines went from one of a commit's files to another.

    A line that stood in several files and now stands in one came from each of them.
    """
    gone: dict[str, list[_Line]] = {}
    come: list[_Line] = []
    for file in files:
        old, new = lines_of(file.old), lines_of(file.new)
        origins = carried(old, new)
        kept = set(origins)
        for line in _statements(file.old_path, old, [i not in kept for i in range(len(old))]):
            if len(known := gone.setdefault(line.key, [])) < _MOST_SOURCES:
                known.append(line)
        come += _statements(file.path, new, [origin < 0 for origin in origins])
    found = (
        Moved(source.path, source.number, line.path, line.number)
        for line in come
        for source in gone.get(line.key, ())
        if source.path != line.path
    )
    return tuple(_joined(list(islice(found, _MOST_LINES))))[:_MOST]


def statement_of(line: str) -> str:
    """How a line is recognised in another file; empty where it can't be."""
    if line.lstrip().startswith("#"):
        return ""
    marker = _MARKER.match(line)
    words = _WORD.findall(line[marker.end() if marker else 0 :].casefold())
    key = " ".join(words)
    return key if len(key) >= _SHORTEST and len(words) > 1 else ""


def _statements(path: str, lines: Sequence[str], wanted: Sequence[bool]) -> Iterator[_Line]:
    start = _front_length(lines)
    for number, line in enumerate(lines[start:], start + 1):
        if wanted[number - 1] and (key := statement_of(line)):
            yield _Line(path, number, key)


def _front_length(lines: Sequence[str]) -> int:
    """How many lines the frontmatter takes."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() in {"---", "..."}), 0)


def _joined(moves: Sequence[Moved]) -> Iterator[Moved]:
    """Lines that stood below each other and still do count as one."""
    runs: dict[tuple[str, int, str, int], Moved] = {}  # by where the next line would stand
    for move in sorted(moves, key=lambda m: (m.target, m.source, m.target_line, m.source_line)):
        place = (move.source, move.source_line, move.target, move.target_line)
        run = runs.pop(place, None)
        count = run.count + 1 if run else 1
        first = run or move
        end = (move.source, move.source_line + 1, move.target, move.target_line + 1)
        runs[end] = Moved(first.source, first.source_line, first.target, first.target_line, count)
    return iter(runs.values())


def _place(path: str, first: int, count: int) -> str:
    for char, escape in _ESCAPES:
        path = path.replace(char, escape)
    return f"{path}:{first}" if count == 1 else f"{path}:{first}-{first + count - 1}"


def _unescaped(path: str) -> str:
    for char, escape in reversed(_ESCAPES):
        path = path.replace(escape, char)
    return path
