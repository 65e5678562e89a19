"""Cells that show a part of a picture: the placeholders of kitty's graphics protocol.

Two combining marks name row and column of the part, and the cell's colour is the picture's number.
So a picture scrolls, is covered and is cut like any text, and the app needs to know nothing of it.
Source: "Unicode placeholders" in https://sw.kovidgoyal.net/kitty/graphics-protocol/.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rich.segment import Segment
from textual.color import Color
from textual.content import Content, Span
from textual.strip import Strip
from textual.style import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACEHOLDER: Final = "\U0010eeee"
MARKS: Final = tuple(
    map(
        chr,
        # The first of the protocol's list, which are those of class 230 without a decomposition.
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C),
            *(0x350, 0x351, 0x352, 0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488)),
            *(*range(0x592, 0x596), *range(0x597, 0x59A), *range(0x59C, 0x5A2), 0x5A8, 0x5A9),
            *(0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618), *range(0x657, 0x65C)),
            *(0x65D, 0x65E, *range(0x6D6, 0x6DD)),
        ),
    )
)
_AT: Final = {mark: at for at, mark in enumerate(MARKS)}
_CELLS: Final = re.compile(f"{PLACEHOLDER}([{''.join(MARKS)}])([{''.join(MARKS)}])")


class Place(NamedTuple):
    """A picture in the size in which it is shown, in cells."""

    png: bytes
    columns: int
    rows: int

    @property
    def number(self) -> int:
        """Its number: 24 bits, as many as a colour has, and never 0."""
        found = blake2b(self.png, digest_size=3, key=b"%d %d" % (self.columns, self.rows))
        return int.from_bytes(found.digest(), "big") or 1

    def lines(self) -> Iterator[Content]:
        """Yield the lines of cells that show it; at most 76 columns and rows."""
        number = self.number
        style = Style(foreground=Color(number >> 16, number >> 8 & 255, number & 255))
        for row in range(self.rows):
            cells = "".join(f"{PLACEHOLDER}{MARKS[row]}{MARKS[at]}" for at in range(self.columns))
            yield Content(cells, [Span(0, len(cells), style)])


class Pictures(Protocol):
    """What draws pictures on a terminal, where their cells are."""

    def lines(self, png: bytes, columns: int, rows: int) -> Iterator[Content]:
        """Have a picture ready, and yield the lines of cells that show it; run in a thread."""
        ...

    def send_again(self) -> None:
        """Have what is shown ready for a screen that is new."""
        ...

    def remove(self) -> None:
        """Free what the terminal keeps."""
        ...


class Run(NamedTuple):
    """Cells of a row of a picture that stand side by side.

    `x` is the column of the strip in which they begin, `first` that of the picture.
    """

    x: int
    number: int
    row: int
    first: int
    cells: int


def without_cells(strip: Strip) -> tuple[Strip, list[Run]]:
    """Return a strip with blanks in place of parts of pictures, and these parts."""
    runs: list[Run] = []
    segments: list[Segment] = []
    x = 0
    for segment in strip:
        found = [*_CELLS.finditer(segment.text)]
        colour = segment.style.color.triplet if segment.style and segment.style.color else None
        if found and colour is not None:
            number = colour.red << 16 | colour.green << 8 | colour.blue
            row, first = (_AT[mark] for mark in found[0].groups())
            runs.append(Run(x, number, row, first, len(found)))
            segments.append(Segment(" " * len(found), segment.style))
        else:
            segments.append(segment)
        x += segment.cell_length
    return Strip(segments, strip.cell_length), runs
