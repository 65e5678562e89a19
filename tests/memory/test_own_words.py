"""Whose words a line has decides who changes it, whoever committed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from tests.memory.memory_room import Room, call_save, open_room, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY = "memory/MEMORY.md"


@pytest.fixture
def asked(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    """A workspace whose conversations the scripted server condenses."""
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


async def condensed(room: Room, server: ScriptedServer, said: str, **saved: Any) -> Any:
    """Have the model condense a conversation of one message as `saved`."""
    session = room.talk([(0, "user", said)])
    server.enqueue(Reply(tool_calls=[call_save(**saved)]))
    return await room.pipeline.consolidator.run(session.id, everything=True)


async def test_a_sentence_of_the_users_that_a_machine_committed_waits_to_be_corrected(
    asked: Room, server: ScriptedServer
) -> None:
    own = "My locker at the pool has the number 47"
    await condensed(asked, server, own, facts=[own])
    assert f"- {own}\n" in asked.read(MEMORY)
    (line,) = [each for each in asked.history.blame(MEMORY) if each.actor is Actor.CONSOLIDATOR][
        -1:
    ]
    assert line.actor is Actor.CONSOLIDATOR, "a machine's commit wrote it"
    new = "My locker at the pool has the number 52"
    outcome = await condensed(asked, server, new, corrections=[{"old": own, "new": new}])
    assert outcome.kind == "proposed"
    assert f"- {own}\n" in asked.read(MEMORY)
    (proposal,) = asked.pipeline.inbox.list()
    asked.pipeline.inbox.accept(proposal.id)
    assert f"- {new}\n" in asked.read(MEMORY)


async def test_a_line_in_a_machines_words_is_corrected_at_once_in_words_the_user_said(
    asked: Room, server: ScriptedServer
) -> None:
    with asked.history.change(Actor.CONSOLIDATOR, "condensed") as change:
        others = "".join(f"- Fact number {n} of the user\n" for n in range(5))
        change.write(MEMORY, f"# Facts\n\n- Locker: number 47, pool\n{others}")
    new = "My locker at the pool is number 52 now and has a new key"
    old = "Locker: number 47, pool"
    outcome = await condensed(asked, server, new, corrections=[{"old": old, "new": new}])
    assert outcome.kind == "archived"
    assert asked.pipeline.inbox.list() == []
    memory = asked.read(MEMORY)
    assert f"- {new}\n" in memory
    assert "47" not in memory


async def test_what_a_person_wrote_by_hand_waits_as_before(
    asked: Room, server: ScriptedServer
) -> None:
    old = "My locker at the pool has the number 47"
    asked.write(MEMORY, f"# Mine\n\n- {old}\n")
    new = "My locker at the pool has the number 52"
    outcome = await condensed(asked, server, new, corrections=[{"old": old, "new": new}])
    assert outcome.kind == "proposed"
    assert f"- {old}\n" in asked.read(MEMORY)
