"""A long conversation with models of all sizes: nothing of it is lost between prompt and memory."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.transcript import said_by_user
from tests.scripted_server import Reply, Request, ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.memory.consolidation.consolidator import CondensingOutcome
    from kbtui.sessions.store import Session

_MARK = re.compile(r"\bfact\d+x\b")


def _answer(request: Request) -> Reply:
    """Answer in a sentence; condense to what was marked."""
    names = request.tools
    told = "\n".join(str(message.get("content") or "") for message in request.messages)
    if len(names) == 1:  # it is to call a tool: every mark of the conversation is kept
        return Reply(tool_calls=[_saved(names[0], request, " ".join(_marks(told)))])
    last = str(request.messages[-1].get("content") or "")
    return Reply(f"Noted: {last[:60]} " + "and so on. " * 20)


def _marks(text: str) -> list[str]:
    return list(dict.fromkeys(_MARK.findall(text)))


def _saved(name: str, request: Request, text: str) -> dict[str, Any]:
    """Fill every text that the tool must be given with `text`."""
    schema = request.body["tools"][0]["function"]["parameters"]
    arguments = {key: _filled(schema["properties"][key], text) for key in schema["required"]}
    return {"name": name, "arguments": arguments}


def _filled(schema: dict[str, Any], text: str) -> Any:
    match schema.get("type"):
        case "array":
            return []
        case "object":
            inner = schema.get("properties", {})
            return {key: _filled(inner[key], text) for key in schema.get("required", inner)}
        case _:
            return text or "Nothing."


@pytest.mark.slow
@pytest.mark.parametrize("window", [4_096, 32_768])
def test_no_message_is_in_neither_prompt_nor_memory(tmp_path: Path, window: int) -> None:
    with ScriptedServer([_answer]) as server:
        role = {
            "model": "openai/scripted",
            "api_base": server.url,
            "api_key": "x",
            "context_window": window,
        }
        overrides = {
            "models": {"chat": role, "first_token_seconds": 60, "retries": 0},
            "search": {"semantic": False},
        }
        with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
            session = kb.sessions.create("test")
            lost = asyncio.run(_converse(kb, session, server))
            assert lost == []
            longest = max(len(json.dumps(each.body)) // 4 for each in server.prompts)
            assert longest < window
            assert len(session.messages) >= 120


@pytest.mark.slow
@pytest.mark.parametrize(("window", "turns", "most"), [(8_192, 40, 4), (200_000, 60, 0)])
def test_a_conversation_is_condensed_only_when_its_prompt_is_full(
    tmp_path: Path, window: int, turns: int, most: int
) -> None:
    with ScriptedServer([_answer]) as server:
        role = {
            "model": "openai/scripted",
            "api_base": server.url,
            "api_key": "x",
            "context_window": window,
        }
        overrides = {"models": {"chat": role, "retries": 0}, "search": {"semantic": False}}
        with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
            session = kb.sessions.create("test")
            outcomes = [asyncio.run(_say(kb, session, number)) for number in range(turns)]
            longest = max(len(json.dumps(each.body)) / 4 for each in server.prompts)
    assert len([each for each in outcomes if each is not None]) <= most
    assert longest >= window / 2 or not most


async def _say(kb: KnowledgeBase, session: Session, number: int) -> CondensingOutcome | None:
    said = f"fact{number}x: " + "what there is to say about it, in plain words. " * 12
    async for _ in kb.agent.turn(session, said):
        pass
    return await kb.memory.consolidate_if_due(session.id, 60)


async def _converse(kb: KnowledgeBase, session: Session, server: ScriptedServer) -> list[str]:
    """Say sixty things, and name those that a prompt didn't hold and memory didn't know."""
    lost: list[str] = []
    for number in range(60):
        said = f"fact{number}x: item {number} of the list is in drawer {number * 7}. " * 3
        async for _ in kb.agent.turn(session, said):
            pass
        prompt = json.dumps(server.prompts[-1].messages)
        known = set(_marks(prompt)) | set(_marks(_memory(kb)))
        lost += [f"fact{n}x at {number}" for n in range(number + 1) if f"fact{n}x" not in known]
        await kb.memory.consolidate_if_due(session.id, 60)
    assert said_by_user(session.messages)
    return lost


def _memory(kb: KnowledgeBase) -> str:
    return "\n".join(entry.content for entry in kb.archive.entries())
