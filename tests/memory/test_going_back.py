"""Undo, restore and dream-restore: what goes, what stays, and what isn't written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UsageError
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.cursors import CURSORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.history.change import Commit

MEMORY = "memory/MEMORY.md"
BOILER = "knowledge/topics/boiler.md"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        yield opened


def wrote(kb: KnowledgeBase, actor: Actor, path: str, text: str) -> Commit:
    with kb.history.change(actor, "written") as change:
        change.write(path, text)
    assert change.result is not None
    return change.result


def text(kb: KnowledgeBase, path: str) -> str:
    return (kb.workspace.root / path).read_text()


# Tombstones and cursors


def test_dream_restore_buries_what_dream_wrote_and_nothing_else(kb: KnowledgeBase) -> None:
    wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n")
    dream = wrote(kb, Actor.DREAM, MEMORY, "- I own a canoe\n- Prefers oolong tea\n")
    kb.memory.remembering.remember("I was born in Ghent")
    kb.memory.dream_log.restore(dream.id)
    assert "oolong" not in text(kb, MEMORY)
    assert kb.tombstones.buried("Prefers oolong tea")
    assert not kb.tombstones.buried("I was born in Ghent")
    assert not kb.tombstones.buried("I own a canoe")


def test_a_restore_buries_what_machines_wrote_since_and_not_what_people_did(
    kb: KnowledgeBase,
) -> None:
    first = wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n")
    wrote(kb, Actor.DREAM, MEMORY, "- I own a canoe\n- Prefers oolong tea\n")
    wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n- Prefers oolong tea\n- Born in Ghent\n")
    kb.history.restore(MEMORY, first.id)
    assert text(kb, MEMORY) == "- I own a canoe\n"
    assert kb.tombstones.buried("Prefers oolong tea")
    assert not kb.tombstones.buried("Born in Ghent")


def test_going_back_to_before_everything_buries_what_machines_wrote(kb: KnowledgeBase) -> None:
    wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n")
    dream = wrote(kb, Actor.DREAM, "USER.md", "# User\n\n- Prefers oolong tea\n")
    kb.memory.remembering.remember("I was born in Ghent")
    kb.memory.dream_log.restore_all(dream.id)
    assert text(kb, MEMORY) == "- I own a canoe\n"
    assert kb.tombstones.buried("Prefers oolong tea")
    assert not kb.tombstones.buried("I was born in Ghent")


def test_an_undo_of_a_restore_lifts_what_it_had_buried(kb: KnowledgeBase) -> None:
    first = wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n")
    wrote(kb, Actor.DREAM, MEMORY, "- I own a canoe\n- Prefers oolong tea\n")
    restored = kb.history.restore(MEMORY, first.id)
    assert restored is not None
    kb.history.undo(restored.id)
    assert "oolong" in text(kb, MEMORY)
    assert not kb.tombstones.buried("Prefers oolong tea")


def _read_on(kb: KnowledgeBase, cursor: int) -> Commit:
    return wrote(kb, Actor.DREAM, CURSORS, f'{{"dream": {{"here": {cursor}}}}}\n')


def test_no_undo_or_restore_rewinds_the_cursor_of_dream(kb: KnowledgeBase) -> None:
    wrote(kb, Actor.YOU, MEMORY, "- I own a canoe\n")
    _read_on(kb, 3)
    with kb.history.change(Actor.DREAM, "dreamt") as change:
        change.write(MEMORY, "- I own a canoe\n- Prefers oolong tea\n")
        change.write(CURSORS, '{"dream": {"here": 4}}\n')
    assert change.result is not None
    kb.memory.dream_log.restore(change.result.id)
    assert '"here": 4' in text(kb, CURSORS)
    kb.memory.dream_log.restore_all(change.result.id)
    assert '"here": 4' in text(kb, CURSORS)


def test_a_run_of_dream_that_only_read_has_nothing_to_be_taken_back(kb: KnowledgeBase) -> None:
    _read_on(kb, 3)
    read = _read_on(kb, 4)
    with pytest.raises(UsageError, match="only says how far Dream has read"):
        kb.history.undo(read.id)
    with pytest.raises(UsageError, match="only says how far Dream has read"):
        kb.history.undo(read.id, paths=[CURSORS])
    assert '"here": 4' in text(kb, CURSORS)


# Links


def _linked(kb: KnowledgeBase) -> Commit:
    """Two notes, of which one links to the other in every way; the deletion of that one."""
    kb.library.create("topic", "Pump", body="It hums.")
    wrote(
        kb,
        Actor.YOU,
        BOILER,
        "---\ntype: topic\nrelated: [topics/pump]\n---\n# Boiler\n\n"
        "See [[pump]], [[topics/pump|it]] and [here](pump.md).\n",
    )
    deleted = kb.library.delete(BOILER)
    assert deleted is not None
    return deleted


def test_links_of_a_note_that_an_undo_brings_back_follow_a_rename(kb: KnowledgeBase) -> None:
    deleted = _linked(kb)
    kb.library.rename("pump", "heat-pump")
    kb.history.undo(deleted.id)
    note = text(kb, BOILER)
    assert "related: [topics/heat-pump]" in note
    assert "See [[heat-pump]], [[topics/heat-pump|it]] and [here](heat-pump.md)." in note


def test_links_of_a_restored_note_follow_two_renames_and_a_move(kb: KnowledgeBase) -> None:
    deleted = _linked(kb)
    kb.library.rename("pump", "heat-pump")
    kb.library.rename("heat-pump", "projects/warmth")
    kb.history.restore(BOILER, f"{deleted.id}~1")
    note = text(kb, BOILER)
    assert "related: [projects/warmth]" in note
    assert "See [[warmth]], [[projects/warmth|it]] and [here](../projects/warmth.md)." in note


def test_a_link_that_was_written_later_to_another_note_of_the_old_name_stays(
    kb: KnowledgeBase,
) -> None:
    kb.library.create("topic", "Pump", body="It hums.")
    wrote(kb, Actor.YOU, BOILER, "# Boiler\n\nSee [[pump]].\n\nOld.\n")
    cut = wrote(kb, Actor.YOU, BOILER, "# Boiler\n\nOld.\n")
    kb.library.rename("pump", "heat-pump")
    kb.library.create("topic", "Pump", body="A bicycle's.")
    wrote(kb, Actor.YOU, BOILER, "# Boiler\n\nOld.\n\nThe tyre: [[topics/pump]].\n")
    kb.history.undo(cut.id)
    assert text(kb, BOILER) == (
        "# Boiler\n\nSee [[heat-pump]].\n\nOld.\n\nThe tyre: [[topics/pump]].\n"
    )


def test_undoing_a_part_of_a_rename_leaves_the_old_name_there(kb: KnowledgeBase) -> None:
    kb.library.create("topic", "Pump", body="It hums.")
    wrote(kb, Actor.YOU, BOILER, "# Boiler\n\nSee [[topics/pump]].\n")
    renamed = kb.library.rename("pump", "heat-pump").commit
    assert renamed is not None
    kb.history.undo(renamed.id, paths=[BOILER])
    assert "[[topics/pump]]" in text(kb, BOILER)
