"""What moves by itself: blinking cursors and animations.

Both can be turned off, for slow lines and screen readers. Then nothing is sent to the terminal
while nothing happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.constants import TEXTUAL_ANIMATIONS
from textual.widgets import Input, TextArea

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen
    from textual.widget import Widget


class Restless:
    """Applies the user's settings to an app; each is on until `follow` says otherwise."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._blinks = True

    def follow(self, *, blink: bool, animation: bool) -> None:
        """Turn on and off what moves, in everything that is shown already, too."""
        self._blinks = blink
        self._app.animation_level = TEXTUAL_ANIMATIONS if animation else "none"
        for screen in self._app.screen_stack:
            self._set_cursors(screen)

    def focused(self, widget: Widget) -> None:
        """Let the cursor of a field that gets the focus blink or stand still."""
        if isinstance(widget, Input | TextArea):
            widget.cursor_blink = self._blinks

    def _set_cursors(self, screen: Screen[Any]) -> None:
        for kind in (Input, TextArea):
            for field in screen.query(kind):
                self.focused(field)


def is_still(widget: Widget) -> bool:
    """Return whether nothing is to be animated."""
    return widget.app.animation_level == "none"
