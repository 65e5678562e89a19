"""How far Dream has read: lost files cost nothing, deliberate restores are respected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.memory.records.archive import ArchiveEntry
from kbtui.memory.records.cursors import CURSORS, Cursors

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace


def read_up_to(history: History, cursors: Cursors, cursor: int, origin: str = "here") -> None:
    with history.change(Actor.DREAM, "dreamt") as change:
        cursors.stage(change, [ArchiveEntry(cursor, "", "", origin=origin)])


def test_a_cursor_is_kept_for_each_machine_and_never_moves_back(
    workspace: Workspace, history: History
) -> None:
    cursors = Cursors(workspace, history)
    read_up_to(history, cursors, 4)
    read_up_to(history, cursors, 2, "there")
    read_up_to(history, cursors, 3)
    assert Cursors(workspace, history).seen() == {"here": 4, "there": 2}


@pytest.mark.parametrize("damage", [None, b"", b'{"dream": {"he', b"[]", b"\xff\xff", b"[" * 9999])
def test_a_lost_or_damaged_file_is_made_good_from_the_log(
    workspace: Workspace, history: History, damage: bytes | None
) -> None:
    cursors = Cursors(workspace, history)
    read_up_to(history, cursors, 4)
    read_up_to(history, cursors, 7)
    file = workspace.root / CURSORS
    file.unlink() if damage is None else file.write_bytes(damage)
    assert cursors.seen() == {"here": 7}
    history.adopt(settle=0)
    assert cursors.seen() == {"here": 7}
    read_up_to(history, cursors, 2, "there")
    assert cursors.seen() == {"here": 7, "there": 2}


def test_a_restore_to_an_earlier_state_is_respected(workspace: Workspace, history: History) -> None:
    cursors = Cursors(workspace, history)
    read_up_to(history, cursors, 4)
    first = history.head()
    read_up_to(history, cursors, 7)
    assert first is not None
    history.restore(CURSORS, first)
    assert cursors.seen() == {"here": 4}


def test_taking_back_the_first_dream_takes_back_its_cursor(
    workspace: Workspace, history: History
) -> None:
    cursors = Cursors(workspace, history)
    read_up_to(history, cursors, 4)
    with history.change(Actor.YOU, "undo", Origin(undoes=history.head())) as change:
        change.delete(CURSORS)
    assert cursors.seen() == {}


def test_foreign_values_are_passed_over(workspace: Workspace, history: History) -> None:
    (workspace.root / CURSORS).write_text(
        '{"dream": {"here": 3, "x": "4", "y": true, "z": -1}, "else": 5, "other": {"here": 1}}'
    )
    cursors = Cursors(workspace, history)
    assert cursors.seen() == {"here": 3}
