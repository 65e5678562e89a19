"""Pictures for terminals that draw sixels, row by row of the cells that place them.

A sixel picture is drawn over cells and stays where it is, whatever scrolls or is covered. So it is
placed by the same cells as in kitty's protocol, and each run of these that is sent to the screen is
sent as blanks with that part of the picture over them: what moves or covers cells does the same to
the picture, and what is left of it is sent again with them.
Source: https://vt100.net/docs/vt3xx-gp/chapter14.html.
"""

from __future__ import annotations

import io
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from kbtui.tui.terminal.picture_cells import Place, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.content import Content

ASKED: Final = "\x1b[?1;1;0S\x1b[c"
"""Asks a terminal how many colours its sixels have at once, and then what it can do."""
VT340_CELL: Final = (10, 20)
"""Pixels of a cell where the terminal doesn't say: of the model that all others follow."""
_ANSWER: Final = re.compile(r"\x1b\[\?\d+((?:;\d+)*)c")
_REGISTERS: Final = re.compile(r"\x1b\[\?1;0;(\d{1,6})S")
_MOST_COLOURS: Final = 256  # of a picture, as most terminals have
_FEWEST_COLOURS: Final = 2
_BAND: Final = 6  # pixels, one above the other, in a sixel
_BLANK: Final = 63  # "?"
_REPEATED: Final = re.compile(rb"(.)\1{3,}", re.DOTALL)
_MOST_PICTURES: Final = 16
_MOST_RUNS: Final = 600  # a few kilobytes each, and seldom more than a hundred


def can_draw(answer: str) -> bool:
    """Return whether an answer to `ASKED` says that the terminal draws sixels."""
    found = _ANSWER.fullmatch(answer)
    return found is not None and "4" in found[1].split(";")


def colours_of(answer: str) -> int | None:
    """Return how many colours an answer to `ASKED` says a picture may have, if it says that."""
    found = _REGISTERS.fullmatch(answer)
    return max(_FEWEST_COLOURS, min(int(found[1]), _MOST_COLOURS)) if found is not None else None


class Sixels:
    """The pictures that are shown, as pixels and as what was sent; for several threads.

    Args:
        cell: Says how many columns and rows of pixels a cell has; another font has others.
        colours: How many a picture may have; as many as a terminal has that doesn't say.
    """

    def __init__(
        self,
        cell: Callable[[], tuple[int, int]] = lambda: VT340_CELL,
        colours: int | None = None,
    ) -> None:
        self._colours = colours or _MOST_COLOURS
        self._cell = cell
        self._pictures: OrderedDict[int, _Pixels] = OrderedDict()
        self._runs: OrderedDict[Run, str] = OrderedDict()
        self._lock = threading.Lock()

    def lines(self, png: bytes, columns: int, rows: int) -> Iterator[Content]:
        """Remember a picture, and yield the lines that show it; run in a thread.

        At most 76 columns and rows.
        """
        place, cell = Place(png, columns, rows), self._cell()
        with self._lock:
            known = self._pictures.get(place.number)
        if known is None or known.cell != cell:
            self._keep(place.number, _Pixels(place, cell, self._colours))
        for row in range(rows):
            self.drawn(Run(0, place.number, row, 0, columns))
        yield from place.lines()

    def _keep(self, number: int, pixels: _Pixels) -> None:
        with self._lock:
            self._pictures[number] = pixels
            while len(self._pictures) > _MOST_PICTURES:
                self._pictures.popitem(last=False)
            for run in [run for run in self._runs if run.number == number]:
                del self._runs[run]

    def drawn(self, run: Run) -> str:
        """Return what draws a run of cells where the cursor is, which it moves."""
        run = run._replace(x=0)
        with self._lock:
            pixels, known = self._pictures.get(run.number), self._runs.get(run)
        if pixels is None or known is not None:
            return known or ""
        made = pixels.sixels(run)
        with self._lock:
            self._runs[run] = made
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
        return made

    def send_again(self) -> None:
        """Do nothing: a new screen is sent all cells."""

    def remove(self) -> None:
        """Do nothing: the terminal keeps no picture that isn't on its screen."""


class _Pixels:
    """A picture in the size of its cells, with a palette of its own."""

    def __init__(self, place: Place, cell: tuple[int, int], colours: int) -> None:
        import numpy as np
        from PIL import Image

        self.cell = cell
        size = (place.columns * cell[0], place.rows * cell[1])
        with Image.open(io.BytesIO(place.png), formats=["PNG"]) as picture:
            scaled = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        few = scaled.quantize(colours)
        self._numbers: Any = np.asarray(few)
        parts = [round(part / 2.55) for part in few.getpalette() or []]  # in per cent
        self._palette = [
            f"#{number};2;{red};{green};{blue}"
            for number, (red, green, blue) in enumerate(zip(*[iter(parts)] * 3, strict=True))
        ]

    def sixels(self, run: Run) -> str:
        """Return a run of its cells: nothing outside of them is drawn."""
        import numpy as np

        across, down = self.cell
        left, top = run.first * across, run.row * down
        part = self._numbers[top : top + down, left : left + run.cells * across]
        high, wide = part.shape
        used = np.unique(part)
        bands = [_band(part[at : at + _BAND], used) for at in range(0, high, _BAND)]
        colours = "".join(self._palette[colour] for colour in used)
        # 1: what isn't drawn stays as it is; then the size, in square pixels.
        return f'\x1bP0;1q"1;1;{wide};{high}{colours}{"-".join(bands)}\x1b\\'


def _band(pixels: Any, used: Any) -> str:
    """Return up to six rows of pixels, a colour after the other."""
    import numpy as np

    weights = (1 << np.arange(len(pixels), dtype=np.uint8))[:, None]
    drawn = []
    for colour in used[np.isin(used, pixels)]:
        bits = ((pixels == colour) * weights).sum(axis=0, dtype=np.uint8) + _BLANK
        row = bits.tobytes().rstrip(b"?")
        drawn.append(f"#{colour}{_REPEATED.sub(_repeated, row).decode('ascii')}")
    return "$".join(drawn)


def _repeated(match: re.Match[bytes]) -> bytes:
    return b"!%d%b" % (len(match[0]), match[1])
