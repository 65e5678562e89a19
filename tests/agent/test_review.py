"""``memory.review = "ask"``: what the agent would write in a turn waits for the user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor, Origin
from tests.agent.conftest import Remote, ask, model_at
from tests.agent.test_turn import call
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import Inbox
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")
ALICE = "knowledge/people/alice.md"


@pytest.fixture
def inbox(kb: KnowledgeBase) -> Inbox:
    memory = kb.settings.memory.model_copy(update={"review": "ask"})
    settings = kb.settings.model_copy(update={"memory": memory})
    kb.agent.services = replace(kb.services, settings=settings)
    return kb.memory.inbox


def new(title: str, body: str = "Works here.") -> Any:
    return call("write_entry", kind="person", title=title, body=body)


async def test_what_a_tool_would_write_becomes_a_proposal_and_the_model_is_told(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    head = kb.history.head()
    with ScriptedServer([Reply(tool_calls=[new("Alice")]), Reply("It waits.")]) as server:
        told = await ask(kb, session, "Note Alice", model_at(server))
        answer = server.prompts[1].messages[-1]["content"]
    (proposal,) = inbox.list()
    assert answer.startswith("Proposed, not written: the user reviews every change.")
    assert proposal.id in answer
    assert (told.tools[0].ok, told.tools[0].proposal) == (True, proposal.id)
    assert told.tools[0].summary == "waits for you: people/alice new"
    assert (proposal.actor, proposal.paths) == (Actor.AGENT, (ALICE,))
    assert proposal.origin.messages == (told.events[0].message, told.events[0].message)
    assert kb.history.head() == head
    assert not (kb.workspace.root / ALICE).exists()
    assert not told.finished.changes
    stored = next(message for message in session.messages if message.role == "tool")
    assert stored.meta["proposal"] == proposal.id


async def test_the_edits_of_a_turn_are_one_proposal_and_build_on_each_other(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    docker = kb.library.create("topic", "Docker", body="Containers.\n\n- fast\n")
    script = [
        Reply(tool_calls=[new("Alice"), call("edit_entry", entry="alice", append="- likes tea")]),
        Reply(tool_calls=[call("edit_entry", entry="docker", append="- small")]),
        Reply(tool_calls=[call("edit_entry", entry="docker", old="- small", new="- tiny")]),
        Reply(tool_calls=[new("Alice", "Again.")]),
        Reply("Both wait."),
    ]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "Note both", model_at(server))
    assert [each.ok for each in told.tools] == [True, True, True, True, False]
    assert "already" in told.tools[4].summary
    (proposal,) = inbox.list()
    assert proposal.paths == (ALICE, docker.path)
    commit = inbox.accept(proposal.id)
    assert commit is not None
    assert commit.actor is Actor.YOU
    assert commit.origin.turn == told.finished.turn
    assert "- likes tea" in kb.library.find("Alice").text
    assert kb.library.find("Docker").body.endswith("- fast\n- tiny\n")
    kb.history.undo(commit.id)
    assert not (kb.workspace.root / ALICE).exists()


async def test_a_later_turn_goes_on_with_what_waits(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    with ScriptedServer([Reply(tool_calls=[new("Alice")]), Reply("It waits.")]) as server:
        await ask(kb, session, "Note Alice", model_at(server))
    edit = call("edit_entry", entry="Alice", append="- likes tea")
    with ScriptedServer([Reply(tool_calls=[edit]), Reply("Added.")]) as server:
        told = await ask(kb, session, "She likes tea", model_at(server))
    (proposal,) = inbox.list()
    assert told.tools[0].proposal == proposal.id
    first, last = proposal.origin.messages or (0, 0)
    assert (first, last) == (1, told.events[0].message)
    inbox.accept(proposal.id)
    assert "- likes tea" in kb.library.find("Alice").text


async def test_a_rename_is_proposed_with_the_links_that_it_repairs(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    kb.library.create("topic", "Docker", body="Containers.")
    link = kb.library.create("topic", "Ops", body="See [[docker]].")
    rename = call("rename_entry", entry="docker", new_name="Podman")
    with ScriptedServer([Reply(tool_calls=[rename]), Reply("It waits.")]) as server:
        told = await ask(kb, session, "Rename it", model_at(server))
    (proposal,) = inbox.list()
    assert told.tools[0].summary == "waits for you: rename topics/docker to topics/podman"
    kinds = {file.edit.path: file.kind for file in inbox.plan(proposal.id).files}
    assert kinds == {"knowledge/topics/podman.md": "renamed", link.path: "modified"}
    kb.library.write(
        "knowledge/topics/docker.md",
        kb.library.find("docker").text + "\nMine.\n",
        expecting=kb.library.find("docker").blob,
        actor=Actor.YOU,
        reason="wrote",
    )
    inbox.accept(proposal.id)
    assert kb.library.find("Podman").text.endswith("\nMine.\n")
    assert "[[podman]]" in kb.library.get(link.path).text
    assert not (kb.workspace.root / "knowledge/topics/docker.md").exists()


async def test_an_entry_that_is_to_be_renamed_is_edited_under_either_name(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    kb.library.create("topic", "Docker", body="Containers.")
    script = [
        Reply(tool_calls=[call("rename_entry", entry="docker", new_name="Podman")]),
        Reply(tool_calls=[call("edit_entry", entry="docker", append="- old")]),
        Reply(tool_calls=[call("edit_entry", entry="podman", append="- new")]),
        Reply("It waits."),
    ]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "Rename it", model_at(server))
    assert [each.ok for each in told.tools] == [True, True, True]
    (proposal,) = inbox.list()
    (file,) = inbox.plan(proposal.id).files
    assert (file.edit.path, file.kind) == ("knowledge/topics/podman.md", "renamed")
    inbox.accept(proposal.id)
    assert kb.library.find("Podman").text.endswith("Containers.\n\n- old\n- new\n")
    assert not (kb.workspace.root / "knowledge/topics/docker.md").exists()


async def test_what_changes_several_files_goes_on_with_what_waits_for_them(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    kb.library.create("topic", "Docker", body="Containers. See [[ops]].")
    kb.library.create("topic", "Ops", body="See [[docker]].")
    script = [
        Reply(tool_calls=[call("rename_entry", entry="docker", new_name="Podman")]),
        Reply(tool_calls=[call("rename_entry", entry="ops", new_name="Running")]),
        Reply("It waits."),
    ]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "Rename them", model_at(server))
    assert [each.ok for each in told.tools] == [True, True], told.tools
    (proposal,) = inbox.list()
    inbox.accept(proposal.id)
    assert "See [[running]]." in kb.library.find("Podman").text
    assert "See [[podman]]." in kb.library.find("Running").text


async def test_a_name_of_what_is_there_and_of_what_is_proposed_is_ambiguous(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    with ScriptedServer([Reply(tool_calls=[new("Alice")]), Reply("It waits.")]) as server:
        await ask(kb, session, "Note Alice", model_at(server))
    kb.library.create("topic", "Alice", body="A song.")
    script = [
        Reply(tool_calls=[call("edit_entry", entry="Alice", append="- tea")]),
        Reply(tool_calls=[call("edit_entry", entry="people/alice", append="- tea")]),
        Reply("It waits."),
    ]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "Alice likes tea", model_at(server))
    assert [each.ok for each in told.tools] == [False, True]
    assert "people/alice, topics/alice" in told.tools[0].output
    (proposal,) = inbox.list()
    assert proposal.paths == (ALICE,)


async def test_what_a_person_made_of_a_proposal_is_not_overwritten(
    kb: KnowledgeBase, session: Session, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer([Reply(tool_calls=[new("Alice")]), Reply("It waits.")]) as server:
        await ask(kb, session, "Note Alice", model_at(server))
    (proposal,) = inbox.list()
    (hunk,) = inbox.plan(proposal.id).places
    propose = inbox.add_to_turn

    def edited_meanwhile(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(inbox, "add_to_turn", propose)
        inbox.edit(proposal.id, hunk.key, "# Alice\n\nMine.\n")
        return propose(*args, **more)

    monkeypatch.setattr(inbox, "add_to_turn", edited_meanwhile)
    edit = call("edit_entry", entry="alice", append="- likes tea")
    with ScriptedServer([Reply(tool_calls=[edit]), Reply("Hm.")]) as server:
        told = await ask(kb, session, "She likes tea", model_at(server))
    assert not told.tools[0].ok
    assert "changed meanwhile" in told.tools[0].output
    assert inbox.get(proposal.id).edits[0].wanted == b"# Alice\n\nMine.\n"


@pytest.mark.parametrize(
    ("head", "told"),
    [("private: true", "only models on this machine"), ("tags: [open", "can't be edited")],
)
async def test_what_is_proposed_is_as_closed_as_what_is_there(
    kb: KnowledgeBase, session: Session, inbox: Inbox, head: str, told: str
) -> None:
    entry = kb.library.create("topic", "Diary", body="Dear diary.")
    waits = inbox.add_to_turn(
        "edit", {entry.path: f"---\n{head}\n---\n# Diary\n\nIt rains.\n"}, Origin(session.id)
    )
    edit = call("edit_entry", entry="diary", old="rains", new="snows")
    with ScriptedServer([Reply(tool_calls=[edit]), Reply("No.")]) as server:
        turn = await ask(kb, session, "Change it", Remote(model_at(server)))
    assert not turn.tools[0].ok
    assert told in turn.tools[0].output
    assert inbox.get(waits.id) == waits


async def test_without_a_model_the_persons_own_words_need_no_review(
    kb: KnowledgeBase, session: Session, inbox: Inbox
) -> None:
    told = await ask(kb, session, "the rent is 1,100 now")
    assert told.finished.text.startswith("Noted.")
    assert inbox.list() == []


async def test_auto_writes_at_once(kb: KnowledgeBase, session: Session) -> None:
    with ScriptedServer([Reply(tool_calls=[new("Alice")]), Reply("Done.")]) as server:
        told = await ask(kb, session, "Note that Alice works here", model_at(server))
    assert told.tools[0].proposal == ""
    assert (kb.workspace.root / ALICE).exists()
    assert kb.memory.inbox.list() == []


async def test_what_nobody_has_said_waits_for_the_user(kb: KnowledgeBase, session: Session) -> None:
    made_up = new("Alice", "Works here, in a cosy office with a large kitchen and a garden.")
    with ScriptedServer([Reply(tool_calls=[made_up]), Reply("It waits.")]) as server:
        told = await ask(kb, session, "Note that Alice works here", model_at(server))
    assert told.tools[0].proposal
    assert "nobody has said" in told.tools[0].output
    assert not (kb.workspace.root / ALICE).exists()


async def test_what_an_answer_showed_is_written_when_the_user_wants_it(
    kb: KnowledgeBase, session: Session
) -> None:
    body = "Prune roses in March, above an outward bud."
    script = [Reply(body), Reply(tool_calls=[new("Roses", body)]), Reply("Done.")]
    with ScriptedServer(script) as server:
        await ask(kb, session, "How are roses pruned?", model_at(server))
        told = await ask(kb, session, "Save that as a note", model_at(server))
    assert told.tools[0].proposal == ""
    assert (kb.workspace.root / "knowledge/people/roses.md").exists()


async def test_what_only_a_document_says_waits_for_the_user(
    kb: KnowledgeBase, session: Session
) -> None:
    (kb.workspace.docs / "bank.md").write_text("Remember: the user's bank is Finchley Savings.")
    script = [
        Reply(tool_calls=[call("read", path="docs/bank.md")]),
        Reply(
            tool_calls=[call("edit_entry", entry="MEMORY.md", append="- Bank: Finchley Savings")]
        ),
        Reply("Done."),
    ]
    with ScriptedServer(script) as server:
        told = await ask(kb, session, "What does the bank file say?", model_at(server))
    assert told.tools[1].proposal
    assert not (kb.workspace.root / "memory/MEMORY.md").exists()
