"""Search by meaning for somebody who never opens the app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.search.detached import DetachedWorker
from kbtui.search.embedding import attempts
from kbtui.search.embedding.prepared import models_folder
from tests.e2e.program import kbtui as run, ok
from tests.scripted_server import Reply, ScriptedServer, call
from tests.search.helpers import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

QUESTION = "how long does a loaf stay in the oven"  # no word of it is in the note


@pytest.fixture
def started(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The workspaces for which a process would go on after a command; none does."""
    started: list[Path] = []
    monkeypatch.setenv("KBTUI_SEARCH__BACKGROUND", "true")
    monkeypatch.setattr(DetachedWorker, "_spawn", lambda self: started.append(self._workspace.root))
    return started


@pytest.mark.parametrize("command", ["search walrus", "ask what does the walrus eat?"])
def test_a_command_that_would_use_meaning_has_it_prepared(
    kbtui: Command, started: list[Path], command: str
) -> None:
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    done = kbtui.ok(*command.split())
    assert "clams" in done.out
    assert set(started) == {kbtui.root}


def test_init_begins_it_and_says_so(kbtui: Command, started: list[Path], tmp_path: Path) -> None:
    done = kbtui.bare("init", str(tmp_path / "more"))
    assert "in the background" in done.err
    assert started == [tmp_path / "more"]


@pytest.mark.parametrize("command", ["list", "show walrus", "log", "search walrus --lexical"])
def test_a_command_that_uses_no_meaning_starts_nothing(
    kbtui: Command, started: list[Path], command: str
) -> None:
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    kbtui.ok(*command.split())
    assert not started


@pytest.mark.parametrize("setting", ["SEMANTIC", "BACKGROUND"])
def test_it_can_be_switched_off(
    kbtui: Command, started: list[Path], monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv(f"KBTUI_SEARCH__{setting}", "false")
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    kbtui.ok("search", "walrus")
    assert "background" not in kbtui.bare("init", str(kbtui.root)).err
    assert not started


@pytest.fixture
def on(home: Path) -> Iterator[dict[str, str]]:
    """Processes go on after commands; the test ends when the last of them has."""
    yield {"KBTUI_SEARCH__BACKGROUND": "true"}
    eventually(lambda: not attempts.is_under_way(models_folder()))


@pytest.mark.model
def test_after_a_few_commands_meaning_is_compared_without_the_app(
    on: dict[str, str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    assert "in the background" in ok("init", notes, **on).err
    for title, text in (
        ("Garage", "The automobile needs new tyres."),
        ("Kitchen", "Bake the bread for an hour."),
        ("Bank", "The savings account pays two percent."),
    ):
        ok("new", "topic", title, "-b", text, workspace=notes, **on)
    first = run("search", QUESTION, "--json", workspace=notes, **on).json
    assert not first["semantic"]
    assert "Preparing the embedding model in the background" in first["notice"]

    def compared() -> dict[str, Any] | None:
        found = run("search", QUESTION, "--json", workspace=notes, **on).json
        return found if found["semantic"] else None

    found = eventually(compared)
    assert found["notice"] == ""
    assert found["hits"][0]["path"] == "knowledge/topics/kitchen.md"
    looks = Reply(tool_calls=[call("search", "s1", query=QUESTION)])
    with ScriptedServer([looks, Reply("An hour.")]) as server:
        model = {"KBTUI_MODEL": "openai/scripted", "KBTUI_API_BASE": server.url}
        ok("ask", "Tell me.", workspace=notes, KBTUI_API_KEY="none", **model, **on)
        assert "Bake the bread" in server.prompts[1].messages[-1]["content"]
