"""Dream: one phase, one commit, and a cursor that moves with it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import BudgetError, WorkspaceBusyError
from kbtui.history.change import Actor
from kbtui.memory.background.budget import ConsentNeededError
from kbtui.memory.records.cursors import CURSORS
from tests.memory.dream_room import (
    MEMORY,
    NOTHING,
    add,
    archive,
    does,
    dream_room,
    dreams,
    edit,
    is_read,
    machine,
    person,
    proposals,
    run,
    seen,
    state,
    told,
)
from tests.memory.memory_room import slow
from tests.patience import PATIENCE
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.memory.dream.report import DreamProgress
    from tests.memory.memory_room import Room
    from tests.scripted_server import Request


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = dream_room(tmp_path / "notes", server)
    yield room
    room.close()


# One phase ---------------------------------------------------------------------------------------


async def test_it_edits_and_everything_is_one_commit(room: Room, server: ScriptedServer) -> None:
    room.write("SOUL.md", "Be brief.\n")
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    machine(room, MEMORY="# Facts\n\n- Lives in Graz\n", people__alice=person("Alice"))
    archive(room, "They talked about Alice, who owns billing now.")
    commits = len(list(room.history.log()))
    server.enqueue(does(add("people/alice", "Owns billing", section="Works on")))
    report = await run(room)
    assert report.kind == "changed"
    assert (report.entries, report.remaining, report.steps) == (1, 0, 1)
    assert [diff.path for diff in report.diffs] == ["knowledge/people/alice.md"]
    assert "## Works on\n- Owns billing" in room.read("knowledge/people/alice.md")
    log = list(room.history.log())
    assert len(log) == commits + 1
    assert log[0].id == report.commit
    assert log[0].actor is Actor.DREAM
    assert (log[0].origin.cursor, log[0].origin.model) == (1, "openai/scripted")
    assert log[0].subject.startswith("people/alice: +")
    assert log[0].body == "Dream read archive entry 1: added to people/alice."
    assert {change.path for change in log[0].paths} >= {CURSORS, "knowledge/people/alice.md"}
    assert seen(room) == 1


async def test_the_model_is_shown_what_is_new_and_what_is_known(
    room: Room, server: ScriptedServer
) -> None:
    room.write("SOUL.md", "Be brief.\n")
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    machine(
        room,
        MEMORY="# Facts\n\n- Lives in Graz\n",
        people__alice=person("Alice"),
        topics__unrelated="# Unrelated\n\nNobody asked.\n",
    )
    archive(room, "They talked about Alice.", "2026-03-06 10:00")
    server.enqueue(NOTHING)
    await run(room)
    for text in ("Be brief.", "- Name: Ada", "- Lives in Graz", "- Plays chess"):
        assert text in told(server, 0)
    assert '<archive cursor="1" time="2026-03-06 10:00">\nThey talked about Alice.' in told(
        server, 0
    )
    assert "Nobody asked." not in told(server, 0).split("<index>")[0]
    assert "- unrelated" in told(server, 0), "it is in the catalogue"
    (request,) = server.prompts
    assert request.tools == ["curate"]
    assert request.body["tool_choice"]["function"]["name"] == "curate"


async def test_nothing_new_means_no_call_and_no_commit(room: Room, server: ScriptedServer) -> None:
    head = room.history.head()
    report = await run(room)
    assert report.kind == "nothing"
    assert server.prompts == []
    assert room.history.head() == head


async def test_nothing_to_change_moves_the_cursor_and_nothing_else(
    room: Room, server: ScriptedServer
) -> None:
    archive(room, "They said hello.")
    before = state(room)
    server.enqueue(NOTHING)
    report = await run(room)
    assert report.kind == "read"
    assert len(server.prompts) == 1
    assert next(room.history.log()).body == "Dream read archive entry 1: nothing had to change."
    assert report.diffs == ()
    after = state(room)
    assert {path for path in after if after[path] != before.get(path)} == {CURSORS, "HEAD"}
    assert (await run(room)).kind == "nothing"
    assert len(server.prompts) == 1


async def test_a_run_takes_one_batch_and_says_how_much_is_left(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, dream={"max_batch_size": 2})
    for number in range(1, 6):
        archive(room, f"Talk number {number}.")
    server.enqueue(NOTHING)
    report = await run(room)
    assert (report.entries, report.remaining, seen(room)) == (2, 3, 2)
    assert "Talk number 2." in told(server)
    assert "Talk number 3." not in told(server)
    await run(room)
    assert "Talk number 3." in told(server)
    assert "Talk number 2." not in told(server)
    await run(room)
    assert seen(room) == 5
    assert is_read(room)
    room.close()


async def test_an_entry_too_long_for_a_prompt_is_shown_in_parts_before_the_cursor_moves(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, role={"context_window": 9000})
    words = [f"w{number}" for number in range(4000)]
    archive(room, " ".join(words))
    archive(room, "short")

    def answer(request: Request) -> Reply:
        assert seen(room) == 0
        return NOTHING

    server.enqueue(answer)
    report = await run(room)
    shown = " ".join(told(server, n) for n in range(len(server.prompts)))
    assert len(server.prompts) > 2
    assert set(words) <= set(shown.split())
    assert "short" not in shown.split()
    assert (report.entries, report.remaining, seen(room)) == (1, 1, 1)
    room.close()


async def test_a_dry_run_shows_the_difference_and_writes_nothing(
    room: Room, server: ScriptedServer
) -> None:
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    machine(room, MEMORY="# Facts\n\n- Lives in Graz\n")
    archive(room)
    before = state(room)
    server.enqueue(
        does(add("MEMORY.md", "Prefers dark mode"), edit("USER.md", "Name: Ada", "Name: Bob"))
    )
    report = await run(room, dry_run=True)
    assert report.kind == "dry-run"
    assert report.commit is None
    (diff,) = report.diffs
    assert (diff.path, diff.added) == (MEMORY, 4)
    (suggestion,) = report.suggestions
    assert "Name: Ada" in suggestion.why
    assert suggestion.diffs[0].path == "USER.md"
    assert state(room) == before
    assert proposals(room) == []
    assert seen(room) == 0
    assert "would" in report.text


async def test_progress_is_told_and_the_report_says_it_in_words(
    room: Room, server: ScriptedServer
) -> None:
    archive(room)
    told_: list[DreamProgress] = []
    server.enqueue(does(add("MEMORY.md", "Prefers dark mode"), add("nowhere", "x y")), NOTHING)
    report = await run(room, on_progress=told_.append)
    assert [each.phase for each in told_] == ["reading", "editing", "editing", "writing"]
    assert (told_[2].step, told_[2].steps) == (2, 2)
    assert report.text == "Dream has worked in 1 new archive entry and changed MEMORY.md."


# Budgets -----------------------------------------------------------------------------------------


async def test_what_failed_is_told_once_and_asked_for_again(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY="# Facts\n\n- Lives in Graz\n")
    archive(room)
    first = [add("MEMORY.md", "Likes tea"), edit("MEMORY.md", "Lives in Rome", "Lives in Bonn")]
    better = edit("MEMORY.md", "Lives in Graz", "Lives in Bonn")
    server.enqueue(does(*first), does(better, add("people/nobody", "Likes tea")))
    report = await run(room)
    assert (report.kind, report.steps, report.ended) == ("changed", 2, "")
    assert len(server.prompts) == 2, "and not a third time"
    asked = [str(request.messages[1]["content"]) for request in server.prompts]
    assert asked[1].startswith(asked[0]), "what was read already needn't be read again"
    assert "Lives in Rome" in asked[1]
    assert "doesn't contain" in asked[1]
    assert "Likes tea" not in asked[1].removeprefix(asked[0])
    assert room.read(MEMORY).startswith("# Facts\n\n- Lives in Bonn\n")
    assert room.read(MEMORY).count("Likes tea") == 1


async def test_edits_of_which_none_can_be_made_change_nothing_and_leave_the_cursor(
    room: Room, server: ScriptedServer
) -> None:
    archive(room)
    before = state(room)
    server.enqueue(does(add("people/nobody", "Likes tea")))
    report = await run(room)
    assert report.kind == "postponed"
    assert "No edit of openai/scripted's could be made" in report.text
    assert state(room) == before


async def test_what_a_run_would_remove_whose_end_was_not_heard_is_left_to_the_user(
    room: Room, server: ScriptedServer
) -> None:
    facts = "".join(
        f"- Fact {name} stands here\n" for name in ("one", "two", "three", "four", "five")
    )
    machine(room, MEMORY=f"# Facts\n\n{facts}")
    archive(room)
    server.enqueue(
        does(
            edit("MEMORY.md", "- Fact two stands here\n", ""),
            add("MEMORY.md", "Likes tea"),
            edit("MEMORY.md", "Fact one stands", "Fact 1 stands"),
            add("nowhere", "x y"),
        ),
        Reply("All done!"),
    )
    report = await run(room)
    memory = room.read(MEMORY)
    assert "- Fact two stands here\n" in memory
    assert "- Fact 1 stands here\n" in memory
    assert "- Likes tea" in memory
    (suggestion,) = report.suggestions
    assert "before it was finished" in suggestion.why
    room.pipeline.inbox.accept(suggestion.id)
    assert "Fact two" not in room.read(MEMORY)


async def test_an_entry_of_which_a_part_was_not_read_stays_unread(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = dream_room(tmp_path / "notes", server, role={"context_window": 9000})
    archive(room, " ".join(f"w{number}" for number in range(4000)))
    before = state(room)
    server.enqueue(does(add("MEMORY.md", "Likes tea")), Reply("no idea"))
    report = await run(room)
    assert report.kind == "postponed"
    assert (state(room), seen(room)) == (before, 0)
    room.close()


async def test_time_is_limited(room: Room, server: ScriptedServer) -> None:
    archive(room)
    room.pipeline.dream._max_seconds = 0.3
    server.enqueue(Reply(tool_calls=[call("curate", edits=[])], stall_at=10))
    before = state(room)
    report = await run(room)
    assert isinstance(report.error, BudgetError)
    assert state(room) == before


async def test_more_edits_than_can_be_made_at_once_are_asked_for_again(
    room: Room, server: ScriptedServer
) -> None:
    archive(room, "\n".join(f"Fact number {number}." for number in range(60)))
    many = [add("MEMORY.md", f"Fact number {number}") for number in range(60)]
    server.enqueue(does(*many), does(*many[40:]))
    report = await run(room)
    assert report.kind == "changed"
    assert told(server).count("at most 40 at once") == 20
    assert "Fact number 59" in told(server)


@pytest.mark.parametrize("form", ["an object", "a list", "a call"])
async def test_a_server_that_forces_no_tool_is_understood(
    room: Room, server: ScriptedServer, form: str
) -> None:
    archive(room)
    edits = [add("MEMORY.md", "Likes tea"), add("MEMORY.md", "Has a cat")]
    shape = {
        "an object": {"edits": edits},
        "a list": edits,
        "a call": {"tool": "curate", "args": {"edits": edits}},
    }[form]
    server.enqueue(Reply(f"```json\n{json.dumps(shape)}\n```"))
    report = await run(room)
    assert (report.kind, report.steps) == ("changed", 1)
    assert "- Likes tea\n" in room.read(MEMORY)
    assert "- Has a cat\n" in room.read(MEMORY)


async def test_a_daily_cap_that_is_reached_puts_it_off(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.models.litellm_model.LiteLLMModel.is_local", False)
    room = dream_room(tmp_path / "notes", server, budget={"daily_usd": 0.0})
    archive(room)
    report = await run(room)
    assert isinstance(report.error, BudgetError)
    assert server.prompts == []
    room.close()


async def test_a_paid_model_that_nobody_chose_needs_consent(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.models.litellm_model.LiteLLMModel.is_local", False)
    room = dream_room(tmp_path / "notes", server)
    monkeypatch.setattr(room.pipeline.models, "_is_chosen", lambda _role: False)
    archive(room)
    report = await run(room)
    assert isinstance(report.error, ConsentNeededError)
    assert server.prompts == []
    room.pipeline.budget.agree("openai/scripted", yes=True)
    server.enqueue(NOTHING)
    assert (await run(room)).kind == "read"
    room.close()


async def test_the_override_chooses_the_model(tmp_path: Path, server: ScriptedServer) -> None:
    room = dream_room(tmp_path / "notes", server, dream={"model_override": "openai/small"})
    archive(room)
    server.enqueue(NOTHING)
    report = await run(room)
    assert report.model == "openai/small"
    assert server.prompts[0].body["model"] == "small"
    room.close()


# Others ------------------------------------------------------------------------------------------


async def test_cancelling_leaves_everything_as_it_was(room: Room, server: ScriptedServer) -> None:
    archive(room)
    before = state(room)
    reached = threading.Event()

    def stall(_request: Request) -> Reply:
        reached.set()
        return Reply(tool_calls=[call("curate", edits=[])], stall_at=10)

    server.enqueue(does(add("MEMORY.md", "Prefers dark mode"), add("nowhere", "x y")), stall)
    task = asyncio.ensure_future(run(room))
    assert await asyncio.to_thread(reached.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state(room) == before
    server.enqueue(does(add("MEMORY.md", "Prefers dark mode")))
    assert (await run(room)).kind == "changed", "the lock is free again"


async def test_one_dream_at_a_time(room: Room, server: ScriptedServer) -> None:
    archive(room)
    async with room.pipeline.lock.hold():
        report = await run(room)
    assert isinstance(report.error, WorkspaceBusyError)
    assert server.prompts == []


async def test_a_file_saved_in_an_editor_meanwhile_is_kept_whole(
    room: Room, server: ScriptedServer
) -> None:
    room.write(MEMORY, "# Mine\n\n- one\n")
    archive(room)

    def answer(_request: Request) -> Reply:
        # While the model thinks, the user saves the file; nobody has adopted that yet.
        (room.root / MEMORY).write_text("# Mine\n\n- one\n- two, just now\n")
        return does(add("MEMORY.md", "Likes tea", section="Mine"))

    server.enqueue(answer)
    report = await run(room)
    assert report.kind == "changed"
    assert room.read(MEMORY) == "# Mine\n\n- one\n- two, just now\n- Likes tea\n"
    assert not list((room.root / "memory").glob("*.conflict-*"))
    mine = [each for each in room.history.log(MEMORY) if each.actor is Actor.YOU]
    assert len(mine) == 2, "the user's save is the user's own commit"


async def test_an_archive_that_grows_meanwhile_is_read_next_time(
    room: Room, server: ScriptedServer
) -> None:
    archive(room)

    def answer(_request: Request) -> Reply:
        archive(room, "Said meanwhile.")
        return does(add("MEMORY.md", "Likes tea"))

    server.enqueue(answer)
    await run(room)
    assert seen(room) == 1
    server.enqueue(NOTHING)
    await run(room)
    assert "Said meanwhile." in told(server)
    assert seen(room) == 2


async def test_dream_talks_in_no_session_and_is_never_condensed(
    room: Room, server: ScriptedServer
) -> None:
    archive(room)
    await dreams(room, server, add("MEMORY.md", "Likes tea"))
    assert room.sessions.list() == []
    assert room.pipeline.ledger.account().messages == 0
    assert len(room.pipeline.archive.entries()) == 1


async def test_what_failed_is_tried_with_less_of_it(room: Room, server: ScriptedServer) -> None:
    for number in range(1, 21):
        archive(room, f"Talk number {number}.")
    server.enqueue(Reply("no idea"), Reply("no idea"), Reply("no idea"))
    server.enqueue(*[Reply("no idea")] * 3)
    assert (await run(room)).kind == "postponed"
    assert "Talk number 20." in told(server, 0)
    server.replies[:] = [NOTHING]
    report = await run(room)
    assert (report.entries, report.remaining) == (10, 10)
    assert (await run(room)).entries == 10


async def test_archives_of_two_machines_have_a_cursor_each(
    room: Room, server: ScriptedServer
) -> None:
    archive(room, "Here.")
    with room.history.change(Actor.SYNC, "synced") as change:
        line = json.dumps({"cursor": 1, "content": "There.", "origin": "laptop"})
        change.write("memory/history.jsonl", room.read("memory/history.jsonl") + line + "\n")
    server.enqueue(NOTHING)
    report = await run(room)
    assert report.entries == 2
    cursors = json.loads(room.read(CURSORS))["dream"]
    assert cursors["laptop"] == 1
    assert len(cursors) == 2


async def test_a_window_smaller_than_was_thought_begins_the_run_again_with_less(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY="# Facts\n\n- Lives in Graz\n")
    for number in range(12):
        archive(room, f"{number}. The kiln was fired again, and the glaze came out green. " * 60)
    window, refused = 5000, []

    def answer(request: Request) -> Reply:
        tokens = len(json.dumps([request.messages, request.body.get("tools")])) // 4
        if tokens <= window:
            return NOTHING
        refused.append(tokens)
        text = f"request ({tokens} tokens) exceeds the available context size ({window} tokens)"
        return Reply(text, status=400)

    server.enqueue(answer)
    report = await run(room)
    assert report.kind == "read"
    assert 0 < report.entries < 12
    assert len(refused) == 1


async def test_a_model_that_is_too_slow_for_so_many_entries_reads_half_of_them(
    room: Room, server: ScriptedServer
) -> None:
    for number in range(4):
        archive(room, f"{number}. The kiln was fired again.")
    server.enqueue(NOTHING)
    model = room.pipeline.dream._model()
    room.pipeline.dream._model = lambda: slow(model, "3. The kiln")
    report = await run(room)
    assert (report.kind, report.entries) == ("read", 2)
    assert room.pipeline.dream.has_news()


async def test_a_window_of_2048_tokens_is_enough_for_a_little(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, MEMORY="# Facts\n\n- Lives in Graz\n", people__alice=person("Alice"))
    archive(room, "They talked about Alice, who owns billing now.")

    def answer(request: Request) -> Reply:
        tokens = len(json.dumps([request.messages, request.body.get("tools")])) // 4
        words = f"request ({tokens} tokens) exceeds the available context size (2048 tokens)"
        if tokens > 2048:
            return Reply(words, status=400)
        return does(add("people/alice", "Owns billing"))

    server.enqueue(answer)
    report = await run(room)
    assert report.kind == "changed", report.text
