from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.remembered import change_fact, remembered
from kbtui.workspace.layout import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    kb = KnowledgeBase.open(tmp_path / "notes", create=True)
    yield kb
    kb.close()


def test_nothing_is_remembered_at_first(kb: KnowledgeBase) -> None:
    assert remembered(kb.history, kb.library) == ()


def test_each_line_has_its_origin_and_a_heading_none(kb: KnowledgeBase) -> None:
    kb.memory.remembering.remember("I prefer tea")
    with kb.history.change(Actor.DREAM, "more") as change:
        before = kb.library.read(MEMORY)
        change.write(MEMORY, before + b"- Owns a boat\n")
    heading, *facts = remembered(kb.history, kb.library)
    assert heading.is_heading
    assert heading.origin is None
    said = {fact.text: fact.origin.actor for fact in facts if fact.origin is not None}
    assert said == {"I prefer tea": Actor.YOU, "Owns a boat": Actor.DREAM}


def test_a_changed_line_keeps_its_bullet_and_all_other_bytes(kb: KnowledgeBase) -> None:
    with kb.history.change(Actor.YOU, "wrote") as change:
        change.write(MEMORY, b"# M\r\n\r\n* one\r\n  2. two\r\nthree")
    facts = remembered(kb.history, kb.library)
    assert [fact.text for fact in facts] == ["M", "one", "two", "three"]
    change_fact(kb.library, facts[2], "zwei\nx")
    change_fact(kb.library, facts[3], "drei")
    assert kb.library.read(MEMORY) == b"# M\r\n\r\n* one\r\n  2. zwei x\r\ndrei"
    with pytest.raises(ConflictError):
        change_fact(kb.library, facts[2], "again")
