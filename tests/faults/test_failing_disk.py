"""Every call that changes the disk fails once, or from then on: nothing is lost, nothing is half."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError
from tests.faults.disk import Call, Disk
from tests.faults.world import apply, copy_world, look, open_history, restart, state_after

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.history.history import History

# A full disk still lets go of what is there.
REFUSED = {
    errno.EIO: {"open", "write", "fsync", "rename", "link", "unlink", "mkdir", "ftruncate"},
    errno.ENOSPC: {"open", "write", "fsync", "rename", "link", "mkdir", "ftruncate"},
}


def count_calls(template: Path, root: Path) -> int:
    copy_world(template, root)
    history = open_history(root)
    with Disk(root).installed() as disk:
        apply(history, 1)
    assert look(root) == state_after(1)
    return disk.count


def fail_at(disk: Disk, number: int, code: int, *, stays: bool) -> None:
    def before(call: Call) -> None:
        is_due = call.number >= number if stays else call.number == number
        if is_due and call.name in REFUSED[code]:
            if call.name == "write":  # some of it gets through
                disk._real["write"](call.descriptor, call.data[: len(call.data) // 2])
            raise OSError(code, os.strerror(code), call.path)

    disk.before = before


def change_on_failing_disk(
    root: Path, history: History, number: int, code: int, *, stays: bool
) -> KbtuiError | None:
    with Disk(root).installed() as disk:
        fail_at(disk, number, code, stays=stays)
        try:
            apply(history, 1)
        except KbtuiError as error:
            return error
    return None


@pytest.mark.parametrize("stays", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("code", REFUSED, ids=["EIO", "ENOSPC"])
def test_a_change_is_whole_or_absent_whichever_call_fails(
    template: Path, place: Path, code: int, stays: bool
) -> None:
    calls = count_calls(template, place / "count")
    assert calls > 30
    wrong = {}
    for number in range(1, calls + 1, 3 if stays else 1):
        root = copy_world(template, place / str(number))
        history = open_history(root)
        error = change_on_failing_disk(root, history, number, code, stays=stays)
        report = restart(root, range(2), fsck=number % 3 == 0)
        if error is None and report.number != 1:
            report.wrong.append("it was said to be done, and isn't")
        if report.wrong:
            wrong[number] = report.wrong
        apply(open_history(root), 2)
        assert look(root) == state_after(2), "the next change must work"
    assert wrong == {}


def test_a_change_that_fails_is_taken_back_before_it_is_reported(
    template: Path, place: Path
) -> None:
    """A full disk at any point before the branch moves: the files are as they were, at once."""
    calls = count_calls(template, place / "count")
    reported = 0
    for number in range(1, calls + 1, 2):
        root = copy_world(template, place / str(number))
        history = open_history(root)
        head = history.head()
        error = change_on_failing_disk(root, history, number, errno.ENOSPC, stays=False)
        if error is not None:
            reported += 1
            assert "Free some space" in error.hint
        if history.head() == head:
            assert look(root) == state_after(0)
    assert reported > 10
