"""Answers in a given shape, out of endpoints that differ in what they understand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ModelAccessError, ModelAnswerError, ModelOverloadedError
from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message, ToolSpec
from tests.scripted_server import Reply as Scripted, ScriptedServer, raw_call

if TYPE_CHECKING:
    from collections.abc import Iterator

ASK = [Message("system", "Be brief."), Message("user", "Hi")]
TOOL = ToolSpec(
    "read_entry",
    "Read an entry.",
    {"type": "object", "properties": {"entry": {"type": "string"}}, "required": ["entry"]},
)
QUICK = ModelOptions(first_token_seconds=5, idle_seconds=5, backoff_seconds=0.01)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


@pytest.fixture(autouse=True)
def no_way_is_known() -> Iterator[None]:
    litellm_model._working_ways.clear()
    yield
    litellm_model._working_ways.clear()


def model_at(server: ScriptedServer, options: ModelOptions = QUICK) -> LiteLLMModel:
    return LiteLLMModel("openai/scripted", server.url, "none", options)


GOOD = '{"entry": "alice"}'


@pytest.mark.parametrize(
    ("script", "ways"),
    [
        ([Scripted(tool_calls=[raw_call("read_entry", GOOD)])], 1),
        ([Scripted("I would rather talk."), Scripted(GOOD)], 2),
        ([Scripted("no tools", status=400), Scripted(GOOD)], 2),
        ([Scripted("No endpoints support tool use", status=404), Scripted(GOOD)], 2),
        (
            [
                Scripted("no"),
                Scripted("no response_format", status=400),
                Scripted(f"Sure:\n```json\n{GOOD}\n```"),
            ],
            3,
        ),
        ([Scripted(tool_calls=[raw_call("read_entry", '{"entry": "al')]), Scripted(GOOD)], 2),
        ([Scripted(tool_calls=[raw_call("delete_all", GOOD)]), Scripted(GOOD)], 2),
        ([Scripted(tool_calls=[raw_call("read_entry", '{"entry": ["a", 1]}')]), Scripted(GOOD)], 2),
        ([Scripted(tool_calls=[raw_call("read_entry", GOOD)], finish="length"), Scripted(GOOD)], 2),
        ([Scripted(""), Scripted(GOOD)], 2),
        ([Scripted(f'{{"name": "read_entry", "arguments": {GOOD}}}')], 1),
        ([Scripted('```json\n[{"type": "read_entry", "entry": "alice"}]\n```')], 1),
        ([Scripted(tool_calls=[raw_call("read_entry", GOOD)] * 100)], 1),
    ],
)
async def test_forcing_goes_down_the_ladder_and_remembers_where_it_ended(
    script: list[Scripted], ways: int
) -> None:
    with ScriptedServer(script) as server:
        model = model_at(server)
        reply = await model.complete(ASK, [TOOL], force_tool="read_entry")
        assert [json.loads(each.arguments) for each in reply.tool_calls] == [{"entry": "alice"}]
        assert len(server.prompts) == ways
        await model.complete(ASK, [TOOL], force_tool="read_entry")
        assert len(server.prompts) == ways + 1, "the second time it begins with what worked"


async def test_forcing_that_never_works_is_an_error_and_nothing_is_remembered() -> None:
    with ScriptedServer([Scripted("I would rather talk about the weather.")]) as server:
        model = model_at(server)
        for _ in range(2):
            with pytest.raises(ModelAnswerError, match="can't be used here"):
                await model.complete(ASK, [TOOL], force_tool="read_entry")
        assert len(server.prompts) == 6


async def test_forcing_stops_at_once_where_another_way_cannot_help() -> None:
    for status, error in ((401, ModelAccessError), (500, ModelOverloadedError)):
        with ScriptedServer([Scripted("no", status=status)]) as server:
            with pytest.raises(error):
                await model_at(server, ModelOptions(retries=0)).complete(
                    ASK, [TOOL], force_tool="read_entry"
                )
            assert len(server.prompts) == 1


async def test_the_longest_forced_answer_here_and_the_prompt_fit_the_window_together() -> None:
    with ScriptedServer([Scripted(tool_calls=[raw_call("read_entry", GOOD)])]) as server:
        model = model_at(server, ModelOptions(context_window=4096))
        long = Message("user", "The kestrel nests in the tower. " * 350)
        for asked in (ASK, [*ASK, long]):
            await model.complete(asked, [TOOL], force_tool="read_entry")
        short, full = (each.body["max_tokens"] for each in server.prompts)
    assert 1_000 < short < 1_100  # what is written about a short text is short
    assert 512 <= full <= 4096 - model.count_tokens(long.content)
