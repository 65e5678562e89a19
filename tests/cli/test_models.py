"""Which model answers a command, and that nothing leaves this machine unsaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.models.local_servers import llama_cpp, serving
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """The model in use, on this machine."""
    with ScriptedServer([Reply("The kiln is green.")]) as server:
        monkeypatch.setenv("KBTUI_MODEL", "openai/small")
        monkeypatch.setenv("KBTUI_API_BASE", server.url)
        yield server


def test_another_model_is_asked_at_the_same_address(kbtui: Command, server: ScriptedServer) -> None:
    assert "green" in kbtui.ok("ask", "-m", "openai/other", "what colour is the kiln?").out
    assert "green" in kbtui.ok("chat", "-m", "third", "--plain", stdin="and the lid?\n").out
    assert [each.body["model"] for each in server.prompts] == ["other", "third"]


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_model_elsewhere_takes_a_word_more(
    kbtui: Command, server: ScriptedServer, command: str
) -> None:
    done = kbtui(command, "-m", "anthropic/x", stdin="hello\n")
    assert done.status == 2
    assert "Anthropic" in done.err
    assert "--remote" in done.err
    done = kbtui(command, "-m", "anthropic/x", "--remote", stdin="hello\n")
    assert done.status == 4, "it lacks a key, and nothing else"
    assert "ANTHROPIC_API_KEY" in done.err
    assert server.prompts == []


def test_doctor_and_ask_mean_the_same_model(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KBTUI_MODEL")
    with serving(llama_cpp()) as (at,):
        monkeypatch.setenv("KBTUI_MODELS__SERVERS", f'["{at.url}"]')
        chat = next(each for each in kbtui("doctor", "--json").json if each["area"] == "models")
        assert chat["text"] == "chat: openai//models/qwen3.gguf"
        kbtui("ask", "hello")
        assert ("/v1/chat/completions", "Bearer none") in at.asked
