"""A model that holds less than was thought is asked once more, with what fits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.events import RetryStarted
from kbtui.models.port import estimate_tokens
from tests.agent.conftest import QUICK, ask, assert_sound, model_at
from tests.scripted_server import Reply, Request, ScriptedServer, call

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")
LONG = "The kiln was fired again and the glaze came out a little too green. " * 60


def narrow(
    window: int, *replies: Reply, characters: float = 4.0, told: bool = True
) -> Callable[[Request], Reply]:
    """A server's answer that refuses what is longer, as llama.cpp does, and else says `replies`."""
    waiting = list(replies)

    def answer(request: Request) -> Reply:
        whole = json.dumps([request.messages, request.body.get("tools")])
        tokens = int(len(whole) / characters)
        if tokens <= window:
            return waiting.pop(0)
        text = f"request ({tokens} tokens) exceeds the available context size ({window} tokens)"
        return Reply(text if told else "prompt is too long", status=400)

    return answer


def fill(session: Session, turns: int = 12) -> None:
    for number in range(turns):
        session.append("user", f"Question {number}: {LONG}")
        session.append("assistant", f"Answer {number}: {LONG}")


async def test_a_long_conversation_goes_on_in_the_window_that_a_refusal_names(
    kb: KnowledgeBase, session: Session
) -> None:
    fill(session)
    with ScriptedServer([narrow(8192, Reply("Green it is."), Reply("Yes."))]) as server:
        model = model_at(server)
        told = await ask(kb, session, "What colour was the glaze?", model)
        assert told.finished.text == "Green it is."
        (retry,) = [event for event in told.events if isinstance(event, RetryStarted)]
        assert "8,192 tokens" in retry.text
        assert len(server.prompts) == 2
        assert_sound(server.prompts[1].messages)
        assert "What colour was the glaze?" in server.prompts[1].messages[-1]["content"]
        assert model.context_window == 8192
        told = await ask(kb, session, "Really?", model)
        assert told.finished.text == "Yes."
        assert len(server.prompts) == 3, "from now on it fits at once"


async def test_where_tokens_were_estimated_too_low_the_prompt_is_as_much_shorter(
    kb: KnowledgeBase, session: Session
) -> None:
    fill(session)
    with ScriptedServer([narrow(16_384, Reply("Green."), characters=1.7)]) as server:
        told = await ask(kb, session, "What colour?", model_at(server))
        assert told.finished.text == "Green."
        assert len(server.prompts) == 2


async def test_what_tools_said_in_the_turn_stays_behind_the_shorter_prompt(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("topic", "Glaze", body="Copper makes it green.")
    fill(session, 3)
    window: Any = narrow(6000, Reply("Copper."))
    look = Reply(tool_calls=[call("read", path="glaze")])
    with ScriptedServer([look, window, window]) as server:
        told = await ask(kb, session, "Why is it green?", model_at(server))
        assert told.finished.text == "Copper."
        last = server.prompts[-1].messages
        assert_sound(last)
        assert "Copper makes it green." in last[-1]["content"]


@pytest.mark.parametrize(
    ("script", "asked", "words"),
    [
        (narrow(300), 2, "300 tokens"),
        (narrow(300, told=False), 1, "can hold"),
    ],
)
async def test_what_never_fits_is_said_after_one_more_try_at_most(
    kb: KnowledgeBase, session: Session, script: Any, asked: int, words: str
) -> None:
    with ScriptedServer([script]) as server:
        told = await ask(kb, session, "Hello?", model_at(server))
        assert words in told.failed.error
        assert told.failed.hint
        assert len(server.prompts) == asked


async def test_a_long_log_that_is_read_leaves_room_in_a_small_window(
    kb: KnowledgeBase, session: Session
) -> None:
    line = "2026-11-23 14:05:09,381 INFO worker[4711] took 83.204 ms bytes=518220\n"
    (kb.workspace.docs / "server.md").write_text(line * 500)
    look = Reply(tool_calls=[call("read", path="docs/server.md")])
    options = replace(QUICK, context_window=8_192)
    with ScriptedServer([look, Reply("It is slow.")]) as server:
        told = await ask(kb, session, "How slow is it?", model_at(server, options))
        assert told.finished.text == "It is slow."
        result = server.prompts[-1].messages[-1]["content"]
    assert estimate_tokens(result) <= 8_192 // 4 + 100
    assert "use from_line=" in result
