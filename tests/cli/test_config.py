"""Settings from a script."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command


def _file(kbtui: Command) -> Path:
    return Path(kbtui.ok("config", "path").out.strip())


def test_set_get_list_and_unset(kbtui: Command) -> None:
    assert kbtui.ok("config", "get", "search.chunk_tokens").out == "512\n"
    kbtui.ok("config", "set", "search.chunk_tokens", "256")
    assert kbtui.ok("config", "get", "search.chunk_tokens").out == "256\n"
    kbtui.ok("config", "set", "privacy.private_paths", '["people/*", "x"]')
    kbtui.ok("config", "set", "search.semantic", "false")
    kbtui.ok("config", "set", "ui.keys", '{"notes.edit" = "ctrl+o"}')
    values = kbtui.ok("config", "list", "--json").json
    assert values["privacy.private_paths"] == ["people/*", "x"]
    assert values["search.semantic"] is False
    assert values["ui.keys"] == {"notes.edit": "ctrl+o"}
    assert kbtui("config", "get", "models.chat.temperature").status == 1
    kbtui.ok("config", "unset", "search.chunk_tokens")
    assert kbtui.ok("config", "get", "search.chunk_tokens").out == "512\n"
    assert "search.semantic = false" in kbtui.ok("config", "list").out


def test_comments_and_order_of_the_file_stay_and_nobody_else_reads_it(kbtui: Command) -> None:
    file = _file(kbtui)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# mine\n[search] # here\nchunk_overlap = 32 # less\n\n[ui]\ntheme = 'x'\n")
    kbtui.ok("config", "set", "search.chunk_tokens", "128")
    assert file.read_text() == (
        "# mine\n[search] # here\nchunk_overlap = 32 # less\nchunk_tokens = 128\n\n"
        "[ui]\ntheme = 'x'\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_is_never_shown(kbtui: Command) -> None:
    done = kbtui.ok("config", "set", "models.chat.api_key", "sk-very-secret")
    everything = done.out + done.err
    for argv in (["get", "models.chat.api_key"], ["list"], ["list", "--json"]):
        done = kbtui.ok("config", *argv)
        everything += done.out + done.err
    assert "very-secret" not in everything
    assert "sk-very-secret" in _file(kbtui).read_text()


@pytest.mark.parametrize(
    ("argv", "status", "word"),
    [
        (["set", "search.chunk_token", "5"], 1, "search.chunk_tokens"),
        (["get", "nothing"], 1, "nothing"),
        (["get", "search"], 1, "search"),
        (["set", "search.chunk_tokens", "many"], 3, "chunk_tokens"),
        (["set", "search.chunk_tokens", "1"], 3, "chunk_tokens"),
        (["set", "privacy.private_paths", '["a"'], 3, "TOML"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    kbtui: Command, argv: list[str], status: int, word: str
) -> None:
    done = kbtui("config", *argv)
    assert done.status == status
    assert word in done.err
    assert not _file(kbtui).exists()


def test_a_value_that_something_else_overrides_is_pointed_out(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.file("kbtui.toml").write_text("[search]\nchunk_tokens = 100\n")
    assert "chunk_tokens" in kbtui.ok("config", "set", "search.chunk_tokens", "256").err
    assert kbtui.ok("config", "set", "search.chunk_overlap", "10").err == ""


def test_a_broken_file_is_not_written_over(kbtui: Command) -> None:
    file = _file(kbtui)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[search\n")
    assert kbtui("config", "set", "ui.theme", "x").status == 3
    assert file.read_text() == "[search\n"
