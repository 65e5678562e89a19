from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from kbtui.history.change import Actor
from kbtui.models import litellm_model
from kbtui.tui.chat.commands.memory_screen import (
    MemoryScreen,
    Share,
    _price,
    stacked_bar,
)
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.notes.why import WhyScreen
from kbtui.tui.widgets.dialogs import TextDialog
from tests.tui.notes_support import text_of
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

MEMORY = "memory/MEMORY.md"
HOSTILE = "[b]not bold[/b] \u202etxt \x1b[31mred 漢字 👩‍👩‍👧 עברית"


@pytest.mark.parametrize("width", [1, 7, 20, 60, 200])
def test_the_bar_is_as_wide_as_its_room_and_every_part_is_named(width: int) -> None:
    shares = [Share("tools", 1500), Share("memory", 20), Share("nothing", 0), Share("now", 1)]
    bar, *legend = stacked_bar(shares, width, 8000).plain.split("\n")
    assert cell_len(bar) == width
    said = " ".join(legend)
    assert "tools 1,500" in said
    assert "memory 20" in said
    assert "nothing" not in said
    assert "1,521 tokens of 8,000, 19%" in said


def test_an_empty_prompt_has_a_bar_all_the_same() -> None:
    assert "0 tokens" in stacked_bar([], 40).plain


async def test_memory_shows_lines_with_their_source_and_what_was_kept(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        kb = shell.app.kb
        kb.memory.remembering.remember("I prefer tea")
        kb.library.create("person", "Alice", actor=Actor.AGENT)
        with kb.history.change(Actor.DREAM, "tidied up") as change:
            change.write("USER.md", "# User\n\n- Works on Atlas\n")
        await shell.say("/memory", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, MemoryScreen))
        screen = shell.app.screen
        await shell.until(lambda: "I prefer tea" in text_of(screen.rows))
        row = next(row for row in text_of(screen.rows).split("\n") if "tea" in row)
        assert "You, " in row
        assert "tokens" in text_of(screen.query_one("#memory-bar"))
        week = text_of(screen.query_one("#memory-kept"))
        assert "kbtui wrote ● Alice" in week
        assert "Last Dream: now." in " ".join(week.split())


async def test_memory_is_filtered_and_says_beside_a_line_where_it_is_from(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", size=(140, 42)) as shell:
        shell.app.kb.memory.remembering.remember("I prefer green tea")
        shell.app.kb.memory.remembering.remember("My sister is called Mira")
        await shell.say("/memory", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, MemoryScreen))
        screen = shell.app.screen
        await shell.until(lambda: "Mira" in text_of(screen.rows))
        await shell.press("slash", *"green")
        await shell.until(lambda: "Mira" not in text_of(screen.rows))
        origin = screen.query_one("#memory-origin")
        await shell.until(lambda: "You asked to remember it." in text_of(origin))
        assert "I prefer green tea" in text_of(origin)
        await shell.press("escape")
        await shell.until(lambda: "Mira" in text_of(screen.rows))


async def test_a_line_is_edited_and_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        file = tmp_path / "notes" / MEMORY
        kb = shell.app.kb
        kb.memory.remembering.remember("I prefer tea")
        await shell.say("/context", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, MemoryScreen))
        screen = shell.app.screen
        await shell.until(lambda: screen.rows.fact is not None)
        await shell.press("e")
        await shell.until(lambda: isinstance(shell.app.screen, TextDialog))
        await shell.press(*" at noon", "enter")
        await shell.until(lambda: "I prefer tea at noon" in text_of(screen.rows))
        assert "- I prefer tea at noon\n" in file.read_text()
        await shell.press("w")
        await shell.until(lambda: isinstance(shell.app.screen, WhyScreen))
        await shell.press("escape", "d")
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "tea" not in file.read_text())
        await shell.until(lambda: shell.app.screen is screen and not screen.rows.fact)
        assert kb.memory.tombstones.buried("I prefer tea at noon")


async def test_it_fits_a_tiny_terminal_and_hostile_lines_are_text(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", size=(40, 12)) as shell:
        kb = shell.app.kb
        with kb.history.change(Actor.YOU, "wrote") as change:
            change.write(MEMORY, f"# M\n\n{HOSTILE}\n\n  1. {HOSTILE * 9}\r\n".encode())
        await shell.say("/memory", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, MemoryScreen))
        rows = shell.app.screen.rows
        await shell.until(lambda: "[b]not bold[/b]" in text_of(rows))
        shown = text_of(rows)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert {rows.render_line(y).cell_length for y in range(8)} == {rows.size.width}


@pytest.mark.parametrize(
    ("name", "is_local", "said"),
    [
        ("anthropic/claude", False, "$0.0030 a message"),
        ("ollama/q", True, ""),
        ("odd/x", False, ""),
    ],
)
def test_a_paid_model_has_a_price(tmp_path: Path, monkeypatch, name, is_local, said) -> None:
    known = {"anthropic/claude": 3e-6}
    monkeypatch.setattr(
        litellm_model, "price_of", lambda name, tokens, _: known.get(name, 0) * tokens or None
    )
    model = SimpleNamespace(name=name, is_local=is_local)
    kb = SimpleNamespace(models=SimpleNamespace(chat=lambda: model))
    assert _price(kb, 1000).startswith(said)
    assert bool(_price(kb, 1000)) is bool(said)
