"""Chat models through litellm, against a real server on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

import pytest

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelUnreachableError,
)
from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import (
    Message,
    Reply,
    ReplyReasoning,
    ReplyRetry,
    ReplyText,
    ToolCall,
    ToolSpec,
)
from tests.patience import PATIENCE
from tests.scripted_server import Reply as Scripted, ScriptedServer, call, stream_length

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
ASK = [Message("system", "Be brief."), Message("user", "Hi")]
TOOL = ToolSpec(
    "read_entry",
    "Read an entry.",
    {"type": "object", "properties": {"entry": {"type": "string"}}, "required": ["entry"]},
)
QUICK = ModelOptions(first_token_seconds=5, idle_seconds=5, backoff_seconds=0.01)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Imports once, so that no test's patience is spent on it."""
    litellm_model.warm_up()


def model_at(
    server: ScriptedServer, options: ModelOptions = QUICK, name: str = "openai/scripted"
) -> LiteLLMModel:
    return LiteLLMModel(name, server.url, KEY, options)


async def said_by(model: LiteLLMModel, *tools: ToolSpec) -> tuple[list[Any], Reply]:
    events = [event async for event in model.stream(ASK, tools)]
    assert isinstance(events[-1], Reply)
    return events[:-1], events[-1]


async def test_an_answer_streams_in_pieces_and_ends_with_the_whole() -> None:
    with ScriptedServer([Scripted("Hello there, my friend.")]) as server:
        pieces, reply = await said_by(model_at(server))
    assert [type(piece) for piece in pieces] == [ReplyText, ReplyText]
    assert "".join(piece.text for piece in pieces) == reply.text == "Hello there, my friend."
    assert reply.finish == "stop"
    assert reply.usage.prompt_tokens == 11
    assert reply.usage.completion_tokens == 4
    assert reply.usage.cost_usd == 0.0


async def test_what_is_sent_is_the_prompt_the_tools_and_the_key() -> None:
    history = [
        *ASK,
        Message("assistant", "", (ToolCall("c1", "read_entry", '{"entry": "alice"}'),)),
        Message("tool", "Alice owns it.", tool_call_id="c1", name="read_entry"),
    ]
    with ScriptedServer([Scripted("ok")]) as server:
        async for _ in model_at(server).stream(history, [TOOL]):
            pass
        (request,) = server.prompts
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "scripted"
    assert request.tools == ["read_entry"]
    assert [message["role"] for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert request.messages[2]["tool_calls"][0]["function"]["arguments"] == '{"entry": "alice"}'
    assert request.messages[3]["tool_call_id"] == "c1"


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    script = Scripted(
        "Let me look.",
        tool_calls=[call("read_entry", entry="alice"), call("read_entry", entry="bob")],
        piece=3,
    )
    with ScriptedServer([script]) as server:
        _, reply = await said_by(model_at(server), TOOL)
    assert reply.finish == "tool_calls"
    assert [json.loads(each.arguments)["entry"] for each in reply.tool_calls] == ["alice", "bob"]
    assert [each.id for each in reply.tool_calls] == ["call_1", "call_2"]


async def test_servers_that_give_every_call_the_same_index_or_id_are_understood() -> None:
    calls = [call("read_entry", entry="alice"), call("read_entry", entry="bob")]
    same_id = [{**each, "id": "x"} for each in calls]
    with ScriptedServer(
        [Scripted(tool_calls=calls, one_index=True, piece=100), Scripted(tool_calls=same_id)]
    ) as server:
        _, by_index = await said_by(model_at(server), TOOL)
        _, by_id = await said_by(model_at(server), TOOL)
    for reply in (by_index, by_id):
        assert [json.loads(each.arguments)["entry"] for each in reply.tool_calls] == [
            "alice",
            "bob",
        ]
        assert len({each.id for each in reply.tool_calls}) == 2


WRITTEN = '{"name": "read_entry", "arguments": {"entry": "alice"}}'


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        (WRITTEN, ["alice"]),
        (f"  {WRITTEN}\n```", ["alice"]),
        (f"```json\n{WRITTEN}\n```", ["alice"]),
        (f"<tool_call>\n{WRITTEN}\n</tool_call>\n" * 2, ["alice", "alice"]),
        ('{"name": "read_entry", "parameters": {"entry": "bob"}}', ["bob"]),
        ('{"tool": "read_entry", "input": {"entry": "bob"}}', ["bob"]),
        ('{"function": "read_entry", "args": {"entry": "bob"}}', ["bob"]),
        ('{"type": "read_entry", "entry": "bob"}', ["bob"]),
        ('```\n{"action": "read_entry", "entry": "bob"}\n```', ["bob"]),
        ('{"name": "read_entry", "arguments": "{\\"entry\\": \\"bob\\"}"}', ["bob"]),
        (
            '{"type": "function", "function": {"name": "read_entry", "arguments": {"entry": "bob"}}}',
            ["bob"],
        ),
        (f'{{"tool_calls": [{WRITTEN}]}}', ["alice"]),
        (f'[{WRITTEN},\n {{"tool": "read_entry", "entry": "bob"}}]', ["alice", "bob"]),
        (f"{WRITTEN}\n\nI have read it.", ["alice"]),
    ],
)
async def test_a_call_that_a_server_left_in_the_text_is_a_call_and_not_shown(
    text: str, entries: list[str]
) -> None:
    with ScriptedServer([Scripted(text, piece=5)]) as server:
        pieces, reply = await said_by(model_at(server), TOOL)
    assert [json.loads(each.arguments)["entry"] for each in reply.tool_calls] == entries
    assert (reply.text, reply.finish, pieces) == ("", "tool_calls", [])


