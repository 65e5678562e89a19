"""Only what was said is written, once it has proved to last; the rest is accounted for."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UsageError
from kbtui.history.change import Actor, Origin
from kbtui.memory.edits.editor import write_entry
from kbtui.memory.edits.working_copy import Author
from tests.memory.dream_room import add, archive, do, dream_room, dreams, machine, person, told
from tests.memory.memory_room import Room, call_save, call_slice, entry, open_room, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY = "memory/MEMORY.md"
DAY = "memory/2026-03-06.md"


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


async def _condense(room: Room, server: ScriptedServer, said: str, **answer: Any) -> Any:
    talk = room.talk([(0, "user", said)])
    server.enqueue(Reply(tool_calls=[call_slice(**answer)]))
    outcome = await room.pipeline.consolidator.run(talk.id, everything=True)
    room.library.refresh()
    return outcome


def _fact(text: str, type_: str = "user", subject: str = "", **more: Any) -> dict[str, Any]:
    return {"text": text, "type": type_, "subject": subject, "message": 1, **more}


def _correction(old: str, new: str) -> dict[str, Any]:
    return {"old": old, "new": new, "message": 1}


def _known(room: Room, line: str) -> None:
    machine(room, MEMORY=f"# Facts\n\n- {line}\n")


def _text(room: Room, path: str) -> str:
    return room.read(path) if room.exists(path) else ""


# What nobody said --------------------------------------------------------------------------------


async def test_an_invention_is_in_the_audit_alone_and_what_was_said_in_the_note_of_its_day(
    room: Room, server: ScriptedServer
) -> None:
    line = "The user's favorite band is Radiohead"
    facts = [_fact(line, importance=3), _fact(line, "topic", "Radiohead", importance=3)]
    await _condense(room, server, "My favorite band is on tour", facts=facts, notes=[line])
    assert not room.exists(MEMORY)
    assert [line for line in room.read(DAY).splitlines() if line.startswith("- ")] == [
        "- My favorite band is on tour"
    ]
    assert room.library.infos() == []
    audit = room.pipeline.audit()
    assert audit.not_grounded == 2
    assert audit.accounts[0].not_grounded == ("Radiohead", line)
    assert audit.as_json()["details"][0]["not_grounded"] == ["Radiohead", line]


async def test_what_nobody_said_is_still_in_the_audit_after_a_start(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "notes", **scripted(server))
    await _condense(room, server, "Good morning", notes=["The code is 4417, she said"])
    room.close()
    again = open_room(tmp_path / "notes")
    assert again.pipeline.audit().not_grounded == 1
    again.close()


async def test_a_made_up_title_names_no_note_of_the_session(
    room: Room, server: ScriptedServer
) -> None:
    for title, kept in (("Evilbank", ""), ("bands on tour", "bands on tour")):
        talk = room.talk([(0, "user", "My favorite bands are on tour")])
        server.enqueue(Reply(tool_calls=[call_slice(title=title)]))
        outcome = await room.pipeline.consolidator.run(talk.id, everything=True)
        assert outcome.title == kept


async def test_a_tag_or_summary_that_nobody_said_is_left_out_and_in_the_audit(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server)
    talk = room.talk([(0, "user", "The greenhouse needs new glass")])
    archive(room, "They spoke of the greenhouse.", session=talk.id, messages=(1, 1))
    wish = do("create_entry", type="topic", title="Greenhouse", body="It needs new glass.")
    await dreams(room, server, wish | {"tags": ["glass", "evilbank"], "summary": "Of Evilbank."})
    text = room.read("knowledge/topics/greenhouse.md")
    assert "tags: [glass]" in text
    assert "vilbank" not in text
    assert room.pipeline.audit().by_dream == ("evilbank", "Of Evilbank.")
    room.close()


async def test_of_several_lines_only_what_was_said_is_written(
    room: Room, server: ScriptedServer
) -> None:
    talk = room.talk([(0, "user", "Anna Berger is our accountant, she plays chess")])
    draft = entry("person", "Anna Berger", "- Our accountant\n- Plays chess\n- Born in Toronto")
    server.enqueue(Reply(tool_calls=[call_save(entries=[draft])]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    room.library.refresh()
    text = room.library.find("Anna Berger").text
    assert text.endswith("## Notes\nAnna Berger is our accountant, she plays chess\n")
    assert "Toronto" not in text
    assert room.pipeline.audit().not_grounded == 1


async def test_an_entry_whose_subject_nobody_named_is_not_made(
    room: Room, server: ScriptedServer
) -> None:
    fact = _fact("The team uses Kafka", "topic", "Initech", importance=3)
    await _condense(room, server, "Our team uses Kafka", facts=[fact])
    assert room.library.infos() == []


async def test_a_line_about_a_known_entry_may_name_it(room: Room, server: ScriptedServer) -> None:
    room.library.create("person", "Anna Berger", body="Our accountant.", actor=Actor.AGENT)
    fact = _fact("Anna Berger moved to Oslo", "person", "Anna Berger", importance=3)
    await _condense(room, server, "she moved to Oslo", facts=[fact])
    assert "moved to Oslo" in room.library.find("Anna Berger").text


async def test_dream_is_told_that_nobody_said_a_line_and_it_is_accounted_for(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server)
    talk = room.talk([(0, "user", "The greenhouse needs new glass")])
    archive(room, "The greenhouse of Mr. Meyer needs glass.", session=talk.id, messages=(1, 1))
    invented = "Mr. Meyer owns the greenhouse"
    await dreams(room, server, add("MEMORY.md", invented), add("MEMORY.md", "Greenhouse: glass"))
    assert f"{invented}" in told(server).partition("couldn't be made")[2]
    assert "Meyer" not in room.read(MEMORY)
    assert "- The greenhouse needs new glass" in room.read(MEMORY)
    audit = room.pipeline.audit()
    assert audit.by_dream == (invented,)
    assert not room.pipeline.dream.has_news(), "what it left out is no news to it"
    room.close()


async def test_a_small_model_that_dreams_writes_the_users_own_sentences(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, role={"context_window": 8_192})
    said = ["Jonas told me that the printer is broken again", "Lena turns 7 in March, on the 3rd"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    joined = "Jonas told Lena that the printer is broken, and Lena turns 7 in March"
    archive(room, joined, session=talk.id, messages=(1, 2))
    entry = {"do": "create_entry", "type": "topic", "title": "printer", "body": f"- {joined}"}
    await dreams(room, server, add("MEMORY.md", joined), entry)
    memory, entry_text = room.read(MEMORY), room.read("knowledge/topics/printer.md")
    assert f"- {said[0]}\n- {said[1]} (said 2026-03-06)\n" in memory, "an age says when"
    assert f"- {said[0]}\n" in entry_text
    assert said[1] not in entry_text, "it isn't about the printer"
    assert "told Lena" not in memory + entry_text
    room.close()


async def test_a_small_model_that_dreams_puts_no_line_where_it_has_nothing_to_do_with(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, role={"context_window": 8_192})
    machine(room, people__lena=person("Lena"))
    said = ["The server is at 10.0.3.7", "Lena turns 7 in March"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    archive(room, " ".join(said), session=talk.id, messages=(1, 2))
    await dreams(room, server, *(add("people/lena", each) for each in reversed(said)))
    text = room.read("knowledge/people/lena.md")
    assert said[1] in text
    assert said[0] not in text
    room.close()


async def test_a_small_model_that_dreams_moves_no_line_where_one_word_of_it_happens_to_stand(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, role={"context_window": 8_192})
    flour = "---\ntype: topic\n---\n# Flour\n\n- Comes on Mondays from the mill in Hagen.\n"
    machine(room, topics__flour=flour, MEMORY="# Memory\n\n- We close on Mondays\n- The mill\n")
    said = ["We close on Mondays", "The mill in Hagen sends rye flour too"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    archive(room, " ".join(said), session=talk.id, messages=(1, 2))
    move = do("move_line", path="MEMORY.md", old=said[0], to="topics/flour")
    await dreams(room, server, move, *(add("topics/flour", each) for each in said))
    assert said[0] not in room.read("knowledge/topics/flour.md")
    assert said[1] in room.read("knowledge/topics/flour.md")
    assert said[0] in room.read(MEMORY)
    room.close()


async def test_dream_writes_nothing_from_an_entry_that_it_was_not_shown(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server)
    machine(room, topics__sailing="---\ntype: topic\n---\n# Sailing\n\nKestrel is a sloop.\n")
    talk = room.talk([(0, "user", "The greenhouse needs new glass")])
    archive(room, "They spoke of the greenhouse.", session=talk.id, messages=(1, 1))
    await dreams(room, server, add("MEMORY.md", "Kestrel, the sloop, needs glass"))
    assert not room.exists(MEMORY)
    assert room.pipeline.audit().not_grounded == 1
    room.close()


# What small models leave out ---------------------------------------------------------------------


SMALL = {"context_window": 8_192}


async def test_the_half_of_a_sentence_becomes_the_whole_of_it(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "small", **scripted(server, **SMALL))
    fact = _fact("Yusuf sometimes drinks a coffee", "person", "Yusuf")
    said = "Yusuf never drinks coffee after 4 pm, he starts at 3. Lovely!"
    await _condense(room, server, said, facts=[fact, _fact("Yusuf starts at 3", "person", "Yusuf")])
    text = room.read("knowledge/people/yusuf.md")
    assert text.endswith("## Notes\nYusuf never drinks coffee after 4 pm, he starts at 3.\n")
    room.close()


async def test_a_message_that_an_answer_passed_over_is_asked_about_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "small", **scripted(server, **SMALL))
    said = ["Send the invoice to ACME before the 30th", "how are you?", "The oven is broken again"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    oven, invoice = _fact("The oven is broken again", "topic", "oven"), _fact(said[0])
    for facts in ([oven], [invoice]):
        server.enqueue(Reply(tool_calls=[call_slice(facts=facts)]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    first, second = (each.messages[-1]["content"] for each in server.prompts)
    assert "The oven" in first
    assert "The oven" not in second
    assert "#1] USER: Send the invoice" in second
    assert "invoice to ACME" in room.read(DAY)
    assert "oven is broken" in room.read(DAY)
    room.close()


async def test_a_small_model_that_joins_what_was_said_with_its_correction_leaves_both_in_order(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "small", **scripted(server, **SMALL))
    said = ["the release meeting is on Thursday at 10", "no, the meeting is on Friday"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    joined = _fact("The release meeting is on Friday at 10", "project", "meeting", importance=3)
    server.enqueue(Reply(tool_calls=[call_slice(facts=[joined])]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    text = room.read("knowledge/projects/meeting.md")
    assert 0 < text.index(said[0]) < text.index(said[1])
    room.close()


async def test_what_is_passed_over_twice_is_a_note_in_the_users_words(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "small", **scripted(server, **SMALL))
    said = ["The oven is broken again", "Yusuf wants to leave for Halle in spring, I think"]
    said += ["no, the meeting is on Friday", "ok thanks, great"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    for _ in range(2):
        server.enqueue(Reply(tool_calls=[call_slice(notes=[said[0]])]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    assert room.read(DAY).endswith(f"- {said[1]}\n- {said[2]}\n")
    room.close()


async def test_a_small_model_that_joins_two_messages_leaves_both_as_they_were_said(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "small", **scripted(server, **SMALL))
    said = ["Jonas told me that the printer is broken again", "My daughter Lena turns 7 in March"]
    talk = room.talk([(minute, "user", text) for minute, text in enumerate(said)])
    joined = "Jonas told Lena that the printer is broken, and Lena turns 7 in March"
    server.enqueue(Reply(tool_calls=[call_slice(f"{joined}.", notes=[joined])]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    assert f"- {said[0]}\n- {said[1]}\n" in room.read(DAY)
    assert f"{said[0]}. {said[1]}.\n" in room.read("memory/HISTORY.md")
    assert "told Lena" not in room.read(DAY) + room.read("memory/HISTORY.md")
    room.close()


# What lasts --------------------------------------------------------------------------------------


async def test_a_first_mention_is_a_note_of_the_day(room: Room, server: ScriptedServer) -> None:
    fact = _fact("The laptop is at 5 percent", "topic", "laptop", importance=2)
    await _condense(room, server, "My laptop is at 5 percent", facts=[fact])
    assert room.library.infos() == []
    assert "- The laptop is at 5 percent" in room.read(DAY)


async def test_a_note_of_the_day_can_be_read_alone(room: Room, server: ScriptedServer) -> None:
    fact = _fact("It turns 7 on March 3rd", "topic", "the bakery", importance=2)
    await _condense(room, server, "The bakery turns 7 on March 3rd", facts=[fact])
    assert "- the bakery: It turns 7 on March 3rd" in room.read(DAY)


async def test_what_was_corrected_in_the_same_conversation_is_no_note(
    room: Room, server: ScriptedServer
) -> None:
    fact = _fact("The van is booked for April 12", "topic", "van", importance=2)
    wish = _correction("The van is booked for April 12", "The van is booked for April 13")
    said = "The van is booked for April 12. No, for April 13!"
    notes = ["Van booked for April 12"]
    await _condense(room, server, said, facts=[fact], corrections=[wish], notes=notes)
    lines = [line for line in room.read(DAY).splitlines() if line.startswith("- ")]
    assert lines == ["- The van is booked for April 13"]


async def test_what_only_waits_for_the_user_is_a_note_of_the_day(
    room: Room, server: ScriptedServer
) -> None:
    talk = room.talk([(0, "user", "The web shop goes live in March")])
    shop = {"knowledge/projects/shop.md": "# Web shop\n\nThe web shop goes live in March\n"}
    room.pipeline.inbox.add_to_turn("new", shop, Origin(talk.id, (1, 1), "t1"))
    fact = _fact("The web shop goes live in March", "project", "web shop", importance=3)
    server.enqueue(Reply(tool_calls=[call_slice(facts=[fact])]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    assert room.library.infos() == []
    assert "- The web shop goes live in March" in room.read(DAY)


async def test_names_alone_are_no_notes_where_a_line_says_more(
    room: Room, server: ScriptedServer
) -> None:
    fact = _fact("Jonas told me that the printer is broken", "topic", "printer")
    notes = ["Jonas", "the printer", "Lena called at noon", "Lena"]
    said = "Jonas told me that the printer is broken. Lena called at noon."
    await _condense(room, server, said, facts=[fact], notes=notes)
    lines = [line for line in room.read(DAY).splitlines() if line.startswith("- ")]
    assert lines == ["- Jonas told me that the printer is broken", "- Lena called at noon"]


async def test_what_comes_again_in_another_session_is_written(
    room: Room, server: ScriptedServer
) -> None:
    fact = _fact("The user goes to work by bicycle")
    await _condense(room, server, "I go to work by bicycle", facts=[fact])
    assert not room.exists(MEMORY)
    await _condense(room, server, "by bicycle to work, as always", facts=[fact])
    assert "- by bicycle to work, as always" in room.read(MEMORY)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I sit by the window. Remember that.", _fact("Sits by the window")),
        ("I sit by the window", _fact("Sits by the window", importance=3)),
    ],
)
async def test_what_was_asked_for_or_is_needed_for_good_is_written_at_once(
    room: Room, server: ScriptedServer, said: str, fact: dict[str, Any]
) -> None:
    await _condense(room, server, said, facts=[fact])
    assert "- Sits by the window" in room.read(MEMORY)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Anna Berger keeps our books", _fact("Keeps the books", "person", "Anna Berger")),
        ("Project Heron needs a pump", _fact("Needs a pump", "project", "Heron")),
        ("we take PostgreSQL now", _fact("We take PostgreSQL", "decision", "PostgreSQL")),
    ],
)
async def test_a_person_a_project_and_a_decision_get_an_entry(
    room: Room, server: ScriptedServer, said: str, fact: dict[str, Any]
) -> None:
    await _condense(room, server, said, facts=[fact])
    assert [info.title for info in room.library.infos()] == [fact["subject"]]


# Corrections -------------------------------------------------------------------------------------


async def test_a_correction_changes_the_value_and_keeps_the_rest_of_the_line(
    room: Room, server: ScriptedServer
) -> None:
    _known(room, "The kitchen budget is 640 euros, paid in May")
    wish = _correction("kitchen budget is 640", "kitchen budget is 720")
    await _condense(room, server, "The kitchen budget is 720 now", corrections=[wish])
    assert "- The kitchen budget is 720 euros, paid in May\n" in room.read(MEMORY)


async def test_a_correction_without_a_subject_finds_the_entry_that_says_so(
    room: Room, server: ScriptedServer
) -> None:
    pool = "---\ntype: fact\n---\n# Big pool\n\nThe set point is 28 degrees\n"
    ann = "---\ntype: person\n---\n# Ann\n\nThe set point is 28 degrees\n"
    machine(room, facts__big_pool=pool, people__ann=ann)
    wish = _correction("The set point is 28 degrees", "The set point is 27 degrees")
    await _condense(room, server, "The set point is 27 degrees now", corrections=[wish])
    text = room.read("knowledge/facts/big_pool.md")
    assert "The set point is 27 degrees\n" in text.partition("## Evolution")[0]
    assert "The set point is 28 degrees\n" in room.read("knowledge/people/ann.md")


async def test_a_slip_in_a_corrected_value_changes_nothing(
    room: Room, server: ScriptedServer
) -> None:
    _known(room, "Kitchen budget: 640 euros")
    wish = _correction("Kitchen budget: 640 euros", "Kitchen budget: 270 euros")
    await _condense(room, server, "The kitchen budget is 720 euros now", corrections=[wish])
    assert "- Kitchen budget: 640 euros\n" in room.read(MEMORY)
    assert room.pipeline.audit().not_grounded == 1


async def test_what_a_correction_says_that_it_replaces_is_no_ground(
    room: Room, server: ScriptedServer
) -> None:
    wish = _correction("Favorite band: Radiohead or Muse", "Favorite band: Radiohead")
    await _condense(room, server, "My favorite band is on tour", corrections=[wish])
    assert "Radiohead" not in _text(room, MEMORY) + _text(room, DAY)
    assert room.pipeline.audit().not_grounded == 1


@pytest.mark.parametrize("new", ["We cancelled the kitchen, no budget any more", ""])
async def test_a_correction_of_more_than_a_value_waits_in_the_inbox(
    room: Room, server: ScriptedServer, new: str
) -> None:
    _known(room, "Kitchen budget: 640 euros")
    said = "We cancelled the kitchen, so there is no budget any more"
    wish = _correction("Kitchen budget: 640 euros", new)
    outcome = await _condense(room, server, said, corrections=[wish])
    assert outcome.kind == "proposed"
    assert "- Kitchen budget: 640 euros\n" in room.read(MEMORY)
    (proposal,) = room.pipeline.inbox.list()
    room.pipeline.inbox.accept(proposal.id)
    assert "640" not in _text(room, MEMORY)


async def test_a_line_that_was_imported_as_a_person_wrote_it_is_only_proposed_to_change(
    room: Room, server: ScriptedServer
) -> None:
    with room.history.change(Actor.IMPORT, "brought in") as change:
        change.write(MEMORY, "# Facts\n\n- Kitchen budget: 640 euros\n")
    wish = _correction("Kitchen budget: 640 euros", "Kitchen budget: 720 euros")
    outcome = await _condense(room, server, "The kitchen budget is 720", corrections=[wish])
    assert outcome.kind == "proposed"
    assert "- Kitchen budget: 640 euros\n" in room.read(MEMORY)


async def test_what_is_forgotten_goes_out_of_the_audit_too(
    room: Room, server: ScriptedServer
) -> None:
    await _condense(room, server, "Good morning", notes=["The code is 4417, she said"])
    room.pipeline.forgetting.forget(room.pipeline.forgetting.plan("4417"))
    assert "4417" not in room.read("memory/history.jsonl")


# Who it is about ---------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", ["user", "the user", "Me", "I", "self", "Ben", "Ben Carter"])
async def test_the_user_by_any_name_is_who_memory_is_about(
    room: Room, server: ScriptedServer, subject: str
) -> None:
    room.write("USER.md", "# User\n\n- Name: Ben Carter\n")
    facts = [
        _fact("Ben sits by the window", type_, subject, importance=3)
        for type_ in ("preference", "person")
    ]
    await _condense(room, server, "I always sit by the window", facts=facts)
    assert room.library.infos() == []
    assert "- I always sit by the window" in room.read(MEMORY)


@pytest.mark.parametrize(("kind", "title"), [("preference", "User"), ("person", "Me")])
def test_no_tool_makes_an_entry_of_the_user(room: Room, kind: str, title: str) -> None:
    operation = write_entry(kind, title, {"body": "Sits by the window."}, date(2026, 3, 6))
    author = Author(Actor.AGENT, by_tool=True)
    with pytest.raises(UsageError, match="is the user"):
        room.pipeline.editor.write(operation, author, Origin(), lambda _edited: "")
    assert room.library.infos() == []


# Days ---------------------------------------------------------------------------------------------

THREE_DAYS = 3 * 24 * 60
CRAFTSMEN = ["The chimney sweep comes tomorrow", "The plumber comes tomorrow"]


@pytest.mark.parametrize("window", [{}, SMALL], ids=["large", "small"])
async def test_a_line_counts_from_its_own_day_and_stands_in_that_days_note(
    tmp_path: Path, server: ScriptedServer, window: dict[str, Any]
) -> None:
    room = open_room(tmp_path / "days", **scripted(server, **window))
    talk = room.talk([(0, "user", CRAFTSMEN[0]), (THREE_DAYS, "user", CRAFTSMEN[1])])
    answer = call_slice(f"{CRAFTSMEN[0]}. {CRAFTSMEN[1]}.", notes=CRAFTSMEN)
    server.enqueue(Reply(tool_calls=[answer]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    assert "## Flush at 10:00" in room.read("memory/2026-03-06.md")
    assert room.read("memory/2026-03-06.md").endswith(f"\n\n- {CRAFTSMEN[0]} (2026-03-07)\n")
    assert room.read("memory/2026-03-09.md").endswith(f"\n\n- {CRAFTSMEN[1]} (2026-03-10)\n")
    said = f"{CRAFTSMEN[0]} (2026-03-07). {CRAFTSMEN[1]} (2026-03-10)."
    assert said in room.read("memory/HISTORY.md")
    room.close()


async def test_a_fact_counts_from_the_day_of_its_message(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "days", **scripted(server))
    said = ["I quit smoking two months ago", "I moved to Ulm two months ago"]
    talk = room.talk([(0, "user", said[0]), (30 * 24 * 60, "user", said[1])])
    facts = [_fact(text, importance=5) for text in said]
    server.enqueue(Reply(tool_calls=[call_slice(facts=facts)]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    memory = room.read(MEMORY)
    assert "- I quit smoking two months ago (January 2026)\n" in memory
    assert "- I moved to Ulm two months ago (February 2026)\n" in memory
    room.close()


async def test_dream_counts_each_line_from_the_day_of_its_message(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "days", server)
    talk = room.talk([(0, "user", CRAFTSMEN[0]), (THREE_DAYS, "user", CRAFTSMEN[1])])
    archive(room, ". ".join(CRAFTSMEN), session=talk.id, messages=(1, 2))
    await dreams(room, server, *(add("MEMORY.md", each) for each in CRAFTSMEN))
    memory = room.read(MEMORY)
    assert f"- {CRAFTSMEN[0]} (2026-03-07)\n- {CRAFTSMEN[1]} (2026-03-10)\n" in memory
    room.close()
