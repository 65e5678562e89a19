"""Commits what a machine works out from files that somebody else may be writing.

The door refuses a change whose files were changed meanwhile, and keeps the refused version beside
them. That is right for what a person wrote; what was worked out is worked out again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from kbtui.errors import ConflictError, WorkspaceBusyError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, Workspace, conflict_copy_of
from kbtui.workspace.opening import open_lock, try_lock

T = TypeVar("T")
log = logging.getLogger(__name__)
_TRIES = 3


def committed(
    history: History,
    layout: Layout,
    actor: Actor,
    reason: str,
    origin: Origin,
    work: Callable[[Change], T],
) -> tuple[T, Commit | None]:
    """Make a change, a few times if its files are changed between the look and the write.

    `work` looks at the files and puts the edits into the change; it may run again, and then no
    other process writes meanwhile, however many would. Gives what it returned, and the commit; None
    when nothing really changed.

    Raises:
        ConflictError: the files kept changing; nothing is written.
        WorkspaceBusyError: somebody else kept writing.
        StorageError: the file system refused; nothing is written.
    """
    for attempt in range(_TRIES):
        change: Change | None = None
        copies: set[str] | None = None
        try:
            alone = history.alone() if attempt else contextlib.nullcontext()
            with alone, history.change(actor, reason, origin) as change:
                result = work(change)
                copies = _copies(layout, change.edits)
        except WorkspaceBusyError:
            raise
        except ConflictError as error:
            if change is not None and copies is not None:
                _discard(layout, _copies(layout, change.edits) - copies, change)
            if attempt == _TRIES - 1:
                raise
            log.info("worked out again: %s", error.message)
        else:
            return result, change.result
    raise AssertionError("the last attempt returns or raises")


def _copies(layout: Layout, paths: Iterable[str]) -> set[str]:
    """The conflict copies that lie beside some files."""
    found = set()
    for path in paths:
        folder, _, name = conflict_copy_of(path, "*").rpartition("/")
        found |= {f"{folder}/{file.name}" for file in layout.place(folder).glob(name)}
    return found


def _discard(layout: Layout, copies: Iterable[str], change: Change) -> None:
    """Remove the copies of what this change was about to write, and only those."""
    ours = set(change.edits.values())
    for path in copies:
        if files.read_bytes(layout, path) in ours:
            files.remove(layout, path)


class MemoryLock:
    """The lock for whoever makes memory, around a whole run; it isn't reentrant."""

    def __init__(self, workspace: Workspace) -> None:
        self._file = workspace.machine / "memory.lock"

    @contextlib.asynccontextmanager
    async def hold(self, timeout: float = 0.0) -> AsyncIterator[None]:  # noqa: ASYNC109 - waits for a process, cancels nothing
        """Hold the lock for the block; wait so many seconds for another holder to finish.

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
            await asyncio.sleep(0.05)
