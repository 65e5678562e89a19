"""Moving the focus at once.

`Widget.focus` waits its turn behind the keys that are in the queue already, so what somebody types
right after a key that moves the focus would still land in the old place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget


def go_to(widget: Widget) -> None:
    """Give `widget` the focus now; where it isn't shown yet, as soon as it is."""
    widget.screen.set_focus(widget)
    if widget.screen.focused is not widget:
        widget.focus()
