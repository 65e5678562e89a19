"""The Consolidator: what it archives, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.memory.consolidation.consolidator import Trigger
from kbtui.memory.records.tombstones import FactSource
from kbtui.models.port import ToolCall, estimate_tokens
from kbtui.sessions.window import KEEP
from tests.memory.memory_room import (
    SEED,
    START,
    Room,
    as_older_versions_drop,
    call_save,
    call_slice,
    entry,
    open_room,
    scripted,
    slow,
)
from tests.scripted_server import Reply, Request, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED_MEMORY = """\
# User Preferences

- Favorite color: blue

# Skills

- Programming languages: Python, JavaScript, Go
"""
SEED_HISTORY = (
    "User shared personal preferences and technical background. Confirmed favorite color is blue. "
    "Discussed programming experience with Python, JavaScript, and Go. No specific projects or "
    "tasks initiated during this session."
)
FACTS = ["Favorite color: blue", "Programming languages: Python, JavaScript, Go"]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


@pytest.fixture
def asked(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    """A workspace whose conversations the scripted server condenses."""
    room = open_room(tmp_path / "notes", **scripted(server))
    yield room
    room.close()


async def _run(room: Room, session: str, **options: Any) -> Any:
    return await room.pipeline.consolidator.run(session, everything=True, **options)


def _says(server: ScriptedServer, *calls: dict[str, Any]) -> None:
    server.enqueue(*(Reply(tool_calls=[call]) for call in calls))


def _prompt(server: ScriptedServer) -> str:
    return str(server.prompts[-1].messages[-1]["content"])


# Four facts in one conversation ----------------------------------------------------------------


async def test_without_a_model_a_page_leaves_a_choice_of_what_was_said(room: Room) -> None:
    session = room.talk()
    outcome = await _run(room, session.id)
    assert (outcome.kind, outcome.messages, outcome.cursor) == ("archived", (1, 8), 1)
    history = room.read("memory/HISTORY.md")
    assert history.startswith("[2026-03-06 ")
    assert "It's blue." in history
    assert not room.exists("memory/MEMORY.md")
    assert room.library.infos() == []
    assert list((room.root / "memory").glob("2026-*.md")) == [], "what is stated is noted when said"


async def test_the_example_of_seed_000_with_a_model(asked: Room, server: ScriptedServer) -> None:
    session = asked.talk()
    _says(server, call_save(f"[2026-03-06 10:00] {SEED_HISTORY}", FACTS))
    outcome = await _run(asked, session.id)
    assert outcome.kind == "archived"
    assert asked.read("memory/MEMORY.md") == SEED_MEMORY
    when = session.messages[0].time.astimezone().strftime("%Y-%m-%d %H:%M")
    assert asked.read("memory/HISTORY.md") == f"[{when}] {SEED_HISTORY}\n\n"
    (line,) = asked.read("memory/history.jsonl").splitlines()
    record = json.loads(line)
    assert (record["cursor"], record["messages"], record["session"]) == (1, [1, 8], session.id)
    prompt = _prompt(server)
    assert f"[{when} #1] USER: What's my favorite color?" in prompt
    assert "(empty)" not in prompt


def _older_form(memory: str) -> dict[str, Any]:
    """The answer as the seeds' own tool has it: a paragraph, and MEMORY.md as a whole."""
    arguments = {"history_entry": f"[2026-03-06 10:00] {SEED_HISTORY}", "memory_update": memory}
    return {"name": "save_memory", "arguments": arguments}


async def test_the_example_of_seed_000_in_the_form_of_history_entry_and_memory_update(
    asked: Room, server: ScriptedServer
) -> None:
    _says(server, _older_form(SEED_MEMORY))
    session = asked.talk()
    outcome = await _run(asked, session.id)
    assert outcome.kind == "archived"
    assert asked.read("memory/MEMORY.md") == SEED_MEMORY
    when = session.messages[0].time.astimezone().strftime("%Y-%m-%d %H:%M")
    assert asked.read("memory/HISTORY.md") == f"[{when}] {SEED_HISTORY}\n\n"


