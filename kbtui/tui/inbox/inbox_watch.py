"""The inbox followed for the screen: how many proposals wait, and a notice when one comes."""

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

_LOOK_SECONDS = 3.0
"""Seconds after which somebody looks whether another process has put something in."""
_REASON_CHARACTERS = 100


class InboxWatch:
    """Follows the inbox for a widget, which is sent `InboxChanged`."""

    def __init__(self, widget: Widget, kb: KnowledgeBase) -> None:
        self._widget = widget
        self._inbox = kb.memory.inbox
        self._known: set[str] | None = None
        self._count = 0
        self._stamp = -1
        self._unsubscribe = self._inbox.subscribe(self._changed)
        self._reading = False
        self._timer = widget.set_interval(_LOOK_SECONDS, self._look_again)
        self.look()

    def stop(self) -> None:
        """Follow it no longer."""
        self._unsubscribe()
        self._timer.stop()

    def look(self) -> None:
        """Read the inbox if its folder has changed."""
        run_latest(self._widget, "inbox", self._read)

    def _look_again(self) -> None:
        if not self._reading:  # one that takes long is not started over
            self.look()

    def files_changed(self) -> None:
        """Notes were changed: what was proposed may stand there by now."""
        if self._count:
            self._stamp = -1
            self.look()

    def _changed(self) -> None:
        """Called in whichever thread decided or proposed, perhaps while the app is closing."""
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self.look)

    async def _read(self) -> None:
        self._reading = True
        try:
            await self._read_changed()
        finally:
            self._reading = False

    async def _read_changed(self) -> None:
        stamp = await asyncio.to_thread(self._inbox.stamp)
        if stamp == self._stamp:
            return
        try:
            plans = await asyncio.to_thread(self._inbox.waiting)
        except KbtuiError:
            return  # the next look tells more
        self._stamp = stamp
        self._count = len(plans)
        self._tell_of_new(plans)
        self._known = {plan.proposal.id for plan in plans}
        self._widget.post_message(InboxChanged(len(plans)))

    def _tell_of_new(self, plans: Sequence[Plan]) -> None:
        """Say once that something has come; what an agent proposes stands in the chat already."""
        if self._known is None:
            return
        new = [plan.proposal for plan in plans if plan.proposal.id not in self._known]
        told = [proposal for proposal in new if proposal.actor is not Actor.AGENT]
        if told:
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            reason = shorten(clean_line(told[0].reason), _REASON_CHARACTERS)
            text = f"F6: {told[0].actor} proposes a change of your notes{more}: {reason}"
            tell(self._widget, text)
