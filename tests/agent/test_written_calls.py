"""What models write in place of calls and answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import NoticeGiven, TextRevoked
from kbtui.agent.own_calls import are_own
from kbtui.history.change import Actor
from kbtui.models.port import ToolCall
from tests.agent.conftest import ask, assert_sound, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")
WRITE = call("write_entry", kind="person", title="Alice", body="Leads the frontend.")
AS_JSON = {
    "name": "write_entry",
    "arguments": {"kind": "person", "title": "Alice", "body": "Leads the frontend."},
}
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


async def test_a_call_after_a_sentence_is_made_and_kept_as_a_call(
    kb: KnowledgeBase, session: Session
) -> None:
    text = f"I note that.\n<tool_call>\n{json.dumps(AS_JSON)}\n</tool_call>"
    with ScriptedServer([Reply(text, piece=5), Reply("Noted.")]) as server:
        told = await ask(kb, session, "Alice leads the frontend. Note that.", model_at(server))
        assert_sound(server.prompts[1].messages)
    assert told.used == [("write_entry", True)]
    kept = [each.content for each in session.messages if each.role == "assistant"]
    assert [each.strip() for each in kept] == ["I note that.", "Noted."]


async def test_a_broken_call_after_a_sentence_is_neither_shown_nor_kept_and_it_is_said(
    kb: KnowledgeBase, session: Session
) -> None:
    broken = f"<tool_call>\n{json.dumps(AS_JSON)[:-9]}"
    with ScriptedServer([Reply(f"I note that.\n{broken}")]) as server:
        told = await ask(kb, session, "Alice leads the frontend. Note that.", model_at(server))
        assert not told.used
        assert "tool_call" not in told.text + told.finished.text
        notices = [each.text for each in told.events if isinstance(each, NoticeGiven)]
        assert notices == [
            "The model wrote a call of a tool that can't be read; nothing came of it."
        ]
        assert "tool_call" not in session.messages[-1].content
        again = await ask(kb, session, f"What is wrong with this: {broken}", model_at(server))
    assert broken.strip() in again.finished.text, "it is quoted"


async def test_a_call_that_a_note_holds_is_quoted_and_not_made(
    kb: KnowledgeBase, session: Session
) -> None:
    text = json.dumps({**AS_JSON, "arguments": {"kind": "person", "title": "Mallory"}})
    kb.library.create("topic", "Log", body=f"It wrote:\n\n```\n{text}\n```\n")
    with ScriptedServer([Reply(f"The log says:\n```json\n{text}\n```")]) as server:
        told = await ask(kb, session, f"What is this: {text}", model_at(server))
    assert not told.used
    assert text in told.finished.text
    assert "Mallory" not in [info.title for info in kb.library.infos()]


async def test_an_example_of_a_call_is_shown_to_who_asks_about_calls(
    kb: KnowledgeBase, session: Session
) -> None:
    text = f"```json\n{json.dumps(AS_JSON)}\n```"
    with ScriptedServer([Reply(text)]) as server:
        told = await ask(kb, session, "What does a tool call look like?", model_at(server))
    assert not told.used
    assert told.finished.text.strip() == text


async def test_a_rename_that_was_written_as_text_waits_for_a_person(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("person", "Alice", actor=Actor.AGENT)
    asked = {"name": "rename_entry", "arguments": {"entry": "alice", "new_name": "Alice Ash"}}
    replies = [Reply(f"<tool_call>{json.dumps(asked)}</tool_call>"), Reply("It waits.")]
    with ScriptedServer(replies) as server:
        told = await ask(kb, session, "Rename Alice to Alice Ash.", model_at(server))
    (waiting,) = kb.memory.inbox.list()
    assert told.tools[0].proposal == waiting.id
    assert kb.library.find("Alice").path == "knowledge/people/alice.md"


async def test_thoughts_that_are_known_by_their_end_are_taken_back(
    kb: KnowledgeBase, session: Session
) -> None:
    text = "The user wonders. Ottokar, I guess.\n</think>\n\nIt is in the cellar."
    with ScriptedServer([Reply(text, piece=7)]) as server:
        told = await ask(kb, session, "Where is the boiler?", model_at(server))
    assert TextRevoked in [type(event) for event in told.events]
    assert told.finished.text == "It is in the cellar."
    assert [each.content for each in session.messages][1:] == ["It is in the cellar."]


@pytest.mark.parametrize(
    "asked",
    [
        "How does a tool call look?",
        "Zeig mir einen Werkzeugaufruf.",
        "¿Qué es una llamada a función?",
        "C'est quoi, un appel d'outil ?",
        "Che cos'è una chiamata di funzione?",
    ],
)
def test_who_asks_about_calls_gets_examples_in_any_language(asked: str) -> None:
    assert not are_own([ToolCall("1", "write_entry", "{}")], asked, [])


def test_a_call_in_what_was_given_is_no_own_one_whatever_its_form() -> None:
    arguments = {"title": "Boiler “B”", "body": "It is 1.6 bar.\nSince May."}
    own = [ToolCall("1", "write_entry", json.dumps(arguments))]
    note = f"The log says: {json.dumps({'arguments': arguments, 'name': 'write_entry'})}"
    assert are_own(own, "Write down the pressure.", ["Boiler “B”: It is 1.6 bar. Since May."])
    assert not are_own(own, "What does the log say?", [note])
    assert not are_own(
        own, "And now?", ['write_entry(title="Boiler “B”", body="It is 1.6 bar.\nSince May.")']
    )
