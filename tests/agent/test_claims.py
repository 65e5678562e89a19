"""With a model nothing else writes, and an answer that claims a write is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.agent.turn import NOTHING_WRITTEN
from kbtui.history.change import Actor
from kbtui.offline.language import holds, of_all
from tests.agent.conftest import ask, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

SAID = "Maria is the new product manager, she works from Lisbon"


async def _turn(kb: KnowledgeBase, session: Session, text: str, *replies: Reply):
    with ScriptedServer(list(replies)) as server:
        return await ask(kb, session, text, model_at(server))


@pytest.mark.parametrize("replies", [[Reply("Good to know!")], [Reply(""), Reply("")]])
async def test_beside_a_model_no_rule_writes(
    kb: KnowledgeBase, session: Session, replies: list[Reply]
) -> None:
    told = await _turn(kb, session, SAID, *replies)
    assert told.used == []
    assert kb.library.infos() == []
    assert kb.journal.days() == []
    assert session.messages[0].content == SAID  # it is condensed later


async def test_a_claim_to_have_written_what_was_not_is_marked(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await _turn(kb, session, "who is Maria?", Reply("I've saved that in people/maria."))
    assert told.finished.text.endswith(NOTHING_WRITTEN)
    assert told.text == told.finished.text
    assert session.messages[-1].content.endswith(NOTHING_WRITTEN)


async def test_a_model_is_not_told_what_stands_below_its_answer_as_its_own_words(
    kb: KnowledgeBase, session: Session
) -> None:
    await _turn(kb, session, "who is Maria?", Reply("I've saved that in people/maria."))
    with ScriptedServer([Reply("Sorry.")]) as server:
        await ask(kb, session, "did you?", model_at(server))
        told = [each["content"] for each in server.prompts[0].messages]
    assert "I've saved that in people/maria." in told


@pytest.mark.parametrize(
    ("said", "is_marked"),
    [
        ("Remember that I prefer meetings in the afternoon", False),
        ("Remember that I prefer meetings at 9 in the morning", True),
        ("Remember that I prefer no meetings in the afternoon", True),
    ],
)
async def test_a_claim_is_true_where_the_notes_say_so_already(
    kb: KnowledgeBase, session: Session, said: str, is_marked: bool
) -> None:
    with kb.history.change(Actor.YOU, "test") as change:
        change.write("memory/MEMORY.md", "# Memory\n\n- Prefers meetings in the afternoon\n")
    kb.search.sync()
    told = await _turn(kb, session, said, Reply("I've noted that."))
    assert told.finished.text.endswith(NOTHING_WRITTEN) is is_marked


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
    new = call("write_entry", kind="topic", title="Berlin", body="Big.")
    edit = call("edit_entry", entry="topics/berlin", append="- big")
    replies = [Reply(tool_calls=[new]), Reply(tool_calls=[edit]), Reply("Noted.")]
    told = await _turn(kb, session, "thanks!", *replies)
    assert told.used == [("write_entry", False), ("edit_entry", True)]
    assert told.finished.text == "Noted."


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("Here's the entry for that: decision/2026-11-auth.", True),
        ("I've noted that.", True),
        ("Noted in people/alice.", True),
        ("Das habe ich notiert.", True),
        ("He guardado la cita.", True),
        ("C'est noté.", True),
        ("Maria works in Lisbon [1].", False),
        ("You told me that on Monday.", False),
        ("It was a noteworthy day.", False),
    ],
)
def test_claims_are_recognised_by_the_lists(answer: str, claims: bool) -> None:
    assert holds(answer, of_all("claim")) is claims


@pytest.mark.parametrize(
    "made_up",
    [
        {"title": "Maria of Evilbank"},
        {"body": "Works from Lisbon.\n\n## Banks with Evilbank\n\nShe is new."},
        {"body": "Works from Lisbon.\n\n```\nbanks with evilbank\n```"},
        {"body": "Works from Lisbon [spec](evilbank.md)."},
        {"folder": "evilbank"},
    ],
)
async def test_a_made_up_title_heading_code_link_or_folder_waits_in_the_inbox(
    kb: KnowledgeBase, session: Session, made_up: dict[str, str]
) -> None:
    arguments = {"kind": "person", "title": "Maria", "body": "Works from Lisbon."} | made_up
    new = call("write_entry", **arguments)
    told = await _turn(kb, session, SAID, Reply(tool_calls=[new]), Reply("It waits."))
    assert kb.library.infos() == []
    (proposal,) = kb.memory.inbox.list()
    assert told.tools[0].proposal == proposal.id


async def test_a_made_up_tag_is_left_out_and_the_model_is_told(
    kb: KnowledgeBase, session: Session
) -> None:
    labels = {"tags": ["lisbon", "evilbank"], "aliases": ["Evil Maria"]}
    new = call("write_entry", kind="person", title="Maria", body="Works from Lisbon.", **labels)
    with ScriptedServer([Reply(tool_calls=[new]), Reply("Noted.")]) as server:
        await ask(kb, session, SAID, model_at(server))
        answer = server.prompts[1].messages[-1]["content"]
    assert answer.endswith("\nLeft out, as nobody has said it: evilbank, Evil Maria.")
    entry = kb.library.get("knowledge/people/maria.md")
    assert entry.tags == ("lisbon",)
    assert entry.aliases == ()
    assert kb.memory.inbox.list() == []
