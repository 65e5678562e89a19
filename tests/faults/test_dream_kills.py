"""Killed at any point of a dream: all of it has happened, or nothing has.

Invariants I1 to I5 of the design, after each of many kills: what was acknowledged is in the
history; the files are what the newest commit says; nothing is gone that nobody asked to go; git
finds nothing wrong and no lock stays. With a model the cursor only grows, and nothing is dreamt
about twice; without one nothing counts as read, and what was made stays made, once.
"""

from __future__ import annotations

import os
import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.memory.records.cursors import CURSORS, Cursors
from tests.faults.dream_victim import READS
from tests.faults.test_memory_kills import Victim
from tests.faults.world import MINE, NOTE, REPOSITORY, check_with_git
from tests.memory.dream_room import MEMORY, archive, machine, person
from tests.memory.memory_room import START, Clock, Room, open_room

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.memory.records.archive_lines import ArchiveEntry

pytestmark = pytest.mark.faults
TWICE = f"{MINE}- Kept as it is\n"
KILLS = 100 if os.environ.get("KBTUI_LONG") else 40


def _happen(room: Room, turn: int) -> None:
    """Something new in the archive, what a machine wrote twice, a broken link, a missing one."""
    twin = f"- Stands in rack {turn}\n"
    machine(
        room,
        **{
            f"facts__server{turn}": f"---\ntype: fact\n---\n# Server{turn}\n\n{twin}",
            f"facts__server{turn}-twin": f"---\ntype: fact\n---\n# Server{turn}\n\n{twin}",
            f"people__bob{turn}": person(f"Bob{turn}", f"- Uses [[ops/server{turn}]]\n"),
            f"topics__shade{turn}": _shade(turn),
        },
    )
    archive(room, f"shade{turn}", "2099-01-01 10:00")


def _shade(turn: int) -> str:
    return f"---\ntype: topic\n---\n# Shade{turn}\n\nBob{turn} chose it.\n"


def _check(root: Path, acked: list[str], before: int = 0, *, reads: bool = False) -> int:
    """Open the workspace as the next start does, look at every invariant.

    Returns:
        How far a model `reads`, else how many entries were tidied without one.
    """
    room = open_room(root, Clock(START))
    assert room.history.adopt(settle=0) is None, "a machine's half-written change as the user's"
    commits = list(room.history.log())
    assert set(acked) <= {commit.id for commit in commits}, "I1"
    assert room.history.diff("HEAD") == (), "I2: the files are what the newest commit says"
    assert room.read("knowledge/topics/docker.md") == NOTE, "I3"
    assert room.read(MEMORY).startswith(MINE), "I3"
    gone = [each.path for c in commits for each in c.paths if each.kind == "deleted"]
    assert all(path.endswith("-twin.md") for path in gone), "I3"
    made = [commit.origin.cursor for commit in commits if commit.actor is Actor.DREAM]
    read = [cursor for cursor in made if cursor is not None]  # tidying alone reads nothing
    assert read == sorted(read, reverse=True), "I5: cursors"
    assert len(read) == len(set(read)), "I5: twice"
    cursor = max(Cursors(room.workspace, room.history).seen().values(), default=0)
    assert cursor == (read[0] if read else 0), "I5: the cursor is that of the last commit"
    assert room.exists(CURSORS) == bool(read)
    assert reads or not read, "I5: without a model nothing counts as read"
    tidied = sum(map(partial(_is_tidied, room), room.pipeline.archive.entries()))
    seen = cursor if reads else tidied
    assert seen >= before, "I5: what was made went back"
    assert room.pipeline.archive.problems() == ()
    _check_made(room, tidied)
    assert not [*room.root.rglob("*.conflict-*"), *room.root.rglob(".*.tmp")]
    room.library.close()
    return seen


def _is_tidied(room: Room, entry: ArchiveEntry) -> bool:
    shade = room.read(f"knowledge/topics/shade{entry.cursor}.md")
    return f"related: [people/bob{entry.cursor}]" in shade


def _check_made(room: Room, tidied: int) -> None:
    """What was made is in a commit, once and whole."""
    commits = [commit for commit in room.history.log() if commit.actor is Actor.DREAM]
    assert bool(tidied) <= bool(commits), "what was made is in a commit of Dream's"
    for server in room.root.glob("knowledge/facts/server*[0-9].md"):
        assert server.read_text().count("- Stands in rack ") == 1
    assert len(room.pipeline.inbox.list()) <= 1, "the same proposal twice"


def test_killed_at_random_points_of_a_dream_it_always_comes_out_right(room: Room) -> None:
    rng = random.Random(20261122)
    room.write(MEMORY, TWICE)
    victim = Victim(room.root, "-", program="dream_victim")
    _happen(room, 1)
    events = victim.run("whole")["events"]
    assert events > 50
    acked: list[str] = []
    kills = seen = 0
    for turn in range(2, KILLS + 2):
        _happen(room, turn)
        how = (
            f"time {rng.uniform(0, 0.4)}" if turn % 4 == 0 else f"event {rng.randrange(1, events)}"
        )
        told = victim.run(how)
        kills += told["killed"]
        acked += told["acks"]
        seen = _check(room.root, acked, seen)
        if turn % 6 == 0:
            assert check_with_git(room.root / REPOSITORY) == []
    assert kills > KILLS // 2
    assert victim.run("whole")["killed"] is False
    victim.close()
    assert _check(room.root, acked, seen) >= 1, "something was made"
    assert check_with_git(room.root / REPOSITORY) == []
    assert room.read(MEMORY) == TWICE, "the user's line waits in the inbox"
    assert len(room.pipeline.inbox.list()) == 1
    room.library.refresh()
    assert not [info.path for info in room.library.infos() if info.path.endswith("-twin.md")]
    links = room.library.outgoing("knowledge/people/bob3.md")
    assert [link.path for link in links] == ["knowledge/facts/server3.md"]


def test_killed_at_random_points_of_a_dream_with_a_model_nothing_is_read_twice(room: Room) -> None:
    rng = random.Random(20261128)
    victim = Victim(room.root, READS, program="dream_victim")
    _happen(room, 1)
    events = victim.run("whole")["events"]
    assert _check(room.root, [], reads=True) == 1
    acked: list[str] = []
    kills = seen = 0
    for turn in range(2, KILLS + 2):
        _happen(room, turn)
        told = victim.run(f"event {rng.randrange(1, events)}")
        kills += told["killed"]
        acked += told["acks"]
        seen = _check(room.root, acked, seen, reads=True)
    assert kills > KILLS // 2
    assert victim.run("whole")["killed"] is False
    victim.close()
    assert _check(room.root, acked, seen, reads=True) == KILLS + 1, "all is read in the end"
    assert check_with_git(room.root / REPOSITORY) == []


def test_the_checks_would_notice_a_cursor_without_what_was_made(room: Room) -> None:
    _happen(room, 1)
    victim = Victim(room.root, "-", program="dream_victim")
    victim.run("whole")
    victim.close()
    seen = _check(room.root, [])
    _happen(room, 2)
    with room.history.change(Actor.DREAM, "read", Origin(cursor=2)) as change:
        Cursors(room.workspace, room.history).stage(change, room.pipeline.archive.entries(seen))
    with pytest.raises(AssertionError, match=r"^I5: without a model"):
        _check(room.root, [], seen)