@pytest.mark.parametrize(
    "text",
    [
        f"Call this: {WRITTEN}",
        "```python\nprint(1)\n```",
        '{"a": 1}\nThat is what it looks like.',
        "[1] says so.",
        "{name} is a place for a name.",
        "[" * 5,
        "{" + " ".join(map(str, range(2_000))),
    ],
)
async def test_what_is_no_call_of_a_tool_on_offer_stays_text(text: str) -> None:
    with ScriptedServer([Scripted(text, piece=5)]) as server:
        pieces, reply = await said_by(model_at(server), TOOL)
    assert reply.text == text
    assert "".join(piece.text for piece in pieces) == text
    assert (reply.tool_calls, reply.is_data) == ((), False)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "another_tool", "arguments": {}}',
        '{"entry": "alice"}',
        '{"name": ["read_entry"], "arguments": {}}',
        '{"name": {"read_entry": 1}}',
        f'[{WRITTEN}, {{"entry": "bob"}}]',
        '```json\n{"a": [',
        '{"name": "read_entry", "arguments": {"entry": ',
        "{}",
    ],
)
async def test_json_that_calls_nothing_is_held_back_and_marked(text: str) -> None:
    with ScriptedServer([Scripted(text, piece=5)]) as server:
        pieces, reply = await said_by(model_at(server), TOOL)
    assert (pieces, reply.text, reply.tool_calls, reply.is_data) == ([], text, (), True)


async def test_reasoning_is_told_apart_from_the_answer() -> None:
    with ScriptedServer(
        [
            Scripted("Yes.", reasoning="Is it so?"),
            Scripted("<think>Is it so?</think>\n\nYes.", piece=3),
        ]
    ) as server:
        for _ in range(2):
            pieces, reply = await said_by(model_at(server))
            reasoning = [piece.text for piece in pieces if isinstance(piece, ReplyReasoning)]
            assert "".join(reasoning) == "Is it so?"
            assert reply.text == "Yes."


@pytest.mark.parametrize("cut", ["chunked", "clean", "eof"])
async def test_a_stream_cut_anywhere_before_its_end_marker_is_an_error(cut: Any) -> None:
    script = Scripted("Hello there, my friend.", tool_calls=[call("read_entry", entry="alice")])
    marker = stream_length(script, stream_options={}) - len(b"data: [DONE]\n\n") - 170
    places = [0, 1, *range(90, marker, 173), marker]
    with ScriptedServer(
        [Scripted(script.text, script.tool_calls, cut_at=at, cut=cut) for at in places]
    ) as server:
        model = model_at(server)
        for at in places:
            with pytest.raises((ModelAnswerError, ModelUnreachableError)):
                await said_by(model, TOOL)
            assert at <= marker


