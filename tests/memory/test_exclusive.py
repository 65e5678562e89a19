"""One process at a time makes memory, and a killed one leaves nothing locked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import WorkspaceBusyError
from kbtui.memory.records.committing import MemoryLock
from kbtui.workspace.opening import create_workspace
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from kbtui.workspace.layout import Workspace

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import asyncio, sys
from pathlib import Path
from kbtui.memory.records.committing import MemoryLock
from kbtui.workspace.opening import open_workspace
async def main():
    async with MemoryLock(open_workspace(Path(sys.argv[1]))).hold():
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


def _holder(workspace: Workspace) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(workspace.root)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


async def test_two_tasks_of_one_process_exclude_each_other(workspace: Workspace) -> None:
    async with MemoryLock(workspace).hold():
        with pytest.raises(WorkspaceBusyError):
            async with MemoryLock(workspace).hold():
                pass
    async with MemoryLock(workspace).hold():
        pass


async def test_waiting_takes_the_lock_when_it_is_free(workspace: Workspace) -> None:
    order: list[str] = []
    held = asyncio.Event()

    async def first() -> None:
        async with MemoryLock(workspace).hold():
            held.set()
            await asyncio.sleep(0)
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with MemoryLock(workspace).hold(timeout=PATIENCE):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order == ["first", "second"]


@pytest.mark.faults
async def test_another_process_holds_it_until_it_is_killed(workspace: Workspace) -> None:
    with _holder(workspace) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkspaceBusyError):
            async with MemoryLock(workspace).hold():
                pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(PATIENCE)
    async with MemoryLock(workspace).hold(timeout=PATIENCE):
        pass
