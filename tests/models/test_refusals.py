"""What a model refused is known for some days, in every process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message
from kbtui.models.refusals import DAYS, Refusals
from kbtui.models.roles import ModelRegistry
from kbtui.settings import load_settings
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

ASK = [Message("user", "Hi")]
MODEL = "openai/gemma"


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


def test_another_process_knows_it_for_a_while_and_then_asks_again() -> None:
    Refusals().note("tools", "http://127.0.0.1:8080/v1", MODEL)
    other = Refusals()
    assert other.has("tools", "http://127.0.0.1:8080/v1", MODEL)
    assert not other.has("tools", None, MODEL)
    assert not other.has("temperature", "http://127.0.0.1:8080/v1", MODEL)
    later = datetime.now(UTC).date() + timedelta(DAYS + 2)
    assert not Refusals(lambda: later).has("tools", "http://127.0.0.1:8080/v1", MODEL)


@pytest.mark.parametrize("data", [b"", b"[1]", b'{"tools  x": 3}', b"\xff{"])
def test_a_damaged_file_says_nothing(home: Path, data: bytes) -> None:
    file = home / ".local/state/kbtui/refusals.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    assert not Refusals().has("tools", "", "x")
    Refusals().note("tools", None, MODEL)
    assert Refusals().has("tools", None, MODEL)


async def test_memory_is_made_at_a_low_temperature_where_none_is_set() -> None:
    with ScriptedServer([Reply("ok")]) as server:
        chat = {"model": "openai/scripted", "api_base": server.url, "api_key": "none"}
        for own, asked in ({}, [None, 0.1, 0.1]), ({"temperature": 0.7}, [0.7, 0.7, 0.7]):
            models = ModelRegistry(load_settings(overrides={"models": {"chat": chat | own}}))
            for role in ("chat", "consolidate", "dream"):
                await models.chat(role).complete(ASK)
            sent = [request.body.get("temperature") for request in server.prompts[-3:]]
            assert sent == asked


async def test_a_model_that_takes_no_other_temperature_is_asked_at_its_own() -> None:
    refusal = "Unsupported value: 'temperature' does not support 0.1 with this model."
    with ScriptedServer([Reply(refusal, status=400), Reply("ok")]) as server:
        options = ModelOptions(retries=0, in_background=True)
        for _ in range(2):
            model = LiteLLMModel("openai/scripted", server.url, "none", options)
            assert (await model.complete(ASK)).text == "ok"
        sent = [request.body.get("temperature") for request in server.prompts]
    assert sent == [0.1, None, None]