async def test_a_memory_update_adds_what_was_said_removes_nothing_and_proposes_a_change(
    asked: Room, server: ScriptedServer
) -> None:
    before = "# Facts\n\n- Works at Initech\n- Favorite color: blue\n"
    with asked.history.change(Actor.CONSOLIDATOR, "earlier") as change:
        change.write("memory/MEMORY.md", before)
    session = asked.talk([(0, "user", "I moved to Graz. My favorite color is green now.")])
    update = "# Facts\n\n- Favorite color: green\n- Moved to Graz\n- Owns a yacht\n"
    _says(server, _older_form(update))
    outcome = await _run(asked, session.id)
    assert outcome.kind == "proposed"
    assert asked.read("memory/MEMORY.md") == f"{before}- Moved to Graz\n"
    (proposal,) = asked.pipeline.inbox.list()
    asked.pipeline.inbox.accept(proposal.id)
    assert asked.read("memory/MEMORY.md") == before.replace("blue", "green") + "- Moved to Graz\n"


async def test_everything_that_a_page_leaves_behind_is_one_commit(
    asked: Room, server: ScriptedServer
) -> None:
    session = asked.talk()
    color = entry("preference", "Favorite color", FACTS[0])
    _says(server, call_save(SEED_HISTORY, FACTS[1:], entries=[color]))
    before = len(list(asked.history.log()))
    outcome = await _run(asked, session.id)
    commits = list(asked.history.log())
    assert len(commits) == before + 1
    (commit, *_) = commits
    assert commit.id == outcome.commit
    assert commit.actor is Actor.CONSOLIDATOR
    origin = commit.origin
    assert (origin.session, origin.messages, origin.cursor) == (session.id, (1, 8), 1)
    paths = {change.path for change in commit.paths}
    assert {"memory/history.jsonl", "memory/HISTORY.md"} <= paths
    assert {"memory/MEMORY.md", "knowledge/preferences/favorite-color.md"} <= paths
    assert "- favorite-color:" in asked.read("knowledge/INDEX.md")


async def test_a_second_run_has_nothing_to_do(room: Room) -> None:
    session = room.talk()
    await _run(room, session.id)
    head = room.history.head()
    assert (await _run(room, session.id)).kind == "nothing"
    assert room.history.head() == head
    room.talk([(60, "user", "I prefer tea.")], session.id)
    outcome = await _run(room, session.id)
    assert (outcome.messages, outcome.cursor) == ((9, 9), 2)


# Triggers and slices -------------------------------------------------------------------------


