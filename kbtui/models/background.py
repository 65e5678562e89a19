"""An event loop in a thread of its own, for work that must not hold up the caller's loop.

litellm imports for seconds, again at its first call, and counts tokens at the end of a stream;
the app's loop must not stall for a tenth of a second. So each request runs over here, and only
finished pieces come across.
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
_LAST_SECONDS: Final = 30.0


class BackgroundLoop:
    """A daemon thread with an event loop, started by the first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine over there; cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def iterate(self, source: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """Iterate over there and yield here; closing this iterator closes `source` at once."""
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()

        def put(item: object) -> None:
            # Whoever asked may have gone, and its loop with it.
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
                atexit.register(_ended, self._loop, thread)
            return self._loop


def _ended(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop before the interpreter goes, and wait for what it is at.

    A daemon thread that the interpreter's end takes in the middle of an import holds that
    import's lock for ever, and the next `__del__` that imports something waits for it.
    """

    def cancelled() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(loop.stop)

    with suppress(RuntimeError, KeyboardInterrupt):
        loop.call_soon_threadsafe(cancelled)
        thread.join(_LAST_SECONDS)


async def _pump(source: AsyncGenerator[T, None], put: Any) -> None:
    try:
        async with aclosing(source):
            async for item in source:
                put(item)
    except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
        put(_Failure(error))
    else:
        put(_END)
