"""Differences as lines that fit a width: unified, or before and after beside each other.

Plain functions that run in any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content, Span

from kbtui.history.diff import DiffLine, FileDiff, Hunk, emphasize
from kbtui.text import clean, clean_line
from kbtui.tui.diff_colours import colours_of, front_lines, is_markdown
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIDE_BY_SIDE_FROM = 120
"""Columns from which on before and after stand beside each other by themselves."""
MAX_LINES = 20_000
_KINDS = {"added": "new", "deleted": "deleted", "modified": "", "renamed": "renamed"}
_SIGNS = {" ": " ", "+": "+", "-": "-"}
_FILLS = {" ": "", "+": "diff--added", "-": "diff--removed"}
_WORDS = {"+": ".diff--added-word", "-": ".diff--removed-word"}


class HunkPlace(NamedTuple):
    """Where a hunk stands on the screen, and which one it is of which file (from 0)."""

    line: int
    path: str
    number: int


@dataclass(slots=True)
class DiffLayout:
    """The lines, and where the hunks begin."""

    lines: list[Line] = field(default_factory=list)
    hunks: list[HunkPlace] = field(default_factory=list)


class _Piece(NamedTuple):
    """A line of a diff with what changed in it."""

    line: DiffLine
    content: Content


def lay_out(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, note: str = ""
) -> DiffLayout:
    """Lay out the differences of files, one below the other, and a note at the end."""
    layout = DiffLayout()
    if note:
        end = Line(Content.styled(f" {note}", ".diff--muted"))
        layout = lay_out(diffs, width, side_by_side=side_by_side)
        layout.lines += [Line(Content()), end]
        return layout
    for index, diff in enumerate(diffs):
        if index:
            layout.lines.append(Line(Content()))
        layout.lines.append(_file_line(diff))
        if not diff.hunks:
            layout.lines.append(Line(Content.styled(f"  {_why_empty(diff)}", ".diff--muted")))
        for number, hunk in enumerate(diff.hunks):
            layout.hunks.append(HunkPlace(len(layout.lines), diff.path, number))
            layout.lines.append(Line(Content.styled(hunk.header, ".diff--hunk")))
            pairs = _two_columns if side_by_side else _one_column
            layout.lines += pairs(hunk, _pieces(hunk, diff.path), width)
            if len(layout.lines) > MAX_LINES:
                rest = "… the rest is too long to be shown here"
                layout.lines.append(Line(Content.styled(rest, ".diff--muted")))
                return layout
    return layout


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


def _pieces(hunk: Hunk, path: str) -> list[_Piece]:
    """The lines of a hunk, with the words that changed marked in lines that replace another."""
    coloured = is_markdown(path)
    front = front_lines(hunk.lines) if coloured else set()
    pieces = [
        _Piece(line, _text_of(line, coloured=coloured, front=index in front))
        for index, line in enumerate(hunk.lines)
    ]
    for minus, plus in _replaced(hunk.lines):
        old, new = pieces[minus], pieces[plus]
        spans = emphasize(old.content.plain, new.content.plain)
        for index, piece, marked in ((minus, old, spans[0]), (plus, new, spans[1])):
            content = piece.content
            for start, end in marked:
                content = content.stylize(_WORDS[piece.line.kind], start, end)
            pieces[index] = _Piece(piece.line, content)
    return pieces


def _text_of(line: DiffLine, *, coloured: bool, front: bool) -> Content:
    text = clean(line.text).expandtabs(4).rstrip("\n")
    spans = colours_of(text, front=front) if coloured else []
    content = Content(text, spans, strip_control_codes=False)
    if not line.newline:
        content += Content.styled("  (no line end)", ".diff--muted")
    return content


def _replaced(lines: Sequence[DiffLine]) -> Iterator[tuple[int, int]]:
    """Pair each run of removed lines with the added lines right behind it."""
    minus: list[int] = []
    plus: list[int] = []
    for index, line in enumerate(lines):
        if line.kind == "+":
            plus.append(index)
            continue
        if plus or line.kind == " ":
            yield from zip(minus, plus, strict=False)
            minus, plus = [], []
        if line.kind == "-":
            minus.append(index)
    yield from zip(minus, plus, strict=False)


def _digits(hunk: Hunk) -> int:
    last = max(hunk.old_start + hunk.old_count, hunk.new_start + hunk.new_count)
    return max(3, len(str(last)))


def _one_column(hunk: Hunk, pieces: Sequence[_Piece], width: int) -> Iterator[Line]:
    digits = _digits(hunk)
    room = max(8, width - 2 * digits - 4)
    for piece in pieces:
        line = piece.line
        numbers = f"{line.old or '':>{digits}} {line.new or '':>{digits}} "
        signed = f"{numbers}{_SIGNS[line.kind]} "
        styles = [
            Span(0, len(numbers), ".diff--number"),
            Span(len(numbers), len(signed), _sign_style(line.kind)),
        ]
        for index, part in enumerate(_wrapped(piece.content, room)):
            content = (
                _shifted(" " * len(signed), [], part) if index else _shifted(signed, styles, part)
            )
            yield Line(content, 0, _FILLS[line.kind], index > 0)


def _wrapped(content: Content, width: int) -> list[Content]:
    """The lines that a text takes; nearly all of them fit, and that is seen at once."""
    if content.plain.isascii() and len(content.plain) <= width:
        return [content]
    return content.wrap(width)


def _shifted(before: str, styles: list[Span], content: Content) -> Content:
    """Put text in front of a line."""
    by = len(before)
    spans = [*styles, *(Span(each.start + by, each.end + by, each.style) for each in content.spans)]
    return Content(before + content.plain, spans, strip_control_codes=False)


def _sign_style(kind: str) -> str:
    return {"+": ".diff--plus", "-": ".diff--minus"}.get(kind, ".diff--muted")


def _two_columns(hunk: Hunk, pieces: Sequence[_Piece], width: int) -> Iterator[Line]:
    half = (width - 1) // 2
    digits = _digits(hunk)
    for old, new in _rows(pieces):
        left = _half(old, old.line.old if old else None, digits, half)
        right = _half(new, new.line.new if new else None, digits, half)
        blank = Content(" " * half)
        for one, other in zip_longest(left, right, fillvalue=blank):
            yield Line(one + Content.styled("│", ".diff--muted") + other)


def _rows(pieces: Sequence[_Piece]) -> Iterator[tuple[_Piece | None, _Piece | None]]:
    minus: list[_Piece] = []
    plus: list[_Piece] = []
    for piece in pieces:
        if piece.line.kind == "-" and not plus:
            minus.append(piece)
        elif piece.line.kind == "+":
            plus.append(piece)
        else:
            yield from zip_longest(minus, plus)
            minus, plus = ([piece], []) if piece.line.kind == "-" else ([], [])
            if piece.line.kind == " ":
                yield piece, piece
    yield from zip_longest(minus, plus)


def _half(piece: _Piece | None, number: int | None, digits: int, width: int) -> list[Content]:
    if piece is None:
        return [Content(" " * width)]
    kind = piece.line.kind
    gutter = Content.assemble(
        (f"{number or '':>{digits}} ", ".diff--number"),
        (f"{_SIGNS[kind]} ", _sign_style(kind)),
    )
    parts = _wrapped(piece.content, max(4, width - gutter.cell_length))
    lines = []
    for index, part in enumerate(parts):
        line = (Content(" " * gutter.cell_length) if index else gutter) + part
        line = line.pad_right(max(0, width - line.cell_length))
        lines.append(line.stylize_before(f".{_FILLS[kind]}") if _FILLS[kind] else line)
    return lines


def with_context(diff: FileDiff, old: str, new: str, context: int) -> FileDiff:
    """The same differences with `context` unchanged lines around each changed place.

    `old` and `new` are the whole texts. Hunks may join or part, so their numbers may change.
    """
    from dataclasses import replace

    from kbtui.history.diff import diff_file

    if diff.binary:
        return diff
    whole = diff_file(diff.path, old.encode(), new.encode(), diff.old_path)
    return replace(diff, hunks=tuple(_regrouped(whole, old, new, context)))


def _regrouped(diff: FileDiff, old: str, new: str, context: int) -> Iterator[Hunk]:
    from kbtui.history.diff import split_lines

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
