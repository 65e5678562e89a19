"""`kbtui setup`: from nothing to a model that works, without a surprise."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models import litellm_model
from kbtui.settings import config_folder
from tests.memory.memory_room import call_save
from tests.models.hub_server import WEIGHTS, Hub, serving, write_model
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Command

STEPS = [{"status": "pulling manifest"}, {"status": "success"}]
MEMORY = Reply(tool_calls=[call_save("Alma moved to Graz.", [])])
LOOKS = Reply(tool_calls=[call("read", path="people/alma")])


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """An Ollama without a model, on a machine with 16 GB."""
    monkeypatch.delenv("KBTUI_MODEL")
    monkeypatch.setattr("kbtui.models.fetching.memory_of_machine", lambda: 16_000_000_000)
    with ScriptedServer() as server:
        server.is_ollama, server.pulling = True, STEPS
        monkeypatch.setenv("OLLAMA_HOST", server.origin)
        yield server


def chosen() -> dict[str, Any]:
    file = config_folder() / "config.toml"
    models = tomllib.loads(file.read_text()).get("models", {}) if file.exists() else {}
    return {role: own["model"] for role, own in models.items()}


def asked(server: ScriptedServer) -> list[str]:
    return [each.body["model"] for each in server.requests if each.path == "/api/pull"]


def test_a_model_that_fits_is_fetched_tried_and_put_to_work(
    kbtui: Command, ollama: ScriptedServer
) -> None:
    ollama.enqueue(MEMORY, LOOKS)
    done = kbtui.ok("setup", "--yes")
    assert "qwen3:4b-instruct fits this machine (2.5 GB to fetch, 16 GB of memory)" in done.out
    assert "makes memory in the right form" in done.out
    assert "answers in the chat from now on" in done.out
    assert asked(ollama) == ["qwen3:4b-instruct"]
    name = "ollama_chat/qwen3:4b-instruct"
    assert chosen() == {"chat": name, "consolidate": name, "dream": name}
    assert "save_memory" in ollama.prompts[0].tools


def test_what_was_kept_without_a_model_is_offered_with_what_it_takes(
    kbtui: Command, ollama: ScriptedServer
) -> None:
    kbtui.ok("ask", "The boiler man comes on Thursday.")
    kbtui.ok("consolidate")
    ollama.enqueue(MEMORY, LOOKS)
    done = kbtui.ok("setup", "--yes")
    assert "1 conversation that no model has condensed: `kbtui consolidate --all` has" in done.out
    assert "about " in done.out.splitlines()[-1]


def test_nothing_is_fetched_unasked(kbtui: Command, ollama: ScriptedServer) -> None:
    done = kbtui("setup")
    assert done.status == 2
    assert "--yes" in done.err
    assert asked(ollama) == []
    assert chosen() == {}


def test_a_model_that_calls_no_tools_works_in_the_background_only(
    kbtui: Command, ollama: ScriptedServer
) -> None:
    ollama.enqueue(MEMORY, Reply("She lives in Graz, I guess."))
    done = kbtui.ok("setup", "gemma3:4b", "--yes")
    assert "calls no tools" in done.out
    name = "ollama_chat/gemma3:4b"
    assert chosen() == {"consolidate": name, "dream": name}


def test_a_model_that_refuses_tools_does_too(kbtui: Command, ollama: ScriptedServer) -> None:
    refusal = Reply("gemma3:4b does not support tools", status=400)

    def answer(request: Any) -> Reply:
        return (
            refusal
            if request.tools
            else Reply('{"summary": "Graz", "notes": [], "facts": [], "corrections": []}')
        )

    ollama.enqueue(answer)
    done = kbtui.ok("setup", "gemma3:4b", "--yes")
    assert "makes memory in the right form" in done.out
    assert "calls no tools" in done.out


def test_what_makes_no_memory_is_said(kbtui: Command, ollama: ScriptedServer) -> None:
    ollama.enqueue(Reply("Hello!"))
    assert "no proper memory" in kbtui.ok("setup", "tiny", "--yes").out


def test_what_is_there_is_taken_and_a_choice_is_left_alone(
    kbtui: Command, ollama: ScriptedServer
) -> None:
    ollama.ollama_models = ("nomic-embed-text", "qwen3:8b")
    kbtui.ok("config", "set", "models.chat.model", "anthropic/x")
    ollama.enqueue(MEMORY, LOOKS)
    done = kbtui.ok("setup")
    assert "anthropic/x goes on answering" in done.out
    assert asked(ollama) == []
    name = "ollama_chat/qwen3:8b"
    assert chosen() == {"chat": "anthropic/x", "consolidate": name, "dream": name}


def test_without_a_server_it_says_how_to_get_one(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KBTUI_MODEL")
    done = kbtui("setup", "--yes")
    assert done.status == 1
    assert "https://ollama.com" in done.out
    assert len(done.out.splitlines()) == 2
    assert chosen() == {}


def test_a_machine_too_small_is_told_so(
    kbtui: Command, ollama: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.models.fetching.memory_of_machine", lambda: 2_000_000_000)
    done = kbtui("setup", "--yes")
    assert done.status == 2
    assert "2 GB of memory" in done.err
    assert asked(ollama) == []


def test_a_fetch_that_fails_sets_nothing(kbtui: Command, ollama: ScriptedServer) -> None:
    ollama.pulling = None
    done = kbtui("setup", "nonsense", "--yes")
    assert done.status == 4
    assert "couldn't fetch nonsense" in done.err
    assert chosen() == {}


MOON = "moon/tiny"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one model, for a person who has not chosen to be offline."""
    monkeypatch.delenv("KBTUI_MODEL")
    folder = write_model(tmp_path / "moon")
    with serving({MOON: folder}, tmp_path / "hf", monkeypatch) as hub:
        yield hub


