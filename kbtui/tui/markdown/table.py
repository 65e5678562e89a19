"""Tables that fit a width: cells are wrapped, wide columns give way first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MIN_COLUMN = 4
_GAP = "  "


def column_widths(natural: Sequence[int], room: int) -> list[int]:
    """Shrink the widest columns until all fit into `room` (gaps not counted)."""
    widths = [max(1, width) for width in natural]
    while sum(widths) > room:
        widest = max(widths)
        if widest <= MIN_COLUMN:
            break
        at = widths.index(widest)
        rest = [width for width in widths if width < widest]
        step = widest - max(rest, default=MIN_COLUMN)
        excess = -(-(sum(widths) - room) // widths.count(widest))
        widths[at] = max(MIN_COLUMN, widest - max(1, min(step, excess)))
    return widths


def table_lines(
    rows: Sequence[Sequence[Content]], aligns: Sequence[str], width: int
) -> Iterator[tuple[int, Content]]:
    """Lay out rows, the first being the head; yields the row's number with each line."""
    count = len(rows[0])
    natural = [max(row[column].cell_length for row in rows) for column in range(count)]
    widths = column_widths(natural, width - len(_GAP) * (count - 1))
    for number, row in enumerate(rows):
        styled = [cell.stylize_before(".md--strong") for cell in row] if not number else row
        for line in _row_lines(styled, aligns, widths):
            yield number, line
        if not number:
            rule = _GAP.join("─" * column for column in widths)
            yield number, Content.styled(rule, ".md--rule")


def _row_lines(
    row: Sequence[Content], aligns: Sequence[str], widths: Sequence[int]
) -> Iterator[Content]:
    wrapped = [cell.wrap(width) or [Content()] for cell, width in zip(row, widths, strict=True)]
    for index in range(max(len(cell) for cell in wrapped)):
        pieces = [
            _aligned(cell[index] if index < len(cell) else Content(), align, width)
            for cell, align, width in zip(wrapped, aligns, widths, strict=True)
        ]
        yield Content(_GAP).join(pieces)


def _aligned(content: Content, align: str, width: int) -> Content:
    room = max(0, width - content.cell_length)
    if align == "right":
        return content.pad_left(room)
    if align == "center":
        return content.pad(room // 2, room - room // 2)
    return content.pad_right(room)
