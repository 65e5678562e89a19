"""What every test of the app stands on: nothing is asked of it before it has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.notifications import Notification

from kbtui.tui.app import app
from kbtui.tui.terminal import type_ahead as typed_ahead
from kbtui.tui.widgets import line_view
from tests.tui import painting
from tests.tui.at_rest import DEADLINE, jobs_watched
from tests.tui.jitter import shaken

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _watched() -> Iterator[None]:
    with jobs_watched(), shaken(), painting.put_off(), painting.style_sheets_kept():
        yield


@pytest.fixture(autouse=True)
def _nothing_passes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person has a moment for, a slow machine gets to as well."""
    monkeypatch.setattr(typed_ahead, "_LONGEST_WAIT_SECONDS", DEADLINE)
    monkeypatch.setattr(app, "_QUIT_SECONDS", DEADLINE)
    monkeypatch.setattr(line_view, "FLASH_SECONDS", DEADLINE)
    monkeypatch.setattr(Notification, "has_expired", False)
