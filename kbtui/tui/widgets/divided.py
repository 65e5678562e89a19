"""Two parts beside or above each other, with a border between them that a person can move."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from textual.containers import Container

from kbtui.tui.terminal.state import read_shares, remember_share

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

Direction = Literal["left", "right", "up", "down"]
_STEP = 0.04
_LEAST, _MOST = 0.15, 0.85


class Divided(Container):
    """Gives its first child a share of the room, and remembers which, by name and arrangement.

    The border moves by the mouse, where the frames of both meet, and by `move`. Without a share
    that somebody has chosen the stylesheet says how the room is divided.
    """

    BLANK = True  # nothing of it is seen: its lines needn't be drawn one by one

    def __init__(
        self, *children: Widget, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(*children, id=id, classes=classes)
        self._shares: dict[str, float] = {}
        self._dragging = False

    def on_mount(self) -> None:
        """Divide as the last time."""
        self._shares = read_shares()

    def on_resize(self) -> None:
        """Divide again, once the stylesheet has said whether beside or above each other."""
        self.call_after_refresh(self.divide)

    @property
    def is_beside(self) -> bool:
        """True where the parts stand beside each other."""
        return self.layout.name == "horizontal"

    @property
    def _arrangement(self) -> str:
        place = self.id or type(self.screen).__name__
        columns = "-columns" if self.screen.has_class("-columns") else ""
        if columns and not self.screen.has_class("-reading-note"):
            columns += "-alone"
        return f"{place}-{'beside' if self.is_beside else 'above'}{columns}"

    def _parts(self) -> tuple[Widget, Widget] | None:
        """Both parts; None where there is only one to be seen."""
        shown = [child for child in self.children if child.display]
        return (shown[0], shown[1]) if len(shown) == 2 else None

    def divide(self) -> None:
        """Give the first part its share, where somebody has chosen one for this arrangement."""
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
        """Move the border a step; False where it doesn't go that way."""
        parts = self._parts()
        if parts is None or self.is_beside != (direction in ("left", "right")):
            return False
        whole, part = self.size, parts[0].outer_size
        seen = part.width / whole.width if self.is_beside else part.height / whole.height
        share = self._shares.get(self._arrangement, seen)  # as far as keys have moved it already
        grows = (direction in ("right", "down")) != self._is_last(parts)
        self._take(share + (_STEP if grows else -_STEP))
        self._remember()
        return True

    def _is_last(self, parts: tuple[Widget, Widget]) -> bool:
        """True where the first part is docked behind the second."""
        return parts[0].region.x > parts[1].region.x

    def _take(self, share: float) -> None:
        self._shares[self._arrangement] = min(_MOST, max(_LEAST, share))
        self.divide()

    def _remember(self) -> None:
        name = self._arrangement
        remember = partial(remember_share, name, self._shares[name])
        self.run_worker(remember, thread=True, group="layout", exclusive=True)

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        parts = self._parts()
        if parts is None:
            return
        second = parts[0] if self._is_last(parts) else parts[1]
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
        self._take(1 - share if self._is_last(parts) else share)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            event.stop()
            self._dragging = False
            self.release_mouse()
            self.screen.clear_selection()
            if self._arrangement in self._shares:
                self._remember()
