"""Small terminals: what is typed is seen, and a dialog shows the keys that answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.history.queries.diff import diff_file
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.search.switcher import SwitcherScreen
from kbtui.tui.widgets.dialogs import KeyDialog
from tests.tui.shell import running

if TYPE_CHECKING:
    from tests.tui.shell import Shell


def _screen(shell: Shell) -> str:
    """What stands on the screen, without the cells' colours."""
    rows = shell.app.screen._compositor.render_strips()
    return "\n".join(row.text for row in rows)


@pytest.mark.parametrize("size", [(20, 5), (30, 8), (120, 5), (40, 9)])
async def test_what_is_typed_is_seen_in_the_prompt(tmp_path, size) -> None:
    async with running(tmp_path, size=size) as shell:
        await shell.press(*"well typed")
        assert "well typed" in _screen(shell)
        await shell.press(*" further on and on")
        assert "on and on" in " ".join(_screen(shell).replace("│", " ").split())
        await shell.press("ctrl+u", *"/doc")
        assert "/doctor" in _screen(shell)


async def test_what_is_typed_is_seen_in_the_editor(tmp_path) -> None:
    async with running(tmp_path, size=(20, 5), entries=1) as shell:
        shell.app.main.notes.open_entry("knowledge/topics/topic-0.md", 9, edit=True)
        await shell.until(lambda: shell.app.main.notes.editor is not None)
        await shell.press("end", *" well typed")
        assert "well typed" in " ".join(_screen(shell).split())


async def test_frames_come_back_with_the_room(tmp_path) -> None:
    async with running(tmp_path, size=(40, 8)) as shell:
        assert "╭" not in _screen(shell)
        await shell.pilot.resize_terminal(40, 12)
        await shell.until(lambda: "╭" in _screen(shell))
        await shell.pilot.resize_terminal(40, 8)
        await shell.until(lambda: "╭" not in _screen(shell))


@pytest.mark.parametrize("size", [(30, 8), (24, 7), (80, 10)])
async def test_a_question_keeps_its_keys_in_sight(tmp_path, size) -> None:
    keys = {"s": "save", "d": "discard", "k": "keep as a draft"}
    words = " ".join(f"word{number}" for number in range(200))
    async with running(tmp_path, size=size) as shell:
        shell.app.push_screen(KeyDialog("Not saved", words, keys))
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        for label in ("s save", "d discard", "Esc cancel"):
            assert label in " ".join(_screen(shell).replace("│", " ").split())
        assert "word199" not in _screen(shell)
        await shell.press(*["down"] * 200)
        assert "word199" in _screen(shell)
        assert "s save" in _screen(shell)


async def test_a_change_to_be_confirmed_shows_its_keys_and_some_of_it(tmp_path) -> None:
    change = diff_file("knowledge/topics/a.md", b"One line.\n" * 30, b"")
    question = ConfirmScreen("Delete A", "Two others link to it.", {"y": "deletes it"}, [change])
    async with running(tmp_path, size=(30, 8)) as shell:
        shell.app.push_screen(question)
        await shell.until(lambda: shell.app.screen is question)
        assert "y deletes it" in _screen(shell)
        assert "Two others" in _screen(shell)
        await shell.press("n")
        assert "One line." in _screen(shell)


async def test_a_note_is_found_by_name_in_a_few_rows(tmp_path) -> None:
    async with running(tmp_path, size=(20, 5), entries=3) as shell:
        await shell.press("f5")
        await shell.until(lambda: isinstance(shell.app.screen, SwitcherScreen))
        await shell.press(*"topic 2")
        await shell.until(lambda: "Topic 2" in _screen(shell))
        assert "topic 2" in _screen(shell)
