"""What the keeper tells, brought to the screen: its work, one-time notices, the one question."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from kbtui.text import clean_line
from kbtui.tui.messages import Notify

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.widget import Widget

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.jobs import KeeperEvent


class KeeperWatch:
    """Follows the keeper for a widget.

    Args:
        widget: Lives as long as it follows.
        kb: Whose keeper.
        show: Told what the keeper is at; empty when it rests.
    """

    def __init__(self, widget: Widget, kb: KnowledgeBase, show: Callable[[str], None]) -> None:
        self._widget = widget
        self._keeper = kb.memory.keeper
        self._show = show
        self.stop = self._keeper.subscribe(self._happened)

    def _happened(self, event: KeeperEvent) -> None:
        """Called in the keeper's thread, perhaps while the app is closing."""
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self._take, event)

    def _take(self, event: KeeperEvent) -> None:
        if event.kind in ("started", "progress"):
            self._show(clean_line(event.text))
        elif event.kind == "finished":
            self._show("")
        elif event.kind == "notice":
            self._widget.post_message(Notify(event.text, "information"))
        else:
            self._ask(event)

    def _ask(self, event: KeeperEvent) -> None:
        """A paid model was found, not chosen: may it be used while nobody looks?"""
        from kbtui.tui.screens.dialogs import KeyDialog

        cap = self._keeper.status().cap_usd
        text = (
            f"{clean_line(event.model)} costs money. May it condense conversations in the "
            f"background, for at most ${cap:.2f} a day? Without it they wait."
        )

        def answered(key: str | None) -> None:
            if key is not None:
                agree = self._keeper.agree
                self._widget.run_worker(
                    lambda: agree(event.model, yes=key == "y"), thread=True, group="consent"
                )

        self._widget.app.push_screen(KeyDialog("Memory", text, {"y": "yes", "n": "no"}), answered)
