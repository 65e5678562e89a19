from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.search.helpers import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "kb")
    yield desk
    desk.close()
