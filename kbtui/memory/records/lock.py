"""One writer of memory at a time, across all processes that have the workspace open.

Unlike the workspace's lock this one is held while a model thinks: two processes must not
consolidate the same messages. It is the kernel's (flock), so a killed holder leaves none behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from kbtui.errors import WorkspaceBusyError
from kbtui.workspace.lock import open_lock, try_lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kbtui.workspace.layout import Workspace

_PAUSE_SECONDS = 0.05


class MemoryLock:
    """The lock for whoever turns conversation into memory: consolidation, notes, Dream, import.

    Not reentrant: take it once, around the whole run.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._file = workspace.machine / "memory.lock"

    @contextlib.asynccontextmanager
    async def hold(self, timeout: float = 0.0) -> AsyncIterator[None]:  # noqa: ASYNC109 - waits for a process, cancels nothing
        """Hold the lock for the block.

        Args:
            timeout: Seconds to wait for another holder to finish.

        Raises:
            WorkspaceBusyError: Another process, or another task of this one, is at it.
            StorageError: The file system refused, or has no working locks.
        """
        file = open_lock(self._file)
        try:
            await self._take(file, asyncio.get_running_loop().time() + timeout)
            yield
        finally:
            os.close(file)

    async def _take(self, file: int, deadline: float) -> None:
        while not try_lock(file):
            if asyncio.get_running_loop().time() >= deadline:
                raise WorkspaceBusyError(
                    "Another program is working on the memory of this workspace.",
                    "It is tried again later; nothing is lost.",
                )
            await asyncio.sleep(_PAUSE_SECONDS)