def test_a_full_prompt_and_quiet_time_trigger(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", context={"session_tokens": 400})
    consolidator = room.pipeline.consolidator
    session = room.talk(SEED[:4])
    assert consolidator.due.trigger(session.id) is None
    room.clock.pass_(minutes=4)
    assert consolidator.due.trigger(session.id) is None
    room.clock.pass_(minutes=1)
    assert consolidator.due.trigger(session.id) is Trigger.IDLE
    room.talk([(70, "user", "word " * 350)], session.id)
    assert consolidator.due.trigger(session.id) is Trigger.FULL
    room.close()


def test_what_waits_for_its_answer_is_not_quiet(room: Room) -> None:
    session = room.talk([*SEED[:4], (10, "user", "And what do you think?")])
    room.clock.pass_(minutes=14)
    assert room.pipeline.consolidator.due.trigger(session.id) is None
    room.clock.pass_(minutes=1)
    assert room.pipeline.consolidator.due.trigger(session.id) is Trigger.IDLE


def test_steps_that_no_prompt_holds_fill_none(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", context={"session_tokens": 2_000})
    session = room.talk(SEED)
    for number in range(20):
        session.append("user", f"question {number}")
        session.append("assistant", "", tool_calls=[ToolCall("1", KEEP, '{"text": "word"}' * 50)])
        session.append("tool", "kept it " * 100, tool_call_id="1", name=KEEP)
    assert room.pipeline.consolidator.due.trigger(session.id) is None
    room.close()


async def test_what_still_fits_a_prompt_is_left_to_quiet_time(
    asked: Room, server: ScriptedServer
) -> None:
    session = asked.talk()
    assert (await asked.pipeline.consolidator.run(session.id)).kind == "nothing"
    assert server.prompts == []


def test_a_session_of_commands_alone_triggers_nothing(room: Room) -> None:
    session = room.talk([(0, "user", "/help"), (1, "user", "/dream-log")])
    room.clock.pass_(days=2)
    assert room.pipeline.consolidator.due.trigger(session.id) is None


async def test_what_left_the_prompt_goes_and_never_splits_a_call_from_its_result(
    tmp_path: Path,
) -> None:
    room = open_room(tmp_path / "notes", context={"memory_window": 8})
    session = room.sessions.create()
    for number in range(4):
        session.append("user", f"question {number}")
        session.append("assistant", "", tool_calls=[ToolCall("call_1", "memory_search", "{}")])
        session.append("tool", f"found {number}", tool_call_id="call_1", name="memory_search")
        session.append("assistant", f"answer {number}")
    outcome = await room.pipeline.consolidator.run(session.id)
    assert outcome.messages == (1, 8)
    archived = json.loads(room.read("memory/history.jsonl").splitlines()[-1])
    assert [2, "tool noise"] in archived["dropped"]
    assert [3, "tool noise"] in archived["dropped"]
    assert len(session.messages) == 16, "the log is never trimmed"
    room.close()


async def test_a_turn_that_is_running_is_left_until_it_is_over(room: Room) -> None:
    session = room.talk(SEED[:2])
    session.append("user", "and docker?")
    session.append("assistant", "", tool_calls=[ToolCall("c", "memory_search", "{}")])
    outcome = await _run(room, session.id)
    assert outcome.messages == (1, 3)
    session.append("tool", "nothing", tool_call_id="c")
    session.append("assistant", "I found nothing.")
    outcome = await _run(room, session.id)
    assert outcome.messages == (4, 6)
    session.append("assistant", "Once more.", tool_calls=[ToolCall("d", "memory_search", "{}")])
    assert (await _run(room, session.id)).kind == "nothing"
    outcome = await _run(room, session.id, trigger=Trigger.CLOSED)
    assert outcome.messages == (7, 7), "the session is over, so no result will come"


async def test_a_small_model_is_shown_of_the_answers_what_they_asked(
    tmp_path: Path, server: ScriptedServer
) -> None:
    asked = open_room(tmp_path / "notes", **scripted(server, context_window=8_192))
    said = [
        (0, "user", "The choir concert moved"),
        (1, "assistant", "That is good to hear. To which day?"),
        (2, "user", "Saturday"),
        (3, "assistant", "Noted. Concerts are nice."),
    ]
    session = asked.talk(said)
    _says(server, call_slice("The concert.", notes=["The choir concert moved"]))
    await _run(asked, session.id)
    prompt = _prompt(server)
    assert "ASSISTANT: To which day?" in prompt
    assert "good to hear" not in prompt
    assert "Concerts are nice" not in prompt
    asked.close()


async def test_what_was_injected_is_never_shown(asked: Room, server: ScriptedServer) -> None:
    session = asked.sessions.create()
    session.append("user", "what do we know about docker?")
    call = ToolCall("c1", "memory_search", json.dumps({"query": "docker"}))
    session.append("assistant", "<think>secret thoughts</think>Let me look.", tool_calls=[call])
    session.append("tool", "INJECTED FROM MEMORY", tool_call_id="c1", name="memory_search")
    session.append("assistant", "Two hosts run it.")
    _says(server, call_save())
    await _run(asked, session.id)
    prompt = _prompt(server)
    assert "ASSISTANT [tools: memory_search]: Let me look." in prompt
    assert "Two hosts run it." in prompt
    assert "INJECTED" not in prompt
    assert "secret thoughts" not in prompt


async def test_what_is_too_long_for_a_prompt_is_paged_and_all_of_it_is_shown(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "notes", **scripted(server, context_window=6000))
    session = room.sessions.create()
    words = [f"w{number}" for number in range(9000)]
    session.append("user", "short one")
    session.append("assistant", "ok")
    session.append("user", " ".join(words))
    session.append("assistant", "noted")
    _says(server, call_save(facts=["Favorite color: blue"]))
    outcome = await _run(room, session.id)
    assert outcome.kind == "archived"
    assert outcome.messages == (1, 4)
    shown = " ".join(str(each.messages[-1]["content"]) for each in server.prompts)
    assert set(words) <= set(shown.split())
    ranges = [
        json.loads(line)["messages"] for line in room.read("memory/history.jsonl").splitlines()
    ]
    assert ranges == [[1, 2], [3, 3], [4, 4]]
    parts = [each for each in server.prompts if "It is part" in str(each.messages[-1]["content"])]
    assert len(parts) > 2
    room.close()


async def test_what_was_taken_back_is_dropped_as_forgotten(room: Room) -> None:
    session = room.talk(SEED[:4])
    session.rewind(2)
    session.append("user", "It's green, of course.")
    outcome = await _run(room, session.id)
    assert outcome.messages == (1, 5)
    record = json.loads(room.read("memory/history.jsonl"))
    assert record["dropped"] == [[3, "forgotten"], [4, "forgotten"]]
    assert "green" in record["content"]
    assert "blue" not in record["content"]
    audit = room.pipeline.ledger.account()
    assert (audit.unaccounted, audit.pending, audit.dropped) == (0, 0, 2)


async def test_an_unreadable_line_of_the_log_stays_unaccounted(room: Room) -> None:
    session = room.talk(SEED[:2])
    log = room.root / "sessions" / f"{session.id}.jsonl"
    room.sessions.close()
    log.write_bytes(log.read_bytes() + b'{"id": 3, "role": "user", "con\n')
    log.write_bytes(log.read_bytes() + b'{"id": 4, "role": "user", "content": "I prefer tea."}\n')
    outcome = await _run(room, session.id)
    assert outcome.kind == "archived"
    ranges = [
        json.loads(line)["messages"] for line in room.read("memory/history.jsonl").splitlines()
    ]
    assert ranges == [[1, 2], [4, 4]]
    assert room.pipeline.ledger.account().unaccounted == 1


# Entries -------------------------------------------------------------------------------------


async def test_an_entry_about_the_subject_is_updated_not_duplicated(
    asked: Room, server: ScriptedServer
) -> None:
    asked.library.create("person", "Alice Liddell", sections={"Role": "Lead"}, actor=Actor.AGENT)
    session = asked.talk([(0, "user", "Alice plays chess")])
    draft = entry("person", "Alice", "- Plays chess")
    _says(server, call_save(entries=[draft]))
    await _run(asked, session.id)
    people = [info.path for info in asked.library.infos() if info.type == "person"]
    assert people == ["knowledge/people/alice-liddell.md"]
    alice = asked.library.get(people[0])
    assert "## Role\nLead" in alice.body
    assert "## Notes\n- Plays chess" in alice.body
    assert "- alice-liddell: " in _prompt(server).split("## Existing Entries")[1]


async def test_the_index_finds_a_subject_under_another_title(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = open_room(tmp_path / "notes", **scripted(server))
    assert room.search is not None
    room.library.create(
        "decision", "PostgreSQL as the analytics database", body="For its JSON operators."
    )
    room.search.sync()
    session = room.talk([(0, "user", "the analytics database moves to PostgreSQL 18")])
    draft = entry("decision", "Analytics database", "Moves to version 18.")
    _says(server, call_save(entries=[draft]))
    await _run(room, session.id)
    decisions = [info for info in room.library.infos() if info.type == "decision"]
    assert len(decisions) == 1
    said = "- 2026-03-06: the analytics database moves to PostgreSQL 18"
    assert said in room.library.get(decisions[0].path).body
    room.close()


async def test_different_subjects_stay_apart(asked: Room, server: ScriptedServer) -> None:
    asked.library.create("fact", "Server 1", body="Has 5 GB.")
    session = asked.talk([(0, "user", "server 2 has 6 GB, docker networking is hard")])
    drafts = [entry("fact", "Server 2", "Has 6 GB."), entry("topic", "Docker networking", "Hard.")]
    _says(server, call_save(entries=drafts))
    await _run(asked, session.id)
    slugs = {info.slug for info in asked.library.infos()}
    assert slugs == {"server-1", "server-2", "docker-networking"}


async def test_facts_of_one_subject_become_one_entry(asked: Room, server: ScriptedServer) -> None:
    session = asked.talk(
        [(0, "user", "Alice owns analytics, our warehouse, which uses PostgreSQL")]
    )
    drafts = [
        entry("person", "Alice", "- Owns analytics"),
        entry("project", "Analytics", "The warehouse."),
        entry("project", "analytics", "- Uses PostgreSQL."),
    ]
    _says(server, call_save(entries=drafts))
    await _run(asked, session.id)
    project = asked.library.find("Analytics")
    said = "Alice owns analytics, our warehouse, which uses PostgreSQL"
    assert project.body.count(said) == 1
    assert "Owns analytics" in asked.library.find("Alice").body


async def test_what_the_agent_wrote_meanwhile_is_told_and_not_written_again(
    asked: Room, server: ScriptedServer
) -> None:
    session = asked.talk([(0, "user", "we decided to use PostgreSQL for analytics")])
    origin = Origin(session=session.id, messages=(1, 1), turn="t1")
    asked.library.create(
        "decision",
        "PostgreSQL for analytics",
        sections={"Decision": "We decided to use PostgreSQL for analytics."},
        actor=Actor.AGENT,
        origin=origin,
    )
    session.append("assistant", "Kept.")
    before = asked.library.find("PostgreSQL for analytics").text
    drafts = [
        entry("decision", "PostgreSQL for analytics", "Decided to use PostgreSQL for analytics"),
        entry("topic", "Databases", "- We decided to use PostgreSQL for analytics now"),
    ]
    _says(server, call_save(entries=drafts))
    await _run(asked, session.id)
    prompt = _prompt(server)
    assert "Already Written" in prompt
    assert "We decided to use PostgreSQL for analytics." in prompt.split("Already Written")[1]
    assert asked.library.find("PostgreSQL for analytics").text == before
    assert len(asked.library.infos()) == 1


async def test_dates_are_absolute_and_of_the_content(asked: Room, server: ScriptedServer) -> None:
    session = asked.talk([(0, "user", "the review is tomorrow. My dentist is tomorrow too")])
    draft = entry("fact", "Review", "The review is tomorrow.")
    _says(
        server, call_save("Spoke of the review tomorrow.", ["Dentist: tomorrow"], entries=[draft])
    )
    await _run(asked, session.id)
    day = (START.astimezone() + timedelta(days=1)).date().isoformat()
    assert f"The review is tomorrow ({day})." in asked.library.find("Review").body
    assert f"- My dentist is tomorrow ({day}) too" in asked.read("memory/MEMORY.md")
    assert f"the review tomorrow ({day})." in asked.read("memory/HISTORY.md")


# What the user wrote, forgot, and keeps private ----------------------------------------------


async def test_corrections_of_machine_lines_are_made(asked: Room, server: ScriptedServer) -> None:
    session = asked.talk()
    _says(server, call_save(facts=FACTS))
    await _run(asked, session.id)
    asked.talk([(60, "user", "it's green now")], session.id)
    _says(
        server,
        call_save(corrections=[{"old": "Favorite color: blue", "new": "Favorite color: green"}]),
    )
    outcome = await _run(asked, session.id)
    assert outcome.kind == "archived"
    assert asked.read("memory/MEMORY.md") == SEED_MEMORY.replace("blue", "green")


async def test_a_line_of_the_users_is_only_proposed_to_change(
    asked: Room, server: ScriptedServer
) -> None:
    asked.write("memory/MEMORY.md", "# Mine\n\n- Favorite color: blue\n")
    session = asked.talk([(0, "user", "it's green now, and I like tea")])
    corrections = [{"old": "Favorite color: blue", "new": "Favorite color: green"}]
    _says(server, call_save(facts=["Likes tea"], corrections=corrections))
    outcome = await _run(asked, session.id)
    assert outcome.kind == "proposed"
    assert "inbox" in outcome.notice
    memory = asked.read("memory/MEMORY.md")
    assert "- Favorite color: blue\n" in memory
    assert "- Likes tea" in memory
    (proposal,) = asked.pipeline.inbox.list()
    assert proposal.id in outcome.proposals
    assert proposal.actor is Actor.CONSOLIDATOR
    assert proposal.origin.messages == (1, 1)
    asked.pipeline.inbox.accept(proposal.id)
    accepted = asked.read("memory/MEMORY.md")
    assert "- Favorite color: green\n" in accepted
    assert "- Likes tea" in accepted


async def test_a_value_in_an_entry_of_the_users_is_only_proposed_to_change(
    asked: Room, server: ScriptedServer
) -> None:
    path = "knowledge/preferences/favorite-color.md"
    mine = "---\ntags: [mine]\n---\n# Favorite color\n\nFavorite color: blue\n"
    asked.write(path, mine)
    session = asked.talk([(0, "user", "green, and teal")])
    draft = entry("preference", "Favorite color", "Favorite color: green\n- Likes teal")
    _says(server, call_save(entries=[draft]))
    outcome = await _run(asked, session.id)
    assert outcome.kind == "proposed"
    text = asked.read(path)
    assert "tags: [mine]\n" in text
    assert "Favorite color: blue\n" in text
    assert "- green, and teal" in text
    (proposal,) = asked.pipeline.inbox.list()
    asked.pipeline.inbox.accept(proposal.id)
    assert "Favorite color: green\n" in asked.read(path)
    assert "- green, and teal" in asked.read(path)


async def test_what_was_undone_is_not_written_again_until_it_is_said_again(
    asked: Room, server: ScriptedServer
) -> None:
    entry_of = entry("preference", "Favorite color", "My favorite color is blue.")
    _says(server, *[call_save("They talked.", entries=[entry_of])] * 3)
    outcome = await _run(asked, asked.talk().id)
    asked.history.undo(outcome.commit)
    assert not asked.exists("knowledge/preferences/favorite-color.md")
    assert (await _run(asked, asked.talk(SEED).id)).kind == "archived"
    assert not asked.exists("knowledge/preferences/favorite-color.md")
    year = 60 * 24 * 365
    again = asked.talk([(year, "user", "My favorite color is blue.")])
    await _run(asked, again.id)
    assert "blue" in asked.library.find("Favorite color").body


@pytest.mark.parametrize(("message", "written"), [(1, False), (2, True)])
async def test_what_was_undone_is_written_again_if_a_later_message_says_it_in_other_words(
    asked: Room, server: ScriptedServer, message: int, *, written: bool
) -> None:
    text = "Analytics runs on PostgreSQL"
    asked.pipeline.tombstones.clock = asked.clock
    session = asked.talk([(0, "user", "The numbers of analytics should go to PostgreSQL")])
    with asked.history.change(Actor.AGENT, "told so") as change:
        change.write("memory/MEMORY.md", f"# Memory\n\n- {text}\n")
    assert change.result is not None
    asked.clock.pass_(minutes=1)
    asked.history.undo(change.result.id)
    asked.talk([(2, "user", "Fine, PostgreSQL for analytics after all")], session.id)
    fact = {"text": text, "type": "topic", "subject": "Analytics", "message": message}
    fact["importance"] = 3
    _says(server, call_slice(facts=[fact]))
    assert (await _run(asked, session.id)).kind == "archived"
    assert [info.title for info in asked.library.infos()] == ["Analytics"] * written


async def test_a_forgotten_message_is_passed_over(asked: Room, server: ScriptedServer) -> None:
    session = asked.talk([(0, "user", "my PIN is 4711"), (1, "user", "I like tea")])
    with asked.history.change(Actor.YOU, "forget") as change:
        sources = [FactSource(session.id, (1, 1))]
        asked.pipeline.tombstones.bury(change, ["my PIN is 4711"], sources)
    as_older_versions_drop(asked.workspace)
    server.replies = [Reply("not a tool call")]
    outcome = await _run(asked, session.id)
    assert outcome.kind == "raw"
    assert "4711" not in json.dumps([request.body for request in server.prompts])
    kept = asked.read("memory/history.jsonl")
    assert "4711" not in kept
    assert json.loads(kept)["dropped"] == [[1, "forgotten"]]


async def test_private_entries_reach_no_remote_model(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.models.litellm_model.LiteLLMModel.is_local", False)
    room = open_room(tmp_path / "notes", **scripted(server))
    room.pipeline.budget.agree("openai/scripted", yes=True)
    room.library.create("person", "Bob", body="Earns 12345.", summary="Earns 12345.")
    path = room.library.find_path("Bob")
    room.write(path, room.read(path).replace("---\ntype", "---\nprivate: true\ntype"))
    session = room.talk([(0, "user", "I prefer tea.")])
    session.append("user", "what does Bob earn?")
    session.append("assistant", "", tool_calls=[ToolCall("c", "read_entry", '{"entry": "bob"}')])
    session.append("tool", "Earns 12345.", tool_call_id="c", meta={"private": [path]})
    session.append("assistant", "Bob earns 12345.", meta={"private": [path]})
    session.append("user", "My favorite color is blue.")
    _says(server, call_save())
    outcome = await _run(room, session.id)
    assert outcome.messages == (1, 6)
    sent = json.dumps([request.body for request in server.prompts])
    assert "12345" not in sent
    assert "I prefer tea." in sent
    assert "My favorite color is blue." in sent
    for name in ("history.jsonl", "HISTORY.md"):
        assert "12345" not in room.read(f"memory/{name}")
    room.close()


async def test_secrets_reach_neither_archive_nor_entries(
    asked: Room, server: ScriptedServer
) -> None:
    key = "sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 7
    session = asked.talk([(0, "user", "remember this")])
    draft = entry("fact", "Key", f"The key is {key}.")
    _says(server, call_save(f"Said {key}.", [f"API key: {key}"], entries=[draft]))
    await _run(asked, session.id)
    for file in asked.root.rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes(), file


async def test_an_entry_that_cannot_be_read_is_left_alone(
    asked: Room, server: ScriptedServer
) -> None:
    path = "knowledge/people/alice.md"
    asked.write(path, "---\ntags: [unclosed\n---\n# Alice\n")
    before = (asked.root / path).read_bytes()
    session = asked.talk([(0, "user", "Alice plays chess")])
    _says(server, call_save(entries=[entry("person", "Alice", "- Plays chess")]))
    await _run(asked, session.id)
    assert (asked.root / path).read_bytes() == before
    assert "Plays chess" in asked.read("knowledge/people/alice-2.md")


async def test_a_file_saved_in_an_editor_meanwhile_is_kept_whole(
    asked: Room, server: ScriptedServer
) -> None:
    session = asked.talk([(0, "user", "I like tea")])
    asked.write("memory/MEMORY.md", "# Mine\n\n- one\n")

    def answer(_request: object) -> Reply:
        # While the model thinks, the user saves the file; nobody has adopted that yet.
        (asked.root / "memory/MEMORY.md").write_text("# Mine\n\n- one\n- two, just now\n")
        return Reply(tool_calls=[call_save(facts=["Likes tea"])])

    server.enqueue(answer)
    await _run(asked, session.id)
    memory = asked.read("memory/MEMORY.md")
    assert "- two, just now\n" in memory
    assert "- Likes tea" in memory
    assert not list((asked.root / "memory").glob("*.conflict-*"))
    lines = [
        commit for commit in asked.history.log("memory/MEMORY.md") if commit.actor is Actor.YOU
    ]
    assert len(lines) == 2, "the user's save is the user's own commit"


# A window that is smaller than was thought -------------------------------------------------------


def _narrow(window: int) -> Any:
    """Condenses what fits, and refuses the rest as llama.cpp does."""

    def answer(request: Request) -> Reply:
        tokens = len(json.dumps([request.messages, request.body.get("tools")])) // 4
        if tokens <= window:
            return Reply(tool_calls=[call_save("They spoke of glazes.", [])])
        text = f"request ({tokens} tokens) exceeds the available context size ({window} tokens)"
        return Reply(text, status=400)

    return answer


@pytest.mark.parametrize("messages", [1, 12])
async def test_what_is_too_long_for_the_model_is_condensed_in_parts(
    asked: Room, server: ScriptedServer, messages: int
) -> None:
    text = "The kiln was fired again, and the glaze came out green. " * (900 // messages)
    said = []
    for number in range(messages):
        said += [(number, "user", f"{number}. {text}"), (number, "assistant", "I see.")]
    session = asked.talk(said)
    server.enqueue(_narrow(6000))
    outcome = await _run(asked, session.id)
    assert outcome.kind == "archived"
    assert outcome.messages == (1, 2 * messages)
    assert "They spoke of glazes." in asked.read("memory/HISTORY.md")
    assert "The kiln was fired again" not in asked.read("memory/HISTORY.md"), "none is kept raw"


async def test_a_page_that_takes_too_long_is_condensed_in_halves(
    asked: Room, server: ScriptedServer
) -> None:
    text = "The kiln was fired again, and the glaze came out green. " * 75
    session = asked.talk([(number, "user", f"{number}. {text}") for number in range(2)])
    consolidator = asked.pipeline.consolidator
    model = consolidator.model()
    consolidator.model = lambda: slow(model, "USER: 0.", "USER: 1.")
    server.enqueue(Reply(tool_calls=[call_save("They spoke of glazes.", [])]))
    outcome = await _run(asked, session.id)
    assert (outcome.kind, outcome.messages, outcome.pages) == ("archived", (1, 2), 2)


async def test_a_very_long_sentence_stands_whole_on_its_day_and_not_in_every_prompt(
    asked: Room, server: ScriptedServer
) -> None:
    words = " and ".join(f"box {number} of the cellar" for number in range(60))
    said = f"If nothing comes between I will clear {words} before the move to Ghent."
    session = asked.talk([(0, "user", said)])
    fact = {"text": "The user moves to Ghent", "type": "user", "subject": "", "message": 1}
    _says(server, call_slice(facts=[{**fact, "importance": 3}]))
    await _run(asked, session.id)
    day = START.astimezone().date()
    assert said.rstrip(".") in asked.read(f"memory/{day}.md")
    assert not asked.exists("memory/MEMORY.md")


# What was archived without a model ---------------------------------------------------------------


async def test_a_model_condenses_what_was_archived_without_one_only_when_asked(
    tmp_path: Path, server: ScriptedServer
) -> None:
    without = open_room(tmp_path / "notes")
    session = without.talk()
    await _run(without, session.id)
    without.close()
    room = open_room(tmp_path / "notes", **scripted(server))
    assert (await _run(room, session.id)).kind == "nothing"
    assert room.pipeline.unfinished() == []
    unread = room.pipeline.unread()
    assert unread is not None
    assert unread.sessions == (session.id,)
    _says(server, call_slice("They spoke of blue."))
    outcome = await _run(room, session.id, by_model=True)
    assert (outcome.kind, outcome.messages) == ("archived", (1, 8))
    (entry,) = room.pipeline.archive.entries()
    assert (entry.content, entry.verbatim) == ("They spoke of blue.", False)
    assert room.pipeline.unread() is None
    assert (await _run(room, session.id, by_model=True)).kind == "nothing"
    assert room.pipeline.audit().unaccounted == 0
    room.close()


async def test_what_no_model_could_condense_is_unread_until_one_can(
    asked: Room, server: ScriptedServer
) -> None:
    session = asked.talk()
    server.replies = [Reply("no")]
    assert (await _run(asked, session.id)).kind == "raw"
    assert asked.pipeline.unfinished() == []
    unread = asked.pipeline.unread()
    assert unread is not None
    assert unread.sessions == (session.id,)
    assert unread.tokens > 0
    assert unread.describe() == "1 conversation that no model has condensed"
    again = await _run(asked, session.id, by_model=True)
    assert again.pages == 0
    assert again.notice.startswith("Some messages stay archived as they are: ")
    assert len(asked.pipeline.archive.entries()) == 1, "it isn't archived twice"
    server.replies = [Reply(tool_calls=[call_slice("They spoke of blue.")])]
    assert (await _run(asked, session.id, by_model=True)).kind == "archived"
    (entry,) = asked.pipeline.archive.entries()
    assert (entry.content, entry.raw) == ("They spoke of blue.", False)
    assert asked.pipeline.unread() is None
    assert asked.pipeline.audit().unaccounted == 0


async def test_what_waits_for_dream_is_part_of_what_a_first_model_would_cost(room: Room) -> None:
    with room.history.change(Actor.IMPORT, "an archive of before") as change:
        room.pipeline.archive.stage(
            change, "They spoke of a kiln.", session=None, messages=None, timestamp="2026-03-01"
        )
    session = room.talk()
    await _run(room, session.id)
    unread = room.pipeline.unread()
    assert unread is not None
    assert unread.describe() == (
        "1 conversation that no model has condensed and 1 archive entry for Dream"
    )
    tokens = room.pipeline.pending.tokens(session.id, by_model=True)
    assert unread.tokens == tokens + estimate_tokens("They spoke of a kiln.")


async def test_without_a_model_nothing_is_condensed_a_second_time(room: Room) -> None:
    session = room.talk()
    await _run(room, session.id)
    assert (await _run(room, session.id, by_model=True)).kind == "nothing"
    assert len(room.pipeline.archive.entries()) == 1
