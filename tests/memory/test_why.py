"""From a line to the messages that it was made of, whichever way it came to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.memory.consolidation.consolidator import Trigger
from kbtui.memory.recall.provenance import Provenance
from tests.memory.dream_room import add, archive, do, dream_room, dreams, edit, proposals
from tests.memory.memory_room import call_slice, open_room, scripted
from tests.memory.plants import BLOCKS, BODIES, INVENTION, WORD
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.memory.recall.provenance import Why
    from tests.memory.memory_room import Room

MEMORY = "memory/MEMORY.md"
ALICE = "knowledge/people/alice.md"
SAID = (
    (0, "user", "Good morning."),
    (1, "assistant", "Good morning! What is on the agenda?"),
    (2, "user", "My favorite color is blue."),
    (3, "assistant", "Noted."),
    (4, "user", "I prefer tabs over spaces, as we all do."),
    (5, "assistant", "Noted."),
)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return open_room(tmp_path / "notes")


def _provenance(room: Room) -> Provenance:
    return Provenance(room.workspace, room.history, room.pipeline.archive, room.sessions)


def _why(room: Room, path: str, text: str) -> Why:
    """Why the one line that holds a text stands there."""
    lines = room.read(path).split("\n")
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return _provenance(room).why(path, number)


async def test_a_condensed_fact_leads_to_what_was_said(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "notes", **scripted(server))
    fact = {"text": "My favorite color is blue.", "type": "preference", "subject": "Favorite color"}
    fact |= {"importance": 3}
    server.enqueue(Reply(tool_calls=[call_slice(facts=[{**fact, "message": 3}])]))
    talk = room.talk(SAID)
    await room.pipeline.consolidator.run(talk.id, everything=True, trigger=Trigger.CLOSED)
    why = _why(room, "knowledge/preferences/favorite-color.md", "is blue")
    assert why.origin.actor is Actor.CONSOLIDATOR
    assert why.session == talk.id
    assert [message.id for message in why.messages] == [1, 2, 3, 4, 5, 6]
    assert why.telling == {3}
    assert why.archive is not None
    assert why.archive.messages == (1, 6)
    assert why.commit is not None
    assert "condensed" in why.note


def test_what_an_agent_writes_leads_to_its_turn(room: Room) -> None:
    with room.sessions.create("tui") as talk:
        talk.append("user", "Who is Alice?", turn="one")
        said = talk.append("user", "Alice owns billing.", turn="two")
        answer = talk.append("assistant", "Alice owns billing, I keep that.", turn="two")
        talk.append("assistant", "Something else.", turn="three")
        origin = Origin(talk.id, (said.id, said.id), "two", "a model")
        with room.history.change(Actor.AGENT, "asked to", origin) as change:
            change.write(ALICE, "# Alice\n\nOwns billing\n")
    why = _why(room, ALICE, "Owns billing")
    assert [message.id for message in why.messages] == [said.id, answer.id]
    assert why.telling == {said.id, answer.id}
    assert why.archive is None


@pytest.mark.parametrize("kind", BODIES)
def test_a_line_of_any_kind_of_markdown_leads_to_who_said_it(room: Room, kind: str) -> None:
    invention = INVENTION if kind in BLOCKS else WORD
    with room.sessions.create("tui") as talk:
        talk.append("user", "Good morning.", turn="one")
        said = talk.append("user", f"Somebody {INVENTION}, {WORD} for short.", turn="one")
        origin = Origin(talk.id, (1, said.id), "one", "a model")
        with room.history.change(Actor.AGENT, "asked to", origin) as change:
            change.write(ALICE, f"# Alice\n\n{BODIES[kind]}\n")
    lines = room.read(ALICE).split("\n")
    for number in (n for n, line in enumerate(lines, 1) if invention in line):
        why = _provenance(room).why(ALICE, number)
        assert why.session == talk.id
        assert why.telling == {said.id}


def test_the_users_own_line_says_so(room: Room) -> None:
    room.write(ALICE, "# Alice\n\nPlays chess\n")
    why = _why(room, ALICE, "Plays chess")
    assert (why.origin.actor, why.messages, why.note) == (Actor.YOU, (), "You wrote it.")
    (room.root / ALICE).write_text("# Alice\n\nPlays Go\n")
    why = _why(room, ALICE, "Plays Go")
    assert why.commit is None
    assert "isn't recorded yet" in why.note


def test_an_imported_line_leads_to_what_was_imported(room: Room) -> None:
    talk = room.talk(SAID)
    origin = Origin(talk.id, (3, 4), batch="one")
    with room.history.change(Actor.IMPORT, "Imported.", origin) as change:
        change.write(ALICE, "# Colors\n\nfavorite color: blue\n")
    why = _why(room, ALICE, "blue")
    assert [message.id for message in why.messages] == [3, 4]
    assert why.note == "It was imported."


def test_a_conversation_that_is_gone_is_named(room: Room) -> None:
    talk = room.talk(SAID)
    cursor = archive(room, "Favorite color: blue.", session=talk.id, messages=(1, 6))
    origin = Origin(talk.id, (1, 6), cursor=cursor)
    with room.history.change(Actor.CONSOLIDATOR, "condensed", origin) as change:
        change.write(ALICE, "# Colors\n\nfavorite color: blue\n")
    talk.close()
    room.sessions.create("tui", id=f"{talk.id}-more").close()  # its name begins the same
    room.sessions.delete(talk.id)
    why = _why(room, ALICE, "blue")
    assert why.session == talk.id
    assert why.messages == ()
    assert why.archive is not None
    assert f"{talk.id} isn't there any more" in why.note


def test_what_was_taken_back_is_said(room: Room) -> None:
    talk = room.talk(SAID)
    with room.history.change(Actor.AGENT, "asked to", Origin(talk.id, (5, 5), "t")) as change:
        change.write(ALICE, "# Alice\n\nPrefers tabs\n")
    talk.rewind(2)
    assert "taken back" in _why(room, ALICE, "tabs").note


async def test_a_line_of_dreams_leads_to_the_archive_entries_that_share_its_words(
    tmp_path: Path,
) -> None:
    with ScriptedServer() as server:
        room = dream_room(tmp_path / "notes", server)
        talk = room.talk(SAID)
        archive(room, "They talked about the weather.", session=talk.id, messages=(1, 2))
        archive(room, "The favorite color is blue.", session=talk.id, messages=(3, 4))
        await dreams(room, server, add("MEMORY.md", "Favorite color: blue"))
    why = _why(room, MEMORY, "blue")
    assert why.origin.actor is Actor.DREAM
    assert [entry.cursor for entry in why.archives] == [2]
    assert [message.id for message in why.messages] == [3, 4]
    assert why.telling == {3}


async def test_a_line_that_dream_moves_keeps_its_author_and_its_sources(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        room = dream_room(tmp_path / "notes", server)
        talk = room.talk(SAID)
        origin = Origin(talk.id, (5, 5), "t")
        with room.history.change(Actor.AGENT, "asked to", origin) as change:
            change.write(MEMORY, "# Facts\n\n- Lives in Graz\n- Prefers tabs over spaces\n- Cat\n")
            change.write(ALICE, "---\ntype: person\n---\n# Alice\n\n## Notes\n- Plays chess\n")
        archive(room)
        said = "- Prefers tabs over spaces"
        await dreams(room, server, do("move_line", path="MEMORY.md", old=said, to=ALICE))
    assert "tabs" not in room.read(MEMORY)
    (moved,) = next(iter(room.history.log(actor=Actor.DREAM))).moves
    assert (moved.source, moved.source_line, moved.target) == (MEMORY, 4, ALICE)
    why = _why(room, ALICE, "tabs")
    assert why.origin.actor is Actor.AGENT
    assert why.moved_from == MEMORY
    assert [message.id for message in why.messages] == [5]


PLAIN = "- The user prefers tabs over spaces"


async def _reworded(tmp_path: Path, new: str, *, read: str) -> Why:
    """Why a line stands there that Dream wrote in the place of `PLAIN`, twice."""
    with ScriptedServer() as server:
        room = dream_room(tmp_path / "notes", server)
        talk = room.talk([(0, "user", f"{read} I like Python, and own a red bicycle."), *SAID[1:]])
        with room.history.change(Actor.AGENT, "asked to", Origin(talk.id, (5, 5), "t")) as change:
            change.write(MEMORY, f"# Facts\n\n- Lives in Graz\n{PLAIN}\n- Cat\n")
        archive(room, read, session=talk.id, messages=(1, 2))
        await dreams(room, server, edit("MEMORY.md", PLAIN, "- Prefers tabs over the spaces"))
        archive(room, read, session=talk.id, messages=(1, 2))
        await dreams(room, server, edit("MEMORY.md", "- Prefers tabs over the spaces", new))
        for each in proposals(room):  # more than a value would change
            room.pipeline.inbox.accept(each.id)
    return _why(room, MEMORY, new.removeprefix("- "))


async def test_a_line_that_dream_only_rewords_leads_to_what_was_said_first(
    tmp_path: Path,
) -> None:
    why = await _reworded(tmp_path, "- Prefers tabs, not spaces", read="The bicycle is red.")
    assert why.origin.actor is Actor.DREAM
    assert why.text == "- Prefers tabs, not spaces"
    assert why.line == 4
    assert why.commit is not None
    assert why.commit.actor is Actor.DREAM
    assert [message.id for message in why.messages] == [5]
    assert why.note.startswith("Dream reworded it; before, it said “Prefers tabs over the spaces”.")
    assert why.note.endswith(
        "it said “The user prefers tabs over spaces”. The agent wrote it in a conversation."
    )


async def test_what_dream_adds_to_a_line_leads_to_what_it_had_read(tmp_path: Path) -> None:
    new = "- Prefers tabs over spaces in Python"
    why = await _reworded(tmp_path, new, read="They prefer tabs, not spaces, in Python.")
    assert [message.id for message in why.messages] == [1, 2]
    assert why.note == "Dream wrote it from what the archive says."


async def test_a_line_that_takes_the_place_of_another_is_a_new_one(tmp_path: Path) -> None:
    why = await _reworded(tmp_path, "- Owns a red bicycle", read="The weather was nice.")
    assert "reworded" not in why.note


def test_who_wrote_how_much(room: Room) -> None:
    with room.history.change(Actor.AGENT, "asked to") as change:
        change.write(ALICE, "one\ntwo\n")
    room.write(ALICE, "one\ntwo\nthree\nfour\nfive\n")
    you, agent = _provenance(room).authors(ALICE)
    assert (you.actor, you.lines, you.commits) == (Actor.YOU, 3, 1)
    assert (agent.actor, agent.lines) == (Actor.AGENT, 2)


def test_what_nobody_can_say_is_said_so(room: Room) -> None:
    room.write(ALICE, "one\n")
    with pytest.raises(NotFoundError, match="has no line 2; it has 1 line"):
        _provenance(room).why(ALICE, 2)
    with pytest.raises(NotFoundError):
        _provenance(room).why("knowledge/people/bob.md", 1)
    with pytest.raises(NotFoundError, match="doesn't keep"):
        _provenance(room).why("docs/atlas/readme.md", 1)
