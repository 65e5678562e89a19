"""What the tests of this room stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures import archive, history, sessions, tombstones, workspace
from tests.scripted_server import ScriptedServer

__all__ = ["archive", "history", "sessions", "tombstones", "workspace"]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server
