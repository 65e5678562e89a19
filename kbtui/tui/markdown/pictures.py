"""Pictures as lines of text: sharp where the terminal draws them, else in half blocks.

A cell in half blocks shows two pixels, one above the other. The library that draws sixels
(textual-image) asks the terminal when it is imported, before the app owns it, and swallows keys
typed meanwhile; and a picture of its is drawn over cells that it knows nothing of afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from textual.color import Color
from textual.content import Content, Span
from textual.style import Style

if TYPE_CHECKING:
    from kbtui.documents.documents import DocumentPicture
    from kbtui.tui.terminal.picture_cells import Pictures

_MAX_ROWS = 24
_MAX_COLUMNS = 76
_MIN_BOX = 2


def picture_lines(
    picture: DocumentPicture, width: int, graphics: Pictures | None = None
) -> Iterator[Content]:
    """Yield a picture as lines of at most `width` cells, never enlarged.

    Without pixels it is a box of the same size.
    """
    columns, rows = _size(picture, width)
    if not picture.pixels:
        yield from _box(columns, rows)
    elif picture.png and graphics is not None:
        yield from graphics.lines(picture.png, columns, rows)
    else:
        yield from _half_blocks(picture, columns, rows)


def _size(picture: DocumentPicture, width: int) -> tuple[int, int]:
    columns = min(width, _MAX_COLUMNS, picture.columns)
    shape = picture.rows / picture.columns
    columns = max(1, min(columns, round(2 * _MAX_ROWS / shape)))
    return columns, min(_MAX_ROWS, max(1, round(columns * shape / 2)))


def _box(columns: int, rows: int) -> Iterator[Content]:
    if min(columns, rows) < _MIN_BOX:
        yield from [Content.styled("░" * columns, ".md--rule")] * rows
        return
    inner = columns - 2
    sides = [f"│{' ' * inner}│"] * (rows - 2)
    for line in (f"┌{'─' * inner}┐", *sides, f"└{'─' * inner}┘"):
        yield Content.styled(line, ".md--rule")


def _half_blocks(picture: DocumentPicture, columns: int, rows: int) -> Iterator[Content]:
    colours = [_scaled_row(picture, columns, number, 2 * rows) for number in range(2 * rows)]
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        spans: list[Span] = []
        at = 0
        for (above, below), cells in groupby(zip(upper, lower, strict=True)):
            end = at + sum(1 for _ in cells)
            style = Style(foreground=Color(*above), background=Color(*below))
            spans.append(Span(at, end, style))
            at = end
        yield Content("▀" * columns, spans)


def _scaled_row(
    picture: DocumentPicture, columns: int, number: int, rows: int
) -> list[tuple[int, int, int]]:
    """Return one row of the scaled picture, each pixel the mean of those it covers."""
    tops = _source_range(number, rows, picture.rows)
    return [
        _mean_colour(picture, tops, _source_range(column, columns, picture.columns))
        for column in range(columns)
    ]


def _source_range(place: int, places: int, pixels: int) -> range:
    first = place * pixels // places
    return range(first, max(first + 1, (place + 1) * pixels // places))


def _mean_colour(picture: DocumentPicture, tops: range, lefts: range) -> tuple[int, int, int]:
    pixels, wide = picture.pixels, picture.columns
    begins = [3 * (top * wide + left) for top in tops for left in lefts]
    red, green, blue = (sum(pixels[at + part] for at in begins) // len(begins) for part in range(3))
    return red, green, blue
