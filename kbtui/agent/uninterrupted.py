"""Work in a thread that a cancelled turn waits for, as a thread can't be stopped half-way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(work: Callable[[], T], done: Callable[[T], None] | None = None) -> T:
    """Run `work` in a thread, to its end even when the caller is cancelled.

    Args:
        work: What to do.
        done: Called with its result, before anything else, cancelled or not.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        result = await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if done is not None and running.exception() is None:
            done(running.result())
        raise
    if done is not None:
        done(result)
    return result
