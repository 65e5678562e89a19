"""Private entries: a model on another machine learns that they exist, not what they say."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ModelError
from kbtui.memory.consolidation.ask import Condenser
from kbtui.memory.consolidation.page import Page
from kbtui.views.view import Audience
from kbtui.workspace.layout import conflict_copy_of
from tests.agent.conftest import Remote, ask, assert_sound, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")

SECRET = "the walrus sleeps at noon"


@pytest.fixture(autouse=True)
def diary(kb: KnowledgeBase) -> None:
    entry = kb.library.create(
        "topic", "Diary", body=f"Dear diary: {SECRET}.", summary=f"That {SECRET}"
    )
    file = kb.workspace.root / entry.path
    file.write_text(file.read_text().replace("type: topic\n", "type: topic\nprivate: true\n"))
    kb.history.adopt(settle=0)
    kb.library.refresh()
    kb.search.sync()
    assert kb.library.find("diary").private


EVERY_WAY = [
    call("read", path="diary"),
    call("read", path="knowledge/topics/diary.md"),
    call("grep", pattern="walrus"),
    call("grep", pattern="wal.us", regex=True),
    call("search", query="walrus sleeps"),
    call("list_entries"),
    call("edit_entry", entry="diary", old="Dear", new="Cheap"),
    call("rename_entry", entry="diary", new_name="Log"),
]


async def test_a_remote_model_gets_at_it_in_no_way(kb: KnowledgeBase, session: Session) -> None:
    with ScriptedServer([Reply(tool_calls=EVERY_WAY), Reply("I can't see it.")]) as server:
        told = await ask(
            kb,
            session,
            "What does @diary say? And @knowledge/topics/diary.md",
            Remote(model_at(server)),
        )
        sent = json.dumps([request.body for request in server.prompts])
    assert "walrus sleeps" not in sent.replace('"query": "walrus sleeps"', "").replace(
        '\\"query\\": \\"walrus sleeps\\"', ""
    ).replace("for 'walrus sleeps'", "")
    assert "noon" not in sent
    assert "topics/diary" in sent, "that it exists is no secret"
    assert "only local models" in sent
    assert told.finished.text.startswith("I can't see it.")
    assert "private" in kb.library.find("diary").text


async def test_a_local_model_may_read_it(kb: KnowledgeBase, session: Session) -> None:
    with ScriptedServer(
        [Reply(tool_calls=EVERY_WAY[:5]), Reply(f"It says {SECRET} [1].")]
    ) as server:
        told = await ask(kb, session, "What does @diary say?", model_at(server))
        assert SECRET in server.prompts[0].messages[-1]["content"]
        results = [m["content"] for m in server.prompts[1].messages if m["role"] == "tool"]
    assert all("walrus" in result for result in results)
    assert [ok for _, ok in told.used] == [True] * 5


async def test_what_a_local_model_said_about_it_does_not_go_out_later(
    kb: KnowledgeBase, session: Session
) -> None:
    script = [
        Reply(tool_calls=[call("read", path="diary")]),
        Reply(f"It says {SECRET}."),
        Reply("No idea."),
    ]
    with ScriptedServer(script) as server:
        model = model_at(server)
        await ask(kb, session, "What does my diary say?", model)
        await ask(kb, session, "And what was that?", Remote(model))
        messages = server.prompts[2].messages
        assert_sound(messages)
        assert "noon" not in json.dumps(messages)
        assert "withheld" in json.dumps(messages)
        kb.search.sync()
        other = kb.sessions.create("test")
        server.enqueue(Reply(tool_calls=[call("search", query="diary walrus noon")]), Reply("Hm."))
        await ask(kb, other, "Search the talk", Remote(model))
        result = server.prompts[-1].messages[-1]["content"]
    assert SECRET not in result


async def test_an_attached_private_entry_marks_the_answer(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply(f"It says {SECRET}."), Reply("No idea.")]) as server:
        await ask(kb, session, "What does @diary say?", model_at(server))
        await ask(kb, session, "And?", Remote(model_at(server)))
        assert "noon" not in json.dumps(server.prompts[1].messages)


async def test_a_stranger_to_the_index_learns_only_that_there_is_one(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("Hi.")]) as server:
        await ask(kb, session, "diary?", model_at(server))
        told = json.dumps(server.prompts[0].messages)
    assert "(1 entry is private: only local models may read it)" in told
    assert "- diary" not in told
    assert SECRET not in told


async def test_what_a_call_says_after_the_reading_does_not_go_out_with_its_result(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("topic", "Zoo", body="Animals.")
    script = [
        Reply(tool_calls=[call("read", path="diary")]),
        Reply(tool_calls=[call("edit_entry", entry="zoo", old=SECRET, new="x")]),
        Reply("Done."),
        Reply("No idea."),
    ]
    with ScriptedServer(script) as server:
        model = model_at(server)
        await ask(kb, session, "Compare both", model)
        assert "noon" in server.prompts[2].messages[-1]["content"]
        await ask(kb, session, "And?", Remote(model))
        assert "noon" not in json.dumps(server.prompts[3].messages)


async def test_a_talk_about_it_that_a_local_model_finds_is_private_as_well(
    kb: KnowledgeBase, session: Session
) -> None:
    script = [
        Reply(tool_calls=[call("read", path="diary")]),
        Reply(f"It says {SECRET}."),
        Reply(tool_calls=[call("search", query="when does the walrus sleep?")]),
        Reply(f"We said that {SECRET}."),
        Reply("No idea."),
    ]
    with ScriptedServer(script) as server:
        model = model_at(server)
        await ask(kb, session, "What does my diary say?", model)
        kb.search.sync()
        other = kb.sessions.create("test")
        await ask(kb, other, "What did we say of a walrus?", model)
        assert SECRET in server.prompts[3].messages[-1]["content"]
        await ask(kb, other, "And?", Remote(model))
        assert "noon" not in json.dumps(server.prompts[4].messages)


async def test_neither_its_tags_nor_its_words_are_told_by_what_is_found(
    kb: KnowledgeBase, session: Session
) -> None:
    file = kb.workspace.knowledge / "topics/diary.md"
    file.write_text(file.read_text().replace("tags: []", "tags: [burnout]"))
    kb.history.adopt(settle=0)
    kb.library.refresh()
    kb.search.sync()
    calls = [call("list_entries", tag="burnout"), call("search", query="walrsu")]
    calls += [call("search", query="wallrus xyzzy")]
    with ScriptedServer([Reply(tool_calls=calls), Reply("Nothing.")]) as server:
        await ask(kb, session, "Who has it?", Remote(model_at(server)))
        results = [m["content"] for m in server.prompts[1].messages if m["role"] == "tool"]
    assert results[0] == "0 entries:"
    assert not any("walrus'" in result for result in results)


async def test_an_entry_that_becomes_private_leaves_the_index_of_a_session_that_goes_on(
    kb: KnowledgeBase, session: Session
) -> None:
    entry = kb.library.create("topic", "Zoo", body="Animals.", summary="The walrus sleeps there")
    with ScriptedServer([Reply("Hi."), Reply("Hm.")]) as server:
        await ask(kb, session, "What about the zoo?", Remote(model_at(server)))
        file = kb.workspace.root / entry.path
        file.write_text(file.read_text().replace("type: topic\n", "type: topic\nprivate: true\n"))
        kb.history.adopt(settle=0)
        kb.library.refresh()
        await ask(kb, session, "What about the zoo?", Remote(model_at(server)))
        before, after = (prompt.messages[-1]["content"] for prompt in server.prompts)
    assert "The walrus sleeps there" in before
    assert "The walrus sleeps there" not in after
    assert "(2 entries are private" in after


async def test_a_catalogue_that_is_behind_tells_nothing_of_what_became_private(
    kb: KnowledgeBase, session: Session
) -> None:
    file = kb.workspace.knowledge / "INDEX.md"
    behind = file.read_text().replace("- diary: (private)", f"- diary: That {SECRET}")
    file.write_text(behind)
    assert SECRET in behind
    calls = [call("read", path="knowledge/INDEX.md"), call("grep", pattern="walrus")]
    script = [Reply(tool_calls=calls), Reply("Hm."), Reply("I see.")]
    with ScriptedServer(script) as server:
        await ask(kb, session, "Read it", model_at(server))
        await ask(kb, session, "And @knowledge/INDEX.md", Remote(model_at(server)))
        local, remote = (json.dumps(server.prompts[n].messages) for n in (1, 2))
    assert "- diary: That" not in local
    assert "noon" not in remote


PRIVATE_NOTES = {
    "USER.md": "user-secret",
    "memory/MEMORY.md": "memory-secret",
    "skills/odd/SKILL.md": "skill-secret",
}


@pytest.fixture
def notes(kb: KnowledgeBase) -> None:
    today = f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"
    for path, text in {**PRIVATE_NOTES, today: "day-secret"}.items():
        file = kb.workspace.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nprivate: true\nalways: true\n---\n- {text}\n")
    kb.history.adopt(settle=0)
    kb.library.refresh()


@pytest.mark.usefixtures("notes")
async def test_private_notes_stand_in_no_prompt_of_a_remote_model(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("I know it."), Reply("Hm.")]) as server:
        await ask(kb, session, "hello", model_at(server))
        await ask(kb, session, "And?", Remote(model_at(server)))
        local, remote = (json.dumps(prompt.messages) for prompt in server.prompts)
    assert all(f"{what}-secret" in local for what in ("user", "memory", "skill", "day"))
    assert "-secret" not in remote
    assert "I know it." not in remote


@pytest.mark.usefixtures("notes")
async def test_private_notes_are_not_shown_to_a_remote_model_that_makes_memory(
    kb: KnowledgeBase, session: Session
) -> None:
    session.append("user", "I like tea.")
    conversation = kb.memory.pending.conversation(session.id)
    units = [unit for part in kb.memory.pending.parts(conversation) for unit in part]
    page = Page(conversation, tuple(units))
    with ScriptedServer() as server:
        sent = []
        for model in (model_at(server), Remote(model_at(server))):
            server.enqueue(*(Reply("No.") for _ in range(9)))
            with pytest.raises(ModelError):
                await Condenser(model, kb.seen_by(Audience.of(model)), 500).extract(
                    page, "- memory-secret", ()
                )
            sent.append(json.dumps(server.prompts[-1].body))
    assert "memory-secret" in sent[0]
    assert "memory-secret" not in sent[1]


async def test_no_tool_reads_the_log_of_a_talk_or_any_other_file(
    kb: KnowledgeBase, session: Session
) -> None:
    other = kb.sessions.create("test")
    other.append("assistant", f"It says {SECRET}.", meta={"private": ["diary"]})
    (kb.workspace.root / "notes.txt").write_text(SECRET)
    log = f"sessions/{other.id}.jsonl"
    calls = [
        one
        for path in (log, "notes.txt")
        for one in (
            call("read", path=path),
            call("read", path=path),
            call("grep", path=path, pattern="sleeps"),
        )
    ]
    with ScriptedServer([Reply(tool_calls=calls), Reply("No.")]) as server:
        told = await ask(kb, session, f"Read @{log}", model_at(server))
        sent = json.dumps([prompt.messages for prompt in server.prompts])
    assert [ok for _, ok in told.used] == [False] * 6
    assert "noon" not in sent


async def test_a_copy_of_it_that_a_conflict_left_cannot_be_attached(
    kb: KnowledgeBase, session: Session
) -> None:
    path = conflict_copy_of("knowledge/topics/diary.md", "2026-11-22 10-00-00")
    (kb.workspace.root / path).write_text(f"# Diary\n\n{SECRET}\n")
    with ScriptedServer([Reply("No.")]) as server:
        await ask(kb, session, f'What does @"{path}" say?', Remote(model_at(server)))
        assert "noon" not in json.dumps(server.prompts[0].messages)
