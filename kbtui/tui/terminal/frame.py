"""What stands on the terminal, so that only what differs is sent to it.

Textual sends every line of a widget that has been laid out anew: the whole prompt, its border and
the scrollbars beside it for each key that is typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich.control import Control
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate

from kbtui.tui.terminal.picture_cells import PLACEHOLDER, without_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.style import Style
    from textual.strip import Strip

    from kbtui.tui.terminal.sixel import Sixels

_SAME_WIDTH_EVERYWHERE: Final = re.compile("[ -~\u2500-\u259f\u2026\u00b7]*")
"""Terminals differ in the width of others, so a line that has some is sent as a whole."""


class Frame:
    """The pieces of lines that were sent last, by row and column.

    What isn't known to stand there is sent, so forgetting is always safe.
    """

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Strip]] = {}
        self.sixels: Sixels | None = None

    def forget(self) -> None:
        """Forget everything, as when the terminal may have been cleared."""
        self._rows = {}

    def changes(self, update: CompositorUpdate) -> CompositorUpdate:
        """Return an update that does the same as `update` by sending less."""
        return _Changes(self, update)

    def render(self, update: CompositorUpdate, console: Console) -> str:
        """Return what to send for `update`, which counts as sent."""
        if isinstance(update, LayoutUpdate):  # all is drawn, whatever stands there
            self.forget()
            drawn = []
            for y, strips in enumerate(update.strips, update.region.y):
                x, follows = update.region.x, False
                for strip in strips:
                    self._rows.setdefault(y, {})[x] = strip
                    drawn.append(self._draw(x, y, strip, console, move=not follows))
                    x, follows = x + strip.cell_length, _has_usual_width(strip)
            return "".join(drawn)
        if isinstance(update, ChopsUpdate):
            return "".join(
                self._draw(x, y, strip, console)
                for left, y, whole in _pieces(update)
                for x, strip in self._replace(left, y, whole)
            )
        return update.render_segments(console)

    def _draw(self, x: int, y: int, strip: Strip, console: Console, *, move: bool = True) -> str:
        """Return what draws a strip, with its parts of pictures if they are drawn over it."""
        at = Control.move_to(x, y).segment.text if move else ""
        if self.sixels is None or PLACEHOLDER not in strip.text:
            return f"{at}{strip.render(console)}"
        blank, runs = without_cells(strip)
        over = (
            f"{Control.move_to(x + run.x, y).segment.text}{self.sixels.drawn(run)}" for run in runs
        )
        return f"{at}{blank.render(console)}{''.join(over)}"

    def _replace(self, x: int, y: int, strip: Strip) -> Iterator[tuple[int, Strip]]:
        """Put a piece into its row; yield what of it is to be sent, and its column."""
        row = self._rows.setdefault(y, {})
        length = strip.cell_length
        known = row.get(x)
        if known is not None and known.crop(0, length) == strip:
            return
        for start, other in [*row.items()]:
            if start < x + length and x < start + other.cell_length:
                del row[start]
        row[x] = strip
        start, end = (0, length) if known is None else _difference(known, strip)
        if start < end:
            yield x + start, strip.crop(start, end)


class _Changes(CompositorUpdate):
    """An update that is compared when it is sent: Textual may leave that out."""

    def __init__(self, frame: Frame, update: CompositorUpdate) -> None:
        self._frame = frame
        self._update = update

    def render_segments(self, console: Console) -> str:
        return self._frame.render(self._update, console)


def _pieces(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield column, row and content of what `ChopsUpdate.render_segments` sends."""
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= last and end > first:
                piece = strip.crop(0, min(end, last) - x)
                if piece.cell_length:
                    yield x, y, piece


def _difference(old: Strip, new: Strip) -> tuple[int, int]:
    """Return the cells of `new` from the first to the last that differs from `old`."""
    length = new.cell_length
    if old.cell_length != length or not (_has_usual_width(old) and _has_usual_width(new)):
        return 0, length
    before, after = _cells(old), _cells(new)
    start = next((n for n in range(length) if before[n] != after[n]), length)
    end = next((n for n in range(length, 0, -1) if before[n - 1] != after[n - 1]), 0)
    return start, end


def _has_usual_width(strip: Strip) -> bool:
    return _SAME_WIDTH_EVERYWHERE.fullmatch(strip.text) is not None


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    return [(character, style) for text, style, _ in strip for character in text]
