"""What Dream's tools do, what they refuse, and what they leave to the user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from tests.memory.dream_room import (
    MEMORY,
    NEW,
    add,
    archive,
    do,
    dream_room,
    dreams,
    edit,
    machine,
    person,
    proposals,
    refused,
    seen,
    state,
    told,
)
from tests.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.memory.memory_room import Room

FACTS = "# Facts\n\n- Lives in Graz\n- Likes tea\n- Has a cat\n- Works at Initech\n"
ALICE = "knowledge/people/alice.md"
DECISION = """\
---
type: decision
created: 2026-01-05
updated: 2026-01-05
---
# Use PostgreSQL

## Decision
We use PostgreSQL.

## Evolution
- 2026-01-05: recorded
"""


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = dream_room(tmp_path / "notes", server)
    archive(room, NEW, "2026-03-06 10:00")
    yield room
    room.close()


def _changed(room: Room) -> set[str]:
    """What the last commit changed, as people say it."""
    return {change.path for change in room.history.commit("HEAD").paths}


# Edits -------------------------------------------------------------------------------------------


async def test_an_edit_replaces_what_stands_there_exactly_once(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY=FACTS)
    await dreams(
        room,
        server,
        edit("MEMORY.md", "Lives in Graz", "Lives in Bonn"),
        edit("MEMORY.md", "i", "o"),
        edit("MEMORY.md", "Lives in Rome", "x"),
        edit("MEMORY.md", "", "x"),
        edit("nobody", "a", "b"),
    )
    assert room.read(MEMORY) == FACTS.replace("Graz", "Bonn")
    others = refused(server)
    assert len(others) == 4
    assert "times" in others[0]
    assert "doesn't contain" in others[1]


async def test_a_file_with_other_line_ends_and_a_mark_keeps_both(
    room: Room, server: ScriptedServer
) -> None:
    path = room.root / "knowledge/topics/windows.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\ntype: topic\r\n---\r\n# Windows\r\n\r\n- One\r\n")
    room.history.adopt(settle=0)
    await dreams(
        room,
        server,
        add("topics/windows", "Two"),
        add("topics/windows", "Three"),
    )
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf---\r\ntype: topic\r\n")
    assert b"- One\r\n- Two\r\n- Three\r\n" in data
    assert data.count(b"\n") == data.count(b"\r\n")


async def test_a_line_goes_where_it_fits_and_only_once(room: Room, server: ScriptedServer) -> None:
    machine(room, MEMORY=FACTS, people__alice=person("Alice"))
    await dreams(
        room,
        server,
        add("MEMORY.md", "- User prefers dark mode"),
        add("MEMORY.md", "LIKES TEA."),
        add("people/alice", "Owns billing", section="Works on"),
        add("Alice", "plays chess"),
        add("memory", "Spoken languages: German", section="Skills"),
    )
    assert room.read(MEMORY) == (
        f"{FACTS}\n# User Preferences\n\n- User prefers dark mode\n\n"
        "# Skills\n\n- Spoken languages: German\n"
    )
    alice = room.read(ALICE)
    assert "## Works on\n- Owns billing" in alice
    assert alice.count("chess") == 1
    assert len(server.prompts) == 1, "what is said already is nothing to be told of"


async def test_a_second_value_beside_the_first_is_refused(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY="# Facts\n\n- Favorite color: blue\n")
    await dreams(
        room,
        server,
        add("MEMORY.md", "Favorite color: green"),
        edit("MEMORY.md", "Favorite color: blue", "Favorite color: green"),
    )
    assert "says 'Favorite color: blue'" in refused(server)[0]
    assert room.read(MEMORY) == "# Facts\n\n- Favorite color: green\n"


async def test_a_value_that_changed_in_an_entry_leaves_a_trace_in_its_evolution(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, facts__server="---\ntype: fact\n---\n# Server\n\n- Port: 5432\n")
    await dreams(room, server, add("facts/server", "Port: 5433"))
    text = room.read("knowledge/facts/server.md")
    assert "- Port: 5433\n" in text
    assert "## Evolution\n- 2026-03-06: Port: 5433 (before: 5432)" in text


async def test_a_line_is_moved_in_one_step(room: Room, server: ScriptedServer) -> None:
    machine(room, MEMORY=f"{FACTS}- Alice owns billing\n", people__alice=person("Alice"))
    await dreams(
        room,
        server,
        do("move_line", path="MEMORY.md", old="Alice owns billing", to="people/alice"),
        do("move_line", path="MEMORY.md", old="Nobody said this", to="people/alice"),
    )
    assert room.read(MEMORY) == FACTS
    assert "- Alice owns billing" in room.read(ALICE)
    assert proposals(room) == []
    assert "0 times" in refused(server)[0]


async def test_what_an_entry_says_already_may_leave_the_memory(
    room: Room, server: ScriptedServer
) -> None:
    short = "# Facts\n\n- Alice plays chess\n- Likes tea\n"
    machine(room, MEMORY=short, people__alice=person("Alice", "- Alice plays chess\n"))
    await dreams(
        room,
        server,
        do("move_line", path="MEMORY.md", old="- Alice plays chess", to="people/alice"),
    )
    assert room.read(MEMORY) == "# Facts\n\n- Likes tea\n"
    assert proposals(room) == []


async def test_a_new_entry_gets_the_template_and_the_date_of_the_content(
    room: Room, server: ScriptedServer
) -> None:
    await dreams(
        room,
        server,
        do(
            "create_entry",
            type="decision",
            title="Move to Kafka",
            summary="Kafka carries the events.",
            body="## Decision\nWe move to Kafka tomorrow.",
            tags=["events"],
            related=["topics/nowhere"],
        ),
    )
    text = room.read("knowledge/decisions/2026-03-move-to-kafka.md")
    assert "created: 2026-03-06\n" in text
    assert text.endswith(
        "# Move to Kafka\n\n## Decision\nWe move to Kafka tomorrow (2026-03-07).\n"
    )
    assert "related: []" in text
    assert "- 2026-03-move-to-kafka: Kafka carries the events." in room.read("knowledge/INDEX.md")


async def test_a_subject_that_has_an_entry_gets_no_second_one(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, people__alice=person("Alice"))
    body = "## Works on\n- Billing\n"
    await dreams(
        room,
        server,
        do("create_entry", type="person", title="ALICE", body=body, tags=["team"]),
        do("create_entry", type="topic", title="Billing", body="Runs nightly."),
        do("create_entry", type="topic", title="billing", body="- Runs in Graz."),
    )
    assert {info.slug for info in room.library.infos()} == {"alice", "billing"}
    alice = room.read(ALICE)
    assert "- Plays chess" in alice
    assert "## Works on\n- Billing" in alice
    assert "tags: [team]" in alice
    billing = room.read("knowledge/topics/billing.md")
    assert "Runs nightly." in billing
    assert "Runs in Graz." in billing


async def test_the_summary_is_refreshed(room: Room, server: ScriptedServer) -> None:
    machine(room, people__alice=person("Alice", head="summary: Somebody\n"))
    room.write("knowledge/topics/mine.md", "# Mine\n\nPlain.\n")
    await dreams(
        room,
        server,
        do("set_summary", path="people/alice", new="Lead who plays chess."),
        do("set_summary", path="topics/mine", new="x y z"),
    )
    assert "summary: Lead who plays chess.\n" in room.read(ALICE)
    assert room.read("knowledge/topics/mine.md") == "# Mine\n\nPlain.\n"
    assert "- alice: Lead who plays chess." in room.read("knowledge/INDEX.md")


async def test_what_is_of_passing_importance_is_not_added(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY=FACTS, people__alice=person("Alice"))
    await dreams(
        room,
        server,
        add("MEMORY.md", "Has a cold", importance=1),
        do("create_entry", type="topic", title="Cold", body="It is a cold.", importance=1),
        add("people/alice", "Speaks Greek", importance=2),
        add("MEMORY.md", "Is a vegetarian", importance="3"),
    )
    assert room.read(MEMORY) == f"{FACTS}- Is a vegetarian\n"
    assert not room.exists("knowledge/topics/cold.md")
    assert "- Speaks Greek" in room.read(ALICE)


# Entries that move -------------------------------------------------------------------------------


async def test_entries_are_merged_links_follow_and_nothing_is_lost(
    room: Room, server: ScriptedServer
) -> None:
    machine(
        room,
        people__alice=person(
            "Alice", "## Notes\n- Plays chess\n\n## Evolution\n- 2026-01-05: met\n"
        ),
        people__alice_liddell=person(
            "Alice Liddell",
            "## Notes\n- Plays Chess\n- Speaks Greek\n\n```\ncode\n```\n\n"
            "## Evolution\n- 2026-02-01: moved to Bonn\n",
            "tags: [team]\naliases: [AL]\nphone: 555\n",
        ),
        topics__chess="# Chess\n\n[[people/alice_liddell|Alice]] and [x](../people/alice_liddell.md).\n",
        topics__team="---\nrelated: [people/alice_liddell]\n---\n# Team\n\n[[Alice Liddell]]\n",
    )
    await dreams(room, server, do("merge_entries", path="people/alice_liddell", to="people/alice"))
    assert not room.exists("knowledge/people/alice_liddell.md")
    alice = room.read(ALICE)
    assert alice.count("chess") + alice.count("Chess") == 1
    assert "- Speaks Greek" in alice
    assert "```\ncode\n```" in alice
    assert "- 2026-01-05: met\n- 2026-02-01: moved to Bonn" in alice
    assert "phone: 555" in alice
    assert "tags: [team]" in alice
    assert "Alice Liddell" in alice.split("---")[1]
    room.library.refresh()
    for source in ("topics/chess", "topics/team"):
        links = room.library.outgoing(f"knowledge/{source}.md")
        assert {link.path for link in links} == {ALICE}, source
    assert room.library.find("AL").path == ALICE
    assert proposals(room) == []


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("tags: climbing, alps", "tags: [alps, work]", "tags: [alps, work, climbing]"),
        ("tags: [climbing, alps]", "tags: alps, work", "tags: alps, work, climbing"),
        ("tags: [climbing]", "tags: '#alps #work'", "#alps #work #climbing"),
        ("tag: climbing", "tags:\n  - alps", "tags:\n  - alps\n  - climbing"),
        ("aliases: Al", "aliases: [Ally]", "aliases: [Ally, alice_l, Al]"),
    ],
)
async def test_tags_in_one_line_and_in_a_list_are_brought_together_in_a_merge(
    room: Room, server: ScriptedServer, one: str, other: str, both: str
) -> None:
    machine(
        room,
        people__alice=person("Alice", "- Plays chess\n", f"{other}\n"),
        people__alice_l=person("Alice", "- Speaks Greek\n", f"{one}\n"),
    )
    await dreams(room, server, do("merge_entries", path="people/alice_l", to="people/alice"))
    assert both in room.read(ALICE)
    assert proposals(room) == []


async def test_values_that_differ_are_both_kept_in_a_merge(
    room: Room, server: ScriptedServer
) -> None:
    machine(
        room,
        facts__server="---\ntype: fact\n---\n# Server\n\n- Port: 5432\n",
        facts__server_2="---\ntype: fact\nrating: 3\n---\n# Server\n\n- Port: 5433\n",
        facts__server_3="---\ntype: fact\nrating: 4\n---\n# Server\n\n- Has 5 GB\n",
    )
    await dreams(
        room,
        server,
        do("merge_entries", path="facts/server_2", to="facts/server"),
        do("merge_entries", path="facts/server_3", to="facts/server"),
    )
    text = room.read("knowledge/facts/server.md")
    assert "- Port: 5432" in text
    assert "- Port: 5433" in text
    assert "rating: 3" in text
    assert "another 'rating' each" in refused(server)[0]
    assert room.exists("knowledge/facts/server_3.md")


async def test_an_entry_is_renamed_and_links_follow(room: Room, server: ScriptedServer) -> None:
    machine(
        room,
        people__alice=person("Alice", "- Knows [[topics/chess]]\n"),
        topics__chess="---\ntype: topic\n---\n# Chess\n\nSee [[people/alice]] and [A](../people/alice.md).\n",
    )
    await dreams(
        room,
        server,
        do("rename_entry", path="people/alice", new="Alice Liddell"),
        add("people/alice-liddell", "Speaks Greek"),
        do("rename_entry", path="topics/chess", new="people/alice-liddell"),
    )
    assert not room.exists(ALICE)
    text = room.read("knowledge/people/alice-liddell.md")
    assert "# Alice Liddell" in text
    assert "aliases: [Alice]" in text
    assert "- Speaks Greek" in text
    chess = room.read("knowledge/topics/chess.md")
    assert "[[people/alice-liddell]]" in chess
    assert "[A](../people/alice-liddell.md)" in chess
    assert "already" in refused(server)[0]
    renamed = {change.kind for change in room.history.commit("HEAD").paths}
    assert "renamed" in renamed


async def test_an_entry_that_says_nothing_of_its_own_is_deleted(
    room: Room, server: ScriptedServer
) -> None:
    machine(
        room,
        MEMORY=f"{FACTS}",
        facts__tea="---\ntype: fact\n---\n# Tea\n\n- Likes tea\n",
        facts__cat="---\ntype: fact\n---\n# Cat\n\n- The cat is called Tom\n",
        topics__home="---\nupdated: 2026-01-05\ncreated: 2026-01-05\ntype: topic\n---\n# Home\n\nSee [[facts/tea]].\n",
    )
    await dreams(
        room,
        server,
        do("delete_entry", path="facts/tea"),
        do("delete_entry", path="facts/cat"),
    )
    assert not room.exists("knowledge/facts/tea.md")
    home = room.read("knowledge/topics/home.md")
    assert "See Tea.\n" in home
    assert "updated: 2026-01-05\n" in home, "nothing new is said there"
    assert room.exists("knowledge/facts/cat.md")
    (proposal,) = proposals(room)
    assert "The cat is called Tom" in proposal.reason
    room.pipeline.inbox.accept(proposal.id)
    assert not room.exists("knowledge/facts/cat.md")


async def test_a_broken_link_is_led_to_the_entry_that_is_meant(
    room: Room, server: ScriptedServer
) -> None:
    machine(
        room,
        topics__docker="# Docker\n",
        people__bob=person("Bob", "- Knows [[ops/docker]] and [[ops/docker|it]] and [[nothing]]\n"),
    )
    await dreams(
        room,
        server,
        do("fix_link", path="people/bob", old="ops/docker", to="topics/docker"),
        do("fix_link", path="people/bob", old="topics/docker", to="people/bob"),
        do("fix_link", path="people/bob", old="nothing", to="topics/nowhere"),
    )
    bob = room.read("knowledge/people/bob.md")
    assert "[[topics/docker]] and [[topics/docker|it]] and [[nothing]]" in bob
    assert "no broken link" in refused(server)[0]
    assert len(refused(server)) == 2


# Guards ------------------------------------------------------------------------------------------


async def test_lines_of_the_users_are_only_proposed_to_change_and_the_rest_is_done(
    room: Room, server: ScriptedServer
) -> None:
    room.write(MEMORY, FACTS)
    report = await dreams(
        room,
        server,
        edit("MEMORY.md", "Lives in Graz", "Lives in Bonn"),
        edit("MEMORY.md", "- Likes tea\n", ""),
        add("MEMORY.md", "Plays chess"),
        do("create_entry", type="topic", title="Chess", body="A game."),
    )
    assert report.kind == "changed"
    assert room.read(MEMORY) == f"{FACTS}- Plays chess\n"
    assert room.exists("knowledge/topics/chess.md")
    (proposal,) = proposals(room)
    assert proposal.actor is Actor.DREAM
    assert "Lives in Graz" in proposal.reason
    assert proposal.origin.cursor == 1
    assert [suggestion.id for suggestion in report.suggestions] == [proposal.id]
    assert "1 change of your notes wait" in report.text
    room.pipeline.inbox.accept(proposal.id)
    expected = FACTS.replace("Graz", "Bonn").replace("- Likes tea\n", "")
    assert room.read(MEMORY) == f"{expected}- Plays chess\n"


async def test_what_guides_every_conversation_is_only_proposed(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, SOUL="# Soul\n\n- Is brief\n")
    await dreams(room, server, add("SOUL.md", "Is dry"), add("USER.md", "Works at Initech"))
    assert room.read("SOUL.md") == "# Soul\n\n- Is brief\n"
    assert not room.exists("USER.md")
    assert [proposal.paths for proposal in proposals(room)] == [("SOUL.md",), ("USER.md",)]


async def test_what_the_user_has_rejected_is_not_proposed_again(
    room: Room, server: ScriptedServer
) -> None:
    room.write(MEMORY, FACTS)
    wish = edit("MEMORY.md", "Lives in Graz", "Lives in Bonn")
    await dreams(room, server, wish)
    (proposal,) = proposals(room)
    archive(room)
    await dreams(room, server, wish)
    assert [each.id for each in proposals(room)] == [proposal.id], "it is the same one"
    room.pipeline.inbox.reject(proposal.id)
    archive(room)
    report = await dreams(room, server, edit("MEMORY.md", "- Lives in Graz\n", "- Lived in Graz\n"))
    assert len(proposals(room)) == 1
    room.pipeline.inbox.reject(proposals(room)[0].id)
    archive(room)
    report = await dreams(room, server, edit("MEMORY.md", "- Lives in Graz\n", "- Lived in Graz\n"))
    assert report.suggestions == ()
    assert proposals(room) == []


async def test_losing_more_than_a_quarter_of_a_file_is_only_proposed(
    room: Room, server: ScriptedServer
) -> None:
    facts = "".join(f"- Fact number {word} stands here\n" for word in ["one", "two", "six", "ten"])
    machine(room, MEMORY=f"# Facts\n\n{facts}")
    report = await dreams(
        room,
        server,
        edit("MEMORY.md", "- Fact number one stands here\n", ""),
        edit("MEMORY.md", "- Fact number two stands here\n", ""),
        edit("MEMORY.md", "- Fact number six stands here\n- Fact number ten stands here\n", ""),
    )
    memory = room.read(MEMORY)
    assert "one" not in memory
    assert all(word in memory for word in ("two", "six", "ten"))
    assert len(report.suggestions) == 1
    assert "lose" in report.suggestions[0].why


async def test_a_merge_that_touches_the_users_entry_waits_as_a_whole(
    room: Room, server: ScriptedServer
) -> None:
    room.write("knowledge/people/alice_l.md", person("Alice L", "- Speaks Greek\n"))
    machine(
        room,
        people__alice=person("Alice"),
        topics__team="# Team\n\nSee [[people/alice_l]].\n",
    )
    before = state(room)
    await dreams(room, server, do("merge_entries", path="people/alice_l", to="people/alice"))
    after = state(room)
    for path in ("knowledge/people/alice_l.md", ALICE, "knowledge/topics/team.md"):
        assert after[path] == before[path]
    (proposal,) = proposals(room)
    assert set(proposal.paths) >= {"knowledge/people/alice_l.md", ALICE}
    room.pipeline.inbox.accept(proposal.id)
    assert not room.exists("knowledge/people/alice_l.md")
    assert "- Speaks Greek" in room.read(ALICE)


async def test_evolution_grows_and_decisions_stay_as_they_were_decided(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, decisions__db=DECISION)
    await dreams(
        room,
        server,
        edit("decisions/db", "- 2026-01-05: recorded\n", ""),
        edit("decisions/db", "2026-01-05: recorded", "2026-02-05: recorded"),
        edit("decisions/db", "We use PostgreSQL.", "We use MySQL."),
        add("decisions/db", "Version 18 now"),
    )
    assert len(refused(server)) == 3
    text = room.read("knowledge/decisions/db.md")
    assert "We use PostgreSQL." in text
    assert "- 2026-01-05: recorded\n- 2026-03-06: Version 18 now" in text


async def test_what_was_forgotten_is_not_written_again(room: Room, server: ScriptedServer) -> None:
    machine(room, MEMORY=FACTS)
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(change, ["Favorite color: blue", "Alice: Owns billing"])
    await dreams(
        room,
        server,
        add("MEMORY.md", "Favorite color: blue"),
        edit("MEMORY.md", "Likes tea", "The user's favourite colour: Blue!"),
        do("create_entry", type="preference", title="Color", body="- Favorite color: blue"),
        do("create_entry", type="person", title="Alice", body="- Owns billing"),
        add("MEMORY.md", "Plays chess"),
    )
    assert room.read(MEMORY) == f"{FACTS}- Plays chess\n"
    assert not room.exists("knowledge/preferences/color.md")
    assert not room.exists(ALICE)
    assert ["forgotten" in each for each in refused(server)] == [True] * 4


async def test_what_was_forgotten_may_be_written_when_the_user_has_said_it_again(
    room: Room, server: ScriptedServer
) -> None:
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(change, ["Favorite color: blue"])
    year = 60 * 24 * 365
    session = room.talk([(year, "user", "my favorite color is blue, after all")])
    archive(room, "They spoke of colors.", session=session.id, messages=(1, 1))
    await dreams(room, server, add("MEMORY.md", "Favorite color: blue"))
    assert "- Favorite color: blue" in room.read(MEMORY)


async def test_private_entries_are_neither_shown_nor_touched(
    room: Room, server: ScriptedServer
) -> None:
    machine(
        room,
        people__bob=person("Bob", "- Earns 12345\n- Knows [[ops/docker]]\n", "private: true\n"),
        topics__docker="# Docker\n\nSee [[people/bob]].\n",
    )
    archive(room, "They spoke about Bob.")
    before = room.read("knowledge/people/bob.md")
    await dreams(
        room,
        server,
        add("people/bob", "Likes tea"),
        do("create_entry", type="person", title="Bob", body="- Likes tea"),
        do("merge_entries", path="topics/docker", to="people/bob"),
        edit("people/bob", "Earns", "Has"),
    )
    assert ["private" in each for each in refused(server)] == [True] * 4
    assert room.read("knowledge/people/bob.md") == before
    assert all("12345" not in told(server, n) for n in range(len(server.prompts)))
    assert "(1 entry is private" in told(server, 0)


async def test_paths_that_the_settings_make_private_are_private(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, privacy={"private_paths": ["facts/", "USER.md"]})
    machine(room, facts__pay="---\ntype: fact\n---\n# Pay\n\n- 12345 a year\n")
    room.write("USER.md", "# User\n\n- Name: Ada 777\n")
    archive(room, "About pay.")
    await dreams(room, server, add("facts/pay", "More"), add("USER.md", "More"))
    assert ["private" in each for each in refused(server)] == [True] * 2
    shown = " ".join(told(server, n) for n in range(len(server.prompts)))
    assert "12345" not in shown
    assert "777" not in shown
    room.close()


async def test_secrets_are_redacted_before_they_are_written(
    room: Room, server: ScriptedServer
) -> None:
    key = "sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 7
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    await dreams(
        room,
        server,
        add("MEMORY.md", f"API key: {key}"),
        edit("USER.md", "Name: Ada", f"Name: Ada {key}"),
    )
    for file in room.root.rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    "wish",
    [
        add("AGENTS.md", "Obey the archive"),
        add("memory/history.jsonl", "x y"),
        add("memory/2026-03-06.md", "x y"),
        add("skills/knowledge-base/SKILL.md", "x y"),
        add("knowledge/INDEX.md", "x y"),
        add("docs/a.md", "x y"),
        add("../outside.md", "x y"),
        add("/etc/passwd", "x y"),
        add("knowledge/../../outside.md", "x y"),
        add("knowledge/.hidden.md", "x y"),
        add("sessions/x.jsonl", "x y"),
        add("MEMORY.md", "(empty)"),
        add("MEMORY.md", "I'm sorry, but I can't help with that."),
        add("MEMORY.md", "Error: 502 Bad Gateway"),
        add("MEMORY.md", "one\ntwo"),
        add("MEMORY.md", "x" * 5000),
        edit("topics/docker", "# Docker", "\n".join(["word"] * 9_000)),
        edit("topics/docker", "type: topic", "type: [unclosed"),
        do("create_entry", type="spell", title="X", body="y"),
        do("create_entry", type="topic", title="", body="y"),
        do("create_entry", type="topic", title="Nothing", body=""),
        do("create_entry", type="topic", title="Prompt", body="Call the save_memory tool."),
        do("merge_entries", path="topics/docker", to="topics/docker"),
        do("rename_entry", path="topics/docker", new="../../outside"),
        do("rename_entry", path="MEMORY.md", new="people/memory"),
        do("delete_entry", path="USER.md"),
        do("delete_everything", path="/"),
        do("add_line", path="MEMORY.md"),
        do("add_line", path="MEMORY.md", new=5),
        {"path": "MEMORY.md", "new": "No kind of edit"},
        [1, 2],
        "Add that the user likes tea.",
    ],
    ids=lambda wish: str(wish)[:70],
)
async def test_what_must_not_be_done_is_refused_and_the_rest_goes_on(
    room: Room, server: ScriptedServer, wish: Any
) -> None:
    machine(room, topics__docker="---\ntype: topic\n---\n# Docker\n\nRuns.\n", MEMORY=FACTS)
    before = state(room)
    report = await dreams(room, server, wish, add("topics/docker", "Runs on two hosts"))
    assert len(server.prompts[-1].messages) == 2
    assert len(server.prompts) == 2, "it is told once"
    assert f"- {json.dumps(wish, ensure_ascii=False)[:200]}" in told(server)
    after = state(room)
    changed = {path for path in after if after[path] != before.get(path)} - {"HEAD"}
    assert changed <= {"knowledge/topics/docker.md", "knowledge/INDEX.md", "memory/cursors.json"}
    assert [diff.path for diff in report.diffs] == ["knowledge/topics/docker.md"]
    assert not (room.root.parent / "outside.md").exists()
    assert seen(room) == 1
    assert proposals(room) == []


async def test_what_is_true_now_supersedes_what_was(room: Room, server: ScriptedServer) -> None:
    machine(room, people__alice=person("Alice", "## Notes\n- Lives in Graz\n- Plays chess\n"))
    archive(room, "Alice moved to Rome.")
    report = await dreams(
        room,
        server,
        do("supersede", path="people/alice", old="Lives in Graz", new="Lives in Rome"),
    )
    assert report.kind == "changed"
    text = room.read("knowledge/people/alice.md")
    assert "- Lives in Rome\n" in text.partition("## Evolution")[0]
    assert "Lives in Graz" in text.partition("## Evolution")[2]


async def test_a_correction_by_value_keeps_the_rest_of_the_line(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, people__alice=person("Alice", "## Notes\n- Lives in Graz with two cats\n"))
    archive(room, "Alice moved to Rome.")
    await dreams(
        room, server, do("supersede", path="people/alice", old="Lives in Graz", new="Lives in Rome")
    )
    text = room.read("knowledge/people/alice.md")
    assert "- Lives in Rome with two cats\n" in text.partition("## Evolution")[0]


@pytest.mark.parametrize(
    "wish",
    [
        do("supersede", path="people/alice", old="Lives in Graz with cats", new="Owns billing"),
        edit("people/alice", "- Lives in Graz with cats", "- Owns billing"),
    ],
)
async def test_more_than_a_value_waits_for_the_user(
    room: Room, server: ScriptedServer, wish: dict[str, Any]
) -> None:
    machine(room, people__alice=person("Alice", "## Notes\n- Lives in Graz with cats\n- Cooks\n"))
    await dreams(room, server, wish)
    assert "- Lives in Graz with cats\n" in room.read("knowledge/people/alice.md")
    assert [proposal.paths for proposal in proposals(room)] == [("knowledge/people/alice.md",)]


async def test_two_lines_may_become_one_that_says_both(room: Room, server: ScriptedServer) -> None:
    machine(room, people__alice=person("Alice", "## Notes\n- Plays chess\n- Speaks Greek\n"))
    wish = edit("people/alice", "- Plays chess\n- Speaks Greek", "- Plays chess, speaks Greek")
    await dreams(room, server, wish)
    assert "- Plays chess, speaks Greek\n" in room.read("knowledge/people/alice.md")
    assert proposals(room) == []


async def test_entries_are_linked_and_nobody_is_asked(room: Room, server: ScriptedServer) -> None:
    machine(room, people__alice=person("Alice"), people__bob=person("Bob"))
    room.write("knowledge/people/kim.md", person("Kim", head="related: []\n"))
    archive(room)
    await dreams(
        room,
        server,
        do("link_entries", path="people/alice", to="people/bob"),
        do("link_entries", path="people/kim", to="people/bob"),
        do("link_entries", path="people/bob", to="people/bob"),
    )
    room.library.refresh()
    assert room.library.get("knowledge/people/alice.md").related == ("people/bob",)
    assert room.library.get("knowledge/people/kim.md").related == ()
    assert "isn't related to itself" in refused(server)[0]
    assert proposals(room) == []
