"""One writer at a time."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError, WorkspaceBusyError
from kbtui.workspace.lock import WorkspaceLock
from kbtui.workspace.opening import create_workspace
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.workspace.layout import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


def test_a_thread_may_take_it_twice(workspace: Workspace) -> None:
    lock = WorkspaceLock(workspace)
    with lock.hold(), lock.hold(timeout=0):
        pass
    with WorkspaceLock(workspace).hold(timeout=0):
        pass


def test_inner_release_does_not_let_others_in(workspace: Workspace) -> None:
    lock = WorkspaceLock(workspace)
    with lock.hold():
        with lock.hold():
            pass
        with pytest.raises(WorkspaceBusyError), WorkspaceLock(workspace).hold(timeout=0):
            pass


def test_the_holder_is_named(workspace: Workspace) -> None:
    with (
        WorkspaceLock(workspace).hold(),
        pytest.raises(WorkspaceBusyError, match=f"process {os.getpid()}, since"),
        WorkspaceLock(workspace).hold(timeout=0.05),
    ):
        pass


def test_another_thread_waits_and_then_gets_it(workspace: Workspace) -> None:
    lock = WorkspaceLock(workspace)
    order: list[str] = []
    ready, go = threading.Event(), threading.Event()

    def first() -> None:
        with lock.hold():
            ready.set()
            go.wait(PATIENCE)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert ready.wait(PATIENCE)
    with pytest.raises(WorkspaceBusyError, match="Another task"), lock.hold(timeout=0):
        pass
    go.set()
    with lock.hold(timeout=PATIENCE):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_a_dead_holder_blocks_nobody(workspace: Workspace) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with WorkspaceLock(workspace).hold():
            os.write(write, b"held")
            signal_never = threading.Event()
            signal_never.wait()
    assert os.read(read, 4) == b"held"
    with pytest.raises(WorkspaceBusyError, match=f"process {child}"):
        WorkspaceLock(workspace).hold(timeout=0).__enter__()
    os.kill(child, 9)
    os.waitpid(child, 0)
    with WorkspaceLock(workspace).hold(timeout=PATIENCE):
        holder = json.loads((workspace.machine / "lock").read_text())
        assert holder["pid"] == os.getpid()


def test_a_file_system_without_locks_is_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(StorageError, match="no working locks") as caught:
        WorkspaceLock(workspace).hold().__enter__()
    assert "local disk" in caught.value.hint


def test_a_lock_file_that_says_nothing_still_blocks(workspace: Workspace) -> None:
    with WorkspaceLock(workspace).hold():
        (workspace.machine / "lock").write_bytes(b"\xff{")
        with pytest.raises(WorkspaceBusyError, match="another program"):
            WorkspaceLock(workspace).hold(timeout=0).__enter__()
