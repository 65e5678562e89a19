"""What a model holds and takes: as its server tells, and as a refusal shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import ModelError, ModelOverloadedError, ModelToolsError, ModelWindowError
from kbtui.models import limits, litellm_model
from kbtui.models.limits import LIMITS, overflow_in
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message, Reply, ToolSpec
from tests.models.local_servers import MUTE, listing, llama_cpp, lm_studio, ollama, serving, vllm
from tests.scripted_server import Reply as Scripted, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
ASK = [Message("user", "Hi")]
QUICK = ModelOptions(retries=2, backoff_seconds=0.01)
GUESS = litellm_model.DEFAULT_CONTEXT_WINDOW


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


def window_of(pages: Mapping[str, Any], name: str, options: ModelOptions = QUICK) -> int:
    with serving(pages) as (at,):
        base = at.origin if name.startswith("ollama") else at.url
        model = LiteLLMModel(name, base, KEY, options)
        model.read_window()
        return model.context_window


@pytest.mark.parametrize(
    ("pages", "name", "window"),
    [
        (llama_cpp(8192), "openai//models/qwen3.gguf", 8192),
        (llama_cpp(8192), "openai/an-alias", 8192),
        (llama_cpp(4096, by_props=True), "openai/an-alias", 4096),
        (lm_studio(4096), "openai/qwen3-8b", 4096),
        (lm_studio(4096), "openai/granite-4", GUESS),
        (vllm(16_384), "openai/qwen/qwen3-8b", 16_384),
        (vllm(16_384), "qwen/qwen3-8b", 16_384),
        ({"/v1/models": listing({"id": "a", "context_length": 9000})}, "openai/a", 9000),
        (ollama("qwen3:8b"), "ollama_chat/qwen3:8b", 16_384),
        (ollama("qwen3:8b", longest=2048), "ollama_chat/qwen3:8b", 2048),
        (ollama("qwen3:8b", chosen=32_768), "ollama_chat/qwen3:8b", 32_768),
        (ollama("qwen3:8b"), "openai/qwen3:8b", 4096),
        (ollama("qwen3:8b", chosen=8192), "openai/qwen3:8b", 8192),
        (ollama("qwen3:8b", running=20_000), "openai/qwen3:8b", 20_000),
        ({}, "openai/a", GUESS),
        ({}, "ollama_chat/a", 16_384),
        ({"/v1/models": b"<html>", "/props": b"\xff", "/api/v0/models": [3]}, "openai/a", GUESS),
        ({"/props": {"default_generation_settings": 3}}, "openai/a", GUESS),
    ],
)
def test_the_window_is_what_the_server_tells_in_its_way(
    pages: Mapping[str, Any], name: str, window: int
) -> None:
    assert window_of(pages, name) == window


def test_a_window_that_was_set_is_kept_and_nobody_is_asked() -> None:
    with serving(vllm(4096)) as (at,):
        model = LiteLLMModel("openai/x", at.url, KEY, ModelOptions(context_window=9999))
        model.read_window()
        assert model.context_window == 9999
        assert at.asked == []


def test_the_server_is_asked_once_with_its_key_and_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(vllm(4096)) as (at,):
        for _ in range(3):
            LiteLLMModel("openai/qwen/qwen3-8b", at.url, KEY).read_window()
        assert at.asked == [("/v1/models", f"Bearer {KEY}")]
        at.pages = vllm(8192)
        monkeypatch.setattr(limits, "_FRESH_SECONDS", 0.0)
        model = LiteLLMModel("openai/qwen/qwen3-8b", at.url, KEY)
        model.read_window()
        assert model.context_window == 8192


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.2)
    with serving({"/v1/models": MUTE}) as (at,):
        model = LiteLLMModel("openai/x", at.url, KEY)
        model.read_window()
        assert model.context_window == GUESS
        assert [path for path, _ in at.asked] == ["/v1/models"]


async def test_ollama_is_asked_for_the_window_that_its_model_can_hold() -> None:
    pages = ollama("qwen3:8b", longest=2048)
    with ScriptedServer([Scripted("ok")], ollama_models=["qwen3:8b"]) as server:
        server.shown = pages["/api/show"]
        model = LiteLLMModel("ollama_chat/qwen3:8b", server.origin, "", QUICK)
        async for _ in model.stream(ASK):
            pass
        assert server.prompts[0].body["options"]["num_ctx"] == 2048


WORDS = {
    who: (each["text"], each["window"], each["prompt"])
    for who, each in json.loads(
        (Path(__file__).parents[1] / "data/too_long.json").read_text()
    ).items()
}


@pytest.mark.parametrize("who", WORDS)
def test_a_refusal_for_length_is_read_in_the_words_of(who: str) -> None:
    text, window, prompt = WORDS[who]
    overflow = overflow_in(text)
    assert overflow is not None
    assert (overflow.window, overflow.prompt) == (window, prompt)


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: Limit 6000 tokens per minute, Requested 7000",
        "max_tokens is too large: 100000",
        "The model is still loading.",
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "",
    ],
)
def test_another_refusal_is_none_for_length(text: str) -> None:
    assert overflow_in(text) is None


@pytest.mark.parametrize("who", WORDS)
@pytest.mark.parametrize("name", ["openai/scripted", "ollama_chat/scripted"])
async def test_a_refusal_for_length_is_said_and_its_limit_holds_from_then_on(
    who: str, name: str
) -> None:
    text, window, prompt = WORDS[who]
    script = [Scripted(text, status=400), Scripted("ok")]
    with ScriptedServer(script) as server:
        base = server.origin if name.startswith("ollama") else server.url
        model = LiteLLMModel(name, base, KEY, QUICK)
        with pytest.raises(ModelWindowError) as caught:
            async for _ in model.stream(ASK):
                pass
        assert (caught.value.window, caught.value.prompt) == (window, prompt)
        assert len(server.prompts) == 1, "the same prompt would be refused again"
        if window is None:
            assert "models.chat.context_window" in caught.value.hint
        else:
            assert f"{window:,} tokens" in caught.value.message
            assert LiteLLMModel(name, base, KEY, QUICK).context_window == window
            chosen = ModelOptions(context_window=window * 2)
            assert LiteLLMModel(name, base, KEY, chosen).context_window == window
        assert isinstance([event async for event in model.stream(ASK)][-1], Reply)


async def test_a_refusal_in_the_middle_of_a_stream_is_one_for_length_too() -> None:
    text = WORDS["LM Studio, older"][0]
    body = f'event: error\ndata: {{"error": {{"message": "{text}"}}}}\n\n'.encode()
    with ScriptedServer([Scripted(body=body)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        with pytest.raises(ModelWindowError) as caught:
            async for _ in model.stream(ASK):
                pass
        assert caught.value.window == 4096
        with pytest.raises(ModelWindowError):
            await model.complete(ASK)


async def test_no_other_way_to_force_a_call_is_tried_with_too_long_a_prompt() -> None:
    tool = ToolSpec("note", "Note.", {"type": "object", "properties": {}})
    with ScriptedServer([Scripted(WORDS["llama.cpp"][0], status=400)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        with pytest.raises(ModelWindowError):
            await model.complete(ASK, [tool], force_tool="note")
        assert len(server.prompts) == 1


async def test_a_limit_on_the_rate_is_none_of_length() -> None:
    text = "Limit reached. This model's maximum context length is 8192 tokens."
    with ScriptedServer([Scripted(text, status=429)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, ModelOptions(retries=0))
        with pytest.raises(ModelOverloadedError):
            await model.complete(ASK)
        assert model.context_window == GUESS


async def test_what_names_no_possible_window_changes_nothing() -> None:
    text = "exceeds the available context size (3 tokens)"
    with ScriptedServer([Scripted(text, status=400)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        with pytest.raises(ModelError):
            await model.complete(ASK)
        assert model.context_window == GUESS
        assert LIMITS.limit(server.url, "openai/scripted") is None


@pytest.mark.parametrize(
    ("able", "takes"),
    [(["completion", "tools"], True), (["completion"], False), ([], True)],
)
def test_ollama_tells_whether_a_model_takes_tools(able: list[str], takes: bool) -> None:
    with serving(ollama("gemma3:4b", able=able)) as (at,):
        model = LiteLLMModel("ollama_chat/gemma3:4b", at.origin)
        assert model.takes_tools, "until it is known"
        model.read_window()
        assert model.takes_tools is takes


NO_TOOLS = {
    "Ollama": ("registry.ollama.ai/library/gemma:2b does not support tools", 400),
    "OpenRouter": ("No endpoints found that support tool use. To learn more", 404),
    "llama.cpp": ("tools param requires --jinja flag", 500),
    "vLLM": (
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        400,
    ),
    "another": ("Function calling is not enabled for this model", 400),
    "one more": ("This model doesn't support function calling.", 400),
}


@pytest.mark.parametrize("who", NO_TOOLS)
async def test_that_tools_are_refused_is_known_from_then_on(who: str) -> None:
    text, status = NO_TOOLS[who]
    tool = ToolSpec("note", "Note.", {"type": "object", "properties": {}})
    with ScriptedServer([Scripted(text, status=status), Scripted("ok")]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        with pytest.raises(ModelToolsError) as caught:
            async for _ in model.stream(ASK, [tool]):
                pass
        assert "takes no tools" in caught.value.message
        assert len(server.prompts) == 1
        assert not LiteLLMModel("openai/scripted", server.url, KEY).takes_tools
        assert LiteLLMModel("openai/other", server.url, KEY).takes_tools
        assert isinstance([event async for event in model.stream(ASK)][-1], Reply)


@pytest.mark.parametrize("text", ["tool_choice is not supported", "response_format: unknown"])
async def test_another_refusal_is_none_of_tools(text: str) -> None:
    with ScriptedServer([Scripted(text, status=400)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        with pytest.raises(ModelError):
            await model.complete(ASK)
        assert model.takes_tools


async def test_a_call_is_still_forced_out_of_a_model_without_tools() -> None:
    tool = ToolSpec("note", "Note.", {"type": "object", "properties": {}})
    script = [Scripted(NO_TOOLS["Ollama"][0], status=400), Scripted("{}")]
    with ScriptedServer(script) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, QUICK)
        reply = await model.complete(ASK, [tool], force_tool="note")
        assert [call.name for call in reply.tool_calls] == ["note"]
