"""What the tests of this room stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.importers.export_files import OpenedExport
from tests.fixtures import archive, history, sessions, tombstones, workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.importers.port import Item, Source

__all__ = ["archive", "history", "read", "sessions", "tombstones", "workspace"]


@pytest.fixture
def read() -> Callable[[Source, Path], list[Item]]:
    """Read an export whole, once it is recognised."""

    def read(source: Source, path: Path) -> list[Item]:
        with OpenedExport(path) as opened:
            assert source.recognises(opened)
            return list(source.read(opened))

    return read