async def test_an_end_marker_without_done_is_an_end() -> None:
    with ScriptedServer([Scripted("Hello.", done=False)]) as server:
        _, reply = await said_by(model_at(server))
    assert reply.text == "Hello."


async def test_an_answer_that_ends_with_done_and_no_reason_is_an_end() -> None:
    with ScriptedServer([Scripted("Hello.", finish=None), Scripted(finish=None)]) as server:
        model = model_at(server, ModelOptions(retries=0))
        _, reply = await said_by(model)
        assert (reply.text, reply.finish) == ("Hello.", "stop")
        with pytest.raises(ModelAnswerError):  # nothing was said
            await said_by(model)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>Welcome to the hotel</body></html>", b"data: [DONE]\n\n", b"data: {\n\n"],
)
async def test_an_answer_that_is_not_the_protocol_is_an_error(body: bytes) -> None:
    with ScriptedServer([Scripted(body=body)]) as server, pytest.raises(ModelAnswerError) as caught:
        await said_by(model_at(server))
    assert "Welcome" not in caught.value.message


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop")],
)
async def test_the_finish_reason_is_passed_on(finish: str, expected: str) -> None:
    with ScriptedServer([Scripted("Hello", finish=finish)]) as server:
        _, reply = await said_by(model_at(server))
    assert reply.finish == expected


async def test_nothing_within_the_first_wait_is_unreachable() -> None:
    options = ModelOptions(first_token_seconds=0.3, idle_seconds=5)
    with ScriptedServer([Scripted("Hello", stall_at=0)]) as server:
        with pytest.raises(ModelUnreachableError, match=r"sent nothing for 0\.3 seconds"):
            await said_by(model_at(server, options))
        while not server.prompts:  # noqa: ASYNC110 - the server may still be about to read it
            await asyncio.sleep(0.01)
        assert len(server.prompts) == 1


@pytest.mark.slow
async def test_a_stall_in_the_middle_ends_after_the_idle_wait() -> None:
    script = Scripted(
        "Hello there, my friend.", stall_at=stream_length(Scripted("Hello there, ")) - 400
    )
    options = ModelOptions(first_token_seconds=30, idle_seconds=3)
    with ScriptedServer([script]) as server:
        stream = model_at(server, options).stream(ASK)
        assert await anext(stream) == ReplyText("Hello there,")
        with pytest.raises(ModelUnreachableError, match="stopped in the middle"):
            await anext(stream)
        assert server.disconnected.wait(PATIENCE), "the connection is closed as well"


async def test_closing_the_stream_cancels_the_request_at_once() -> None:
    with ScriptedServer([Scripted("word " * 50_000, delay=0.02)]) as server:
        stream = model_at(server).stream(ASK)
        first = await anext(stream)
        assert isinstance(first, ReplyText)
        await stream.aclose()  # type: ignore[attr-defined]
        assert server.disconnected.wait(PATIENCE)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_trouble_is_tried_again(status: int) -> None:
    with ScriptedServer(
        [Scripted("busy", status=status), Scripted("busy", status=status), Scripted("Hello.")]
    ) as server:
        _, reply = await said_by(model_at(server))
        assert len(server.prompts) == 3
    assert reply.text == "Hello."


