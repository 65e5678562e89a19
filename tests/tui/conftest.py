"""What every test of the app stands on: nothing is asked of it before it has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.tui import typed_ahead
from tests.tui.at_rest import DEADLINE, jobs_watched
from tests.tui.jitter import shaken

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _watched() -> Iterator[None]:
    with jobs_watched(), shaken():
        yield


@pytest.fixture(autouse=True)
def _keys_wait_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_ahead, "_LONGEST", DEADLINE)
