"""A folder to sync with that vanishes midway, and two machines that write into it at once."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError, RemoteError
from tests.faults.disk import Call, Disk
from tests.history.sync_room import Machine, fsck

if TYPE_CHECKING:
    from pathlib import Path

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"
MOMENTS = 8


def _apart(place: Path) -> tuple[Machine, Machine]:
    """Two machines that have both gone on since they were in step."""
    (place / "stick").mkdir()
    here, there = (Machine(place / name, place / "stick/remote.git") for name in ("here", "there"))
    here.write(A, "one\n\ntwo\n")
    here.sync()
    there.sync()
    there.write(A, "one\n\ntwo there\n")
    there.sync()
    here.write(A, "one here\n\ntwo\n")
    here.write(B, "b\n")
    return here, there


def _calls(place: Path) -> int:
    place.mkdir()
    here, _ = _apart(place)
    with Disk(place / "stick").installed() as disk:
        here.sync()
    return disk.count


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_stick_that_is_pulled_out_ends_the_sync_and_the_next_one_goes_on(
    place: Path, moment: int
) -> None:
    calls = _calls(place / "counted")
    assert calls >= MOMENTS
    here, there = _apart(place)
    stick, away = place / "stick", place / "away"
    with Disk(stick).installed() as disk:

        def pull(call: Call) -> None:
            if call.number == 1 + moment * calls // MOMENTS and not away.exists():
                disk._real["rename"](stick, away)

        disk.before = pull
        _in_a_sentence(here)
    assert away.exists()
    assert not stick.exists(), "nothing is made where the stick was"
    with pytest.raises(RemoteError, match="no place to sync with"):
        here.sync()
    away.rename(stick)
    here.sync()
    there.sync()
    here.check()
    assert here.files() == there.files() == {A: "one here\n\ntwo there\n", B: "b\n"}
    fsck(stick / "remote.git")
    assert [*(stick / "remote.git").rglob("*.lock")] == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_stick_that_is_full_or_broken_loses_nothing(place: Path, moment: int, code: int) -> None:
    calls = _calls(place / "counted")
    here, there = _apart(place)
    with Disk(place / "stick").installed() as disk:

        def fail(call: Call) -> None:
            if call.number > moment * calls // MOMENTS and call.name != "unlink":
                raise OSError(code, os.strerror(code), call.path)

        disk.before = fail
        said = _in_a_sentence(here)
    assert said is None or os.strerror(code).lower() in said.lower()
    here.sync()
    there.sync()
    assert here.files() == there.files() == {A: "one here\n\ntwo there\n", B: "b\n"}
    fsck(place / "stick/remote.git")


def _in_a_sentence(machine: Machine) -> str | None:
    """Sync; what goes wrong is said so that a person knows what to do."""
    problem: KbtuiError | None = None
    try:
        machine.sync()
    except KbtuiError as error:
        problem = error
    assert problem is None or (problem.hint and problem.message.isprintable())
    return problem.message if problem else None


def test_two_machines_that_sync_at_once_both_come_through(place: Path) -> None:
    here, there = _apart(place)
    wrong: list[Exception] = []

    def work(machine: Machine, name: str) -> None:
        try:
            for number in range(4):
                machine.write(f"knowledge/topics/{name}-{number}.md", f"{name} {number}\n")
                machine.sync()
        except Exception as error:  # noqa: BLE001 — shown by the test
            wrong.append(error)

    threads = [threading.Thread(target=work, args=each) for each in ((here, "h"), (there, "t"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    here.sync()
    there.sync()
    here.sync()
    assert here.history.head() == there.history.head()
    assert here.files() == there.files()
    assert len(here.files()) == 10
    fsck(place / "stick/remote.git")
