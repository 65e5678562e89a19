"""A workspace with its history and everything that memory keeps in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.history.history import History
from kbtui.memory.records.archive import Archive, Tombstones
from kbtui.sessions.store import SessionStore
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.workspace.layout import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


@pytest.fixture
def history(workspace: Workspace) -> History:
    history = History(workspace, Scanner(workspace))
    history.open()
    return history


@pytest.fixture
def archive(workspace: Workspace, history: History) -> Archive:
    return Archive(workspace, history, "here")


@pytest.fixture
def sessions(workspace: Workspace) -> SessionStore:
    return SessionStore(workspace)


@pytest.fixture
def tombstones(workspace: Workspace, history: History) -> Tombstones:
    stones = Tombstones(workspace, history)
    history.add_companion(stones.companion)
    return stones
