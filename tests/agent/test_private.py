"""Private entries: a model on another machine learns that they exist, not what they say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.agent.conftest import Remote, ask, assert_sound, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.sessions import Session

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
    call("read_entry", entry="diary"),
    call("read_file", path="knowledge/topics/diary.md"),
    call("grep", pattern="walrus"),
    call("grep", pattern="wal.us", regex=True),
    call("memory_search", query="walrus sleeps"),
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
    assert told.finished.text == "I can't see it."
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
        Reply(tool_calls=[call("read_entry", entry="diary")]),
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
        server.enqueue(
            Reply(tool_calls=[call("memory_search", query="diary walrus noon")]), Reply("Hm.")
        )
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


async def test_a_stranger_to_the_index_learns_only_the_name(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("Hi.")]) as server:
        await ask(kb, session, "diary?", model_at(server))
        system = server.prompts[0].messages[0]["content"]
    assert "- diary: (private)" in system
    assert SECRET not in system
