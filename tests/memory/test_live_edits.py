"""What was done while a conversation went on isn't done again, or undone, when it is condensed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.memory.consolidation.page import Page
from kbtui.workspace.layout import MEMORY
from tests.memory.memory_room import START, call_save, open_room, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.memory.memory_room import Room

SAID = (
    (0, "user", "My favorite color is blue."),
    (1, "assistant", "Noted."),
    (2, "user", "I live in Graz."),
    (3, "assistant", "Noted."),
)
BOTH = "# Memory\n\n- Favorite color: blue\n- Lives in Graz\n"
ONE = "# Memory\n\n- Lives in Graz\n"


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


def edit(room: Room, text: str, origin: Origin = Origin(), actor: Actor = Actor.AGENT) -> None:  # noqa: B008
    with room.history.change(actor, "edit", origin) as change:
        change.write(MEMORY, text)


async def condensed(room: Room, server: ScriptedServer, session: str) -> str:
    """MEMORY.md after a model has taken both facts from the conversation; it tells its prompt."""
    server.enqueue(Reply(tool_calls=[call_save(facts=["Favorite color: blue", "Lives in Graz"])]))
    outcome = await room.pipeline.consolidator.run(session, everything=True)
    assert outcome.kind == "archived"
    return server.prompts[-1].messages[-1]["content"]


async def test_what_the_agent_took_out_is_not_written_again(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk(SAID).id
    edit(room, BOTH, Origin(session, (1, 1), "t1"))
    edit(room, ONE, Origin(session, (3, 3), "t2"))
    prompt = await condensed(room, server, session)
    assert "no longer true: Favorite color: blue" in prompt.split("Already Written")[1]
    assert room.read(MEMORY) == ONE


async def test_nor_is_what_the_user_took_out_by_hand(room: Room, server: ScriptedServer) -> None:
    session = room.talk(SAID).id
    edit(room, BOTH, Origin(session, (1, 1), "t1"))
    room.write(MEMORY, ONE)
    await condensed(room, server, session)
    assert room.read(MEMORY) == ONE


async def test_what_was_put_back_or_said_again_since_is_written(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk(SAID)
    edit(room, BOTH, Origin(session.id, (1, 1), "t1"))
    edit(room, ONE, Origin(session.id, (3, 3), "t2"))
    later = max(commit.time for commit in room.history.log()) + timedelta(minutes=1)
    room.talk([((later - START) / timedelta(minutes=1), "user", SAID[0][2])], session.id)
    await condensed(room, server, session.id)
    assert "- Favorite color: blue" in room.read(MEMORY)


async def test_a_line_that_only_moved_counts_as_there(room: Room, server: ScriptedServer) -> None:
    session = room.talk(SAID).id
    edit(room, BOTH, Origin(session, (1, 1), "t1"))
    with room.history.change(Actor.AGENT, "move", Origin(session, (3, 3), "t2")) as change:
        change.write(MEMORY, ONE)
        change.write("knowledge/facts/color.md", "# Color\n\n- Favorite color: blue\n")
    live = room.pipeline.consolidator.writer.live_edits(_page(room, session))
    assert not live.removed
    await condensed(room, server, session)
    assert room.read("knowledge/facts/color.md").count("blue") == 1


async def test_what_waits_for_the_user_is_not_written_without_asking(
    room: Room, server: ScriptedServer
) -> None:
    edit(room, ONE)
    session = room.talk(SAID).id
    inbox = room.pipeline.inbox
    waits = inbox.add_to_turn("edit", {MEMORY: BOTH}, Origin(session, (1, 1), "t1"))
    prompt = await condensed(room, server, session)
    assert "Favorite color: blue" in prompt.split("Already Written")[1]
    assert room.read(MEMORY) == ONE
    assert inbox.list() == [waits]
    inbox.accept(waits.id)
    assert room.read(MEMORY) == BOTH


def _page(room: Room, session: str) -> Page:
    conversation = room.pipeline.pending.conversation(session)
    parts = room.pipeline.pending.parts(conversation)
    return Page(conversation, tuple(unit for part in parts for unit in part))
