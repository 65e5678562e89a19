"""Waits that the program gives up after a while, which a busy machine may outlast.

A person is told after five seconds that somebody else is writing, and is shown what a search knows
by then. What a test expects to happen happens, however long that takes; only `tests/faults` goes by
the times that users have.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from kbtui.workspace.opening import WorkspaceLock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

PATIENCE = 120.0
"""Seconds."""
_SHORT = 0.1
"""Seconds: who waits for less means to give up."""
_WAITS = (
    "kbtui.agent.tools.reading._REGEX_TIMEOUT",
    "kbtui.models.servers.TIMEOUT_SECONDS",
    "kbtui.models.limits.SECONDS",
    "kbtui.search.search_index._FIRST_ANSWER_SECONDS",
    "kbtui.search.search_index._LOCK_SECONDS",
    "kbtui.search.index.store._BUSY_SECONDS",
    "kbtui.derived._BUSY_SECONDS",
)
_plain_hold = WorkspaceLock.hold
_plain_waits: dict[str, float] = {}


@contextmanager
def _hold(self: WorkspaceLock, timeout: float = PATIENCE) -> Iterator[None]:
    with _plain_hold(self, timeout if timeout < _SHORT else PATIENCE):
        yield


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Wait as long as it takes, in this process and in those that are forked from it."""
    patch.setattr(WorkspaceLock, "hold", _hold)
    for wait in _WAITS:
        module, _, name = wait.rpartition(".")
        _plain_waits.setdefault(wait, getattr(import_module(module), name))
        patch.setattr(wait, PATIENCE)


def be_like_users(patch: pytest.MonkeyPatch) -> None:
    """Wait no longer than the program does with users."""
    patch.setattr(WorkspaceLock, "hold", _plain_hold)
    for wait, seconds in _plain_waits.items():
        patch.setattr(wait, seconds)