@pytest.mark.parametrize(
    ("status", "error", "tries", "words"),
    [
        (401, ModelAccessError, 1, "refused the key"),
        (402, ModelAccessError, 1, "paid"),
        (403, ModelAccessError, 1, "refused the key"),
        (404, ModelAccessError, 1, "doesn't know the model openai/scripted"),
        (400, ModelError, 1, "rejected the request"),
        (429, ModelOverloadedError, 3, "limit of requests"),
        (500, ModelOverloadedError, 3, "failed with 500"),
        (503, ModelOverloadedError, 3, "failed with 503"),
    ],
)
async def test_each_refusal_is_said_in_a_sentence_with_a_hint(
    status: int, error: type[ModelError], tries: int, words: str
) -> None:
    with ScriptedServer([Scripted(f"Bad: key {KEY} \x1b[31m", status=status)]) as server:
        with pytest.raises(error) as caught:
            await said_by(model_at(server))
        assert len(server.prompts) == tries
        port = str(server.port)
    assert words in caught.value.message
    assert port in caught.value.message
    assert caught.value.hint
    assert KEY not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "litellm" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_wait_that_the_provider_asks_for_is_kept_unless_it_is_long() -> None:
    with ScriptedServer(
        [Scripted("busy", status=429, headers={"Retry-After": "0"}), Scripted("Hello.")]
    ) as server:
        _, reply = await said_by(model_at(server, ModelOptions(backoff_seconds=60)))
    assert reply.text == "Hello."
    with ScriptedServer([Scripted("busy", status=429, headers={"Retry-After": "3600"})]) as server:
        with pytest.raises(ModelOverloadedError):
            await said_by(model_at(server))
        assert len(server.prompts) == 1


async def test_another_try_is_told_with_its_reason() -> None:
    with ScriptedServer([Scripted("busy", status=503), Scripted("Hello.")]) as server:
        events, reply = await said_by(model_at(server))
    retry = next(each for each in events if isinstance(each, ReplyRetry))
    assert (retry.attempt, retry.attempts) == (1, 2)
    assert "failed with 503" in retry.error
    assert reply.text == "Hello."


@pytest.mark.parametrize(
    ("base", "set_to", "seconds"),
    [
        ("http://127.0.0.1:8080/v1", None, 900),
        ("https://models.example.com/v1", None, 60),
        ("http://localhost:8080/v1", 5, 5),
    ],
)
def test_a_model_on_this_machine_gets_longer_for_its_first_piece(
    base: str, set_to: float | None, seconds: float
) -> None:
    model = LiteLLMModel("openai/x", base, options=ModelOptions(first_token_seconds=set_to))
    assert model.first_token_seconds == seconds


async def test_nothing_is_tried_again_once_text_was_streamed() -> None:
    with ScriptedServer([Scripted("Hello there, my friend.", cut_at=600)]) as server:
        with pytest.raises(ModelError):
            await said_by(model_at(server))
        assert len(server.prompts) == 1


async def test_an_unreachable_endpoint_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("openai/scripted", "ollama_chat/qwen3:8b", "mistral/mistral-small-latest"):
        with pytest.raises(ModelUnreachableError) as caught:
            await said_by(LiteLLMModel(name, f"http://127.0.0.1:{port}/v1", KEY, QUICK))
        assert f"Can't reach 127.0.0.1:{port}" in caught.value.message
        assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai/gpt-5.4-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-flash-latest", "GEMINI_API_KEY"),
        ("no-such-model", "provider/model"),
    ],
)
async def test_a_missing_key_or_unknown_provider_is_found_before_anything_is_sent(
    name: str, words: str
) -> None:
    with pytest.raises(ModelAccessError) as caught:
        await said_by(LiteLLMModel(name, options=QUICK))
    assert words in caught.value.hint


async def test_a_providers_key_never_goes_to_another_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer([Scripted("ok")]) as server:
        await said_by(LiteLLMModel("openai/scripted", server.url, options=QUICK))
        (request,) = server.prompts
    assert KEY not in json.dumps(request.headers)


async def test_a_bare_name_at_an_endpoint_speaks_the_openai_protocol() -> None:
    with ScriptedServer([Scripted("ok")]) as server:
        await said_by(model_at(server, name="qwen/qwen3-8b"))
        (request,) = server.prompts
    assert request.body["model"] == "qwen/qwen3-8b"


async def test_a_whole_answer_comes_at_once() -> None:
    with ScriptedServer(
        [Scripted("<think>hm</think>Hello.", tool_calls=[call("read_entry", entry="a")])]
    ) as server:
        reply = await model_at(server).complete(ASK, [TOOL])
        assert "stream" not in server.prompts[0].body
    assert reply.text == "Hello."
    assert reply.tool_calls == (ToolCall("call_1", "read_entry", '{"entry": "a"}'),)
    assert reply.usage.prompt_tokens == 11


