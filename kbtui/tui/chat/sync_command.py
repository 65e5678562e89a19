"""``/sync``: bringing several machines together, beside whatever else is going on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.text import clean_line
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.chat.items import NoticeItem

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.maintenance.sync import Synced
    from kbtui.tui.chat.chat_pane import ChatPane

_STOP = "stop"


class SyncCommand:
    """Runs one sync at a time for the pane of the chat.

    Attributes:
        text: What it is at; empty where it says nothing, or none is running.
    """

    def __init__(self, pane: ChatPane) -> None:
        self._pane = pane
        self._stopped: threading.Event | None = None
        self.text = ""

    async def run(self, kb: KnowledgeBase, argument: str) -> None:
        """Sync with the place that is named, else with the one that is remembered.

        Raises:
            KbtuiError: It didn't work; nothing is lost.
        """
        if argument == _STOP:
            self._stop()
            return
        if self._stopped is not None:
            raise UsageError("A sync is running already.", f"/sync {_STOP} ends it.")
        stopped = self._stopped = threading.Event()
        try:
            done = await asyncio.to_thread(
                kb.syncing.run, argument or None, tell=self._tell, stopped=stopped.is_set
            )
        finally:
            stopped.set()  # who gives up waiting for the thread stops it, too
            self._stopped = None
            self._show("")
        self._pane.tell(_notice(done))

    @property
    def running(self) -> bool:
        """Whether a sync is under way."""
        return self._stopped is not None

    def stop(self) -> None:
        """End the sync that is under way, at its next step; nothing is lost."""
        if self._stopped is not None:
            self._stopped.set()

    def _stop(self) -> None:
        if not self.running:
            raise UsageError("No sync is running.")
        self.stop()

    def _tell(self, text: str) -> None:
        """Called in the sync's thread, perhaps while the app is closing."""
        with contextlib.suppress(RuntimeError):
            self._pane.call_later(self._show, text)

    def _show(self, text: str) -> None:
        self.text = clean_line(text)
        for line in self._pane.screen.query(StatusLine):
            line.show_work(self.text)


def _notice(done: Synced) -> NoticeItem:
    lines = list(done.report.notes)
    if done.proposals:
        count = len(done.proposals)
        waits = "1 place was" if count == 1 else f"{count} places were"
        lines.append(f"{waits} changed on both sides: yours stands, theirs is in the inbox (F6).")
    return NoticeItem(title=done.summary, text="\n".join(lines))
