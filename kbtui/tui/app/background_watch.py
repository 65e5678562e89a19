"""Background work brought to the screen: what it is at, one-time notices, the one question."""

from __future__ import annotations

import contextlib
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.messages import Notify
from kbtui.tui.terminal.type_ahead import KeysInOrder

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.widget import Widget

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.jobs import WorkerEvent


_ASK_AGAIN_SECONDS = 1.0


class BackgroundWatch:
    """Follows the worker for a widget.

    Args:
        widget: Lives as long as it follows.
        kb: Whose worker.
        show: Told what the worker is at; empty when it rests.
    """

    def __init__(self, widget: Widget, kb: KnowledgeBase, show: Callable[[str], None]) -> None:
        self._widget = widget
        self._worker = kb.memory.worker
        self._show = show
        self.stop = self._worker.subscribe(self._happened)

    def _happened(self, event: WorkerEvent) -> None:
        """Called in the worker's thread, perhaps while the app is closing."""
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self._take, event)

    def _take(self, event: WorkerEvent) -> None:
        if event.kind in ("started", "progress"):
            self._show(clean_line(event.text))
        elif event.kind == "finished":
            self._show("")
        elif event.kind == "notice":
            self._widget.post_message(Notify(event.text, "information"))
        else:
            self._ask(event)

    def _ask(self, event: WorkerEvent) -> None:
        """A paid model was found, not chosen: may it be used while nobody looks?

        Nobody waits for that question, so it comes when nothing is being written or asked.
        """
        from kbtui.tui.widgets.dialogs import UnaskedDialog

        if self._is_disturbing():
            self._widget.set_timer(_ASK_AGAIN_SECONDS, partial(self._ask, event))
            return
        cap = self._worker.status().cap_usd
        text = (
            f"{clean_line(event.model)} costs money. May it condense conversations in the "
            f"background, for at most ${cap:.2f} a day? Without it they wait."
        )

        def answered(key: str | None) -> None:
            if key is not None:
                agree = partial(self._agree, event.model, yes=key == "y")
                self._widget.run_worker(agree, thread=True, group="consent")

        dialog = UnaskedDialog("Memory", text, {"y": "yes", "n": "no"})
        self._widget.app.push_screen(dialog, answered)

    def _is_disturbing(self) -> bool:
        """True while somebody writes, or is asked something else."""
        from kbtui.tui.widgets.dialogs import QUIET_SECONDS

        app = self._widget.app
        writes = isinstance(app, KeysInOrder) and monotonic() - app.typed_at < QUIET_SECONDS
        return writes or app.screen.is_modal

    def _agree(self, model: str, *, yes: bool) -> None:
        """Called in a thread."""
        try:
            self._worker.agree(model, yes=yes)
        except KbtuiError as error:
            self._widget.post_message(Notify(str(error), "error"))
