"""Type-ahead: keys reach the widget that the keys before them opened.

Textual dispatches each key to the widget that has the focus when the key is read. Its effect comes
later: the event bubbles up to the app, whose action mounts a field or a screen, which then asks for
the focus. If ``/dddd`` is pasted, or typed while the machine is busy, the letters would be
dispatched before the field exists, and would delete entries instead of filtering them. So each key
is queued until everything that the previous one triggered has settled.

Text for a focused field isn't queued: it can't open anything. What is pasted into a field of one
line is made one line on its way, for every `Input`, that of Textual's palette too: Textual takes
the first line and drops the others without a word.

While the app isn't ready (`KeysInOrder.ready_for_more`), keys are queued as well, so none is lost.
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

from kbtui.text import clean

_OPENING_GROUPS = frozenset(
    {"open", "load", "action", "close", "command", "decide", "edit", "follow", "link", "save"}
)
"""Worker groups in which a key's action opens something."""
_ASKING_GROUPS = frozenset({"action", "decide"})
"""Worker groups that first ask a question, and open something after the answer."""
_LONGEST_WAIT_SECONDS = 3.0
"""Timeout after which keys are dispatched anyway: if something hangs, Ctrl+C must work."""
_LEAVE_KEYS = frozenset({"escape", "ctrl+c", "ctrl+q"})
_MAX_ROUNDS = 8
_POLL_SECONDS = 0.005
_FIELD_CHARACTERS = 10_000
"""Characters of a paste that a field of one line takes: it draws all of them at each key."""
_Input = events.Key | events.Paste


class KeysInOrder(App[None]):
    """An app that dispatches keys and pastes one at a time, in order.

    Attributes, times in monotonic seconds:
        typed_at: When the last key arrived.
        typed_before: When the key before it arrived.
        at_work_on: When the key that is being handled arrived.
        text_typed: A signal: the focused field was sent text, which isn't drawn yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.typed_at = 0.0
        self.typed_before = 0.0
        self.handling_since = 0.0
        self.text_typed: Signal[Widget] = Signal(self, "text typed")
        self._queue: deque[_Input] = deque()
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def at_rest(self) -> bool:
        """Whether all input has been handled, and everything that it opened is there."""
        return self._dispatcher is None or self._dispatcher.done() or self._exit

    @property
    def backlog(self) -> int:
        """How many messages and keys are waiting."""
        return self.message_queue_size + len(self._queue)

    async def on_event(self, event: events.Event) -> None:
        """Queue keys while the previous one is still being handled."""
        if not _is_input(event):
            await super().on_event(event)
            return
        self.typed_before, self.typed_at = self.typed_at, monotonic()
        self.input_arrived()
        if not self.at_rest:
            self._queue.append(event)
        elif not self.ready_for_more():
            self._queue.append(event)
            self._dispatcher = asyncio.create_task(self._dispatch_queue(self._moment()))
        elif self._is_text(event):
            await self._forward(event)
            if self.focused is not None:
                self.text_typed.publish(self.focused)
        else:
            before = AppSnapshot(self)
            self.handling_since = event.time
            await self._forward(event)
            self._dispatcher = asyncio.create_task(self._dispatch_queue(before))

    async def _forward(self, event: _Input) -> None:
        """Pass a key or paste on to the widget with the focus, a paste as what fits into it."""
        if isinstance(event, events.Paste) and isinstance(self.focused, Input):
            if len(event.text) > _FIELD_CHARACTERS:
                taken = f"{_FIELD_CHARACTERS:,} of {len(event.text):,}"
                said = f"A field of one line takes so much: the first {taken} characters are in it."
                self.notify(said, severity="warning", markup=False)
            event = events.Paste(as_one_line(event.text[:_FIELD_CHARACTERS]))
        await super().on_event(event)

    def input_arrived(self) -> None:
        """React to a key press; a hook for subclasses."""

    def ready_for_more(self) -> bool:
        """Return False while the app can't handle further keys, as before a workspace is open."""
        return True

    def stop_waiting(self) -> None:
        """Stop waiting: called when a leave key is typed while the app isn't ready."""

    def _check_leave_keys(self) -> None:
        """If a leave key is queued, stop waiting and drop the keys before it."""
        is_leave_key = [
            isinstance(key, events.Key) and key.key in _LEAVE_KEYS for key in self._queue
        ]
        if True not in is_leave_key:
            return
        self.stop_waiting()
        if self.ready_for_more():
            for _ in range(is_leave_key.index(True)):
                self._queue.popleft()

    def _moment(self) -> AppSnapshot | None:
        """Return a snapshot of the app, or None before there is a screen."""
        try:
            return AppSnapshot(self)
        except (ScreenStackError, KeyError):
            return None

    def _is_text(self, event: _Input) -> bool:
        """Return whether `event` only writes text into the focused field."""
        if not isinstance(self.focused, Input | TextArea):
            return False
        return isinstance(event, events.Paste) or event.is_printable

    async def _dispatch_queue(self, before: AppSnapshot | None) -> None:
        """Dispatch the queued keys, each once the previous one has settled."""
        await self._settle(before)
        while self._queue:
            event = self._queue.popleft()
            is_text, before = self._is_text(event), AppSnapshot(self)
            self.handling_since = event.time
            await self._deliver(event)
            if not is_text:
                await self._settle(before)

    async def _settle(self, before: AppSnapshot | None) -> None:
        """Wait for the effects of a key, also those that start only once the app is ready.

        With an empty queue, the wait for readiness is left to the next key.
        """
        if before is not None:
            await before.rest()
        if not self._queue or self.ready_for_more():
            return
        while not (self.ready_for_more() or self._exit):
            await asyncio.sleep(_POLL_SECONDS)
            self._check_leave_keys()
        if not self._exit:
            await (before or AppSnapshot(self)).rest()

    async def _deliver(self, event: _Input) -> None:
        """Handle a key in the app's own task, as if it had just arrived."""
        delivered = asyncio.Event()

        async def deliver() -> None:
            try:
                await self._forward(event)
            finally:
                delivered.set()

        if self.call_later(deliver):
            await delivered.wait()


