"""Midnight, and a flight, while the app is open: every day that is shown gets its new name."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.clock import local_now
from kbtui.history.change import Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.history.year import YearView
from kbtui.tui.messages import OpenHistory
from tests.tui.notes_support import text_of
from tests.tui.shell import Shell, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HONOLULU, KIRITIMATI = "Pacific/Honolulu", "Pacific/Kiritimati"  # one day apart, at any moment


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", HONOLULU)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _say_something(root: Path) -> str:
    """Keep a line in the journal, and return the path of its page."""
    with KnowledgeBase.open(root, create=True) as kb:
        return kb.journal.keep("The kettle is new.", local_now(), Origin()).path


def _day_begins(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", KIRITIMATI)
    shell.app._minute_passed()


async def test_the_row_and_the_page_of_today_become_those_of_yesterday(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _say_something(tmp_path / "kb")
    async with running(tmp_path / "kb") as shell:
        notes = shell.app.main.notes
        notes.open_entry(path)
        await shell.until(lambda: notes.view is not None and notes.view.document is not None)
        await shell.until(lambda: "Today" in text_of(notes.knowledge_tree))
        assert notes.view.document.title == "Today"
        _day_begins(shell, monkeypatch)
        await shell.until(lambda: "Today" not in text_of(notes.knowledge_tree))
        await shell.until(lambda: notes.view.document.title == "Yesterday")


async def test_what_is_being_written_at_midnight_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _say_something(tmp_path / "kb")
    async with running(tmp_path / "kb") as shell:
        notes = shell.app.main.notes
        notes.open_entry(path, edit=True)
        await shell.until(lambda: notes.editor is not None and notes.editor.text_area.has_focus)
        notes.editor.text_area.insert("unsaved ")
        _day_begins(shell, monkeypatch)
        await shell.until(lambda: notes.entries[path].title == "Yesterday")
        assert "unsaved" in notes.editor.text_area.text


async def test_the_headings_of_the_history_and_its_year_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _say_something(tmp_path / "kb")
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        shell.app.main.post_message(OpenHistory())
        await shell.until(lambda: isinstance(shell.app.screen, HistoryScreen))
        screen = shell.app.screen
        await shell.until(lambda: "Today" in text_of(screen.rows) and screen.query(YearView))
        tomorrow = local_now() + timedelta(days=1)
        monkeypatch.setattr("kbtui.presentation.times.local_day", tomorrow.date)
        monkeypatch.setattr("kbtui.tui.history.history.local_day", tomorrow.date)
        monkeypatch.setattr(shell.app._days, "_now", lambda: tomorrow)
        shell.app._minute_passed()
        await shell.until(lambda: "Yesterday" in text_of(screen.rows))
        assert "Today" not in text_of(screen.rows)
        await shell.until(lambda: screen.query_one(YearView)._today == tomorrow.date())


async def test_minutes_on_the_start_screen_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        session = kb.sessions.create("cli", title="About the kettle")
        session.append("user", "Hello.")
        session.close()
    async with running(tmp_path / "kb") as shell:

        def greeting() -> str:
            return "\n".join(line.plain for line in shell.transcript._greeting)

        await shell.until(lambda: "About the kettle" in greeting())
        assert "now" in greeting()
        later = local_now() + timedelta(minutes=5)
        monkeypatch.setattr("kbtui.presentation.times.local_now", lambda: later)
        shell.app._minute_passed()
        await shell.until(lambda: "5 min" in greeting())
