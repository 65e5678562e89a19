"""The power is cut at any moment: what was acknowledged is there, what wasn't is all or nothing."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

from tests.faults.disk import Recording
from tests.faults.world import apply, copy_world, open_history, restart

if TYPE_CHECKING:
    from pathlib import Path

STATES = int(os.environ.get("KBTUI_TEST_STATES", "200"))
CHANGES = 3


def record(root: Path) -> tuple[Recording, list[int]]:
    """Make some changes; what was done to the disk, and when each change was acknowledged."""
    recording = Recording(root)
    history = open_history(root)
    acknowledged = []
    with recording.disk.installed():
        for number in range(1, CHANGES + 1):
            apply(history, number)
            acknowledged.append(recording.now)
    return recording, acknowledged


def lose_power(root: Path, places: Path, states: int, seed: int) -> dict[int, list[str]]:
    """Cut the power at random moments; what is wrong after the restarts."""
    recording, acknowledged = record(root)
    rng = random.Random(seed)
    wrong = {}
    for state in range(states):
        when = rng.randint(0, recording.now)
        place = places / str(state)
        place.mkdir(parents=True)
        recording.cut_power(when, place, rng)
        done = sum(moment <= when for moment in acknowledged)
        report = restart(place, range(done, min(done + 2, CHANGES + 1)), fsck=state % 4 == 0)
        if report.wrong:
            wrong[state] = [f"after call {when}", *report.wrong]
        shutil.rmtree(place)
    return wrong


def test_nothing_acknowledged_is_lost_and_nothing_is_half(template: Path, place: Path) -> None:
    root = copy_world(template, place / "notes")
    assert lose_power(root, place / "states", STATES, seed=1) == {}
