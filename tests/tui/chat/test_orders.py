"""Orders in the app without a model: they are done after one question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.tui.diff.confirm import ConfirmScreen
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.shell import Shell


async def _ordered(shell: Shell, order: str) -> ConfirmScreen:
    await shell.say(order, wait=False)
    await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
    screen = shell.app.screen
    assert isinstance(screen, ConfirmScreen)
    return screen


async def test_delete_everything_about_something_asks_once_and_does_it(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", scripted=False) as shell:
        kb = shell.app.kb
        kb.memory.remembering.remember("I am allergic to peanuts")
        kb.memory.remembering.remember("I live in Oslo")
        asked = await _ordered(shell, "delete everything about peanuts")
        assert "allergic to peanuts" in str(asked.text)
        await shell.press("escape")
        await shell.until(lambda: not isinstance(shell.app.screen, ConfirmScreen))
        memory = tmp_path / "notes/memory/MEMORY.md"
        assert "peanuts" in memory.read_text()
        await _ordered(shell, "please delete everything about peanuts")
        await shell.press("y")
        await shell.until(lambda: "Forgotten" in shell.text)
        assert "peanuts" not in memory.read_text()
        assert "Oslo" in memory.read_text()


async def test_rename_asks_once_and_leads_the_links_along(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", scripted=False) as shell:
        kb = shell.app.kb
        kb.library.create("topic", "Atlas", body="A project.")
        kb.library.create("topic", "Kestrel", body="Part of [[atlas]].")
        await _ordered(shell, "rename Atlas to Borealis")
        await shell.press("y")
        await shell.until(lambda: "renamed" in shell.text)
        assert (tmp_path / "notes/knowledge/topics/borealis.md").exists()
        assert "[[borealis]]" in (tmp_path / "notes/knowledge/topics/kestrel.md").read_text()


async def test_undo_that_asks_once_and_takes_back_the_last_change(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", scripted=False) as shell:
        shell.app.kb.memory.remembering.remember("I live in Oslo")
        await _ordered(shell, "undo that")
        await shell.press("y")
        await shell.until(lambda: "Undone" in shell.text)
        assert not (tmp_path / "notes/memory/MEMORY.md").exists()


async def test_delete_the_note_asks_once_and_deletes_it(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", scripted=False) as shell:
        shell.app.kb.library.create("topic", "Atlas", body="A project.")
        await _ordered(shell, "delete the note about Atlas")
        await shell.press("y")
        await shell.until(lambda: "Deleted" in shell.text)
        assert not (tmp_path / "notes/knowledge/topics/atlas.md").exists()
