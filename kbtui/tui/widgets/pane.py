"""A pane: a part of the screen in a frame, with its name and what matters of it in the border."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style

from kbtui.tui.widgets.line_view import coloured, steady

_ENDS = 6
"""Cells of an edge that no label may take: corners, and a piece of line at either side."""
_LEAST_NAME = 12
_EDGES = 3  # lines: both edges, and the one between them that stands for all


class Pane(Vertical):
    """Has its name at the left of the upper border, a remark at the right, a place in the lower.

    The frame has the accent colour while the focus is within; see the stylesheet of the app.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._heading = Content()
        self._remark = Content()
        self._place = ""

    @property
    def label(self) -> str:
        """What the upper border says, without the line between name and remark."""
        return f"{self._heading.plain} {self._remark.plain}".strip()

    def label_with(
        self, name: Content | str, remark: Content | str = "", *, place: str = ""
    ) -> None:
        """Say what is in the pane; the remark gives way to the name, and `place` loses its middle.

        Args:
            name: Stands at the left of the upper border.
            remark: Stands at its right where there is room for both.
            place: Stands in the lower border: a path, cut in the middle.
        """
        self._heading = Content(steady(name)) if isinstance(name, str) else name
        self._remark = Content(remark) if isinstance(remark, str) else remark
        self._place = steady(place)
        self._draw_labels()

    def on_resize(self) -> None:
        self._draw_labels()

    def notify_style_update(self) -> None:
        """The line between name and remark has the colour of the frame."""
        super().notify_style_update()
        self._draw_labels()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the frame; between its edges all lines are alike, and drawn once."""
        if crop.y or crop.height != self.outer_size.height or crop.height <= _EDGES:
            return super().render_lines(crop)
        upper = super().render_lines(Region(crop.x, 0, crop.width, 2))
        lower = super().render_lines(Region(crop.x, crop.height - 1, crop.width, 1))
        return [*upper, *upper[1:] * (crop.height - _EDGES), *lower]

    def _draw_labels(self) -> None:
        room = self.outer_size.width - _ENDS
        if room <= 0:  # before the first layout, and hidden
            self.border_title = self._heading
            return
        self.border_title = self._edge(room)
        self.border_subtitle = Content(cut_middle(self._place, room))

    def _edge(self, room: int) -> Content:
        """Name and remark with the line of the border between them."""
        heading = coloured(self, self._heading)
        gap = room - self._remark.cell_length - 2
        if not self._remark or gap < min(_LEAST_NAME, heading.cell_length) + 1:
            return heading
        name = heading.truncate(gap - 1, ellipsis=True)
        color = self.styles.border_top[1]
        line = "─" * (gap - name.cell_length)
        return Content.assemble(name, " ", (line, Style(foreground=color)), " ", self._remark)


def cut_middle(text: str, width: int) -> str:
    """A text without its middle where it is wider than `width` cells: a path keeps its ends."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    head = chop_cells(text, room // 3)[0] if room >= 3 else ""
    left, tail = room - cell_len(head), ""
    for character in reversed(text):
        left -= cell_len(character)
        if left < 0:
            break
        tail = character + tail
    return f"{head}…{tail}"
