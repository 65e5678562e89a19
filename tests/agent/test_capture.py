"""What the user states is kept whether the model writes it or not, and a claim is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.agent.capture import NOTHING_WRITTEN, claims_a_write
from kbtui.agent.events import ToolStarted, TurnFailed
from kbtui.history.objects.commit import Actor
from tests.agent.conftest import ask, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

SAID = "Maria is the new product manager, she works from Lisbon"


async def _turn(kb: KnowledgeBase, session: Session, text: str, *replies: Reply):
    with ScriptedServer(list(replies)) as server:
        return await ask(kb, session, text, model_at(server))


async def test_what_the_model_did_not_write_is_kept_and_shown_as_a_step(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await _turn(kb, session, SAID, Reply("Good to know!"))
    assert told.used == [("keep", True)]
    assert SAID in kb.library.find("Maria").body
    (change,) = told.finished.changes
    assert "knowledge/people/maria.md" in change.paths
    (commit, *_) = kb.history.log("knowledge/people/maria.md")
    assert commit.origin.turn == told.finished.turn
    assert told.finished.text == "Good to know!"


async def test_a_step_that_the_model_did_not_take_is_not_shown_to_it_as_its_own(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("Good to know!"), Reply("It is Lisbon.")]) as server:
        for text in (SAID, "where does she work from?"):
            await ask(kb, session, text, model_at(server))
        told = server.prompts[-1].messages
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    assert not any(message.get("tool_calls") for message in told)


async def test_what_was_said_to_a_model_that_fails_is_kept_and_once_only(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(""), Reply(""), Reply("Good to know!")]) as server:
        failed = await ask(kb, session, SAID, model_at(server))
        assert failed.used == [("keep", True)]
        assert "empty answer" in failed.failed.error
        assert SAID in kb.library.find("Maria").body
        again = await ask(kb, session, SAID, model_at(server))
    assert again.text == "Good to know!"
    assert kb.library.find("Maria").body.count("Lisbon") == 1


async def test_a_stop_while_it_is_kept_after_a_failure_ends_the_turn(
    kb: KnowledgeBase, session: Session
) -> None:
    events = []
    with ScriptedServer([Reply(""), Reply("")]) as server:
        async for event in kb.agent.turn(session, SAID, model=model_at(server)):
            events.append(event)
            if isinstance(event, ToolStarted):
                kb.agent.stop(session.id)
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].cancelled
    assert SAID in kb.library.find("Maria").body


async def test_what_the_model_wrote_itself_is_not_kept_twice(
    kb: KnowledgeBase, session: Session
) -> None:
    body = "Maria is the new product manager and works from Lisbon."
    write = call("write_entry", type="person", title="Maria", body=body)
    told = await _turn(kb, session, SAID, Reply(tool_calls=[write]), Reply("I've saved it."))
    assert told.used == [("write_entry", True)]
    assert NOTHING_WRITTEN not in told.finished.text


async def test_a_claim_to_have_written_what_was_not_is_marked(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await _turn(kb, session, "who is Maria?", Reply("I've saved that in people/maria."))
    assert told.finished.text.endswith(NOTHING_WRITTEN)
    assert told.text == told.finished.text
    assert session.messages[-1].content.endswith(NOTHING_WRITTEN)
    assert kb.library.infos() == []


async def test_a_write_that_failed_is_marked_whatever_the_answer_says(
    kb: KnowledgeBase, session: Session
) -> None:
    edit = call("edit_entry", entry="berlin", append="- big")
    told = await _turn(kb, session, "thanks!", Reply(tool_calls=[edit]), Reply("You're welcome."))
    assert told.used == [("edit_entry", False)]
    assert told.finished.text.startswith("You're welcome.\n\n**Not written:** There is no entry")
    assert told.text == told.finished.text == session.messages[-1].content


async def test_a_write_that_failed_and_was_made_good_is_not_marked(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("topic", "Berlin", body="A city.")
    new = call("write_entry", type="topic", title="Berlin", body="Big.")
    edit = call("edit_entry", entry="topics/berlin", append="- big")
    replies = [Reply(tool_calls=[new]), Reply(tool_calls=[edit]), Reply("Noted.")]
    told = await _turn(kb, session, "thanks!", *replies)
    assert told.used == [("write_entry", False), ("edit_entry", True)]
    assert told.finished.text == "Noted."


async def test_what_is_not_kept_is_told_and_kept_when_asked_for(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await _turn(kb, session, "the sky looks odd", Reply("Does it?"))
    assert told.finished.not_kept == "the sky looks odd"
    kept = kb.agent.keep(session, told.events[0].message)
    assert kept.commit is not None
    assert kept.commit.actor is Actor.YOU
    assert kept.commit.origin.turn == told.finished.turn
    assert "the sky looks odd" in (kb.workspace.root / kept.outcomes[0].path).read_text()


@pytest.mark.parametrize("text", ["thanks!", "what if we moved to Mars?", "write me a poem"])
async def test_nothing_is_kept_of_what_states_nothing(
    kb: KnowledgeBase, session: Session, text: str
) -> None:
    told = await _turn(kb, session, text, Reply("Sure."))
    assert not told.used
    assert kb.library.infos() == []


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("Here's the entry for that: decision/2026-11-auth.", True),
        ("I've noted that.", True),
        ("Noted in people/alice.", True),
        ("Das habe ich notiert.", True),
        ("He guardado la cita.", True),
        ("Maria works in Lisbon [1].", False),
        ("You told me that on Monday.", False),
    ],
)
def test_claims_are_recognised(answer: str, claims: bool) -> None:
    assert claims_a_write(answer) is claims
