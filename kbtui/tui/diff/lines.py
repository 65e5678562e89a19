"""Differences as lines that fit a width: unified, or before and after beside each other.

Plain functions that run in any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content

from kbtui.text import clean_line
from kbtui.tui.diff.columns import one_column, two_columns
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.history.looking.diff import FileDiff

SIDE_BY_SIDE_COLUMNS = 120
"""Columns from which on before and after stand beside each other by themselves."""
MAX_LINES = 20_000
_FIRST_LINES, _MORE_LINES = 400, 2_000
"""Lines of the first part, which no screen shows at once, and of each that follows."""
_KINDS = {"added": "new", "deleted": "deleted", "modified": "", "renamed": "renamed"}


class HunkPlace(NamedTuple):
    """Where a hunk stands on the screen, and which one it is of which file (from 0)."""

    line: int
    path: str
    number: int


class _Begin(NamedTuple):
    """Here a hunk begins, one of a file's (from 0)."""

    path: str
    number: int


@dataclass(slots=True)
class DiffLayout:
    """The lines, and where the hunks begin."""

    lines: list[Line] = field(default_factory=list)
    hunks: list[HunkPlace] = field(default_factory=list)


def lay_out(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, note: str = ""
) -> DiffLayout:
    """Lay out the differences of files, one below the other, and a note at the end."""
    layout = DiffLayout()
    for part in lay_out_parts(diffs, width, side_by_side=side_by_side, note=note):
        layout.lines += part.lines
        layout.hunks += part.hunks
    return layout


def lay_out_parts(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, note: str = ""
) -> Iterator[DiffLayout]:
    """Do it in parts, of which the first is there soon; hunks are counted from the very top."""
    part, above, size = DiffLayout(), 0, _FIRST_LINES
    for each in _flow(diffs, width, note, side_by_side=side_by_side):
        if isinstance(each, _Begin):
            part.hunks.append(HunkPlace(above + len(part.lines), each.path, each.number))
            continue
        part.lines.append(each)
        if len(part.lines) == size:
            yield part
            above += size
            part, size = DiffLayout(), _MORE_LINES
    yield part


def _flow(
    diffs: Sequence[FileDiff], width: int, note: str, *, side_by_side: bool
) -> Iterator[Line | _Begin]:
    """All lines, and before those of a hunk that it begins."""
    count = 0
    for begin, lines in _blocks(diffs, width, side_by_side=side_by_side):
        if count > MAX_LINES:
            rest = "… the rest is too long to be shown here"
            yield Line(Content.styled(rest, ".diff--muted"))
            break
        if begin is not None:
            yield begin
        for line in lines:
            count += 1
            yield line
    if note:
        yield Line(Content())
        yield Line(Content.styled(f" {note}", ".diff--muted"))


def _blocks(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool
) -> Iterator[tuple[_Begin | None, Iterable[Line]]]:
    """Each file's head, and each of its hunks."""
    columns = two_columns if side_by_side else one_column
    for index, diff in enumerate(diffs):
        head = [Line(Content())] if index else []
        head.append(_file_line(diff))
        if not diff.hunks:
            head.append(Line(Content.styled(f"  {_why_empty(diff)}", ".diff--muted")))
        yield None, head
        for number, hunk in enumerate(diff.hunks):
            title = Line(Content.styled(hunk.header, ".diff--hunk"))
            yield _Begin(diff.path, number), chain([title], columns(hunk, diff.path, width))


def _file_line(diff: FileDiff) -> Line:
    name = clean_line(diff.path.removeprefix("knowledge/"))
    parts: list[str | tuple[str, str]] = [(f" {name} ", ".diff--name")]
    kind = _KINDS[diff.kind]
    if diff.old_path and diff.old_path != diff.path:
        kind = f"was {clean_line(diff.old_path.removeprefix('knowledge/'))}"
    if kind:
        parts.append((f" {kind} ", ".diff--muted"))
    if diff.added:
        parts.append((f" +{diff.added}", ".diff--plus"))
    if diff.removed:
        parts.append((f" -{diff.removed}", ".diff--minus"))
    return Line(Content.assemble(*parts), fill="diff--file")


def _why_empty(diff: FileDiff) -> str:
    if diff.binary:
        return "not text"
    if diff.path.endswith("INDEX.md"):
        return "the catalogue follows by itself"
    if diff.path.startswith("memory/"):
        return "kept by kbtui itself"
    return "only its name changed" if diff.kind == "renamed" else "no lines"