def as_one_line(text: str) -> str:
    """Join the lines of a text with blanks, without control characters; one line keeps its own."""
    lines = clean(text).replace("\t", " ").splitlines()
    if len(lines) > 1:
        lines = [line.strip() for line in lines if line.strip()]
    return " ".join(lines)


def _is_input(event: events.Event) -> TypeGuard[_Input]:
    return isinstance(event, events.Key | events.Paste) and not event.is_forwarded


class AppSnapshot:
    """A snapshot of the app when a key arrived: screens, running workers, the focused widget."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._screen: Screen[object] = app.screen
        self._screens_below: list[Screen[object]] = app.screen_stack[:-1]
        self._workers: set[Worker[object]] = set(app.workers)
        target = app.focused or self._screen
        self._path: list[MessagePump] = [*target.ancestors_with_self]

    async def rest(self) -> None:
        """Wait until nothing that the key triggered can still open something."""
        with contextlib.suppress(TimeoutError, ScreenStackError):
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS):
                await self._drain_queues()
                while self._is_opening():
                    await asyncio.sleep(_POLL_SECONDS)
                    if not self._is_opening():
                        await self._drain_queues()  # which may start another worker

    def _is_opening(self) -> bool:
        """Return whether a worker that the key started is still about to open something."""
        front = self._app.screen
        answered = front in self._screens_below and not front.is_modal
        if front is not self._screen and not answered:
            return False
        return any(
            worker.group in _OPENING_GROUPS and not worker.is_finished
            for worker in self._app.workers
            if worker not in self._workers or (answered and worker.group in _ASKING_GROUPS)
        )

    async def _drain_queues(self) -> None:
        """Wait until the key and all messages that it caused have been handled.

        They bubble from the focused widget up to the app, and may cause further ones there or on
        the screen that is active by now.
        """
        for number in range(_MAX_ROUNDS):
            screen = self._app.screen
            path = self._path if screen in self._path else [*self._path, screen]
            had_messages = [await _drain(node) for node in path]
            if number and not any(had_messages) and self._app.screen is screen:
                return


async def _drain(node: MessagePump) -> bool:
    """Wait until a node has processed its message queue; return whether it had messages."""
    had_messages = node.message_queue_size > 0
    was_running = node.is_running  # a screen that was just pushed may not be yet
    processed = asyncio.Event()
    if node.call_later(processed.set):
        while not processed.is_set() and node.is_running >= was_running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(processed.wait(), 4 * _POLL_SECONDS)
    return had_messages
