"""What small models write in place of calls and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agent.conftest import ask, assert_sound, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")
WRITE = call("write_entry", kind="person", title="Alice", body="Leads the frontend.")
DATA = '{"lead": "Alice"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "write_entry", "kind": "person", "title": "Alice", "body": "Leads."}',
        '```json\n{"tool": "write_entry", "args": {"type": "person", "title": "Alice"}}\n```',
    ],
)
async def test_a_call_that_was_written_as_text_is_made(
    kb: KnowledgeBase, session: Session, text: str
) -> None:
    with ScriptedServer([Reply(text, piece=7), Reply("Noted.")]) as server:
        told = await ask(kb, session, "Alice leads the frontend. Note that.", model_at(server))
        assert_sound(server.prompts[1].messages)
    assert (told.used, told.text) == ([("write_entry", True)], "Noted.")
    assert kb.library.find("Alice").type == "person"


async def test_json_in_place_of_an_answer_is_asked_for_once_more_and_not_shown(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(DATA), Reply("Alice does.")]) as server:
        told = await ask(kb, session, "Who leads the frontend?", model_at(server))
        again = server.prompts[1].messages
    assert told.text == told.finished.text == "Alice does."
    assert_sound(again)
    assert again[-1]["content"].startswith("That was JSON that calls no tool: call one of")
    assert "write_entry" in again[-1]["content"]
    assert [each.content for each in session.messages] == ["Who leads the frontend?", "Alice does."]


async def test_json_that_comes_again_is_shown_as_a_block(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(DATA)]) as server:
        told = await ask(kb, session, "Give me that as JSON.", model_at(server))
        assert len(server.prompts) == 2
    assert told.text == told.finished.text == f"```json\n{DATA}\n```"


async def test_nothing_said_after_a_write_ends_the_turn(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(tool_calls=[WRITE]), Reply("")]) as server:
        told = await ask(kb, session, "Note that Alice leads the frontend.", model_at(server))
        assert len(server.prompts) == 2
        assert told.finished.text == ""
        assert "knowledge/people/alice.md" in told.finished.changes[0].paths
        server.enqueue(Reply("Alice."))
        again = await ask(kb, session, "Who does?", model_at(server))
        assert_sound(server.prompts[2].messages)
    assert again.finished.text == "Alice."


async def test_nothing_said_after_a_write_that_failed_still_says_so(
    kb: KnowledgeBase, session: Session
) -> None:
    other = call("write_entry", kind="person", title="Alice")
    with ScriptedServer(
        [Reply(tool_calls=[WRITE]), Reply(tool_calls=[other]), Reply("")]
    ) as server:
        told = await ask(kb, session, "Note that Alice leads the frontend.", model_at(server))
    assert told.finished.text.startswith("**Not written:** ")


async def test_a_model_without_tools_is_shown_words_alone(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(tool_calls=[WRITE]), Reply("Noted.")]) as server:
        await ask(kb, session, "Alice leads the frontend.", model_at(server))
    refusal = "gemma2 does not support tools"
    with ScriptedServer([Reply(refusal, status=400), Reply("Alice.")]) as server:
        told = await ask(kb, session, "Who does?", model_at(server))
        asked = server.prompts[1].messages
    assert told.finished.text == "Alice."
    assert [each["role"] for each in asked] == ["system", "user", "assistant", "user"]
    assert "You have no tools here" in asked[0]["content"]
    assert "write_entry" not in asked[0]["content"]
