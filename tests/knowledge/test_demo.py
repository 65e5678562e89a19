"""The example: an entry of each type, every link good, one change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.knowledge.demo import plant
from kbtui.knowledge.templates import ENTRY_TYPES

if TYPE_CHECKING:
    from tests.knowledge.conftest import Room


def test_the_example_is_whole_and_linked(room: Room) -> None:
    commit = plant(room.history)
    assert commit is not None
    infos = room.library.infos()
    assert 8 <= len(infos) <= 12
    assert {info.type for info in infos} == set(ENTRY_TYPES)
    for info in infos:
        assert info.problem is None
        assert info.summary
        links = room.library.outgoing(info.path)
        assert links
        assert all(link.path for link in links), info.path
        assert room.library.backlinks(info.path)
    assert all(f"- {info.slug}: " in room.text("knowledge/INDEX.md") for info in infos)
    assert plant(room.history) is None
    room.history.undo(commit.id)
    room.library.refresh()
    assert room.library.infos() == []
