"""Killed at any point while it makes memory: nothing is lost, nothing is condensed twice.

Invariants I1 to I5 of the design, after each of many kills: what was acknowledged is in the
history; no file is empty, a prefix or a mixture; nothing is deleted; git finds nothing wrong and
no lock stays; the archive parses, its cursors grow, and every message is accounted for once.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.memory.records.committing import committed
from kbtui.memory.records.ranges import merged
from kbtui.workspace import files
from tests.faults.world import NOTE, REPOSITORY, check_with_git
from tests.memory.memory_room import START, Clock, Room, call_slice, open_room
from tests.patience import PATIENCE
from tests.scripted_server import Reply, Request, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.change import Change

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[2]
KILLS = 200 if os.environ.get("KBTUI_LONG") else 60


class Victim:
    """The process that forks children to be killed."""

    def __init__(
        self, root: Path, session: str, *more: str, program: str = "memory_victim"
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.faults.{program}", str(root), session, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert self._out.readline() == "ready\n"

    @property
    def _out(self) -> Any:
        return self._process.stdout

    def run(self, how: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{how}\n")
        self._process.stdin.flush()
        told = json.loads(self._out.readline())
        assert not told["failed"], told
        return dict(told)

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


@pytest.fixture
def model() -> Iterator[str]:
    """The address of a model that condenses what is said here, whoever asks and how often."""
    with ScriptedServer([_condensed]) as server:
        yield server.url


_SAID = re.compile(r"^\[[^\]\n]* #(\d+)\] USER: (.*)$", re.MULTILINE)


def _condensed(request: Request) -> Reply:
    """What a model makes of a page: of each message what it says, and nothing else."""
    facts: list[dict[str, Any]] = []
    corrections: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, text in _SAID.findall(str(request.messages[-1]["content"])):
        message = int(number)
        if lucky := re.match(r"My lucky number \d+", text):
            fact = {"text": text, "type": "fact", "subject": lucky[0], "message": message}
            fact["importance"] = 3
            facts.append(fact)
        elif decided := re.match(r"We decided to use (tool\d+ for job\d+)", text):
            fact = {"text": text, "type": "decision", "subject": decided[1], "message": message}
            facts.append(fact)
            notes.append(f"Decided on {decided[1]}")
        elif text == "My favorite color is green.":
            new = {"old": "Favorite color: blue", "new": "Favorite color: green"}
            corrections.append({**new, "message": message})
    call = call_slice("They talked.", notes=notes, facts=facts, corrections=corrections[:1])
    return Reply(tool_calls=[call])


def _say(room: Room, session: str, turn: int) -> None:
    """Say something new, of which a fact, an entry and a proposal are made."""
    room.talk(
        [
            (turn, "user", f"My lucky number {turn} is {turn * 37}."),
            (turn, "assistant", "Noted. " + "And then some. " * 20),
            (turn, "user", f"We decided to use tool{turn} for job{turn}; Alice owns it."),
            (turn, "assistant", "Good."),
            (turn, "user", "My favorite color is green."),
        ],
        session,
    )


def _check(root: Path, acked: list[str]) -> None:
    """Open the workspace as the next start does, and look at every invariant."""
    room = open_room(root, Clock(START))
    assert room.history.adopt(settle=0) is None, "a machine's half-written change as the user's"
    commits = [commit.id for commit in room.history.log()]
    assert set(acked) <= set(commits), "I1"
    assert room.history.diff("HEAD") == (), "I2: the files are what the newest commit says"
    assert room.read("knowledge/topics/docker.md") == NOTE, "I3"
    assert "- kept as it is\n" in room.read("memory/MEMORY.md"), "I3"
    assert all(change.kind != "deleted" for c in room.history.log() for change in c.paths), "I3"
    _check_archive(room)
    _check_entries(room)
    assert not [*room.root.rglob("*.conflict-*"), *room.root.rglob("*.torn-*")]
    room.library.close()


def _check_archive(room: Room) -> None:
    archive = room.pipeline.archive
    assert archive.problems() == ()
    entries = archive.entries()
    cursors = [entry.cursor for entry in entries]
    assert cursors == sorted(set(cursors)), "I5: cursors"
    ranges = [entry.messages for entry in entries if entry.messages]
    total = sum(last - first + 1 for first, last in ranges)
    assert sum(last - first + 1 for first, last in merged(ranges)) == total, "I5: twice"
    audit = room.pipeline.ledger.account()
    assert audit.unaccounted == 0, audit
    assert audit.pending + audit.archived + audit.dropped == audit.messages
    shown = room.read("memory/HISTORY.md") if entries else ""
    assert shown.count("\n\n[") + bool(entries) == len(entries), "HISTORY.md says the same"


def _check_entries(room: Room) -> None:
    memory = room.read("memory/MEMORY.md").splitlines()
    facts = [line for line in memory if line.startswith("- ")]
    assert len(facts) == len(set(facts)), "a fact twice"
    titles = [info.title for info in room.library.infos()]
    assert len(titles) == len(set(titles)), "an entry twice"
    assert len(room.pipeline.inbox.list()) <= 1, "the same proposal twice"
    for path in (room.root / "memory").glob("2026-*.md"):
        headings = [line for line in path.read_text().splitlines() if line.startswith("- ")]
        assert len(headings) == len(set(headings)), "noted twice"


def test_killed_at_random_points_it_always_comes_out_right(room: Room, model: str) -> None:
    rng = random.Random(20261121)
    session = room.talk([(0, "user", "Hello, let us begin.")])
    victim = Victim(room.root, session.id, model)
    _say(room, session.id, 1)
    events = victim.run("whole")["events"]
    assert events > 50
    acked: list[str] = []
    kills = 0
    for turn in range(2, KILLS + 2):
        _say(room, session.id, turn)
        how = (
            f"time {rng.uniform(0.0, 0.4)}"
            if turn % 3 == 0
            else f"event {rng.randrange(1, events)}"
        )
        told = victim.run(how)
        kills += told["killed"]
        acked += told["acks"]
        _check(room.root, acked)
        if turn % 5 == 0:
            assert check_with_git(room.root / REPOSITORY) == []
            # Else what is left over grows, and all kills come at the beginning of the work.
            acked += victim.run("whole")["acks"]
    assert kills > KILLS // 2
    assert victim.run("whole")["killed"] is False
    victim.close()
    _check(room.root, acked)
    assert check_with_git(room.root / REPOSITORY) == []
    _everything_is_there(room, KILLS + 1)


def _everything_is_there(room: Room, turns: int) -> None:
    audit = room.pipeline.ledger.account()
    assert (audit.pending, audit.unaccounted) == (0, 0)
    room.library.refresh()
    texts = "".join(room.library.get(info.path).text for info in room.library.infos())
    for turn in range(1, turns + 1):
        assert texts.count(f"My lucky number {turn} is {turn * 37}.") == 1, turn
        assert f"tool{turn} for job{turn}" in texts, turn
    assert "- Favorite color: blue\n" in room.read("memory/MEMORY.md"), "the user's line stays"


def test_the_checks_would_notice_a_page_condensed_twice(room: Room, model: str) -> None:
    session = room.talk([(0, "user", "Hello, let us begin.")])
    _say(room, session.id, 1)
    victim = Victim(room.root, session.id, model)
    victim.run("whole")
    victim.close()
    _check(room.root, [])
    file = room.root / "memory/history.jsonl"
    again = json.loads(file.read_text().splitlines()[0]) | {"cursor": 99}
    with file.open("a") as out:
        out.write(json.dumps(again) + "\n")
    room.history.adopt(settle=0)
    with pytest.raises(AssertionError, match="I5: twice"):
        _check(room.root, [])


def test_two_processes_at_once_condense_each_page_once(room: Room, model: str) -> None:
    session = room.talk([(0, "user", "Hello, let us begin.")])
    victims = [Victim(room.root, session.id, model) for _ in range(2)]
    for turn in range(1, 5):
        _say(room, session.id, turn)
        threads = [threading.Thread(target=victim.run, args=("whole",)) for victim in victims]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        _check(room.root, [])
    victims[0].run("whole")
    for victim in victims:
        victim.close()
    _check(room.root, [])
    _everything_is_there(room, 4)


def test_who_writes_the_same_files_meanwhile_loses_nothing(room: Room, model: str) -> None:
    session = room.talk([(0, "user", "Hello, let us begin.")])
    victim = Victim(room.root, session.id, model)
    over = threading.Event()
    written: list[str] = []

    def add(change: Change, line: str) -> None:
        before = change.read("memory/MEMORY.md") or b""
        blob = files.blob_id(before)
        change.write("memory/MEMORY.md", before + f"{line}\n".encode(), expecting=blob)

    def write() -> None:
        while not over.is_set():
            line = f"- The agent's line {len(written)}"
            committed(
                room.history,
                room.workspace,
                Actor.AGENT,
                "meanwhile",
                Origin(),
                lambda change, line=line: add(change, line),  # type: ignore[misc]
            )
            written.append(line)

    writer = threading.Thread(target=write)
    writer.start()
    for turn in range(1, 3):
        _say(room, session.id, turn)
        victim.run("whole")
    while len(written) <= 4 and writer.is_alive():
        over.wait(0.01)
    over.set()
    writer.join(PATIENCE)
    victim.run("whole")
    victim.close()
    _check(room.root, [])
    _everything_is_there(room, 2)
    lines = room.read("memory/MEMORY.md").splitlines()
    assert len(written) > 4
    assert all(lines.count(line) == 1 for line in written)
