"""A workspace with a library in it, on a clock that stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.fixtures import history, workspace

__all__ = ["history", "workspace"]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.workspace.layout import Workspace


class Clock:
    """A time of the test's own."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def pass_days(self, days: int) -> None:
        self.moment += timedelta(days=days)


@dataclass
class Room:
    """The rooms that the library stands on, and the library."""

    workspace: Workspace
    history: History
    library: Library
    clock: Clock
    opened: list[History]

    def put(self, path: str, text: str | bytes) -> str:
        """Write a file from outside, as another program would."""
        file = self.workspace.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def text(self, path: str) -> str:
        return self.bytes(path).decode()

    def bytes(self, path: str) -> bytes:
        return (self.workspace.root / path).read_bytes()

    def adopt(self) -> None:
        self.history.adopt(settle=0)
        self.library.refresh()

    def reopened(self) -> Room:
        return open_room(self.workspace, self.clock, self.opened)


def open_room(workspace: Workspace, clock: Clock, opened: list[History]) -> Room:
    scanner = Scanner(workspace)
    history = History(workspace, scanner, clock)
    history.open()
    opened.append(history)
    return Room(workspace, history, Library(workspace, history, scanner, now=clock), clock, opened)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    opened: list[History] = []
    yield open_room(create_workspace(tmp_path / "notes"), Clock(), opened)
    for each in opened:
        each._repository._store.close()


@pytest.fixture
def library(room: Room) -> Library:
    return room.library
