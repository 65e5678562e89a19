"""An event loop in its own thread, for work that would block the caller's loop.

litellm takes seconds to import, again at its first call, and counts tokens at the end of a stream,
while the app's loop must never stall for 100 ms. So requests run on this loop, and only finished
pieces cross over.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception


_END: Final = object()
_EXIT_SECONDS: Final = 30.0


class BackgroundLoop:
    """An event loop in a daemon thread, started at first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the background loop; cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def iterate(self, source: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """Iterate `source` on the background loop; closing this iterator closes it at once."""
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()

        def put(item: object) -> None:
            # The caller, and its loop, may be gone.
            with suppress(RuntimeError):
                here.call_soon_threadsafe(queue.put_nowait, item)

        pump = asyncio.run_coroutine_threadsafe(_pump(source, put), self._running())
        try:
            while (item := await queue.get()) is not _END:
                if isinstance(item, _Failure):
                    raise item.error
                yield item
        finally:
            pump.cancel()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._loop.run_forever, name=self._name, daemon=True
                )
                thread.start()
                atexit.register(_stop_at_exit, self._loop, thread)
            return self._loop


def _stop_at_exit(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop before the interpreter exits, and wait for the current step.

    A daemon thread that is killed at exit in the middle of an import holds that import's lock for
    ever, and the next `__del__` that imports something deadlocks.
    """

    def cancelled() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(loop.stop)

    with suppress(RuntimeError, KeyboardInterrupt):
        loop.call_soon_threadsafe(cancelled)
        thread.join(_EXIT_SECONDS)


async def _pump(source: AsyncGenerator[T, None], put: Any) -> None:
    try:
        async with aclosing(source):
            async for item in source:
                put(item)
    except Exception as error:  # noqa: BLE001 - re-raised in the caller
        put(_Failure(error))
    else:
        put(_END)
