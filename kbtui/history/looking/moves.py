"""Lines that a commit took out of one file and put into another, and the trailer that says so.

What moved is found by a rule in the real difference of the commit, never taken from what somebody
says about it: a statement that left one file and arrived in another, bullets, dates in front, case
and punctuation aside. Headings, frontmatter and what is too short to be told apart don't count.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kbtui.history.looking.diff import count_lines, find_renames
from kbtui.history.looking.tracking import carried, lines_of
from kbtui.history.objects.commit import Moved, PathChange, is_derived
from kbtui.workspace import files

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


Edits = dict[str, "bytes | None"]


def _blob(data: bytes | None) -> str | None:
    return None if data is None else files.blob_id(data)


def path_changes(before: Edits, after: Edits) -> tuple[PathChange, ...]:
    """The changes of a commit to each path, renames paired; contents by path before and after."""
    added = {p: data for p, data in after.items() if data is not None and before[p] is None}
    gone = {p: old for p, data in after.items() if data is None and (old := before[p]) is not None}
    renames = find_renames(added, gone)
    changes = []
    for path in sorted(after):
        old, new = before[path], after[path]
        if path in renames.values():
            continue
        if path in renames:
            counts = count_lines(before[renames[path]], new)
            changes.append(PathChange(path, "renamed", renames[path], *counts, _blob(new)))
        else:
            kind = "deleted" if new is None else "added" if old is None else "modified"
            counts = count_lines(old, new)
            changes.append(PathChange(path, kind, None, *counts, _blob(new)))  # type: ignore[arg-type]
    return tuple(changes)


def moves_of(before: Edits, after: Edits, paths: tuple[PathChange, ...]) -> tuple[Moved, ...]:
    """Which lines went from one file to another; nothing in what follows from other files."""
    written = [path for path in paths if path.path.endswith(".md") and not is_derived(path.path)]
    losing = {path.path for path in written if path.removed}
    gaining = {path.path for path in written if path.added}
    if not losing or not gaining or len(losing | gaining) == 1 or len(written) > MOST_FILES:
        return ()
    changed = [path for path in written if path.path in losing | gaining]
    return find_moves_between(
        Rewritten(
            path.path,
            path.old_path or path.path,
            files.decode(before.get(path.old_path or path.path) or b"").text,
            files.decode(after[path.path] or b"").text,
        )
        for path in changed
    )
