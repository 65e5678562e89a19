"""Failing: what a person reads when a model's server fails, and whether their message is kept.

    python -m tests.benchmarks failing [--only 429,cut]

Each way of failing of ``tests/agent/test_turn_failures.py``, each server's words for too long a
prompt and for tools that it doesn't take, an order to call a tool that is ignored, and a window of
2,048 tokens: one turn against a server that does so, then one against a server that answers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kbtui.agent.events import NoticeGiven, TurnFailed
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.litellm_model import ModelOptions
from tests.agent.conftest import QUICK, Told, ask, model_at
from tests.agent.test_turn_failures import HOSTILE, IMPATIENT, TOO_LONG
from tests.benchmarks.report import Table
from tests.memory.memory_room import call_slice
from tests.models.test_limits import NO_TOOLS
from tests.scripted_server import Reply, Request, ScriptedServer

Script = list[Reply | Callable[[Request], Reply]]
_ASKED = "What colour was the glaze?"
_LONG = "The kiln was fired again, and the glaze came out green. " * 60


def run(argv: list[str]) -> dict[str, Any]:
    """Fail in all ways, and show what is said."""
    parser = argparse.ArgumentParser(prog="failing")
    parser.add_argument("--only", default="")
    wanted = tuple(filter(None, parser.parse_args(argv).only.split(",")))
    os.environ["HF_HUB_OFFLINE"] = "1"
    columns = ["server", "kept", "next", "what a person reads"]
    table = Table("A turn", columns)
    later = Table("Condensing, in the background", ["server", "pending", "what a person reads"])
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, script, options) in enumerate(_ways()):
            if not wanted or any(each in name for each in wanted):
                root = Path(folder) / str(number)
                table.rows.append((name, *asyncio.run(_turn(root, script, options))))
                if name in HOSTILE:
                    condensed = asyncio.run(_condensed(root, script, options))
                    later.rows.append((name, *condensed))
    lost = [row[0] for row in table.rows if row[1:3] != ("yes", "yes")]
    figures = {"ways": len(table.rows), "message lost or next turn failed": lost}
    return {"tables": [table, later], "figures": figures}


def _ways() -> Iterator[tuple[str, Script, ModelOptions]]:
    for name, (script, _, _) in HOSTILE.items():
        yield name, [script], IMPATIENT if "stall" in name else QUICK
    for who, told in TOO_LONG.items():
        script: Script = [Reply(told["text"], status=400), Reply("It was green.")]
        yield f"too long, {who}", script, QUICK
    for who, (text, status) in NO_TOOLS.items():
        yield f"no tools, {who}", [Reply(text, status=status), Reply("It was green.")], QUICK
    yield "a window of 2,048", [_narrow], QUICK
    yield "answers JSON of no tool", [Reply('{"answer": {"colour": "green"}}')], QUICK


def _narrow(request: Request) -> Reply:
    tokens = len(str([request.messages, request.body.get("tools")])) // 4
    words = f"request ({tokens} tokens) exceeds the available context size (2048 tokens)"
    return Reply("It was green.") if tokens <= 2048 else Reply(words, status=400)


async def _turn(root: Path, script: Script, options: ModelOptions) -> tuple[str, str, str]:
    """Whether the message is kept, the next turn works, and what is read."""
    with KnowledgeBase.open(root, create=True) as kb:
        session = kb.sessions.create("failing")
        for number in range(6):
            session.append("user", f"{number}. {_LONG}", turn=f"t{number}")
            session.append("assistant", "I see.", turn=f"t{number}")
        with ScriptedServer(script) as server:
            told = await ask(kb, session, _ASKED, model_at(server, options))
        kept = any(each.content == _ASKED for each in kb.sessions.read(session.id))
        with ScriptedServer([Reply("Here I am.")]) as server:
            again = await ask(kb, session, "And now?", model_at(server))
        works = not isinstance(again.last, TurnFailed)
        session.close()
    return "yes" if kept else "NO", "yes" if works else "NO", _read(told)


def _read(told: Told) -> str:
    notices = [each.text for each in told.events if isinstance(each, NoticeGiven)]
    if isinstance(told.last, TurnFailed):
        return " | ".join([*notices, f"{told.failed.error} {told.failed.hint}"])
    return " | ".join([*notices, f"(answers: {told.finished.text})"])


async def _condensed(root: Path, script: Script, options: ModelOptions) -> tuple[int, str]:
    """How many messages wait to be condensed after a try against the same server."""
    with KnowledgeBase.open(root) as kb:
        session = kb.sessions.create("failing later")
        session.append("user", "Lena turns 7 on 3 March", turn="t")
        session.append("assistant", "I see.", turn="t")
        with ScriptedServer(script) as server:
            model = model_at(server, options)
            kb.memory.consolidator.model = lambda: model
            outcome = await kb.memory.consolidator.run(session.id, everything=True)
        pending = kb.memory.ledger.pending(session.id)
        with ScriptedServer([Reply(tool_calls=[call_slice()])]) as server:
            model = model_at(server)
            again = await kb.memory.consolidator.run(session.id, everything=True)
        session.close()
    count = pending[1] - pending[0] + 1 if pending else 0
    assert not count or again.kind == "archived", again
    return count, outcome.notice or outcome.kind
