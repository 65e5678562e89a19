"""Correcting everywhere: one screen with every place that repeats what a line says."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kbtui.history.change import Actor
from kbtui.tui.chat.commands.memory_screen import MemoryScreen
from kbtui.tui.diff.correct import CorrectScreen
from kbtui.tui.messages import OpenEntry
from kbtui.tui.widgets.dialogs import TextDialog
from tests.tui.notes_support import text_of
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.shell import Shell

MEMORY, FLAT = "memory/MEMORY.md", "knowledge/topics/mainz-flat.md"
DAY = "memory/2026-11-21.md"


def write(shell: Shell) -> None:
    with shell.app.kb.history.change(Actor.YOU, "wrote") as change:
        change.write(MEMORY, "# Facts\n\n- The rent of the flat in Mainz is 870 euros\n")
        change.write(FLAT, "---\ntype: topic\n---\n# Mainz flat\n\nRent: 870 euros.\n")
        change.write(DAY, "# 2026-11-21\n\n- 09:14 The rent of the flat in Mainz is 870 euros\n")


async def asked(shell: Shell) -> CorrectScreen:
    """Type the new value over the old one, and wait for the places."""
    await shell.until(lambda: isinstance(shell.app.screen, TextDialog))
    field = shell.app.screen.query_one("Input")
    assert "870" in field.value
    field.value = field.value.replace("870", "910")
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, CorrectScreen))
    screen = shell.app.screen
    await shell.until(lambda: screen.rows.row_count)
    return screen


def text(tmp_path: Path, path: str) -> str:
    return (tmp_path / "notes" / path).read_text()


async def test_r_on_a_line_of_a_note_corrects_every_place_that_is_left_in(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell)
        shell.app.main.post_message(OpenEntry(FLAT, 8))
        await shell.until(lambda: shell.app.main.notes.current_path == FLAT)
        await shell.press("r")
        screen = await asked(shell)
        what, rows = screen.query_one("#correct-what"), screen.rows
        await shell.until(lambda: "+ Rent: 910 euros." in text_of(what))
        assert "- Rent: 870 euros." in text_of(what)
        assert "✓ Memory:3" in text_of(rows)
        assert "The rent of the flat in Mainz is 910 euros" in text_of(rows)
        assert "struck out, with a pointer" in text_of(rows)
        assert "follows by itself" in text_of(rows)
        total = len(rows.chosen)
        await shell.press("space")
        assert len(rows.chosen) == total - 1
        await shell.press("a", "a")
        assert rows.chosen == set()
        await shell.press("enter")
        assert shell.app.screen is screen
        await shell.press("a", "j", "k", "space", "enter")
        await shell.until(lambda: shell.app.screen is shell.app.main)
        assert "870" in text(tmp_path, MEMORY), "the first place was left out"
        assert "Rent: 910 euros." in text(tmp_path, FLAT)
        assert "~~09:14" in text(tmp_path, DAY)
        (last, *_) = shell.app.kb.history.log(limit=1)
        assert "Corrected" in last.body


async def test_escape_leaves_everything_as_it_is_and_o_opens_a_place(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell)
        for key in ("escape", "o"):
            shell.app.push_screen(MemoryScreen(shell.app.kb))
            screen = shell.app.screen
            await shell.until(lambda: isinstance(shell.app.screen, MemoryScreen))
            await shell.until(lambda screen=shell.app.screen: screen.rows.fact is not None)
            await shell.press("r")
            await asked(shell)
            await shell.press(key)
            await shell.until(lambda: not isinstance(shell.app.screen, CorrectScreen))
            del screen
        await shell.until(lambda: shell.app.main.notes.current_path == MEMORY)
        assert "910" not in text(tmp_path, MEMORY)


async def test_r_on_an_earlier_line_of_the_conversation_corrects_what_repeats_it(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "notes", scripted=False) as shell:
        write(shell)
        shell.app.kb.search.sync()
        await shell.say("The rent of the flat in Mainz is 910 euros", wait=False)
        await shell.until(lambda: "↶ before:" in shell.text)
        await shell.press("shift+tab", "r")
        await shell.until(lambda: isinstance(shell.app.screen, CorrectScreen))
        screen = shell.app.screen
        await shell.until(lambda: screen.rows.row_count)
        assert "+ The rent of the flat in Mainz is 910 euros" in text_of(
            screen.query_one("#correct-what")
        )
        await shell.press("enter")
        await shell.until(lambda: shell.app.screen is shell.app.main)
        await shell.until(lambda: "r marks it as past" not in shell.text)
        assert "910" in text(tmp_path, MEMORY)
        assert "Rent: 910 euros." in text(tmp_path, FLAT)
        assert f"~~ → {datetime.now().astimezone().date()} " in text(tmp_path, DAY)
