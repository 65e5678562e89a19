"""A split container with a border that the user can move."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from textual.containers import Container

from kbtui.tui.terminal.state import read_shares, remember_share

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

Direction = Literal["left", "right", "up", "down"]
_STEP_SHARE = 0.04
_MIN_SHARE, _MAX_SHARE = 0.15, 0.85


class Divided(Container):
    """A splitter: gives its first child a share of the space, saved by id and arrangement.

    The border can be dragged with the mouse, where the frames of the parts meet, or moved with
    `move`. Until the user has chosen a share, the stylesheet decides.
    """

    BLANK = True  # the children cover it, so its lines needn't be rendered

    def __init__(
        self, *children: Widget, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(*children, id=id, classes=classes)
        self._shares: dict[str, float] = {}
        self._dragging = False

    def on_mount(self) -> None:
        self._shares = read_shares()

    def on_resize(self) -> None:
        """Lay the parts out again, once the stylesheet has set the direction."""
        self.call_after_refresh(self.divide)

    @property
    def is_beside(self) -> bool:
        """Whether the parts are side by side."""
        return self.layout.name == "horizontal"

    @property
    def _arrangement(self) -> str:
        place = self.id or type(self.screen).__name__
        columns = "-columns" if self.screen.has_class("-columns") else ""
        if columns and not self.screen.has_class("-reading-note"):
            columns += "-alone"
        return f"{place}-{'beside' if self.is_beside else 'above'}{columns}"

    def _parts(self) -> tuple[Widget, Widget] | None:
        """Return both parts, or None if only one is visible."""
        shown = [child for child in self.children if child.display]
        return (shown[0], shown[1]) if len(shown) == 2 else None

    def divide(self) -> None:
        """Give the first part its saved share of this arrangement, if there is one."""
        parts = self._parts()
        if parts is None:
            return
        share = self._shares.get(self._arrangement)
        size = None if share is None else f"{share:.2%}"
        styles = parts[0].styles
        styles.width, styles.height = (size, None) if self.is_beside else (None, size)
        styles.max_width = None if size is None else "100%"

    # Moving

    def move(self, direction: Direction) -> bool:
        """Move the border one step; return False if it can't move in that direction."""
        parts = self._parts()
        if parts is None or self.is_beside != (direction in ("left", "right")):
            return False
        whole, part = self.size, parts[0].outer_size
        if not (whole.width and whole.height):
            return False  # it isn't laid out, as behind another screen
        drawn = part.width / whole.width if self.is_beside else part.height / whole.height
        share = self._shares.get(self._arrangement, drawn)  # may be ahead of the last layout
        grows = (direction in ("right", "down")) != self._is_reversed(parts)
        self._set_share(share + (_STEP_SHARE if grows else -_STEP_SHARE))
        self._save()
        return True

    def _is_reversed(self, parts: tuple[Widget, Widget]) -> bool:
        """Return whether the first part is docked to the right of the second."""
        return parts[0].region.x > parts[1].region.x

    def _set_share(self, share: float) -> None:
        self._shares[self._arrangement] = min(_MAX_SHARE, max(_MIN_SHARE, share))
        self.divide()

    def _save(self) -> None:
        name = self._arrangement
        save = partial(remember_share, name, self._shares[name])
        self.run_worker(save, thread=True, group="layout", exclusive=True)

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        parts = self._parts()
        if parts is None:
            return
        second = parts[0] if self._is_reversed(parts) else parts[1]
        at, border = (
            (event.screen_x, second.region.x)
            if self.is_beside
            else (event.screen_y, second.region.y)
        )
        if at in (border - 1, border):
            event.stop()
            self._dragging = True
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        parts = self._parts() if self._dragging else None
        if parts is None:
            return
        here = self.region
        share = (
            (event.screen_x - here.x) / max(1, here.width)
            if self.is_beside
            else (event.screen_y - here.y) / max(1, here.height)
        )
        self._set_share(1 - share if self._is_reversed(parts) else share)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            event.stop()
            self._dragging = False
            self.release_mouse()
            self.screen.clear_selection()
            if self._arrangement in self._shares:
                self._save()
