"""Watches the inbox: counts the waiting proposals and announces new ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from textual.widget import Widget

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.history.places import Plan
from kbtui.knowledge_base import KnowledgeBase
from kbtui.text import clean_line, shorten
from kbtui.tui.messages import InboxChanged, tell
from kbtui.tui.terminal.background import run_latest

_POLL_SECONDS = 3.0
"""The polling interval, for proposals that other processes make."""
_REASON_CHARACTERS = 100


class InboxWatch:
    """A watcher of the inbox that posts `InboxChanged` to a widget."""

    def __init__(self, widget: Widget, kb: KnowledgeBase) -> None:
        self._widget = widget
        self._inbox = kb.memory.inbox
        self._known_ids: set[str] | None = None
        self._count = 0
        self._stamp = -1
        self._unsubscribe = self._inbox.subscribe(self._changed)
        self._reading = False
        self._timer = widget.set_interval(_POLL_SECONDS, self._poll)
        self.look()

    def stop(self) -> None:
        """Unsubscribe and stop polling."""
        self._unsubscribe()
        self._timer.stop()

    def look(self) -> None:
        """Read the inbox if its folder has changed."""
        run_latest(self._widget, "inbox", self._read)

    def _poll(self) -> None:
        if not self._reading:  # let a slow read finish instead of restarting it
            self.look()

    def files_changed(self) -> None:
        """Read the inbox again after notes changed: a proposal may be in place by now."""
        if self._count:
            self._stamp = -1
            self.look()

    def _changed(self) -> None:
        """Schedule a look, from any thread; the app may already be closing."""
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self.look)

    async def _read(self) -> None:
        self._reading = True
        try:
            await self._read_if_changed()
        finally:
            self._reading = False

    async def _read_if_changed(self) -> None:
        stamp = await asyncio.to_thread(self._inbox.stamp)
        if stamp == self._stamp:
            return
        try:
            plans = await asyncio.to_thread(self._inbox.waiting)
        except KbtuiError:
            return  # the next poll tries again
        self._stamp = stamp
        self._count = len(plans)
        self._announce_new(plans)
        self._known_ids = {plan.proposal.id for plan in plans}
        self._widget.post_message(InboxChanged(len(plans)))

    def _announce_new(self, plans: Sequence[Plan]) -> None:
        """Announce new proposals once, except the agent's: the chat shows those already."""
        if self._known_ids is None:
            return
        new = [plan.proposal for plan in plans if plan.proposal.id not in self._known_ids]
        announced = [proposal for proposal in new if proposal.actor is not Actor.AGENT]
        if announced:
            more = f" (and {len(announced) - 1} more)" if len(announced) > 1 else ""
            reason = shorten(clean_line(announced[0].reason), _REASON_CHARACTERS)
            text = f"F6: {announced[0].actor} proposes a change of your notes{more}: {reason}"
            tell(self._widget, text)
