"""The graph fills itself by names, and no two entries are called the same without a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UsageError
from kbtui.history.change import Actor, Origin
from kbtui.memory.edits.editor import Author, write_entry
from kbtui.memory.edits.subjects import MOST_RELATED
from kbtui.offline.frames import kin_of
from tests.memory.memory_room import START, Room, call_slice, open_room, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = START.date()


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


def _fact(text: str, kind: str, subject: str, message: int) -> dict[str, Any]:
    return {"text": text, "type": kind, "subject": subject, "message": message, "importance": 3}


async def _condense(
    room: Room, server: ScriptedServer, said: list[str], *facts: dict[str, Any]
) -> Any:
    session = room.talk([(number, "user", text) for number, text in enumerate(said)])
    server.replies = [Reply(tool_calls=[call_slice(facts=list(facts))])]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    room.library.refresh()
    return outcome


def _related(room: Room, name: str) -> tuple[str, ...]:
    return room.library.find(name).related


# Relations ---------------------------------------------------------------------------------------


async def test_entries_that_one_message_names_are_related(
    room: Room, server: ScriptedServer
) -> None:
    room.library.create("person", "Zoe", actor=Actor.CONSOLIDATOR)
    room.library.create("topic", "Boat", actor=Actor.CONSOLIDATOR)
    said = "We decided to buy the mooring in Ghent, Ilka and Zoe will pay for it with the boat."
    await _condense(
        room,
        server,
        [said, "Omar repairs bicycles."],
        _fact("We decided to buy the mooring in Ghent", "decision", "Mooring in Ghent", 1),
        _fact("Ilka and Zoe will pay for it", "person", "Ilka", 1),
        _fact("Omar repairs bicycles.", "person", "Omar", 2),
    )
    decision = next(info for info in room.library.infos() if info.type == "decision")
    assert set(_related(room, decision.name)) == {"people/ilka", "people/zoe"}
    assert set(_related(room, "people/ilka")) == {decision.name, "people/zoe"}
    assert _related(room, "people/omar") == ()
    assert _related(room, "people/zoe") == (), "nothing else was changed in it"


async def test_an_entry_gets_five_relations_at_most(room: Room, server: ScriptedServer) -> None:
    names = ["Anna", "Bela", "Cora", "Dora", "Enno", "Finn", "Greta"]
    for name in names:
        room.library.create("person", name, actor=Actor.CONSOLIDATOR)
    said = f"Project Heron is run by {', '.join(names)}."
    await _condense(room, server, [said], _fact(said, "project", "Heron", 1))
    assert len(_related(room, "projects/heron")) == MOST_RELATED


async def test_a_relation_of_a_persons_note_is_suggested(
    room: Room, server: ScriptedServer
) -> None:
    mine = "---\ntype: person\ncreated: 2026-01-05\nupdated: 2026-01-05\n---\n# Ilka\n\nMine.\n"
    room.write("knowledge/people/ilka.md", mine)
    outcome = await _condense(
        room,
        server,
        ["Ilka sails on Sundays. Zoe owns the boat."],
        _fact("Ilka sails on Sundays.", "person", "Ilka", 1),
        _fact("Zoe owns the boat.", "person", "Zoe", 1),
    )
    assert _related(room, "people/ilka") == ()
    assert outcome.proposals
    for proposal in outcome.proposals:
        room.pipeline.inbox.accept(proposal)
    room.library.refresh()
    assert _related(room, "people/ilka") == ("people/zoe",)


async def test_no_private_name_gets_into_an_entry_that_is_not(
    room: Room, server: ScriptedServer
) -> None:
    room.write(
        "knowledge/people/zoe.md", "---\ntype: person\nprivate: true\n---\n# Zoe\n\nSecret.\n"
    )
    said = "Ilka sails with Zoe on Sundays."
    await _condense(room, server, [said], _fact(said, "person", "Ilka", 1))
    assert _related(room, "people/ilka") == ()
    operation = write_entry("topic", "Sailing", {"body": said}, DAY)
    room.pipeline.editor.write(
        operation, Author(Actor.MCP, by_tool=True), Origin(), lambda edited: edited.path
    )
    room.library.refresh()
    assert _related(room, "topics/sailing") == ("people/ilka",)


async def test_what_one_sentence_says_of_two_people_stands_with_both(
    room: Room, server: ScriptedServer
) -> None:
    said = "Ilka and Omar moved to Ghent in May."
    await _condense(
        room, server, [said], _fact(said, "person", "Ilka", 1), _fact(said, "person", "Omar", 1)
    )
    for name, other in (("Ilka", "people/omar"), ("Omar", "people/ilka")):
        assert "moved to Ghent" in room.library.find(name).text
        assert _related(room, name) == (other,)


# Twins -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "aliases"), [("Heron", ()), ("heron!", ()), ("The grey one", ("Heron",))]
)
def test_a_machine_cannot_write_a_second_entry_of_a_name(
    room: Room, title: str, aliases: tuple[str, ...]
) -> None:
    room.library.create("project", "Heron", aliases=["Grey bird"])
    room.library.refresh()
    operation = write_entry("topic", title, {"body": "A bird.", "aliases": aliases}, DAY)
    with pytest.raises(UsageError, match=r"knowledge/projects/heron\.md"):
        room.pipeline.editor.write(
            operation, Author(Actor.MCP, by_tool=True), Origin(), lambda edited: edited.path
        )
    assert [info.slug for info in room.library.same_name("topic", "Grey bird")] == ["heron"]
    assert room.library.same_name("topic", "Grey heron") == []


async def test_two_people_of_one_name_are_told_apart_by_what_they_are_called(
    room: Room, server: ScriptedServer
) -> None:
    sister = "My sister Jana is allergic to walnuts."
    daughter = "My daughter Jana plays the cello."
    await _condense(room, server, [sister], _fact(sister, "person", "Jana", 1))
    await _condense(room, server, [daughter], _fact(daughter, "person", "Jana", 1))
    await _condense(
        room,
        server,
        ["My sister Jana moved to Ghent.", "My daughter Jana has a new bow.", "Jana is ill today."],
        _fact("My sister Jana moved to Ghent.", "person", "Jana", 1),
        _fact("My daughter Jana has a new bow.", "person", "Jana", 2),
        _fact("Jana is ill today.", "person", "Jana", 3),
    )
    people = {info.title: room.library.get(info.path).text for info in room.library.infos()}
    assert people.keys() == {"Jana", "Jana (daughter)"}
    assert "walnuts" in people["Jana"]
    assert "Ghent" in people["Jana"]
    assert "cello" not in people["Jana"]
    assert "cello" in people["Jana (daughter)"]
    assert "bow" in people["Jana (daughter)"]
    assert not any("is ill" in text for text in people.values())
    assert "Jana is ill today" in room.read(f"memory/{DAY}.md"), "it isn't said which one"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("My sister Jana is ill.", (2, "sister")),
        ("Jana, my little daughter, is ill.", (4, "daughter")),
        ("Meine Tochter Jana ist krank.", (4, "Tochter")),
        ("Mi hermana Jana está enferma.", (2, "hermana")),
        ("Ma sœur Jana est malade.", (2, "sœur")),
        ("Mia sorella Jana è malata.", (2, "sorella")),
        ("Jana is ill.", None),
        ("His sister Jana is ill.", None),
        ("My sister likes the cello that Jana plays.", None),
    ],
)
def test_as_which_relative_somebody_is_named(text: str, wanted: tuple[int, str] | None) -> None:
    assert kin_of(text, "Jana") == wanted
