"""What can be used here: servers as they are, and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models import servers
from kbtui.models.litellm_model import LiteLLMModel
from kbtui.models.port import OfflineModel
from kbtui.models.providers import KeyStore
from kbtui.models.roles import ModelRegistry
from kbtui.models.servers import discover_models, server_at
from kbtui.settings import Settings
from tests.models.local_servers import MUTE, listing, llama_cpp, lm_studio, ollama, serving, vllm

if TYPE_CHECKING:
    from tests.models.local_servers import LocalServer

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
NOWHERE = {"OLLAMA_HOST": "127.0.0.1:1"}


def registry(*at: LocalServer, **environment: str) -> ModelRegistry:
    models = {"servers": [each.url for each in at]}
    settings = Settings.model_validate({"models": models})
    return ModelRegistry(settings, KeyStore(), {**NOWHERE, **environment})


def test_each_kind_is_told_with_its_models_sizes_and_windows() -> None:
    with serving(ollama("qwen3:8b"), llama_cpp(8192), lm_studio(4096), vllm(16_384)) as at:
        found = registry(*at[1:], OLLAMA_HOST=at[0].origin).usable_here()
        told = [(each.source, each.name, each.window, each.size) for each in found if each.usable]
        assert told == [
            ("Ollama", "ollama_chat/qwen3:8b", None, 5_200_000_000),
            ("llama.cpp", "openai//models/qwen3.gguf", 8192, 5_020_000_000),
            ("LM Studio", "openai/qwen3-8b", 4096, None),
            ("LM Studio", "openai/granite-4", None, None),
            ("vLLM", "openai/qwen/qwen3-8b", 16_384, None),
        ]
        assert [each.api_base for each in found if each.usable][1:] == [
            at[1].url,
            at[2].url,
            at[2].url,
            at[3].url,
        ]
        assert all(each.is_local for each in found)
        assert found[1].about == (
            f"llama.cpp on this machine ({at[1].host}), 5.0 GB, holds 8,192 tokens"
        )


def test_an_older_llama_cpp_tells_its_window_elsewhere() -> None:
    with serving(llama_cpp(4096, by_props=True)) as (at,):
        server = server_at(at.url)
    assert server is not None
    assert [model.window for model in server.models] == [4096]


def test_the_first_that_answers_here_is_taken_and_the_others_are_counted() -> None:
    with serving(llama_cpp(), vllm()) as at:
        models = registry(*at, OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
        model = models.chat()
        assert isinstance(model, LiteLLMModel)
        assert (model.name, model.api_base) == ("openai//models/qwen3.gguf", at[0].url)
        status = models.describe()
        assert status.is_local
        assert "llama.cpp on this machine" in status.reason
        assert status.reason.endswith(", the first of 4 that can be used.")


def test_a_provider_is_never_taken_while_a_server_here_answers() -> None:
    with serving(lm_studio()) as (at,):
        models = registry(at, ANTHROPIC_API_KEY=KEY)
        assert models.chat().is_local
        assert models.describe().name == "openai/qwen3-8b", "the one that is loaded"
    alone = registry(at, ANTHROPIC_API_KEY=KEY)
    assert alone.chat().name.startswith("anthropic/")


def test_the_address_in_the_environment_is_asked_with_the_key_beside_it() -> None:
    with serving(vllm()) as (at,):
        for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            models = registry(**{variable: at.url, "OPENAI_API_KEY": KEY})
            found = models.usable_here()
            assert found[0].name == "openai/qwen/qwen3-8b"
            model = models.chat()
            assert isinstance(model, LiteLLMModel)
            assert (model.api_base, model.is_local) == (at.url, True)
        assert set(at.asked) == {("/v1/models", f"Bearer {KEY}")}


def test_a_model_of_openais_goes_where_the_environment_says_and_counts_as_there() -> None:
    settings = Settings.model_validate({"models": {"chat": {"model": "openai/x"}}})
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": KEY}
    models = ModelRegistry(settings, KeyStore(), environment)
    model = models.chat()
    assert isinstance(model, LiteLLMModel)
    assert (model.api_base, model.api_key) == ("http://127.0.0.1:9/v1", KEY)
    assert models.describe().is_local


def test_no_other_server_is_sent_the_key_of_the_environment() -> None:
    with serving(vllm(), vllm()) as (one, other):
        registry(one, OPENAI_BASE_URL=other.url, OPENAI_API_KEY=KEY).usable_here()
        assert [key for _, key in one.asked if key] == []


def test_a_server_that_sends_one_elsewhere_is_not_followed() -> None:
    with serving(vllm(), {}) as (one, other):
        other.pages = {"/v1/models": f"{one.url}/models"}
        assert server_at(other.url, KEY) is None
        assert one.asked == []


def test_a_server_at_two_of_the_addresses_is_one() -> None:
    with serving(vllm()) as (at,):
        found = registry(at, OPENAI_BASE_URL=at.url).usable_here()
    assert len(found) == 1


def test_servers_that_say_nothing_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "TIMEOUT_SECONDS", 1.0)
    with serving(*[{"/v1/models": MUTE}] * 3, vllm()) as at:
        found = registry(*at).usable_here()
    assert [each.source for each in found] == ["vLLM"]


@pytest.mark.parametrize(
    "page",
    [
        b"<html>hello</html>",
        b"\xff\xfe",
        [],
        {"data": 3},
        {"data": [1, None, {"x": 1}]},
        listing(),
        {"data": [{"id": ""}]},
        {"data": [{"id": "corolla", "doors": 5}]},
    ],
)
def test_whatever_else_answers_is_as_good_as_nobody(page: Any) -> None:
    with serving({"/v1/models": page}) as (at,):
        assert discover_models(NOWHERE, [at.url]) == []


@pytest.mark.parametrize("window", [True, -1, 0, "8192", 1e300, None, [4096]])
def test_a_window_that_is_no_number_of_tokens_is_not_told(window: Any) -> None:
    with serving({"/v1/models": listing({"id": "a", "max_model_len": window})}) as (at,):
        server = server_at(at.url)
    assert server is not None
    assert server.models[0].window is None


def test_only_models_that_can_talk_are_taken() -> None:
    named = ("nomic-embed-text", "bge-m3", "whisper-1", "jina-reranker", "gemma-3-4b")
    with serving({"/v1/models": listing(*({"id": each} for each in named))}) as (at,):
        models = registry(at)
        assert models.describe(look=True).name == "openai/gemma-3-4b"
    with serving({"/v1/models": listing({"id": "bge-m3"})}) as (at,):
        assert isinstance(registry(at).chat(), OfflineModel)


def test_nobody_is_asked_when_a_model_is_set() -> None:
    with serving(vllm()) as (at,):
        settings = {"models": {"servers": [at.url], "chat": {"model": "offline"}}}
        models = ModelRegistry(Settings.model_validate(settings), KeyStore(), NOWHERE)
        models.chat()
        models.describe(look=True)
        assert at.asked == []
