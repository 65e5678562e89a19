"""Pictures as half blocks: each cell shows two pixels, one above the other.

Libraries that draw sharper (textual-image) ask the terminal what it can when they are imported,
before the app has it: at every start, and the keys of that moment are lost. They draw widgets of
their own as well, and no lines of a text.
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

_MOST_ROWS = 24
_MOST_COLUMNS = 76


def picture_lines(picture: DocumentPicture, width: int) -> Iterator[Content]:
    """A picture as lines of at most `width` cells, and no larger than it is."""
    columns = min(width, _MOST_COLUMNS, picture.columns)
    shape = picture.rows / picture.columns
    columns = max(1, min(columns, round(2 * _MOST_ROWS / shape)))
    rows = min(_MOST_ROWS, max(1, round(columns * shape / 2)))
    colours = [_row(picture, columns, number, 2 * rows) for number in range(2 * rows)]
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        spans: list[Span] = []
        at = 0
        for (above, below), cells in groupby(zip(upper, lower, strict=True)):
            end = at + sum(1 for _ in cells)
            style = Style(foreground=Color(*above), background=Color(*below))
            spans.append(Span(at, end, style))
            at = end
        yield Content("▀" * columns, spans)


def _row(
    picture: DocumentPicture, columns: int, number: int, rows: int
) -> list[tuple[int, int, int]]:
    """One row of a picture that is made smaller: of each place the mean of what it covers."""
    tops = _covered(number, rows, picture.rows)
    return [
        _mean(picture, tops, _covered(column, columns, picture.columns))
        for column in range(columns)
    ]


def _covered(place: int, places: int, pixels: int) -> range:
    first = place * pixels // places
    return range(first, max(first + 1, (place + 1) * pixels // places))


def _mean(picture: DocumentPicture, tops: range, lefts: range) -> tuple[int, int, int]:
    pixels, wide = picture.pixels, picture.columns
    begins = [3 * (top * wide + left) for top in tops for left in lefts]
    red, green, blue = (sum(pixels[at + part] for at in begins) // len(begins) for part in range(3))
    return red, green, blue
