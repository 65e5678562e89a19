"""No echo: what only kbtui itself said or quoted never becomes something that it knows."""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING

from kbtui.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from pathlib import Path

TURNS = 200
_NAMES = ("Ada", "Bo", "Cem", "Dora", "Eli")
_MARK = re.compile(r"\bmark\d+x\b")


def _said(chance: random.Random, number: int) -> str:
    """A statement with a mark of its own, a question, or small talk."""
    name = chance.choice(_NAMES)
    return chance.choice(
        (
            f"{name}'s locker code word is mark{number}x.",
            f"I decided to put {name} in charge of project mark{number}x.",
            f"What do you know about {name}?",
            f"Who is in charge of mark{chance.randrange(number + 1)}x?",
            "Thanks a lot!",
        )
    )


def test_nothing_that_only_kbtui_said_becomes_a_fact(tmp_path: Path) -> None:
    chance = random.Random(9)
    overrides = {
        "search": {"semantic": False},
        "models": {"chat": {"model": "offline"}},
        "memory": {"consolidate_messages": 20},
    }
    told: set[str] = set()
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        kb.library.create("topic", "Lockers", body="The lockers stand in hall mark999x.")
        session = kb.sessions.create("test")

        async def talk() -> None:
            for number in range(TURNS):
                text = _said(chance, number)
                if not text.endswith("?"):
                    told.update(_MARK.findall(text))
                async for _ in kb.agent.turn(session, text):
                    pass
                if number % 5 == 0:
                    # What an older version, or a model, might have answered.
                    session.append("assistant", f"Bo's favorite hall is mark{5000 + number}x.")
                if number % 20 == 19:
                    await kb.memory.consolidate(session.id)
                    await kb.memory.dream.run()

        asyncio.run(talk())
        known = set()
        for info in kb.library.infos():
            known.update(_MARK.findall((kb.workspace.root / info.path).read_text()))
        memory = kb.workspace.root / "memory/MEMORY.md"
        known.update(_MARK.findall(memory.read_text() if memory.exists() else ""))
    assert known & told, "something was kept at all"
    assert known - told == {"mark999x"}
