"""The settings as a form: what is shown, what a change writes, and where nothing is written."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import Input

from kbtui.setting_values import all_settings
from kbtui.settings import config_file
from kbtui.tui.app.settings_screen import KeyPressDialog, SettingsScreen, fields_of
from kbtui.tui.widgets.dialogs import PickDialog, TextDialog
from tests.tui.shell import Shell, running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell


async def _open(shell: Shell, words: str) -> SettingsScreen:
    """Open the settings with only those that fit some words, the cursor on the first."""
    await shell.say("/config")
    await shell.until(lambda: isinstance(shell.app.screen, SettingsScreen))
    screen = shell.app.screen
    await shell.until(lambda: screen.rows.row_count)
    await shell.press("slash")
    screen.query_one(Input).value = words
    await shell.press("enter")
    await shell.until(lambda: screen.rows.has_focus and screen.rows.item is not None)
    return screen


def _written() -> dict[str, Any]:
    file = config_file()
    return tomllib.loads(file.read_text()) if file.exists() else {}


def _about(screen: SettingsScreen) -> str:
    return str(screen.query_one("#settings-about").render())


async def test_a_filter_leaves_what_fits_and_back_shows_the_group_again(shell) -> None:
    screen = await _open(shell, "search.semantic")
    assert screen.rows.row_count == 1
    await shell.press("q")
    await shell.until(lambda: screen.rows.row_count > 1)
    await shell.press("h")
    assert screen.groups.has_focus
    await shell.press("l")
    assert screen.rows.has_focus
    await shell.press("q")
    await shell.until(lambda: shell.app.screen is shell.app.main)


async def test_a_switch_is_turned_and_written_and_default_takes_it_out_again(shell) -> None:
    screen = await _open(shell, "search.semantic")
    name = screen.rows.item.setting.name
    section, key = name.split(".")
    before = screen.rows.item.setting.value
    await shell.press("enter")
    await shell.until(lambda: _written().get(section, {}).get(key) is (not before))
    await shell.until(lambda: str(config_file()) in _about(screen))
    await shell.press("d")
    await shell.until(lambda: key not in _written().get(section, {}))


async def test_only_what_differs_is_written_and_comments_stay(shell) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text("# mine\n[ui]\ntheme = 'kbtui-light'  # by day\n")
    screen = await _open(shell, "ui.theme")
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, PickDialog))
    await shell.press("enter")
    await shell.until(lambda: shell.app.screen is screen)
    text = config_file().read_text()
    assert "# mine" in text
    assert set(_written()) == {"ui"}


async def test_what_is_no_value_is_refused_and_nothing_is_written(shell) -> None:
    await _open(shell, "context.session_tokens")
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, TextDialog))
    shell.app.screen.query_one(Input).value = "[red]many"
    await shell.press("enter")
    await shell.notified("session_tokens")
    assert not _written()


async def test_a_key_is_set_by_pressing_it_and_none_is_taken_from_another(shell) -> None:
    screen = await _open(shell, "global.history")
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, KeyPressDialog))
    await shell.press("f3")
    await shell.notified("already")
    assert not _written()
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, KeyPressDialog))
    await shell.press("f12")
    await shell.until(lambda: _written() == {"ui": {"keys": {"global.history": "f12"}}})
    assert shell.app.screen is screen


async def test_a_file_that_is_wrong_is_named_and_left_alone(shell) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text("[ui\n")
    await shell.say("/config")
    await shell.until(lambda: isinstance(shell.app.screen, SettingsScreen))
    screen = shell.app.screen
    await shell.until(lambda: screen.has_class("-wrong"))
    assert screen.rows.row_count
    assert config_file().read_text() == "[ui\n"


def test_every_setting_says_in_a_sentence_what_it_is_for() -> None:
    abouts = [field.about for field in fields_of(all_settings(None), {})]
    assert [each for each in abouts if each[:1].islower() or each[-1:] not in {".", ")"}] == []


def test_every_setting_is_called_by_a_name_of_its_own_in_its_group() -> None:
    fields = fields_of(all_settings(None), {})
    labels = [(field.group, field.label) for field in fields]
    assert all(label and "_" not in label for _, label in labels)
    assert len(labels) == len(set(labels))


async def test_in_a_very_wide_window_what_a_setting_means_stands_beside_the_form(shell) -> None:
    await shell.pilot.resize_terminal(200, 40)
    screen = await _open(shell, "search.semantic")
    about = screen.query_one("#settings-about")
    await shell.until(lambda: about.region.x >= screen.rows.region.right)
    assert "search.semantic" in _about(screen)
    await shell.pilot.resize_terminal(120, 40)
    await shell.until(lambda: about.region.y >= screen.rows.region.bottom)


async def test_a_value_has_the_room_that_its_name_leaves(shell) -> None:
    await shell.pilot.resize_terminal(80, 24)
    screen = await _open(shell, "models.chat.model")
    field = screen.rows.item._replace(label="Chat", value="none: answers are quoted from notes")
    screen.rows.show((field,))
    row = screen.rows.render_row(0, 53)[0].plain
    assert "none: answers are quoted from notes" in row
    assert len(row) <= 53
