"""Varied orders: ``KBTUI_JITTER=seed`` holds work and messages back by random moments.

For the hunt for races; see `tests/tui/conftest.py`. Without the variable nothing is changed.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.message import Message

SEED = os.environ.get("KBTUI_JITTER", "")
"""Taken when the tests are collected: a test's own environment has none of it."""
_SHARE = 0.1
"""Of the messages that are held back."""
_LONGEST_IN_THREAD = 0.06
_LONGEST_OF_MESSAGE = 0.02
_random = random.Random(SEED)
_held_back = 0


def holds_back() -> bool:
    """Whether a message is being held back now."""
    return _held_back > 0


def in_thread() -> None:
    """Hold the thread back for a moment."""
    if SEED:
        time.sleep(_random.random() ** 3 * _LONGEST_IN_THREAD)


@contextmanager
def shaken() -> Iterator[None]:
    """Let messages wait before they are handled (in their order), and threads before they start."""
    if not SEED:
        yield
        return
    plain, run = MessagePump._get_message, threading.Thread.run

    async def get_message(self: MessagePump) -> Message:
        global _held_back  # noqa: PLW0603
        message = await plain(self)
        if _random.random() < _SHARE:
            _held_back += 1
            try:
                await asyncio.sleep(_random.random() * _LONGEST_OF_MESSAGE)
            finally:
                _held_back -= 1
        return message

    def late(self: threading.Thread, *args: Any) -> None:
        in_thread()
        run(self, *args)

    MessagePump._get_message = get_message  # type: ignore[method-assign]
    threading.Thread.run = late  # type: ignore[method-assign]
    try:
        yield
    finally:
        MessagePump._get_message = plain  # type: ignore[method-assign]
        threading.Thread.run = run  # type: ignore[method-assign]
