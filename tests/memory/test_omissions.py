"""``audit --dropped``: what was said, is archived, and stands nowhere in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from tests.memory.memory_room import Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


def test_what_the_summary_and_the_notes_leave_out_is_listed_by_text(room: Room) -> None:
    said = (
        "The ferry leaves at seven in the morning.",
        "My sister Ada lives in Oslo. The boiler was serviced in March.",
        "/help",
        "Where is the key?",
    )
    session = room.talk([(n, "user", text) for n, text in enumerate(said)])
    room.write("memory/MEMORY.md", "# Memory\n\n- The user's sister Ada lives in Oslo.\n")
    with room.history.change(Actor.CONSOLIDATOR, "Condensed.") as change:
        room.pipeline.archive.stage(
            change,
            "They said that the ferry leaves at seven in the morning.",
            session=session.id,
            messages=(1, 4),
            timestamp="2026-03-06 10:00",
        )
    found = [(each.message, each.text, each.reason) for each in room.pipeline.left_out()]
    assert found == [
        (2, "The boiler was serviced in March.", "not in the summary"),
        (3, "/help", "command"),
    ]


def test_what_isnt_archived_yet_isnt_left_out(room: Room) -> None:
    room.talk()
    assert room.pipeline.left_out() == []