async def test_a_whole_answer_that_is_cut_is_an_error() -> None:
    for cut in ("chunked", "clean", "eof"):
        script = Scripted("Hello there, my friend.", cut_at=150, cut=cut)
        with ScriptedServer([script]) as server, pytest.raises(ModelError):
            await model_at(server, ModelOptions(retries=0)).complete(ASK)


async def test_the_callers_loop_keeps_running_while_an_answer_comes_in() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with ScriptedServer([Scripted(" ".join(map(str, range(40))), piece=5, delay=0.02)]) as server:
        await said_by(model_at(server))
    ticking.cancel()
    assert ticks > 3, "blocked, it would have ticked once at most"


async def test_nothing_reaches_the_terminal_or_the_log_but_what_is_ours(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        ScriptedServer(
            [Scripted(f"bad {KEY}", status=401), Scripted("ok"), Scripted("x", cut_at=300)]
        ) as server,
    ):
        for _ in range(3):
            with suppress(ModelError):
                await said_by(model_at(server))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert KEY not in caplog.text
    assert "Be brief." not in caplog.text


async def test_litellm_looks_up_no_other_host_and_has_no_callbacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def note(host: Any, *args: Any, **options: Any) -> Any:
        looked_up.append(str(host))
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", note)
    with ScriptedServer([Scripted("ok", tool_calls=[call("read_entry", entry="a")])]) as server:
        await said_by(model_at(server), TOOL)
        await model_at(server).complete(ASK, [TOOL])
    assert set(looked_up) <= {"127.0.0.1"}
    engine = litellm_model._load()
    for name in (
        "callbacks",
        "success_callback",
        "failure_callback",
        "input_callback",
        "service_callback",
    ):
        assert getattr(engine, name) == []
    assert {
        thread.name for thread in threading.enumerate() if "telemetry" in thread.name.lower()
    } == set()


async def test_a_request_with_tools_loads_no_mcp_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chat_completions_handler", "litellm_proxy_mcp_handler"):
        monkeypatch.setitem(sys.modules, f"litellm.responses.mcp.{name}", None)
    with ScriptedServer([Scripted("ok")]) as server:
        _, reply = await said_by(model_at(server), TOOL)
        await model_at(server).complete(ASK, [TOOL])
    assert reply.text == "ok"
    for request in server.prompts:
        assert not [name for name in request.body if "mcp" in name]


def test_what_litellm_made_is_no_work_for_the_garbage_collector() -> None:
    litellm_model._load()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 100_000


async def test_a_model_that_repeats_itself_without_end_is_stopped() -> None:
    script = Scripted("word " * 2000, piece=5)
    with (
        ScriptedServer([script]) as server,
        pytest.raises(ModelAnswerError, match="repeating itself"),
    ):
        await said_by(model_at(server))


def test_the_window_is_as_set_or_as_known_or_a_guess() -> None:
    assert LiteLLMModel("openai/gpt-4o-mini").context_window == 128_000
    assert (
        LiteLLMModel("openai/gpt-4o-mini", options=ModelOptions(context_window=9)).context_window
        == 9
    )
    assert (
        LiteLLMModel("ollama_chat/qwen3:8b").context_window == litellm_model.OLLAMA_CONTEXT_WINDOW
    )
    assert LiteLLMModel("openai/unheard-of").context_window == litellm_model.DEFAULT_CONTEXT_WINDOW


def test_a_key_does_not_show_in_a_representation() -> None:
    assert KEY not in repr(LiteLLMModel("openai/x", None, KEY))


def test_what_nobody_runs_locally_has_a_price() -> None:
    price = litellm_model._price("openai/gpt-4o-mini", 1000, 1000, None)
    assert price is not None
    assert 0 < price < 0.01
    assert litellm_model._price("openai/unheard-of", 1000, 1000, None) is None
