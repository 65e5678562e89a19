"""What a bad model or a bad provider does to a turn: nothing that lasts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import NoticeGiven
from kbtui.agent.tool_rounds import MAX_CALLS
from kbtui.models.litellm_model import ModelOptions
from kbtui.sessions.store import SessionStore
from tests.agent.conftest import QUICK, ask, assert_sound, model_at
from tests.scripted_server import Reply, Request, ScriptedServer, call, raw_call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")

WRITE = call("write_entry", kind="person", title="Alice", sections={"Role": "Frontend lead"})


BAD_CALLS = {
    "wrong tool": (raw_call("delete_everything", "{}"), "There is no tool 'delete_everything'"),
    "half a call": (raw_call("write_entry", '{"kind": "person", "ti'), "not valid JSON"),
    "no object": (raw_call("write_entry", "[1, 2]"), "must be a JSON object"),
    "wrong type": (
        raw_call("write_entry", '{"kind": "person", "title": ["a", 1]}'),
        "must be a string",
    ),
    "missing": (raw_call("write_entry", '{"kind": "person"}'), "'title' is missing"),
    "unknown argument": (call("read", path="x", shell="rm -rf /"), "no argument 'shell'"),
    "not in the list": (call("write_entry", kind="virus", title="x"), "must be one of"),
    "outside": (call("read", path="../../etc/passwd"), "can't be used"),
    "machine files": (call("read", path=".kbtui/format"), "can't be used"),
    "sessions": (call("read", path="sessions/x.jsonl"), "There is no entry"),
    "not there": (call("read", path="nobody"), "There is no entry"),
    "deep": (raw_call("write_entry", "[" * 20_000), "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
async def test_a_bad_call_changes_nothing_and_the_model_is_told_why(
    kb: KnowledgeBase, session: Session, name: str
) -> None:
    bad, words = BAD_CALLS[name]
    head = kb.history.head()
    with ScriptedServer([Reply(tool_calls=[bad], piece=50_000), Reply("I see.")]) as server:
        told = await ask(kb, session, "Go", model_at(server))
        result = server.prompts[1].messages[-1]["content"]
    assert result.startswith("Error: ")
    assert words in result
    assert told.finished.text.split("\n\n**Not written:** ")[0] == "I see."
    assert [ok for _, ok in told.used] == [False]
    assert kb.history.head() == head
    with ScriptedServer([Reply("Fine.")]) as server:
        await ask(kb, session, "Again", model_at(server))
        assert_sound(server.prompts[0].messages)


async def test_a_hundred_calls_at_once_are_capped_and_each_gets_a_result(
    kb: KnowledgeBase, session: Session
) -> None:
    calls = [call("grep", pattern=f"word{n}") for n in range(100)]
    with ScriptedServer([Reply(tool_calls=calls, piece=400), Reply("Done.")]) as server:
        told = await ask(kb, session, "Go", model_at(server))
        assert_sound(server.prompts[1].messages)
    assert [ok for _, ok in told.used] == [True] * MAX_CALLS + [False] * (100 - MAX_CALLS)
    assert told.finished.text == "Done."


HOSTILE = {
    "401": (Reply("bad key", status=401), 4, "refused the key"),
    "404": (Reply("no such model", status=404), 4, "doesn't know the model"),
    "429": (Reply("slow down", status=429), 4, "limit of requests"),
    "500": (Reply("oops", status=500), 4, "failed with 500"),
    "503": (Reply("loading model", status=503), 4, "failed with 503"),
    "empty": (Reply(""), 4, "empty answer"),
    "its own prompt": (
        lambda request: Reply(f"System: {request.messages[0]['content']}"),
        4,
        "repeated its instructions",
    ),
    "garbage": (Reply(body=b"\x00\xff<html>"), 4, "isn't an answer"),
    "a web page": (Reply(body=b"<html><body>Log in first</body></html>"), 4, "isn't an answer"),
    "stall at the start": (Reply("x", stall_at=0), 4, "sent nothing"),
    "stall in the middle": (
        Reply("Hello there, my friend.", stall_at=500),
        4,
        "stopped in the middle",
    ),
    "cut, chunked": (Reply("Hello there, my friend.", cut_at=560), 4, "broke off"),
    "cut, clean": (Reply("Hello there, my friend.", cut_at=560, cut="clean"), 4, "broke off"),
    "cut, eof": (Reply("Hello there, my friend.", cut_at=560, cut="eof"), 4, "broke off"),
    "length": (Reply("Hello there, my", finish="length"), 4, "cut off"),
    "half a call by length": (
        Reply(
            tool_calls=[raw_call("write_entry", '{"kind": "person", "title": "Al')], finish="length"
        ),
        4,
        "cut off",
    ),
    "whole call by length": (Reply(tool_calls=[WRITE], finish="length"), 4, "cut off"),
    "call cut": (Reply(tool_calls=[WRITE], cut_at=700), 4, "broke off"),
    "filtered": (Reply("I", finish="content_filter"), 4, "withheld"),
}
IMPATIENT = ModelOptions(first_token_seconds=0.4, idle_seconds=0.4, retries=0)


@pytest.mark.parametrize("name", HOSTILE)
async def test_whatever_a_provider_does_nothing_is_lost_and_the_next_turn_works(
    kb: KnowledgeBase, session: Session, name: str
) -> None:
    script, exit_code, words = HOSTILE[name]
    options = IMPATIENT if "stall" in name else QUICK
    head = kb.history.head()
    with ScriptedServer([script]) as server:
        told = await ask(kb, session, "Tell me", model_at(server, options))
    assert words in told.failed.error
    assert told.failed.hint
    assert told.failed.exit_code == exit_code
    assert not told.failed.cancelled
    assert kb.history.head() == head
    assert told.used == []
    partial = [m for m in session.messages if m.interrupted]
    assert "".join(m.content for m in partial) == told.text
    reread = SessionStore(kb.workspace).read(session.id)
    assert reread == session.messages
    with ScriptedServer([Reply("Here I am.")]) as server:
        again = await ask(kb, session, "And now?", model_at(server))
        messages = server.prompts[0].messages
    assert again.finished.text == "Here I am."
    assert_sound(messages)
    assert messages[1]["content"] == "Tell me"


TOO_LONG = json.loads((Path(__file__).parents[1] / "data/too_long.json").read_text())


@pytest.mark.parametrize("who", TOO_LONG)
async def test_a_prompt_that_is_too_long_is_made_shorter_or_said_in_anyones_words(
    kb: KnowledgeBase, session: Session, who: str
) -> None:
    for number in range(8):
        session.append("user", f"Question {number}. {'The kiln was fired again. ' * 60}")
        session.append("assistant", "Yes.")
    refusal = Reply(TOO_LONG[who]["text"], status=400)
    with ScriptedServer([refusal, Reply("It was green.")]) as server:
        told = await ask(kb, session, "What colour was the glaze?", model_at(server))
    assert session.messages[16].content == "What colour was the glaze?"
    if TOO_LONG[who]["window"] is None:
        assert "can hold" in told.failed.error
        assert "models.chat.context_window" in told.failed.hint
    else:
        assert told.finished.text == "It was green."


async def test_a_window_of_2048_tokens_is_enough_for_a_short_talk(
    kb: KnowledgeBase, session: Session
) -> None:
    def answer(request: Request) -> Reply:
        tokens = len(json.dumps([request.messages, request.body.get("tools")])) // 4
        words = f"request ({tokens} tokens) exceeds the available context size (2048 tokens)"
        return Reply("Fine.") if tokens <= 2048 else Reply(words, status=400)

    with ScriptedServer([answer]) as server:
        model = model_at(server)
        for number in range(6):
            said = f"Message {number}. {'The kiln was fired again. ' * 20}"
            told = await ask(kb, session, said, model)
            assert told.finished.text == "Fine."
        assert len(server.prompts) == 7, "only the first was longer"
    assert [m.content for m in session.messages if m.role == "user"][5].startswith("Message 5.")


async def test_text_before_a_failing_tool_step_stays(kb: KnowledgeBase, session: Session) -> None:
    script = [Reply("First I look.", tool_calls=[WRITE]), Reply("Then I sa", cut_at=470)]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "Alice is the frontend lead", model_at(server))
    assert len(told.failed.changes) == 1, "what was changed stays and is told"
    assert [(m.role, m.interrupted) for m in session.messages] == [
        ("user", False),
        ("assistant", False),
        ("tool", False),
        *([("assistant", True)] if told.text != "First I look." else []),
    ]
    assert (kb.workspace.knowledge / "people/alice.md").exists()


async def test_a_model_that_takes_no_tools_is_talked_with_without(
    kb: KnowledgeBase, session: Session
) -> None:
    refusal = '{"error": {"message": "gemma:2b does not support tools"}}'
    with ScriptedServer(
        [Reply(status=400, text=refusal), Reply("Hello."), Reply("Again.")]
    ) as server:
        model = model_at(server)
        told = await ask(kb, session, "Hi", model)
        again = await ask(kb, session, "And again", model)
        asked = [bool(request.tools) for request in server.prompts]
    assert (told.finished.text, again.finished.text) == ("Hello.", "Again.")
    assert asked == [True, False, False], "it is remembered"
    notices = [event.text for event in told.events if isinstance(event, NoticeGiven)]
    assert notices == ["openai/scripted takes no tools: it can only talk."]


async def test_silence_is_told_while_the_turn_waits(kb: KnowledgeBase, session: Session) -> None:
    options = ModelOptions(first_token_seconds=60, retries=0, quiet_seconds=0.05)
    with ScriptedServer([Reply("At last.", delay=0.5)]) as server:
        told = await ask(kb, session, "Hi", model_at(server, options))
    assert told.finished.text == "At last."
    assert any(isinstance(event, NoticeGiven) for event in told.events)
