"""Going from a screen to what another one shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.message import Message


def leave_for(node: DOMNode, there: Message) -> None:
    """Close every screen that covers the first one, and hand that one what to show."""
    app = node.app
    main = app.screen_stack[0]
    while app.screen is not main:
        app.pop_screen()
    main.post_message(there)
