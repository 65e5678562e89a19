"""kill -9 in the middle of a change, a hundred times; every restart finds a whole state."""

from __future__ import annotations

import os
import random
import select
import signal
from typing import TYPE_CHECKING

from tests.faults.disk import Call, Disk
from tests.faults.world import apply, make_world, open_history, restart

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("KBTUI_TEST_KILLS", "100"))


def write_forever(root: Path, first: int, said: int, *, die_at: int | None, after: bool) -> None:
    """Make changes and report each; die at a call of the disk if told to."""
    history = open_history(root)
    disk = Disk(root)

    def maybe_die(call: Call) -> None:
        if call.number == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if after:
        disk.after = maybe_die
    else:
        disk.before = maybe_die
    os.write(said, b"started\n")
    with disk.installed():
        number = first
        while True:
            apply(history, number)
            disk._real["write"](said, f"{number}\n".encode())
            number += 1


def kill_one(root: Path, first: int, rng: random.Random) -> int:
    """Run a writer and kill it; returns the number of the last change that it reported."""
    read, write = os.pipe()
    die_at = rng.randint(1, 150) if rng.random() < 0.6 else None
    child = os.fork()
    if child == 0:
        try:
            write_forever(root, first, write, die_at=die_at, after=rng.random() < 0.5)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as said:
        assert said.readline() == "started\n"
        if die_at is None:
            # Not a wait for something: the moment of the kill is what is random.
            select.select([], [], [], rng.uniform(0, 0.08))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        numbers = [int(line) for line in said.read().split()]
    assert os.WIFSIGNALED(status), "the writer failed by itself"
    return numbers[-1] if numbers else first - 1


def test_a_hundred_kills_leave_no_half_change(place: Path) -> None:
    rng = random.Random(20261121)
    root = make_world(place / "notes")
    acknowledged = 0
    wrong = {}
    unreported = 0
    for kill in range(KILLS):
        acknowledged = kill_one(root, acknowledged + 1, rng)
        # The one that was under way may have made it.
        report = restart(root, range(acknowledged, acknowledged + 2), fsck=kill % 4 == 0)
        if report.wrong:
            wrong[kill] = report.wrong
        if report.number == acknowledged + 1:
            unreported += 1
            acknowledged += 1
    assert wrong == {}
    assert acknowledged > KILLS // 4
    assert unreported > 0, "no kill ever fell between the change and its report"
    final = restart(root, range(acknowledged, acknowledged + 1))
    assert final.wrong == []
    log = list(open_history(root).log())
    assert {commit.actor for commit in log} == {"agent"}
    assert len(log) == acknowledged + 1
