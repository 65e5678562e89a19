"""Where messages go from now on, and whether they leave this machine."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UsageError
from kbtui.models.litellm_model import LiteLLMModel
from kbtui.models.providers import KeyStore
from kbtui.models.roles import ModelRegistry
from kbtui.settings import Settings, config_folder
from tests.models.local_servers import llama_cpp, lm_studio, ollama, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
HERE = "http://127.0.0.1:9/v1"
LOCAL = {"model": "openai/small", "api_base": HERE, "api_key": KEY}


def registry(
    chat: dict[str, Any] | None = None, servers: Sequence[str] = (), **environment: str
) -> ModelRegistry:
    settings = Settings.model_validate({"models": {"servers": servers, "chat": chat or {}}})
    return ModelRegistry(settings, KeyStore(), {"OLLAMA_HOST": "127.0.0.1:1", **environment})


@pytest.mark.parametrize(
    ("chat", "typed", "name", "base", "leaves"),
    [
        (LOCAL, "openai/other", "openai/other", HERE, False),
        (LOCAL, "other", "openai/other", HERE, False),
        (LOCAL, "mistral/large", "mistral/large", None, True),
        (LOCAL, "qwen/qwen3", "qwen/qwen3", None, True),
        (LOCAL, "offline", "offline", None, False),
        (LOCAL, "ollama_chat/qwen3:8b", "ollama_chat/qwen3:8b", None, False),
        ({"model": "ollama_chat/qwen3:8b"}, "gemma3:4b", "ollama_chat/gemma3:4b", None, False),
        ({"model": "ollama_chat/qwen3:8b"}, "openai/gpt-5.4", "openai/gpt-5.4", None, True),
        ({"model": "openai/a"}, "anthropic/b", "anthropic/b", None, False),
        ({"model": "openai/a"}, "b", "openai/b", None, False),
        ({"model": "offline"}, "openai/b", "openai/b", None, False),
        ({}, "openai/b", "openai/b", None, False),
        ({"model": "offline", "api_base": HERE}, "openai/b", "openai/b", HERE, False),
        ({"api_base": HERE}, "b", "b", HERE, False),
    ],
)
def test_the_address_stays_while_the_provider_does(
    chat: dict[str, Any], typed: str, name: str, base: str | None, leaves: bool
) -> None:
    chosen = registry(chat).destination(typed)
    assert (chosen.name, chosen.api_base, chosen.leaves) == (name, base, leaves)


def test_the_key_of_an_address_goes_nowhere_else() -> None:
    models = registry(LOCAL, ANTHROPIC_API_KEY="other")
    for typed, key in (("openai/other", KEY), ("anthropic/b", ""), ("openai/third", "")):
        chosen = models.destination(typed)
        models.use(chosen.name, chosen.api_base, remember=False)
        if typed == "openai/third":
            chosen = models.destination(typed, HERE)
            models.use(chosen.name, chosen.api_base, remember=False)
        model = models.chat()
        assert isinstance(model, LiteLLMModel)
        assert (model.name, model.api_key) == (typed, key)


def test_a_model_that_a_server_here_lists_is_asked_there() -> None:
    with serving(ollama("gemma3:latest"), llama_cpp(), lm_studio()) as at:
        models = registry(LOCAL, [each.url for each in at[1:]], OLLAMA_HOST=at[0].origin)
        for typed, name, base in (
            ("qwen3-8b", "openai/qwen3-8b", at[2].url),
            ("openai/granite-4", "openai/granite-4", at[2].url),
            ("/models/qwen3.gguf", "openai//models/qwen3.gguf", at[1].url),
            ("gemma3", "ollama_chat/gemma3:latest", None),
            ("openai/unheard-of", "openai/unheard-of", HERE),
            ("text-embedding-nomic", "openai/text-embedding-nomic", HERE),
        ):
            chosen = models.destination(typed)
            assert (chosen.name, chosen.api_base, chosen.leaves) == (name, base, False)


def test_a_found_model_that_nobody_chose_is_on_this_machine_too() -> None:
    with serving(llama_cpp()) as (at,):
        models = registry(None, [at.url])
        assert models.destination("anthropic/b").leaves


def test_the_place_is_said() -> None:
    models = registry(LOCAL)
    assert models.destination("other").message == (
        "openai/other answers from now on. Messages go to 127.0.0.1:9, on this machine."
    )
    assert models.destination("anthropic/b").message == (
        "anthropic/b answers from now on. Messages go to Anthropic."
    )
    assert models.destination("offline").message == "Nothing is sent to a model from now on."
    with pytest.raises(UsageError):
        models.destination(" ")


def test_who_picks_a_provider_gets_the_provider() -> None:
    chosen = registry(LOCAL).destination("openai/gpt-5.4-mini", keep=False)
    assert (chosen.api_base, chosen.leaves) == (None, True)


def test_what_was_set_of_one_model_is_not_said_of_another() -> None:
    file = config_folder() / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[models.chat]\nmodel = "openai/small"\ncontext_window = 4096\nvision = true\nmax_tokens = 7\n'
    )
    chat = {**LOCAL, "context_window": 4096, "vision": True, "max_tokens": 7}
    models = registry(chat)
    models.use("openai/small", HERE, remember=True)
    assert models.chat().context_window == 4096
    models.use("openai/other", HERE, remember=True)
    model = models.chat()
    assert isinstance(model, LiteLLMModel)
    options = model.options
    assert (options.context_window, options.vision, options.max_tokens) == (None, None, 7)
    assert tomllib.loads(file.read_text())["models"]["chat"] == {
        "model": "openai/other",
        "api_base": HERE,
        "max_tokens": 7,
    }
