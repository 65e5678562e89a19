"""The edit engine: facts in, one commit and an outcome for each of them out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.knowledge.format.facts import Fact
from kbtui.memory.edits.keeping import keep_facts
from kbtui.memory.edits.memory_file import is_statement, split_lines
from kbtui.memory.edits.memory_limits import MOST_LINES, is_near_full
from kbtui.memory.edits.working_copy import Author
from tests.memory.memory_room import Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.history.change import Commit
    from kbtui.memory.edits.keeping import FactOutcome

DAY = date(2026, 3, 6)
MEMORY = "memory/MEMORY.md"
DATABASE = "knowledge/decisions/2026-03-database.md"
MEETING = "knowledge/topics/team-meeting.md"
THURSDAY = Fact("the meeting with Dmitri is on Thursday", "topic", "Team meeting")
POSTGRES = Fact("We use PostgreSQL because of JSON", "decision", "Database")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


@dataclass
class Kept:
    """What became of some facts, the commit, if any, and the ids of what waits."""

    outcomes: list[FactOutcome]
    commit: Commit | None
    proposals: list[str]


def _keep(room: Room, *facts: Fact) -> Kept:
    """Keep facts as the Consolidator does."""
    copy = room.pipeline.editor.open(Author(Actor.CONSOLIDATOR))
    outcomes = keep_facts(copy, facts, DAY)
    proposals = [id_ for _, id_ in copy.propose(room.pipeline.inbox, Origin())]
    with room.history.change(Actor.CONSOLIDATOR, "It was said.") as change:
        copy.stage(change)
    return Kept(outcomes, change.result, proposals)


def _kinds(kept: Kept) -> list[str]:
    return [outcome.kind for outcome in kept.outcomes]


@pytest.mark.parametrize(
    ("kind", "one", "other"), [("project", "Project X", "Project Y"), ("topic", "Room B", "Room C")]
)
def test_what_differs_by_a_letter_gets_an_entry_of_its_own(
    room: Room, kind: str, one: str, other: str
) -> None:
    _keep(room, Fact(f"{one} starts in May", kind, one))
    kept = _keep(room, Fact(f"{other} ended in March", kind, other))
    assert _kinds(kept) == ["created"]
    assert [info.title for info in room.library.infos()] == [one, other]


def test_facts_become_entries_and_memory_in_one_commit(room: Room) -> None:
    kept = _keep(room, THURSDAY, POSTGRES, Fact("Name: Ada", "fact", place="memory"))
    assert _kinds(kept) == ["created", "created", "added"]
    assert kept.commit is not None
    assert {MEETING, MEMORY} <= {change.path for change in kept.commit.paths}
    assert [each.path for each in kept.outcomes] == [MEETING, DATABASE, MEMORY]
    assert "# Team meeting\n\nthe meeting with Dmitri is on Thursday\n" in room.read(MEETING)
    decision = room.read(DATABASE)
    assert "## Decision\nWe use PostgreSQL because of JSON" in decision
    assert "created: 2026-03-06" in decision


def test_what_is_known_in_other_words_is_not_written_again_anywhere(room: Room) -> None:
    _keep(room, THURSDAY)
    kept = _keep(
        room,
        Fact("The meeting with Dmitri is on Thursday.", "topic", "Team meeting"),
        Fact("the meeting with Dmitri is on Thursday", "topic", "Weekly"),
    )
    assert _kinds(kept) == ["known", "known"]
    assert kept.commit is None
    assert kept.outcomes[1].path == MEETING


def test_the_same_of_somebody_else_is_news(room: Room) -> None:
    kept = _keep(
        room,
        Fact("Plays chess", "person", "Alice"),
        Fact("Plays chess", "person", "Bob"),
        Fact("Plays chess", "fact", place="memory"),
    )
    assert _kinds(kept) == ["created", "created", "added"]


def test_a_correction_takes_the_place_of_the_old_statement(room: Room) -> None:
    _keep(room, THURSDAY)
    new = Fact(
        "the meeting with Dmitri is on Friday", "topic", "Team meeting", replaces=THURSDAY.text
    )
    assert _kinds(_keep(room, new)) == ["corrected"]
    text = room.read(MEETING)
    assert "# Team meeting\n\nthe meeting with Dmitri is on Friday\n" in text
    past = "2026-03-06, until then: the meeting with Dmitri is on Thursday"
    assert f"## Evolution\n- {past}" in text


def test_a_telling_part_is_enough_to_find_what_a_correction_replaces(room: Room) -> None:
    _keep(room, THURSDAY, Fact("Alice owns billing", "person", "Alice"))
    new = Fact("the meeting with Dmitri is on Monday", "fact", replaces="meeting Thursday")
    (outcome,) = _keep(room, new).outcomes
    assert (outcome.kind, outcome.path) == ("corrected", MEETING)


def test_title_and_summary_follow_a_correction(room: Room) -> None:
    path = "knowledge/topics/meeting-on-thursday.md"
    with room.history.change(Actor.CONSOLIDATOR, "earlier") as change:
        change.write(
            path,
            "---\ntype: topic\nsummary: The meeting is on Thursday\n---\n"
            "# Meeting on Thursday\n\nThe meeting is on Thursday.\n",
        )
    _keep(room, Fact("The meeting is on Friday", "topic", replaces="The meeting is on Thursday"))
    entry = room.library.find("Meeting on Friday")
    assert entry.summary == "The meeting is on Friday"
    assert "The meeting is on Friday.\n" in entry.text
    assert room.library.find("Meeting on Thursday").path == entry.path, "the old name still leads"


def test_a_correction_of_something_never_said_is_kept_as_a_fact(room: Room) -> None:
    new = Fact("The stand-up is at 10", "topic", "Stand-up", replaces="The stand-up is at 9")
    assert _kinds(_keep(room, new)) == ["created"]
    gone = Fact("", "fact", replaces="Lives in Bonn", place="memory")
    assert _kinds(_keep(room, gone)) == ["known"]


def test_a_decision_that_replaces_another_says_so_in_both(room: Room) -> None:
    _keep(room, POSTGRES)
    new = Fact("We move to MySQL", "decision", "Move to MySQL", replaces=POSTGRES.text)
    assert _kinds(_keep(room, new)) == ["created"]
    old = room.read(DATABASE)
    assert "We use PostgreSQL because of JSON" in old
    assert "- 2026-03-06: Replaced by [[decisions/2026-03-move-to-mysql]]" in old
    made = room.read("knowledge/decisions/2026-03-move-to-mysql.md")
    assert "- 2026-03-06: Replaces [[decisions/2026-03-database]]" in made


def test_another_value_of_the_same_name_takes_its_place(room: Room) -> None:
    _keep(room, Fact("Name: Ada", "fact", place="memory"))
    kept = _keep(room, Fact("Name: Grace", "fact", place="memory"))
    assert _kinds(kept) == ["corrected"]
    assert "Ada" not in room.read(MEMORY)


def test_contradictions_within_one_answer_leave_the_last_value(room: Room) -> None:
    facts = [Fact(f"Port: {port}", "fact", "Server") for port in (5432, 5433, 5434)]
    _keep(room, *facts)
    text = room.read("knowledge/facts/server.md")
    assert "\nPort: 5434\n" in text
    assert "(before: 5433)" in text


def test_a_fact_without_a_subject_goes_to_whom_it_names_else_to_the_day(room: Room) -> None:
    _keep(room, Fact("Leads the team", "person", "Dmitri"))
    kept = _keep(
        room,
        Fact("Dmitri got a better offer. not coming.", "fact"),
        Fact("pharmacy is ext 5512 btw", "fact"),
    )
    assert [each.path for each in kept.outcomes] == [
        "knowledge/people/dmitri.md",
        "memory/2026-03-06.md",
    ]
    assert "- pharmacy is ext 5512 btw" in room.read("memory/2026-03-06.md")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Is it true?", "question"),
        ("(empty)", "says nothing"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("key: sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 7, "secret"),
        ("x" * 5000, "no fact"),
    ],
)
def test_what_is_no_fact_is_refused_in_words(room: Room, text: str, why: str) -> None:
    kept = _keep(room, Fact(text, "topic", "Thing"), Fact("Alice owns billing", "person", "Alice"))
    assert _kinds(kept) == ["refused", "created"]
    assert why in kept.outcomes[0].why
    assert not room.exists("knowledge/topics/thing.md")


def test_what_was_forgotten_is_refused(room: Room) -> None:
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(change, ["Alice: Owns billing", "Likes tea"])
    kept = _keep(
        room,
        Fact("Owns billing", "person", "Alice"),
        Fact("Likes tea", "fact", place="memory"),
    )
    assert _kinds(kept) == ["refused", "refused"]
    assert "forgotten" in kept.outcomes[0].why


def test_a_change_of_a_line_of_the_users_waits(room: Room) -> None:
    path = "knowledge/people/bob.md"
    room.write(path, "---\ntype: person\n---\n# Bob\n\n- Phone: 123\n")
    new = Fact("Phone: 456", "person", "Bob", replaces="Phone: 123")
    kept = _keep(room, new)
    assert _kinds(kept) == ["proposed"]
    assert "Phone: 123" in kept.outcomes[0].why
    assert len(kept.proposals) == 1
    assert "- Phone: 123" in room.read(path)
    room.pipeline.inbox.accept(kept.proposals[0])
    assert "- Phone: 456" in room.read(path)


def test_a_file_that_is_no_text_is_left_alone(room: Room) -> None:
    (room.root / "knowledge/people").mkdir(parents=True, exist_ok=True)
    path = room.root / "knowledge/people/eve.md"
    path.write_bytes(b"# Eve\n\n\xff\xfe\xfa\n")
    room.history.adopt(settle=0)
    _keep(room, Fact("Owns billing", "person", "Eve"))
    assert path.read_bytes() == b"# Eve\n\n\xff\xfe\xfa\n"


def test_memory_never_grows_beyond_its_lines_and_nothing_is_lost(room: Room) -> None:
    mine = "".join(f"- My own line {number} of notes\n" for number in range(30))
    room.write(MEMORY, f"# About the User\n\n{mine}")
    for start in range(0, 60, 10):
        numbers = range(start, start + 10)
        facts = [Fact(f"Host {n} has port {n + 900}", "fact", place="memory") for n in numbers]
        _keep(room, *facts)
    memory = room.read(MEMORY)
    assert sum(map(is_statement, split_lines(memory))) <= MOST_LINES
    assert all(line in memory for line in mine.splitlines()), "the user's own lines stay"
    assert "Host 59 has port 959" in memory, "the newest is never cut"
    texts = memory + "".join(room.library.get(each.path).text for each in room.library.infos())
    assert all(f"Host {n} has port {n + 900}" in texts for n in range(60))
    assert is_near_full(memory, 0)
