"""Bringing several machines together, beside whatever else is going on in the app."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.maintenance.sync import Synced

STOP = "stop"


class Syncing:
    """Runs one sync at a time.

    Args:
        show: Told each step, empty at the end; called in the sync's thread, too.

    Attributes:
        text: The step it is at; empty where it says nothing, or none is running.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._stopped: threading.Event | None = None
        self.text = ""

    async def run(self, kb: KnowledgeBase, place: str | None) -> Synced:
        """Sync with the place that is named, else with the one that is remembered.

        Raises:
            KbtuiError: It didn't work; nothing is lost.
        """
        if self._stopped is not None:
            raise UsageError("A sync is running already.", f"/sync {STOP} ends it.")
        stopped = self._stopped = threading.Event()
        try:
            return await asyncio.to_thread(
                kb.syncing.run, place, tell=self._tell, stopped=stopped.is_set
            )
        finally:
            stopped.set()  # who gives up waiting for the thread stops it, too
            self._stopped = None
            self._tell("")

    @property
    def running(self) -> bool:
        """True while a sync is under way."""
        return self._stopped is not None

    def stop(self) -> None:
        """End the sync that is under way, at its next step; nothing is lost."""
        if self._stopped is not None:
            self._stopped.set()

    def _tell(self, text: str) -> None:
        self.text = clean_line(text)
        self._show(self.text)
