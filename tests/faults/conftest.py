"""All tests here carry the marker `faults`, and go by the times that users have."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.world import MINE, NOTE, make_world
from tests.memory.memory_room import START, Clock, Room, open_room
from tests.patience import be_like_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.every_call import Tally


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture(autouse=True)
def _times_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    be_like_users(monkeypatch)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace after its first change, to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return make_world(tmp_path_factory.mktemp("world") / "notes")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: the disk's faults are made here, not found there."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kbtui-faults-", dir=parent) as folder:
        yield Path(folder)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """Memory over lines and an entry that a person wrote."""
    room = open_room(tmp_path / "notes", Clock(START))
    room.write("memory/MEMORY.md", MINE)
    room.write("knowledge/topics/docker.md", NOTE)
    yield room
    room.close()


@pytest.fixture
def kills_a_kind(pytestconfig: pytest.Config) -> int | None:
    """How many calls of a kind of work are the last one; None: each of them."""
    return None if pytestconfig.getoption("--long") else 16


_FIGURES: list[tuple[str, Tally]] = []


@pytest.fixture
def figures() -> list[tuple[str, Tally]]:
    """What kills at each call came to, a kind of work a line at the end of the run."""
    return _FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many kills there were, and what they did."""
    for name, each in _FIGURES:
        bad = f"lost {len(each.lost)}, by hand {len(each.by_hand)}, litter {len(each.litter)}"
        terminalreporter.write_line(f"{name}: {each.calls} calls, {each.kills} kills: {bad}")
    kills = sum(each.kills for _, each in _FIGURES)
    if kills:
        terminalreporter.write_line(f"{kills:,} kills at calls of the disk")
