"""Commands that work everywhere, and what else has no room of its own."""

from __future__ import annotations

import pytest

from kbtui.tui.app.help import KEYS_NOTE, HelpScreen
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.history.time_travel import TimeTravelScreen
from kbtui.tui.terminal.state import read_shares
from tests.tui.shell import running


@pytest.fixture
async def shell(tmp_path):
    async with running(tmp_path / "kb") as shell:
        yield shell


async def test_at_looks_at_everything_as_it_was(shell) -> None:
    await shell.say("/at HEAD")
    await shell.until(lambda: isinstance(shell.app.screen, TimeTravelScreen))


async def test_browse_shows_the_history_of_a_repository(shell) -> None:
    repository = shell.app.kb.workspace.repository
    await shell.say(f"/browse {repository}")
    await shell.until(lambda: isinstance(shell.app.screen, HistoryScreen))


async def test_keys_says_how_to_change_one(shell) -> None:
    await shell.say("/keys")
    await shell.until(lambda: isinstance(shell.app.screen, HelpScreen))
    assert KEYS_NOTE in shell.app.screen.table.plain


async def test_dream_without_anything_new_says_so(shell) -> None:
    await shell.say("/dream")
    await shell.until(lambda: shell.transcript.items)
    assert "new" in shell.text


async def test_journal_says_where_statements_are_kept(shell) -> None:
    await shell.say("/journal own")
    await shell.notified("notes by day of its own")


async def test_keep_without_a_message_says_that_there_is_none(shell) -> None:
    await shell.say("/keep")
    await shell.notified("There is no")


@pytest.mark.parametrize(
    ("size", "keys", "way"),
    [((140, 40), ("ctrl+left", "ctrl+right"), "width"), ((90, 40), ("ctrl+up", "ctrl+down"), "")],
)
async def test_the_border_between_two_panes_moves_and_stays_where_it_is(tmp_path, size, keys, way):
    async with running(tmp_path / "kb", size=size, entries=1) as shell:
        if way:
            pane = shell.chat
        else:
            shell.app.main.notes.open_entry("knowledge/topics/topic-0.md")
            await shell.until(lambda: shell.app.main.notes.view is not None)
            pane = shell.app.main.notes.panel
        await shell.press("f3")

        def length() -> int:
            return pane.outer_size.width if way else pane.outer_size.height

        before = length()
        await shell.press(keys[0])
        await shell.until(lambda: length() < before)
        await shell.press(keys[1], keys[1])
        await shell.until(lambda: length() > before)
        await shell.until(read_shares)
