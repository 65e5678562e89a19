"""The same model code against the providers' own protocols, and the endpoint that scripts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from kbtui.errors import ModelAccessError, ModelAnswerError
from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message, Reply, ReplyReasoning, ReplyText, ToolCall, ToolSpec
from kbtui.models.providers import takes_cache_marks
from tests.patience import PATIENCE
from tests.scripted_server import Reply as Scripted, Request, ScriptedServer, call

ASK = [Message("system", "Be brief."), Message("user", "Hi")]
TOOL = ToolSpec(
    "read_entry",
    "Read an entry.",
    {"type": "object", "properties": {"entry": {"type": "string"}}, "required": ["entry"]},
)
QUICK = ModelOptions(retries=0, context_window=12_345)
OLLAMA, ANTHROPIC = "ollama_chat/qwen3:8b", "anthropic/claude-sonnet-4-6"


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


def model_at(server: ScriptedServer, name: str) -> LiteLLMModel:
    return LiteLLMModel(name, server.origin, "sk-none", QUICK)


async def answer_of(model: LiteLLMModel) -> tuple[list[Any], Reply]:
    events = [event async for event in model.stream(ASK, [TOOL])]
    assert isinstance(events[-1], Reply)
    return events[:-1], events[-1]


@pytest.mark.parametrize("name", [OLLAMA, ANTHROPIC])
async def test_text_and_tool_calls_come_through(name: str) -> None:
    calls = [call("read_entry", "c1", entry="alice"), call("read_entry", "c2", entry="bob")]
    with ScriptedServer(
        [Scripted("Hello there, my friend."), Scripted("Look:", tool_calls=calls)]
    ) as server:
        pieces, plain = await answer_of(model_at(server, name))
        _, asking = await answer_of(model_at(server, name))
    assert (
        plain.text
        == "".join(piece.text for piece in pieces if isinstance(piece, ReplyText))
        == "Hello there, my friend."
    )
    assert (plain.finish, plain.tool_calls) == ("stop", ())
    assert plain.usage.prompt_tokens == 11
    assert plain.usage.completion_tokens > 0
    assert asking.finish == "tool_calls"
    assert [json.loads(each.arguments) for each in asking.tool_calls] == [
        {"entry": "alice"},
        {"entry": "bob"},
    ]
    assert len({each.id for each in asking.tool_calls}) == 2


@pytest.mark.parametrize("cut", ["clean", "eof", "chunked"])
@pytest.mark.parametrize("name", [OLLAMA, ANTHROPIC])
async def test_a_stream_without_its_end_marker_is_an_error(name: str, cut: Any) -> None:
    script = Scripted("Hello there, my friend.", cut_at=260, cut=cut)
    with ScriptedServer([script]) as server, pytest.raises(ModelAnswerError):
        await answer_of(model_at(server, name))


async def test_ollama_is_given_the_window_that_prompts_are_made_for() -> None:
    with ScriptedServer([Scripted("ok", reasoning="Hm.")]) as server:
        pieces, _ = await answer_of(model_at(server, OLLAMA))
        (request,) = server.prompts
    assert request.body["options"]["num_ctx"] == 12_345
    assert "".join(piece.text for piece in pieces if isinstance(piece, ReplyReasoning)) == "Hm."


async def test_an_ollama_model_that_is_not_there_can_be_pulled() -> None:
    script = Scripted("model 'qwen3:8b' not found", status=404)
    with ScriptedServer([script]) as server, pytest.raises(ModelAccessError) as caught:
        await answer_of(model_at(server, OLLAMA))
    assert "ollama pull qwen3:8b" in caught.value.hint


ROUND = [
    Message("system", "Be brief."),
    Message("user", "one"),
    Message("assistant", "first answer"),
    Message("user", "<context>now</context> two"),
    Message("assistant", "", (ToolCall("c1", "read_entry", "{}"),)),
    Message("tool", "A.", tool_call_id="c1", name="read_entry"),
]


def marked(messages: list[dict[str, Any]]) -> list[str]:
    """The texts that are marked for the cache, in the order of a prompt."""
    return [
        block["text"]
        for message in messages
        if isinstance(message.get("content"), list)
        for block in message["content"]
        if block.get("cache_control") == {"type": "ephemeral"}
    ]


async def sent(server: ScriptedServer, name: str, base: str) -> dict[str, Any]:
    model = LiteLLMModel(name, base, "sk-none", QUICK)
    async for _ in model.stream(ROUND, [TOOL]):
        pass
    (request,) = server.prompts
    return request.body


async def test_anthropics_cache_is_told_where_the_stable_parts_end() -> None:
    with ScriptedServer([Scripted("ok")]) as server:
        body = await sent(server, ANTHROPIC, server.origin)
        (request,) = server.prompts
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert marked(body["messages"]) == ["first answer"]
    assert request.headers.get("X-Api-Key", request.headers.get("x-api-key")) == "sk-none"


@pytest.mark.parametrize(
    "name", ["openrouter/anthropic/claude-sonnet-4.5", "openrouter/google/gemini-2.5-pro"]
)
async def test_through_openrouter_the_same_places_are_marked(name: str) -> None:
    with ScriptedServer([Scripted("ok")]) as server:
        body = await sent(server, name, server.url)
    assert marked(body["messages"]) == ["Be brief.", "first answer"]


@pytest.mark.parametrize("name", ["openai/scripted", "openrouter/openai/gpt-5", "deepseek/chat"])
async def test_who_caches_by_itself_is_sent_no_marks(name: str) -> None:
    with ScriptedServer([Scripted("ok")]) as server:
        body = await sent(server, name, server.url)
    assert "cache_control" not in json.dumps(body)


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("vertex_ai/gemini-2.5-pro", False),
        ("bedrock/meta.llama3-70b-instruct-v1:0", False),
        ("gemini/gemini-flash-latest", False),
    ],
)
def test_only_models_whose_provider_caches_what_is_marked_are_sent_marks(
    name: str, takes: bool
) -> None:
    assert takes_cache_marks(name) is takes


def post(url: str, **body: Any) -> tuple[int, bytes]:
    from urllib.error import HTTPError
    from urllib.request import Request as Post

    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(Post(url, json.dumps(body).encode()), timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def test_the_endpoint_follows_its_script_and_records_what_it_was_asked() -> None:
    def echo(request: Request) -> Scripted:
        return Scripted(request.messages[-1]["content"].upper())

    with ScriptedServer([Scripted("one"), echo], strict=True) as server:
        url = f"{server.url}/chat/completions"
        assert json.loads(post(url, messages=[])[1])["choices"][0]["message"]["content"] == "one"
        said = [{"role": "user", "content": "hey"}]
        assert json.loads(post(url, messages=said)[1])["choices"][0]["message"]["content"] == "HEY"
        assert post(url, messages=[])[0] == 400, "the script has run out"
        assert server.prompts[1].messages == said


def test_the_endpoint_runs_from_a_shell_with_a_script_in_a_file(tmp_path: Path) -> None:
    script, record = tmp_path / "script.json", tmp_path / "record.jsonl"
    script.write_text(json.dumps([{"text": "Hello."}, {"text": "busy", "status": 429}]))
    command = [
        sys.executable,
        "-m",
        "tests.scripted_server",
        "--script",
        str(script),
        "--record",
        str(record),
    ]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip() + "/chat/completions"
        try:
            assert b"Hello." in post(url, messages=[{"role": "user", "content": "Hi"}])[1]
            assert post(url, messages=[])[0] == 429
        finally:
            process.terminate()
    assert json.loads(record.read_text().splitlines()[0])["body"]["messages"][0]["content"] == "Hi"
