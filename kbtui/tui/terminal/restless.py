"""What moves by itself or asks much of a line: blinking, animation, the mouse.

Each can be turned off, for slow lines and screen readers. Without blinking and animation nothing is
sent to the terminal while nothing happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.constants import TEXTUAL_ANIMATIONS
from textual.widgets import Input, TextArea

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver
    from textual.screen import Screen
    from textual.widget import Widget


class Restless:
    """Applies the user's settings to an app; each is on until `follow` says otherwise."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._blinks = True

    def follow(self, driver: Driver | None, *, blink: bool, animation: bool, mouse: bool) -> None:
        """Turn on and off what moves, in everything that is shown already, too."""
        self._blinks = blink
        self._app.animation_level = TEXTUAL_ANIMATIONS if animation else "none"
        for screen in self._app.screen_stack:
            self._set_cursors(screen)
        _use_mouse(driver, wanted=mouse)

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


def _use_mouse(driver: Driver | None, *, wanted: bool) -> None:
    """Turn the reports of the mouse on or off; Textual offers that only before it starts."""
    from textual.drivers.linux_driver import LinuxDriver

    if not isinstance(driver, LinuxDriver) or driver._mouse == wanted:  # noqa: SLF001
        return
    # The driver ignores both methods without `_mouse`, and asks it again after `fg`.
    driver._mouse = True  # noqa: SLF001
    if wanted:
        driver._enable_mouse_support()  # noqa: SLF001
    else:
        driver._disable_mouse_support()  # noqa: SLF001
    driver._mouse = wanted  # noqa: SLF001
