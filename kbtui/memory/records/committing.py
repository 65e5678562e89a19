"""Commit computed results to files that somebody else may be writing.

`History` refuses a change whose files were changed meanwhile, and keeps the refused version as a
conflict copy. That is right for what a person wrote; a computed result is computed again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
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


def attempts(
    history: History, layout: Layout, actor: Actor, reason: str, origin: Origin
) -> Iterator[AbstractContextManager[Change]]:
    """Yield blocks that read files and put edits into a change, until one is committed.

    The next block is for files that changed between read and write; from the second on, other
    processes are kept from writing. The commit is `Change.result`, None if nothing really changed.

    Raises:
        ConflictError: The files kept changing; nothing is written.
        WorkspaceBusyError: Another process kept writing.
        StorageError: The file system refused; nothing is written.
    """
    begin = partial(history.change, actor, reason, origin)
    failed: list[ConflictError] = []
    tries = -1
    while tries < len(failed):
        tries = len(failed)
        yield _attempt(history, layout, begin, failed)


@contextlib.contextmanager
def _attempt(
    history: History,
    layout: Layout,
    begin: Callable[[], AbstractContextManager[Change]],
    failed: list[ConflictError],
) -> Iterator[Change]:
    copies: set[str] | None = None
    change: Change | None = None
    try:
        with history.alone() if failed else contextlib.nullcontext(), begin() as change:
            yield change
            copies = _conflict_copies(layout, change.edits)
    except WorkspaceBusyError:
        raise
    except ConflictError as error:
        if change is not None and copies is not None:
            _discard_copies(layout, _conflict_copies(layout, change.edits) - copies, change)
        failed.append(error)
        if len(failed) == _TRIES:
            raise
        log.info("worked out again: %s", error.message)


def committed(
    history: History,
    layout: Layout,
    actor: Actor,
    reason: str,
    origin: Origin,
    work: Callable[[Change], T],
) -> tuple[T, Commit | None]:
    """Commit the edits that `work` makes, which runs for each of `attempts`; raises as they do.

    Returns its result and the commit, or None as the commit if nothing really changed.
    """
    for attempt in attempts(history, layout, actor, reason, origin):
        with attempt as change:
            result = work(change)
    return result, change.result


def _conflict_copies(layout: Layout, paths: Iterable[str]) -> set[str]:
    found = set()
    for path in paths:
        folder, _, name = conflict_copy_of(path, "*").rpartition("/")
        found |= {f"{folder}/{file.name}" for file in layout.place(folder).glob(name)}
    return found


def _discard_copies(layout: Layout, copies: Iterable[str], change: Change) -> None:
    """Remove the conflict copies whose content this change was about to write, and only those."""
    ours = set(change.edits.values())
    for path in copies:
        if files.read_bytes(layout, path) in ours:
            files.remove(layout, path)


class MemoryLock:
    """The lock for writers of memory, held for a whole run; not reentrant."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.machine / "memory.lock"

    @contextlib.asynccontextmanager
    async def hold(self, timeout: float = 0.0) -> AsyncIterator[None]:  # noqa: ASYNC109 - waits for a process, cancels nothing
        """Hold the lock for the block, waiting up to `timeout` seconds for another holder.

        Raises:
            WorkspaceBusyError: Another process, or another task of this one, holds it.
            StorageError: The file system refused, or has no working locks.
        """
        self._workspace.confirm()
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
