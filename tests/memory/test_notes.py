"""The day's notes and a session's own note, both out of the one answer about each slice."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from tests.memory.memory_room import SEED, START, Room, call_slice, open_room, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTES = ["User's favorite color is blue", "Knows Python, JavaScript, and Go"]
SUMMARY = "The user likes blue and knows three languages."


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


def _ended(form: str, minutes: int = 8) -> str:
    return (START.astimezone() + timedelta(minutes=minutes)).strftime(form)


def _day() -> str:
    return f"memory/{_ended('%Y-%m-%d')}.md"


async def _condense(room: Room, session: str) -> Any:
    return await room.pipeline.consolidator.run(session, everything=True)


async def _end(room: Room, session: str, title: str = "") -> Any:
    return await room.pipeline.session_notes.write_session_memory(session, title)


def _says(server: ScriptedServer, *answers: dict[str, Any]) -> None:
    for answer in answers:
        server.enqueue(Reply(tool_calls=[answer]))


async def test_the_days_notes_come_with_the_slice_in_one_commit(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk()
    _says(server, call_slice(SUMMARY, notes=NOTES))
    outcome = await _condense(room, session.id)
    bullets = "".join(f"- {note}\n" for note in NOTES)
    heading = f"## Flush at {_ended('%H:%M')} (session: {session.id})"
    assert room.read(_day()) == f"{heading}\n\n{bullets}"
    commit = room.history.commit(outcome.commit)
    assert {"memory/history.jsonl", _day()} <= {change.path for change in commit.paths}
    assert len(server.prompts) == 1


async def test_what_the_file_says_is_not_repeated_and_the_users_words_stay(
    room: Room, server: ScriptedServer
) -> None:
    room.write(_day(), "my own words\n\n- user's favorite color is blue.\n")
    _says(server, call_slice(SUMMARY, notes=NOTES))
    await _condense(room, room.talk().id)
    text = room.read(_day())
    assert text.startswith("my own words\n\n- user's favorite color")
    assert text.count("color is blue") == 1
    assert "JavaScript" in text


async def test_nothing_to_note_writes_no_file(room: Room, server: ScriptedServer) -> None:
    _says(server, call_slice(SUMMARY))
    await _condense(room, room.talk().id)
    assert not room.exists(_day())


async def test_what_was_forgotten_is_not_noted(room: Room, server: ScriptedServer) -> None:
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(change, [NOTES[0]])
    _says(server, call_slice(SUMMARY, notes=NOTES))
    await _condense(room, room.talk().id)
    assert "blue" not in room.read(_day())


async def test_a_conversation_that_no_model_could_condense_leaves_nothing_in_the_note_of_the_day(
    room: Room, server: ScriptedServer
) -> None:
    mine = "# Mine\n\n- 09:14 The heat pump was serviced.\n"
    room.write(_day(), mine)
    for _ in range(8):
        server.enqueue(Reply("no"))
    outcome = await _condense(room, room.talk().id)
    assert outcome.kind == "raw"
    assert room.read(_day()) == mine


async def test_notes_of_the_day_can_be_switched_off(tmp_path: Path, server: ScriptedServer) -> None:
    room = open_room(tmp_path / "off", memory={"flush": {"enabled": False}}, **scripted(server))
    _says(server, call_slice(SUMMARY, notes=NOTES))
    await _condense(room, room.talk().id)
    assert not room.exists(_day())
    room.close()


async def test_a_session_leaves_a_file_with_its_summary_and_last_messages(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk()
    _says(server, call_slice(SUMMARY, title="Favorite Color & Skills"))
    outcome = await _condense(room, session.id)
    notes = await _end(room, session.id, outcome.title)
    assert notes.path == f"memory/{_ended('%Y-%m-%d')}-favorite-color-skills.md"
    lines = "\n".join(f"{role}: {text}" for _, role, text in SEED)
    assert room.read(notes.path) == (
        f"# Session Memory: {_ended('%Y-%m-%d %H:%M')}\n\n"
        f"- **Session**: {session.id}\n"
        f"- **Date**: {_ended('%Y-%m-%d %H:%M:%S')}\n\n"
        f"## Summary\n\n{SUMMARY}\n\n"
        f"## Key Messages\n\n{lines}\n"
    )
    commit = room.history.commit(notes.commit)
    assert (commit.actor, commit.origin.messages) == (Actor.SESSION_MEMORY, (1, 8))
    assert len(server.prompts) == 1, "nothing is summarised twice"


async def test_a_trivial_session_leaves_nothing(room: Room) -> None:
    assert await _end(room, room.talk(SEED[:4]).id) is None


async def test_only_the_last_messages_of_people_are_shown(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", memory={"session_notes": {"max_messages": 4}})
    session = room.talk()
    session.append("tool", "a tool's result", tool_call_id="c")
    session.append("assistant", "the end")
    text = room.read((await _end(room, session.id)).path)
    said = text.partition("## Key Messages")[2]
    assert said.count("user: ") + said.count("assistant: ") == 4
    assert "a tool's result" not in text
    assert "assistant: the end" in said
    room.close()


async def test_a_session_that_goes_on_gets_a_file_for_what_is_new(room: Room) -> None:
    session = room.talk()
    first = await _end(room, session.id, "same")
    assert await _end(room, session.id) is None, "not twice"
    room.talk([(9, "user", "one"), (9, "user", "two"), (9, "user", "three")], session.id)
    second = await _end(room, session.id, "same")
    assert second.path == first.path.replace(".md", "-2.md")
    assert "What's my" not in room.read(second.path)


async def test_without_a_summary_the_excerpt_stands_and_says_so(room: Room) -> None:
    notes = await _end(room, room.talk().id)
    assert notes.is_raw
    assert notes.path == f"memory/{_ended('%Y-%m-%d')}-what-s-my-favorite-color.md"
    text = room.read(notes.path)
    assert "[RAW]" in text
    assert "user: It's blue. Remember that.\n" in text


async def test_a_file_without_a_summary_gets_it_when_condensing_succeeds_later(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk()
    before = await _end(room, session.id)
    _says(server, call_slice(SUMMARY, title="Favorite Color"))
    await _condense(room, session.id)
    await room.pipeline.session_notes.renew(session.id)
    text = room.read(before.path)
    assert f"## Summary\n\n{SUMMARY}\n" in text
    assert "[RAW]" not in text
    head = room.history.head()
    assert await _end(room, session.id) is None, "it is about the same messages"
    assert room.history.head() == head


async def test_a_file_that_somebody_has_edited_stays_as_it_is(
    room: Room, server: ScriptedServer
) -> None:
    session = room.talk()
    before = await _end(room, session.id)
    mine = room.read(before.path).replace("[RAW]", "Mine:")
    room.write(before.path, mine)
    _says(server, call_slice(SUMMARY))
    await _condense(room, session.id)
    await room.pipeline.session_notes.renew(session.id)
    assert room.read(before.path) == mine


async def test_a_title_cannot_lead_elsewhere(room: Room) -> None:
    notes = await _end(room, room.talk().id, "../../../etc/" + "x" * 100)
    assert notes.path.startswith("memory/")
    assert notes.path.count("/") == 1
    assert len(notes.path) <= len("memory/2026-03-06-.md") + 40


async def test_answers_from_private_entries_are_left_out(room: Room) -> None:
    session = room.talk()
    session.append("user", "what does Bob earn?")
    session.append("assistant", "Bob earns 12345.", meta={"private": ["knowledge/people/bob.md"]})
    notes = await _end(room, session.id)
    assert "12345" not in room.read(notes.path)


async def test_session_notes_can_be_switched_off(tmp_path: Path) -> None:
    room = open_room(tmp_path / "off", memory={"session_notes": {"enabled": False}})
    assert await _end(room, room.talk().id) is None
    room.close()
