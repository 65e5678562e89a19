"""Keys typed ahead reach what the keys before them opened.

Textual hands each key to the widget that has the focus when the key is read. What a key does comes
later: the widget passes it up to the app, whose action mounts a field or a screen, and that asks
for the focus. Of ``/dddd`` in one piece, or typed while the machine is busy, the letters would be
read before the field is there, and would delete entries in place of filtering them. So here a
key waits until everything that the key before it set going has come to rest.

Text for a field that has the focus needs no waiting: it can't open anything.

Nor is a key lost that comes before there is anything it could mean: while the app says that it
isn't ready for more, keys are held, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from time import monotonic
from typing import TypeGuard

from textual import events
from textual.app import App, ScreenStackError
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import Worker

_OPENING = frozenset(
    {"open", "load", "action", "close", "command", "decide", "edit", "follow", "link", "save"}
)
"""Groups of workers that a key starts to open something."""
_ASKING = frozenset({"action", "decide"})
"""Groups of workers that ask something first, and with the answer go on to open it."""
_LONGEST_WAIT_SECONDS = 3.0
"""Seconds after which keys go on all the same: something hangs, and Ctrl+C must get through."""
_LEAVING = frozenset({"escape", "ctrl+c", "ctrl+q"})
_ROUNDS = 8
_LOOK_AGAIN_SECONDS = 0.005
_Typed = events.Key | events.Paste


class KeysInOrder(App[None]):
    """An app that handles what is typed one key after the other.

    It keeps when the last key and the one before came, and when the one came that is handled now,
    in monotonic seconds. `text_typed` tells that a field was handed text, which isn't on the screen
    yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.typed_at = 0.0
        self.typed_before = 0.0
        self.at_work_on = 0.0
        self.text_typed: Signal[Widget] = Signal(self, "text typed")
        self._typed_ahead: deque[_Typed] = deque()
        self._follower: asyncio.Task[None] | None = None

    @property
    def at_rest(self) -> bool:
        """True when all that was typed has been handled, and what it opened is there."""
        return self._follower is None or self._follower.done() or self._exit

    async def on_event(self, event: events.Event) -> None:
        """Hold keys back while the one before them is at work."""
        if not _is_typed(event):
            await super().on_event(event)
            return
        self.typed_before, self.typed_at = self.typed_at, monotonic()
        self.somebody_types()
        if not self.at_rest:
            self._typed_ahead.append(event)
        elif not self.ready_for_more():
            self._typed_ahead.append(event)
            self._follower = asyncio.create_task(self._follow(self._moment()))
        elif self._is_text(event):
            await super().on_event(event)
            if self.focused is not None:
                self.text_typed.publish(self.focused)
        else:
            before = Moment(self)
            self.at_work_on = event.time
            await super().on_event(event)
            self._follower = asyncio.create_task(self._follow(before))

    def somebody_types(self) -> None:
        """Called with every key."""

    def ready_for_more(self) -> bool:
        """False while what the keys so far asked for can't be there yet."""
        return True

    def give_up(self) -> None:
        """Called when a key for leaving comes meanwhile: nobody waits for it any longer."""

    def _leave(self) -> None:
        """Where a key for leaving came: nobody waits any longer, and what was typed goes."""
        leaving = [isinstance(key, events.Key) and key.key in _LEAVING for key in self._typed_ahead]
        if True not in leaving:
            return
        self.give_up()
        if self.ready_for_more():
            for _ in range(leaving.index(True)):
                self._typed_ahead.popleft()

    def _moment(self) -> Moment | None:
        """How things stand; None before there is a screen."""
        try:
            return Moment(self)
        except (ScreenStackError, KeyError):
            return None

    def _is_text(self, event: _Typed) -> bool:
        """True where this only writes into the field that has the focus."""
        if not isinstance(self.focused, Input | TextArea):
            return False
        return isinstance(event, events.Paste) or event.is_printable

    async def _follow(self, before: Moment | None) -> None:
        """Let the keys through that wait, each when the one before has come to rest."""
        await self._come_to_rest(before)
        while self._typed_ahead:
            event = self._typed_ahead.popleft()
            text, before = self._is_text(event), Moment(self)
            self.at_work_on = event.time
            await self._deliver(event)
            if not text:
                await self._come_to_rest(before)

    async def _come_to_rest(self, before: Moment | None) -> None:
        """Wait for what a key set going, also where it only begins when the app is ready for it.

        Where nothing else was typed, that waiting is left to the key that comes next.
        """
        if before is not None:
            await before.rest()
        if not self._typed_ahead or self.ready_for_more():
            return
        while not (self.ready_for_more() or self._exit):
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            self._leave()
        if not self._exit:
            await (before or Moment(self)).rest()

    async def _deliver(self, event: _Typed) -> None:
        """Handle a key in the app's own task, as if it had just come."""
        delivered = asyncio.Event()

        async def deliver() -> None:
            try:
                await super(KeysInOrder, self).on_event(event)
            finally:
                delivered.set()

        if self.call_later(deliver):
            await delivered.wait()


def _is_typed(event: events.Event) -> TypeGuard[_Typed]:
    return isinstance(event, events.Key | events.Paste) and not event.is_forwarded


class Moment:
    """How things stood in the app when a key came."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._screen: Screen[object] = app.screen
        self._below: list[Screen[object]] = app.screen_stack[:-1]
        self._workers: set[Worker[object]] = set(app.workers)
        target = app.focused or self._screen
        self._way: list[MessagePump] = [*target.ancestors_with_self]

    async def rest(self) -> None:
        """Wait until nothing that the key set going may still open something."""
        with contextlib.suppress(TimeoutError, ScreenStackError):
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS):
                await self._queues_rest()
                while self._opening():
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                    if not self._opening():
                        await self._queues_rest()  # which may lead to more

    def _opening(self) -> bool:
        """True while a worker of the key's is about to open something, and hasn't yet."""
        front = self._app.screen
        answered = front in self._below and not front.is_modal
        if front is not self._screen and not answered:
            return False
        return any(
            worker.group in _OPENING and not worker.is_finished
            for worker in self._app.workers
            if worker not in self._workers or (answered and worker.group in _ASKING)
        )

    async def _queues_rest(self) -> None:
        """Wait until the key and all messages that came of it have been handled.

        They travel from the focused widget up to the app, and may start again there or at the
        screen that is in front by now.
        """
        for number in range(_ROUNDS):
            screen = self._app.screen
            way = self._way if screen in self._way else [*self._way, screen]
            waited = [await _passed(node) for node in way]
            if number and not any(waited) and self._app.screen is screen:
                return


async def _passed(node: MessagePump) -> bool:
    """Wait until a node has handled what it has to handle now; whether that was anything."""
    had_some = node.message_queue_size > 0
    ran = node.is_running  # a screen that was only just pushed may not yet
    passed = asyncio.Event()
    if node.call_later(passed.set):
        while not passed.is_set() and node.is_running >= ran:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(passed.wait(), 4 * _LOOK_AGAIN_SECONDS)
    return had_some
