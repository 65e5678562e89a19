"""No echo: what only kbtui itself said or quoted never becomes something that it knows."""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.edits.grounding import ground_of
from tests.scripted_server import Reply, Request, ScriptedServer, call

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.sessions.store import Session

TURNS = 100
_NAMES = ("Ada", "Bo", "Cem", "Dora", "Eli")
_MARK = re.compile(r"\bmark\d+x\b")
_LINE = re.compile(r"#(\d+)\] (\w+)[^:\n]*: ([^\n]*\bmark\d+x\b[^\n]*)")
_WRITTEN = "mark999x"
_NOTES = {"search": {"semantic": False}, "context": {"memory_window": 20}}


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


def _echoing(request: Request) -> Reply:
    """A model that states things, repeats itself, and keeps all that it sees."""
    told = "\n".join(str(each.get("content") or "") for each in request.messages)
    if request.tools == ["save_memory"]:
        lines = _LINE.findall(told)
        facts = [
            {
                "text": text,
                "type": "topic",
                "subject": text.split("'")[0],
                "message": int(number),
                "importance": 3,
            }
            for number, _, text in lines[:100]
        ]
        summary = " ".join(text for _, who, text in lines if who == "USER") or "They talked."
        notes = [text for *_, text in lines]
        return Reply(
            tool_calls=[
                call("save_memory", summary=summary, notes=notes, facts=facts, corrections=[])
            ]
        )
    if len(request.tools) == 1:
        return Reply(tool_calls=[call(request.tools[0], findings=[])])
    before = [each["content"] for each in request.messages if each["role"] == "assistant"]
    again = f" As I said: {str(before[-1])[:200]}" if before else ""
    return Reply(f"Bo's favorite hall is mark{7000 + len(request.messages)}x.{again}")


async def _talk(kb: KnowledgeBase, session: Session, dream_every: int) -> tuple[set[str], set[str]]:
    """Talk for so many turns; gives the marks that the user stated, and those that they asked for."""
    chance = random.Random(9)
    told: set[str] = set()
    asked: set[str] = set()
    for number in range(TURNS):
        text = _said(chance, number)
        (asked if text.endswith("?") else told).update(_MARK.findall(text))
        async for _ in kb.agent.turn(session, text):
            pass
        if number % 5 == 0:
            # What an older version, or a model, might have answered.
            session.append("assistant", f"Bo's favorite hall is mark{5000 + number}x.")
        if number % 20 == 19:
            await kb.memory.consolidate(session.id)
        if number % dream_every == dream_every - 1:
            await kb.memory.dream.run()
    return told, asked


def _known(kb: KnowledgeBase) -> tuple[set[str], set[str]]:
    """The marks in entries, MEMORY.md and USER.md; and those in the archive and the notes."""
    files = [kb.workspace.root / info.path for info in kb.library.infos()]
    files += [kb.workspace.memory / "MEMORY.md", kb.workspace.root / "USER.md"]
    facts = [file.read_text() for file in files if file.exists()]
    texts = [entry.content for entry in kb.archive.entries()]
    texts += [file.read_text() for file in kb.workspace.memory.glob("2*.md")]
    return set(_MARK.findall("\n".join(facts))), set(_MARK.findall("\n".join(texts)))


def _check(tmp_path: Path, models: dict[str, Any], dream_every: int) -> None:
    overrides = {**_NOTES, "models": models}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        kb.library.create("topic", "Lockers", body=f"The lockers stand in hall {_WRITTEN}.")
        told, asked = asyncio.run(_talk(kb, kb.sessions.create("test"), dream_every))
        known, archived = _known(kb)
    assert known & told, "something was kept at all"
    assert known - told == {_WRITTEN}
    assert archived & told, "something was archived at all"
    assert archived <= told | asked


def test_nothing_that_only_kbtui_said_becomes_a_fact(tmp_path: Path) -> None:
    _check(tmp_path, {"chat": {"model": "offline"}}, 20)


@pytest.mark.slow
def test_nothing_that_only_a_model_said_becomes_a_fact(tmp_path: Path) -> None:
    with ScriptedServer([_echoing]) as server:
        role = {"model": "openai/scripted", "api_base": server.url, "api_key": "x"}
        role |= {"context_window": 32_768}
        _check(tmp_path, {"chat": role, "first_token_seconds": 60, "retries": 0}, 50)


@pytest.mark.parametrize(
    ("fact", "is_echo"),
    [
        ("The user lives in Oslo", False),
        ("Oslo is the capital of Norway", True),
        ("The gate code is k9x", True),
        ("The user sails on Saturdays", False),
        ("The user keeps a boat in Drammen", False),
    ],
)
def test_what_the_user_said_or_agreed_to_is_no_echo(
    tmp_path: Path, fact: str, is_echo: bool
) -> None:
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=_NOTES) as kb:
        session = kb.sessions.create("test")
        for role, text in (
            ("user", "I live in Oslo, where I sail on Saturdays"),
            ("assistant", "Oslo is the capital of Norway. The gate code there is k9x."),
            ("user", "Interesting"),
            ("assistant", "So you keep a boat in Drammen?"),
            ("user", "Yes, that's it."),
        ):
            session.append(role, text)
        assert bool(ground_of(session.messages).lacks(fact)) is is_echo
