"""What the user states is kept whether the model writes it or not, and a claim is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.agent.capture import NOTHING_WRITTEN, claims_a_write
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