def test_a_model_for_search_by_meaning_is_fetched_and_used_from_then_on(
    kbtui: Command, hub: Hub
) -> None:
    done = kbtui.ok("setup", "--search", MOON, "--yes")
    assert "moon/tiny is here, and reads your notes by meaning from now on" in done.out
    assert chosen() == {"embed": MOON}
    assert hub.fetched(WEIGHTS) == [""]


def test_no_model_for_search_is_fetched_unasked(kbtui: Command, hub: Hub) -> None:
    done = kbtui("setup", "--search")
    assert done.status == 2
    assert "intfloat/multilingual-e5-small (493 MB, MIT licence) reads 94 languages" in done.out
    assert "--yes" in done.err
    assert not hub.asked
    assert chosen() == {}


def test_a_model_for_search_that_cannot_be_fetched_sets_nothing(kbtui: Command, hub: Hub) -> None:
    done = kbtui("setup", "--search", "sun/huge", "--yes")
    assert done.status == 4
    assert "has no model sun/huge" in done.err
    assert chosen() == {}


def test_offline_no_model_for_search_is_fetched(
    kbtui: Command, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_MODEL", "offline")
    done = kbtui("setup", "--search", MOON, "--yes")
    assert done.status == 2
    assert "models.chat.model is `offline`" in done.err
    assert not hub.asked


def test_the_model_that_comes_with_kbtui_is_not_fetched(kbtui: Command, hub: Hub) -> None:
    done = kbtui("setup", "--search", "sentence-transformers/all-MiniLM-L6-v2", "--yes")
    assert done.status == 2
    assert "comes with kbtui" in done.err
    assert "kbtui config unset models.embed.model" in done.err
    assert not hub.asked


def test_a_choice_that_the_environment_hides_is_said(
    kbtui: Command, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_MODELS__EMBED__MODEL", "litellm:openai/other")
    done = kbtui.ok("setup", "--search", MOON, "--yes")
    assert "The environment" in done.err
    assert "models.embed.model" in done.err
