"""What Dream did, seen and taken back; and when it runs by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ModelUnreachableError, NotFoundError, UsageError
from kbtui.history.change import Actor
from kbtui.memory.background.jobs import DreamJob
from kbtui.memory.dream.report import DreamReport
from kbtui.memory.records.cursors import CURSORS
from tests.memory.dream_room import (
    NOTHING,
    archive,
    do,
    does,
    dream_room,
    machine,
    person,
    run,
    seen,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.memory.memory_room import Room
    from tests.scripted_server import ScriptedServer


@pytest.fixture
def room(tmp_path: Path, server: ScriptedServer) -> Iterator[Room]:
    room = dream_room(tmp_path / "notes", server)
    yield room
    room.close()


def _twice(room: Room, server: ScriptedServer, name: str) -> None:
    """Have a machine write the same twice, so that Dream has something to do."""
    server.enqueue(does(do("merge_entries", path=f"facts/{name}-twin", to=f"facts/{name}")))
    text = f"---\ntype: fact\n---\n# {name}\n\n- Has 5 of {name}\n"
    machine(room, **{f"facts__{name}": text, f"facts__{name}-twin": text})
    archive(room, f"They spoke of {name}.")


async def _dreamt(room: Room, server: ScriptedServer, name: str) -> str:
    _twice(room, server, name)
    report = await run(room)
    assert report.commit is not None
    return report.commit


def _twin(name: str) -> str:
    return f"knowledge/facts/{name}-twin.md"


# The log -----------------------------------------------------------------------------------------


async def test_the_log_shows_changes_and_leaves_out_runs_that_only_read(
    room: Room, server: ScriptedServer
) -> None:
    with pytest.raises(NotFoundError, match="nothing yet"):
        room.pipeline.dream_log.show()
    first = await _dreamt(room, server, "rack")
    archive(room, "They said hello.")
    server.enqueue(NOTHING)
    await run(room)
    second = await _dreamt(room, server, "rent")
    log = room.pipeline.dream_log
    assert [commit.id for commit in log.log()] == [second, first]
    assert [commit.id for commit in log.log(1)] == [second]
    assert log.show().commit.id == second
    assert _twin("rent") in [diff.path for diff in log.show().diffs]
    shown = {diff.path: diff for diff in log.show(first[:8]).diffs}
    lines = [line.text for hunk in shown[_twin("rack")].hunks for line in hunk.lines]
    assert "- Has 5 of rack" in lines


async def test_the_log_says_what_was_done_and_why_nothing_was(
    room: Room, server: ScriptedServer
) -> None:
    log = room.pipeline.dream_log
    with pytest.raises(NotFoundError, match="Nothing is new in the archive") as error:
        log.show(command="/dream")
    assert error.value.hint == "`/dream` lets it."
    archive(room, "They said hello.")
    assert log.idle() == "1 archive entry waits to be read."
    server.enqueue(NOTHING)
    await run(room)
    assert log.idle() == (
        "Dream read archive entry 1: nothing had to change."
        " Nothing is new in the archive: it has read all of it."
    )
    await _dreamt(room, server, "rack")
    assert log.show().commit.body == (
        "Dream read archive entry 2: merged facts/rack-twin into facts/rack."
    )
    async with room.pipeline.lock.hold():
        _twice(room, server, "rent")
        await run(room)
    assert log.idle().startswith("Dream is put off: ")


async def test_only_dreams_own_changes_are_in_it(room: Room) -> None:
    machine(room, people__bob=person("Bob"))
    for act in (room.pipeline.dream_log.show, room.pipeline.dream_log.preview):
        with pytest.raises(UsageError, match="not by Dream"):
            act("HEAD")
    with pytest.raises(UsageError, match="not by Dream"):
        room.pipeline.dream_log.restore("HEAD")


async def test_restoring_all_brings_back_the_state_before_and_what_was_read_stays_read(
    room: Room, server: ScriptedServer
) -> None:
    machine(room, people__bob=person("Bob"))
    first = await _dreamt(room, server, "rack")
    await _dreamt(room, server, "rent")
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    log = room.pipeline.dream_log
    changed = {
        path for diff in log.preview(first, whole=True) for path in (diff.path, diff.old_path)
    }
    assert {_twin("rack"), "knowledge/facts/rent.md", "USER.md"} <= changed
    assert CURSORS not in changed
    commit = log.restore_all(first)
    assert commit is not None
    assert commit.actor is Actor.YOU
    assert room.exists(_twin("rack"))
    assert not room.exists("knowledge/facts/rent.md")
    assert not room.exists("USER.md")
    assert room.exists("knowledge/people/bob.md")
    assert len(room.pipeline.archive.entries()) == 2, "what happened stays on record"
    assert seen(room) == 2
    assert not room.pipeline.dream.has_news()


async def test_undoing_one_change_keeps_the_later_ones_and_is_not_done_again(
    room: Room, server: ScriptedServer
) -> None:
    first = await _dreamt(room, server, "rack")
    await _dreamt(room, server, "rent")
    room.history.undo(first)
    assert room.exists(_twin("rack"))
    assert not room.exists(_twin("rent"))
    assert seen(room) == 2, "it goes on where it was"
    await _dreamt(room, server, "rain")
    assert room.exists(_twin("rack"))
    assert not room.exists(_twin("rain"))


async def test_the_archive_is_kept_short_by_what_dream_has_read(
    room: Room, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.memory.records.archive.Archive.compact.__defaults__", (5,))
    for number in range(12):
        archive(room, f"Talk number {number}.", f"2025-03-{number + 1:02d} 10:00")
    _twice(room, server, "rack")
    await run(room)
    assert room.exists("memory/history-2025.jsonl")
    assert room.read("memory/history.jsonl").count("\n") == 5
    assert len(room.pipeline.archive.entries()) == 13
    assert _twin("rack") in [diff.path for diff in room.pipeline.dream_log.show().diffs]


# The schedule ------------------------------------------------------------------------------------


async def test_it_is_due_when_something_is_new_and_the_interval_is_over(
    room: Room, server: ScriptedServer
) -> None:
    job = DreamJob(room.pipeline.dream, room.history, 2, room.clock)
    assert job.next_due(room.clock()) is None, "nothing is new"
    _twice(room, server, "rack")
    assert job.next_due(room.clock()) == room.clock(), "it has never run: it is overdue"
    report = await job.run()
    assert report.changed
    assert "changed facts/rack" in report.text
    assert job.next_due(room.clock()) is None
    archive(room, "They played chess.")
    assert job.next_due(room.clock()) == room.clock() + timedelta(hours=2)


async def test_after_a_restart_the_last_commit_says_when_it_ran(
    room: Room, server: ScriptedServer
) -> None:
    await _dreamt(room, server, "rack")
    archive(room, "They played chess.")
    job = DreamJob(room.pipeline.dream, room.history, 2, room.clock)
    last = next(iter(room.history.log(actor=Actor.DREAM)))
    assert job.next_due(last.time) == last.time + timedelta(hours=2)


async def test_without_an_interval_it_runs_only_when_asked(
    room: Room, server: ScriptedServer
) -> None:
    _twice(room, server, "rack")
    job = DreamJob(room.pipeline.dream, room.history, 0, room.clock)
    assert job.next_due(room.clock()) is None
    assert (await job.run()).changed


async def test_what_failed_is_due_again_after_the_interval(
    room: Room, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _twice(room, server, "rack")
    job = DreamJob(room.pipeline.dream, room.history, 2, room.clock)

    async def fail(**_options: object) -> DreamReport:
        return DreamReport("postponed", error=ModelUnreachableError("No connection."))

    monkeypatch.setattr(room.pipeline.dream, "run", fail)
    report = await job.run()
    assert isinstance(report.error, ModelUnreachableError)
    assert not report.changed
    assert job.next_due(room.clock()) == room.clock() + timedelta(hours=2)


async def test_a_run_that_only_read_is_no_news(room: Room, server: ScriptedServer) -> None:
    archive(room, "They said hello.")
    server.enqueue(NOTHING)
    report = await DreamJob(room.pipeline.dream, room.history, 2, room.clock).run()
    assert (report.text, report.changed, report.error) == ("", True, None)
