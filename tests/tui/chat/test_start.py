"""The first start: four ways in, which tick themselves, until something was said."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import Input

from kbtui.importers.engine import run
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.chat import start
from kbtui.tui.chat.commands.pickers import ModelScreen
from kbtui.tui.chat.conversation.transcript import greeting_inset
from kbtui.tui.chat.nearby import NotesNearby
from kbtui.tui.chat.start import NearbyDialog, Option
from kbtui.tui.widgets.dialogs import Dialog
from tests.tui.shell import Shell, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def begun(root: Path, **more: Any) -> AsyncIterator[Shell]:
    async with running(root, **more) as shell:
        await shell.until(lambda: shell.chat.start is not None and shell.chat.start.is_mounted)
        await shell.until(lambda: "looking around" not in text(shell))
        yield shell


def text(shell: Shell) -> str:
    return shell.chat.start.render().plain


async def choose(shell: Shell, way: str) -> None:
    shell.prompt.replace_text(way)
    await shell.press("enter")


async def test_an_empty_workspace_shows_its_ways_in_and_no_other_welcome(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        for name in (
            "1  Bring your notes",
            "2  Bring your conv",
            "Choose a model",
            "4  Or just",
            "5  Look around first",
        ):
            assert name in text(shell)
        assert not shell.transcript.items
        assert "Tell me" not in shell.text


async def test_the_first_message_takes_it_away_for_ever(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        await shell.say("we chose PostgreSQL")
        assert shell.chat.start is None
        assert not shell.app.main.query("#start")
        await shell.until(lambda: not start.is_first(shell.app.kb))
        for info in shell.app.kb.sessions.list():
            shell.chat.conversation.use(None)
            shell.app.kb.sessions.delete(info.id)
        assert not start.is_first(shell.app.kb)
    async with running(tmp_path / "kb") as shell:
        assert shell.chat.start is None


async def test_commands_alone_leave_it(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        await choose(shell, "/cost")
        assert shell.chat.start is not None


async def test_a_number_in_a_message_is_no_choice(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        await shell.say("1 kg of flour")
        assert shell.agent.asked == ["1 kg of flour"]


async def test_notes_tick_the_first_way_as_soon_as_there_are_some(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        shell.app.kb.library.create("topic", "Roses", body="# Roses\n")
        await shell.until(lambda: "✓  Bring your notes" in text(shell))
        assert "1 note here" in text(shell)


async def test_who_went_elsewhere_before_finds_the_way_there_first(tmp_path):
    with KnowledgeBase.open(tmp_path / "Garden", create=True):
        pass
    async with begun(tmp_path / "kb") as shell:
        assert "Garden as last time, or others" in text(shell)
        await choose(shell, "1")
        await shell.until(lambda: isinstance(shell.app.screen, NearbyDialog))
        await shell.until(lambda: shell.app.screen.choices.row_count > 0)
        assert shell.app.screen.choices.item.value == str(tmp_path / "Garden")


async def test_conversations_that_came_tick_the_second_and_dont_end_it(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        _import_one(shell.app.kb, tmp_path)
        shell.chat.changed()
        await shell.until(lambda: "✓  Bring your conversations" in text(shell))
        assert start.is_first(shell.app.kb)


async def test_a_model_ticks_the_third(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        shell.app.kb.models.use("openai/small", "http://127.0.0.1:9/v1", remember=False)
        shell.chat.changed()
        await shell.until(lambda: "✓  Choose a model" in text(shell))
        assert "openai/small answers" in text(shell)


async def test_the_first_way_goes_to_the_notes_that_are_chosen(tmp_path, monkeypatch):
    vault = tmp_path / "Garden [b]\u202e"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Rose.md").write_text("# Rose\n")
    monkeypatch.setattr(
        "kbtui.tui.chat.start.notes_nearby", lambda: [NotesNearby(vault, "Obsidian")]
    )
    async with begun(tmp_path / "kb") as shell:
        await choose(shell, "1")
        await shell.until(lambda: isinstance(shell.app.screen, NearbyDialog))
        await shell.until(lambda: shell.app.screen.choices.row_count == 1)
        assert shell.app.screen.choices.item.detail.startswith("Obsidian")
        await shell.press("enter")
        await shell.until(lambda: shell.app.next_workspace is not None)
        assert shell.app.next_workspace == vault


async def test_the_second_way_shows_what_is_in_an_export_before_it_is_imported(tmp_path):
    export = _export(tmp_path)
    async with begun(tmp_path / "kb") as shell:
        await choose(shell, "2")
        await shell.until(lambda: isinstance(shell.app.screen, NearbyDialog))
        shell.app.screen.query_one(Input).value = str(export)
        await shell.until(lambda: shell.app.screen.choices.row_count == 1)
        await shell.press("enter")
        await shell.until(
            lambda: (
                isinstance(shell.app.screen, Dialog)
                and "Import from" in str(shell.app.screen.TITLE_TEXT)
            )
        )


async def test_the_third_way_offers_models(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        await choose(shell, "3")
        await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))


async def test_the_fifth_goes_to_an_example_which_is_made_once(tmp_path):
    for _ in range(2):
        async with begun(tmp_path / "kb") as shell:
            await choose(shell, "5")
            await shell.until(lambda: shell.app.next_workspace is not None)
            example = shell.app.next_workspace
    with KnowledgeBase.open(example) as kb:
        assert len(kb.library.infos()) == 11


async def test_a_click_takes_a_way(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        rows = text(shell).split("\n")
        at = next(row for row, line in enumerate(rows) if "Choose a model" in line)
        await shell.pilot.click(shell.chat.start, offset=(6, at + 1))
        await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))


@pytest.mark.parametrize("size", [(40, 12), (60, 24), (220, 60)])
async def test_it_leaves_room_for_the_prompt_on_any_terminal(tmp_path, size):
    async with begun(tmp_path / "kb", size=size) as shell:
        panel, prompt = shell.chat.start.region, shell.prompt.region
        assert "Bring your conversations" in text(shell)
        assert panel.bottom <= prompt.y
        assert prompt.bottom < size[1]


async def test_hostile_names_neither_style_nor_steer(tmp_path):
    async with begun(tmp_path / "kb") as shell:
        shell.chat.start.options = (
            Option("[red]\x1b[2J\u202e日本語👩‍🚀" * 9),
            *shell.chat.start.options[1:],
        )
        shell.chat.start.refresh(layout=True)
        await shell.until(lambda: "[red]" in text(shell))
        assert "\x1b" not in text(shell)
        assert "\u202e" not in text(shell)


def _export(folder: Path) -> Path:
    file = folder / "conversations.json"
    said = {"role": "user", "content": "the lease ends in May"}
    node = {
        "id": "a", "parent": None, "children": [],
        "message": {"id": "a", "author": {"role": "user"}, "create_time": 1.7e9,
                    "content": {"content_type": "text", "parts": [said["content"]]}},
    }  # fmt: skip
    chat = {"id": "c", "title": "Lease", "create_time": 1.7e9, "update_time": 1.7e9,
            "current_node": "a", "mapping": {"a": node}}  # fmt: skip
    file.write_text(json.dumps([chat]))
    return file


def _import_one(kb: Any, folder: Path) -> None:
    from kbtui.importers.engine import sources_of
    from kbtui.importers.export_files import OpenedExport

    with OpenedExport(_export(folder)) as opened:
        for source in sources_of(opened):
            run(kb.services, opened, source, lambda *_: None)


async def test_the_prompt_is_seen_below_what_completes_a_command(tmp_path):
    async with begun(tmp_path / "kb", size=(80, 24)) as shell:
        await shell.press("/")
        await shell.until(lambda: shell.chat.popup.display)
        assert shell.prompt.region.bottom < 24
        assert shell.chat.popup.region.bottom <= shell.prompt.region.y


async def test_the_prompt_is_seen_below_commands_in_very_few_rows_and_so_is_the_marked_one(
    tmp_path,
):
    async with begun(tmp_path / "kb", size=(40, 12)) as shell:
        await shell.press("/", *["down"] * 6)
        popup = shell.chat.popup
        await shell.until(lambda: popup.at == 6)
        assert popup.choices[6].label[:12] in popup.render().plain
        assert popup.region.bottom <= shell.prompt.region.y
        assert shell.prompt.region.bottom < 12


async def test_what_stands_in_place_of_choices_is_said_whole_in_a_narrow_box(tmp_path):
    async with begun(tmp_path / "kb", size=(40, 12)) as shell:
        await choose(shell, "2")
        await shell.until(lambda: isinstance(shell.app.screen, NearbyDialog))
        choices = shell.app.screen.choices
        await shell.until(lambda: not choices.row_count and "None found" in choices.empty)
        said = " ".join(choices.render_line(y).text.strip() for y in range(choices.size.height))
        assert said.strip() == choices.empty


def test_in_a_wide_pane_the_greeting_stands_in_the_middle():
    assert greeting_inset(60) == greeting_inset(78) == 3
    assert greeting_inset(172) == 50
