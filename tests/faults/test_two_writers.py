"""Two processes write at once, half of the time to the same files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.faults.writers import run_writers

if TYPE_CHECKING:
    from pathlib import Path

EACH = int(os.environ.get("KBTUI_TEST_CHANGES", "250"))


def test_two_writers_lose_nothing(place: Path) -> None:
    outcome = run_writers(place / "notes", each=EACH, meetings=10)
    assert outcome.wrong == []
    assert outcome.commits + outcome.conflicts == 2 * EACH
    assert outcome.conflicts > 0, "they never met"
    assert outcome.commits > EACH
