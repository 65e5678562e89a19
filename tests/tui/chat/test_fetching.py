"""The question whether to fetch a model for other languages: asked once, and what comes of a yes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models.fetching import SearchOffer
from kbtui.search import results
from kbtui.search.embedding import prepared
from kbtui.settings import (
    BUNDLED_EMBEDDING_MODEL,
    MULTILINGUAL_EMBEDDING_MODEL,
    config_folder,
)
from kbtui.tui.app.background_work import running_jobs
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.chat.commands import fetching
from kbtui.tui.terminal.state import answers
from kbtui.tui.widgets import dialogs
from kbtui.tui.widgets.dialogs import KeyDialog
from kbtui.workspace.opening import create_workspace
from tests.models.hub_server import serving, write_model
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import ENGLISH, GERMAN, HUNGARIAN
from tests.tui.at_rest import Door
from tests.tui.shell import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

    from kbtui.settings import Settings
    from tests.models.hub_server import Hub
    from tests.tui.shell import Shell

MOON = "moon/tiny"
FEW = 4  # passages, in place of some tens
BY_MEANING = {"search": {"semantic": True}}


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str | None, ReadyModel]:
    """Models that are there at once, for a person who types nothing and is not offline."""
    first, second, new = (WordEmbedder(identity=f"words-{n}") for n in range(3))
    first.name, second.name, new.name = BUNDLED_EMBEDDING_MODEL, "multilingual", MOON
    found = {
        None: ReadyModel(first),
        MULTILINGUAL_EMBEDDING_MODEL: ReadyModel(second),
        MOON: ReadyModel(new, before=[first]),
    }
    monkeypatch.setattr(prepared, "ConfiguredModel", lambda role: found[role.model])
    monkeypatch.setattr(dialogs, "QUIET_SECONDS", 0)
    monkeypatch.setattr(results, "_MOST_FROM", FEW)
    for name in ("KBTUI_MODEL", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return found


def _vault(root: Path, text: str, count: int = FEW) -> Path:
    create_workspace(root)
    for number in range(count):
        file = root / f"knowledge/topics/n{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {number}\n\n{number}. {text}")
    return root


def _chosen() -> Any:
    file = config_folder() / "config.toml"
    return tomllib.loads(file.read_text()).get("models") if file.exists() else None


async def _question(shell: Shell) -> str:
    await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
    assert isinstance(shell.app.screen, KeyDialog)
    return shell.app.screen.text.plain


async def _is_not_asked(root: Path) -> bool:
    async with running(root, overrides=BY_MEANING) as shell:
        await shell.until(lambda: shell.app.kb.search.status().state == "ready")
        await shell.until(lambda: not any(w.group == "languages" for w in shell.app.workers))
        return not shell.app.screen.is_modal


async def test_the_question_is_asked_once_and_never_is_kept(tmp_path: Path) -> None:
    root = _vault(tmp_path / "notes", GERMAN)
    async with running(root, overrides=BY_MEANING) as shell:
        text = await _question(shell)
        assert "Most of your notes are in German." in text
        assert "intfloat/multilingual-e5-small (493 MB, MIT licence) reads 94 languages" in text
        await shell.press("v")
        await shell.until(lambda: answers() == {"multilingual": "never"})
    assert await _is_not_asked(root)
    assert await _is_not_asked(_vault(tmp_path / "others", GERMAN)), "on this machine"
    assert _chosen() is None


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_not_now_is_asked_again_after_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    root = _vault(tmp_path / "notes", GERMAN)
    async with running(root, overrides=BY_MEANING) as shell:
        await _question(shell)
        await shell.press(key)
        await shell.notified("`kbtui setup --search` fetches it another time.")
        await shell.until(answers)
    assert await _is_not_asked(root)
    today = fetching._today()
    monkeypatch.setattr(fetching, "_today", lambda: _later(today))
    async with running(root, overrides=BY_MEANING) as shell:
        await _question(shell)


def _later(today: date) -> date:
    return today + fetching._LATER


async def test_what_no_model_here_reads_is_said(tmp_path: Path) -> None:
    root = _vault(tmp_path / "notes", HUNGARIAN)
    async with running(root, overrides=BY_MEANING) as shell:
        text = await _question(shell)
        assert "finds Hungarian by its words alone" in text
        assert "and 93 other languages" in text


@pytest.mark.parametrize(("text", "count"), [(ENGLISH, FEW), (GERMAN, FEW - 1)])
async def test_english_vaults_and_small_ones_are_not_asked(
    tmp_path: Path, text: str, count: int
) -> None:
    assert await _is_not_asked(_vault(tmp_path / "notes", text, count))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KBTUI_MODEL", "offline"),
        ("HF_HUB_OFFLINE", "1"),
        ("KBTUI_MODELS__EMBED__MODEL", MOON),
    ],
)
async def test_offline_and_where_a_model_was_chosen_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert await _is_not_asked(_vault(tmp_path / "notes", GERMAN))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    offer = SearchOffer(MOON, 1, "MIT", 94, "")
    monkeypatch.setattr(fetching, "search_offer", lambda: offer)
    folder = write_model(tmp_path / "moon")
    with serving({MOON: folder}, tmp_path / "hf", monkeypatch) as hub:
        yield hub


async def test_a_yes_fetches_the_model_and_has_it_read_the_notes(
    tmp_path: Path, hub: Hub, models: dict[str | None, ReadyModel]
) -> None:
    root = _vault(tmp_path / "notes", GERMAN)
    async with running(root, overrides=BY_MEANING) as shell:
        await _question(shell)
        assert not hub.asked
        await shell.press("y")
        await shell.notified(f"{MOON} is here. Until it has read your notes")
        await shell.until(lambda: shell.app.kb.search.status().model == MOON)
        await shell.until(lambda: shell.app.kb.search.status().state == "ready")
        assert _chosen() == {"embed": {"model": MOON}}
        assert len(models[MOON].embedder.seen) == FEW


async def test_a_fetch_says_how_far_it_is_and_can_be_stopped(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, plain = Door(), fetching.fetch

    def slowly(name: str, settings: Settings, progress: Any, is_stopped: Any) -> bool:
        def step(*told: Any) -> None:
            progress(*told)
            door.wait()

        return plain(name, settings, step, is_stopped)

    monkeypatch.setattr(fetching, "fetch", slowly)
    hub.slow.clear()
    root = _vault(tmp_path / "notes", GERMAN)
    async with running(root, overrides=BY_MEANING) as shell:
        await _question(shell)
        await shell.press("y")
        status = shell.app.main.query_one(StatusLine)
        await shell.until(lambda: "fetching a model: 0 of 0 MB" in status.render().plain)
        assert "Fetch" in [job.name for job in running_jobs(shell.app.kb, shell.chat)]
        await shell.press("escape")
        await shell.notified("Esc again stops the fetch.")
        await shell.press("escape")
        door.open()
        await shell.notified("What was fetched is kept; `kbtui setup --search` goes on")
        assert _chosen() is None


async def test_a_fetch_that_fails_is_said_and_changes_nothing(tmp_path: Path, hub: Hub) -> None:
    hub.status = 503
    root = _vault(tmp_path / "notes", GERMAN)
    async with running(root, overrides=BY_MEANING) as shell:
        await _question(shell)
        await shell.press("y")
        await shell.notified("failed with 503")
        assert _chosen() is None
        assert answers() == {}
