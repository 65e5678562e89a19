"""Panes: framed parts of a screen with labels in their border."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style

from kbtui.tui.widgets.line_view import resolve_styles, strip_ambiguous

_EDGE_CELLS = 6
"""Cells of an edge that labels leave free: the corners and a bit of line on each side."""
_MIN_NAME_CELLS = 12
_MIN_ROWS = 3  # both edges, and one row between them that is repeated


class Pane(Vertical):
    """A framed container with a name and a remark in its upper border, and a path in the lower.

    The frame has the accent colour while the focus is inside; see the app's stylesheet.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._heading = Content()
        self._remark = Content()
        self._place = ""

    @property
    def label(self) -> str:
        """The text of the upper border, without the line between name and remark."""
        return f"{self._heading.plain} {self._remark.plain}".strip()

    def label_with(
        self, name: Content | str, remark: Content | str = "", *, place: str = ""
    ) -> None:
        """Set the labels of the border.

        Args:
            name: Shown at the left of the upper border.
            remark: Shown at its right if both fit.
            place: A path, shown in the lower border; one that is too long loses its middle.
        """
        self._heading = Content(strip_ambiguous(name)) if isinstance(name, str) else name
        self._remark = Content(remark) if isinstance(remark, str) else remark
        self._place = strip_ambiguous(place)
        self._draw_labels()

    def on_resize(self) -> None:
        self._draw_labels()

    def notify_style_update(self) -> None:
        """Redraw the labels: the line between name and remark has the frame's colour."""
        super().notify_style_update()
        self._draw_labels()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the frame, whose identical rows between the edges are rendered only once."""
        if crop.y or crop.height != self.outer_size.height or crop.height <= _MIN_ROWS:
            return super().render_lines(crop)
        upper = super().render_lines(Region(crop.x, 0, crop.width, 2))
        lower = super().render_lines(Region(crop.x, crop.height - 1, crop.width, 1))
        return [*upper, *upper[1:] * (crop.height - _MIN_ROWS), *lower]

    def _draw_labels(self) -> None:
        room = self.outer_size.width - _EDGE_CELLS
        if room <= 0:  # before the first layout, and hidden
            self.border_title = self._heading
            return
        self.border_title = self._edge(room)
        self.border_subtitle = Content(cut_middle(self._place, room))

    def _edge(self, room: int) -> Content:
        """Return name and remark with the border's line between them."""
        heading = resolve_styles(self, self._heading)
        gap = room - self._remark.cell_length - 2
        if not self._remark or gap < min(_MIN_NAME_CELLS, heading.cell_length) + 1:
            return heading
        name = heading.truncate(gap - 1, ellipsis=True)
        color = self.styles.border_top[1]
        line = "─" * (gap - name.cell_length)
        return Content.assemble(name, " ", (line, Style(foreground=color)), " ", self._remark)


def cut_middle(text: str, width: int) -> str:
    """Return `text`, its middle replaced by an ellipsis if it is wider than `width` cells."""
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
