"""The same difference with more or fewer unchanged lines around what changed.

Plain functions that run in any thread.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kbtui.history.looking.diff import DiffLine, FileDiff, Hunk, diff_file, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def with_context(diff: FileDiff, old: str, new: str, context: int) -> FileDiff:
    """The same differences with `context` unchanged lines around each changed place.

    `old` and `new` are the whole texts. Hunks may join or part, so their numbers may change.
    """
    if diff.binary:
        return diff
    whole = diff_file(diff.path, old.encode(), new.encode(), diff.old_path)
    return replace(diff, hunks=tuple(_regrouped(whole, old, new, context)))


def _regrouped(diff: FileDiff, old: str, new: str, context: int) -> Iterator[Hunk]:
    before, after = split_lines(old), split_lines(new)
    lines = list(_all_lines(diff, before, after))
    changed = [index for index, line in enumerate(lines) if line.kind != " "]
    start = 0
    while start < len(changed):
        end = start
        while end + 1 < len(changed) and changed[end + 1] - changed[end] <= 2 * context + 1:
            end += 1
        low = max(0, changed[start] - context)
        yield _hunk_of(lines[:low], lines[low : changed[end] + context + 1])
        start = end + 1


def _all_lines(diff: FileDiff, before: list[str], after: list[str]) -> Iterator[DiffLine]:
    old = new = 1
    for hunk in diff.hunks:
        for line in hunk.lines:
            while line.kind != "+" and line.old is not None and old < line.old:
                yield _context_line(before[old - 1], old, new)
                old, new = old + 1, new + 1
            while line.kind == "+" and line.new is not None and new < line.new:
                yield _context_line(after[new - 1], old, new)
                old, new = old + 1, new + 1
            yield line
            old += line.kind != "+"
            new += line.kind != "-"
    while new <= len(after):
        yield _context_line(after[new - 1], old, new)
        old, new = old + 1, new + 1


def _context_line(text: str, old: int, new: int) -> DiffLine:
    return DiffLine(" ", old, new, text.removesuffix("\n"), newline=text.endswith("\n"))


def _hunk_of(above: Sequence[DiffLine], lines: Sequence[DiffLine]) -> Hunk:
    old_above = sum(line.kind != "+" for line in above)
    new_above = sum(line.kind != "-" for line in above)
    old = sum(line.kind != "+" for line in lines)
    new = sum(line.kind != "-" for line in lines)
    # As in a patch: where a side has no line, its number is that of the line above.
    return Hunk(old_above + bool(old), old, new_above + bool(new), new, tuple(lines))
