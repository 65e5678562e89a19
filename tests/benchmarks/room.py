"""Room: what a prompt holds, what leaves it when, how much of it stays the same, and what it costs.

    python -m tests.benchmarks room [--turns 40] [--plain 60]

Plain turns are a question of about 45 tokens and an answer of about 200. The server is scripted:
it answers at once, and calls ``save_memory`` when it is told to. Tokens are kbtui's own estimate.

The bill is that of Anthropic: what is marked and wasn't yet costs 1.25 of a token, what was marked
within five minutes 0.1, all else 1; a mark finds what one within 20 blocks before it had cached,
from 1,024 tokens on. A day is one conversation in four sittings, each of which finds nothing
cached; every other turn reads an entry. The same requests are counted with all their marks, and
with that of the system prompt alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from kbtui.agent.context import assemble
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message, estimate_tokens, prompt_tokens
from kbtui.sessions.store import Session
from tests.benchmarks.report import Table, versions
from tests.scripted_server import Reply, Request, ScriptedServer, call

_WINDOWS = ((4_096, 40), (8_192, 40), (200_000, 60))
_SITTINGS = 4
_PRICE = 3.0  # US dollars for a million tokens
_WRITE, _READ = 1.25, 0.1
_LOOKBACK = 20
_LEAST_CACHED = 1_024
_THINGS = [
    "greenhouse",
    "pump",
    "kiln",
    "glaze",
    "bicycle",
    "invoice",
    "lease",
    "choir",
    "rehearsal",
    "boiler",
    "orchard",
    "ledger",
    "printer",
    "harbour",
    "lantern",
    "violin",
    "compost",
    "antenna",
    "archive",
    "balcony",
]
_VERBS = [
    "measures",
    "replaces",
    "orders",
    "paints",
    "repairs",
    "moves",
    "counts",
    "sells",
    "borrows",
    "cleans",
]


def run(argv: list[str]) -> dict[str, Any]:
    """Measure all of it."""
    parser = argparse.ArgumentParser(prog="room")
    parser.add_argument("--turns", type=int, default=40, help="of the day that is billed")
    parser.add_argument("--plain", type=int, default=60, help="plain turns at most")
    options = parser.parse_args(argv)
    results = [_condensings(options.plain), _parts(), _day(options.turns)]
    return {
        "tables": [table for table, _ in results],
        "figures": {
            **{name: value for _, figures in results for name, value in figures.items()},
            "versions": versions("litellm"),
        },
    }


# What is said ------------------------------------------------------------------------------------


def _sentences(chance: random.Random, number: int) -> str:
    return " ".join(
        f"The {chance.choice(_THINGS)} {chance.choice(_VERBS)} the {chance.choice(_THINGS)} "
        f"beside the {chance.choice(_THINGS)}."
        for _ in range(number)
    )


def _question(number: int) -> str:
    return f"Question {number}: {_sentences(random.Random(number), 4)}"


def _answer(number: int) -> str:
    return _sentences(random.Random(-number), 19)


def _saves(request: Request) -> Reply | None:
    """The call of a model that condenses; None where it isn't asked to."""
    if request.tools != ["save_memory"]:
        return None
    summary = "They spoke about the house and what is to be done there."
    nothing: dict[str, Any] = {"notes": [], "facts": [], "corrections": []}
    return Reply(tool_calls=[call("save_memory", summary=summary, **nothing)])


def _opened(root: Path, url: str, window: int) -> KnowledgeBase:
    role = {
        "model": "openai/scripted",
        "api_base": url,
        "api_key": "x",
        "context_window": window,
    }
    overrides = {"models": {"chat": role, "retries": 0}, "search": {"semantic": False}}
    return KnowledgeBase.open(root, create=True, overrides=overrides)


def _furnish(kb: KnowledgeBase) -> None:
    """A workspace that has been used for a while."""
    chance = random.Random(7)
    for number in range(60):
        kb.library.create("topic", f"Subject {number}", body=_sentences(chance, 6))
    facts = "".join(f"- {_sentences(chance, 1)}\n" for _ in range(25))
    (kb.workspace.root / "memory/MEMORY.md").write_text(facts)
    today = datetime.now(UTC).astimezone().date().isoformat()
    notes = "".join(f"- {_sentences(chance, 1)}\n" for _ in range(15))
    (kb.workspace.root / f"memory/{today}.md").write_text(facts + notes)
    (kb.workspace.root / "USER.md").write_text("# User\n\n- Name: Robin\n")


async def _turn(
    kb: KnowledgeBase, session: Session, text: str, model: LiteLLMModel | None = None
) -> None:
    async for _ in kb.agent.turn(session, text, model=model):
        pass


# Condensing --------------------------------------------------------------------------------------


def _condensings(most: int) -> tuple[Table, dict[str, Any]]:
    table = Table(
        "Plain turns: how often they are condensed, and how much of the window is in use",
        ["window", "turns", "condensed", "in use, mean", "when condensed", "cut by quiet"],
    )
    figures = {}
    for window, usual in _WINDOWS:
        turns = min(usual, most)
        with tempfile.TemporaryDirectory() as folder:
            row = asyncio.run(_converse(Path(folder) / "notes", window, turns))
        table.row(window, turns, *row)
        figures[f"condensed_{window}"] = row[0]
        figures[f"in_use_{window}"] = round(row[1], 3)
        figures[f"cut_by_quiet_{window}"] = row[3]
    return table, figures


async def _converse(root: Path, window: int, turns: int) -> tuple[int, float, float, int]:
    """Condensings, shares of the window in use, and how many messages quiet took out.

    The shares are the mean from the first condensing on, and the least of a prompt after which
    something was condensed; of the last prompt where nothing was.
    """

    def replies(request: Request) -> Reply:
        return _saves(request) or Reply(_answer(len(request.messages)))

    with ScriptedServer([replies]) as server, _opened(root, server.url, window) as kb:
        session = kb.sessions.create("bench")
        used, full = [], []
        for number in range(turns):
            await _turn(kb, session, _question(number))
            used.append(_prompt_tokens(server.prompts[-1]) / window)
            if await kb.memory.consolidate_if_due(session.id, 60) is not None:
                full.append(number)
        before = len(assemble(kb, session, "And?").messages)
        await kb.memory.consolidate(session.id)  # as after a quiet time
        cut = before - len(assemble(kb, session, "And?").messages)
    at = full or [turns - 1]
    return len(full), statistics.mean(used[at[0] :]), min(used[n] for n in at), cut


def _prompt_tokens(request: Request) -> int:
    said = [Message("user", str(each.get("content") or "")) for each in request.messages]
    return prompt_tokens(said) + estimate_tokens(json.dumps(request.body.get("tools", [])))


# Parts -------------------------------------------------------------------------------------------


def _parts() -> tuple[Table, dict[str, Any]]:
    names = ["fresh, full", "fresh, brief", "used, full", "used, brief"]
    table = Table("Tokens of each part of a prompt before anything is said", ["part", *names])
    columns = []
    for furnished in (False, True):
        for window in (200_000, 8_192):
            with (
                tempfile.TemporaryDirectory() as folder,
                _opened(Path(folder) / "notes", "http://127.0.0.1:1/v1", window) as kb,
            ):
                if furnished:
                    _furnish(kb)
                parts = assemble(kb, None, "").parts
            columns.append({part.name: part.tokens for part in parts})
    for name in columns[0]:
        table.row(name, *(column.get(name, 0) for column in columns))
    totals = [sum(column.values()) for column in columns]
    table.row("all", *totals)
    return table, {f"tokens, {name}": total for name, total in zip(names, totals, strict=True)}


# A day -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """A piece of a prompt that may be marked, with its length in tokens."""

    text: str
    tokens: int
    marked: bool
    system: bool


def _day(turns: int) -> tuple[Table, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        requests = asyncio.run(_talk(Path(folder) / "notes", turns))
    prompts = [list(_blocks(request.body)) for request in requests]
    sitting = len(prompts) // _SITTINGS + 1
    sittings = [prompts[at : at + sitting] for at in range(0, len(prompts), sitting)]
    now = sum(_bill(each, only_system=False) for each in sittings)
    before = sum(_bill(each, only_system=True) for each in sittings)
    shares = [_same(one, other) for one, other in pairwise(prompts)]
    table = Table(
        f"A day of {turns} turns, {len(prompts)} requests, as Anthropic bills it",
        ["marks", "tokens paid for", "dollars"],
    )
    for name, paid in (("system prompt alone", before), ("and what was said before", now)):
        table.row(name, round(paid), paid / 1e6 * _PRICE)
    return table, {
        "paid_share": round(now / before, 3),
        "same_prefix_mean": round(statistics.mean(shares), 3),
        "same_prefix_median": round(statistics.median(shares), 3),
        "tokens_sent": sum(block.tokens for prompt in prompts for block in prompt),
    }


async def _talk(root: Path, turns: int) -> list[Request]:
    """The requests of a day's conversation, at Anthropic's own protocol."""

    def answer(request: Request) -> Reply:
        last = request.messages[-1]["content"]
        has_read = any(block["type"] == "tool_result" for block in last)
        number = len(request.messages)
        if has_read or number % 4 == 1:
            return Reply(_answer(number))
        return Reply(tool_calls=[call("read_entry", f"c{number}", entry=f"subject-{number % 60}")])

    with ScriptedServer([answer]) as server:
        with _opened(root, server.url, 200_000) as kb:
            _furnish(kb)
            options = ModelOptions(context_window=200_000, retries=0)
            model = LiteLLMModel("anthropic/claude-sonnet-4-6", server.origin, "x", options)
            session = kb.sessions.create("bench")
            for number in range(turns):
                await _turn(kb, session, _question(number), model)
        return server.prompts


def _blocks(body: dict[str, Any]) -> Iterator[_Block]:
    """A prompt in the order in which it is cached: tools, system prompt, messages."""
    for tool in body.get("tools", []):
        yield _block(tool)
    for block in body["system"]:
        yield _block(block, system=True)
    for message in body["messages"]:
        for block in message["content"]:
            yield _block({"role": message["role"], **block})


def _block(value: dict[str, Any], *, system: bool = False) -> _Block:
    bare = {name: part for name, part in value.items() if name != "cache_control"}
    text = json.dumps(bare, sort_keys=True)
    return _Block(text, estimate_tokens(text), "cache_control" in value, system)


def _bill(prompts: Sequence[Sequence[_Block]], *, only_system: bool) -> float:
    """The tokens that a sitting pays for, as if each cost what one does that isn't cached."""
    cached: set[tuple[str, ...]] = set()
    paid = 0.0
    for prompt in prompts:
        texts = [block.text for block in prompt]
        ends = [
            n
            for n, block in enumerate(prompt, 1)
            if block.marked
            and (block.system or not only_system)
            and sum(each.tokens for each in prompt[:n]) >= _LEAST_CACHED
        ]
        looked = {n for end in ends for n in range(max(1, end - _LOOKBACK), end + 1)}
        read = max((n for n in looked if tuple(texts[:n]) in cached), default=0)
        written = max([read, *ends])
        for place, block in enumerate(prompt):
            share = _READ if place < read else _WRITE if place < written else 1.0
            paid += share * block.tokens
        cached |= {tuple(texts[:end]) for end in ends}
    return paid


def _same(one: Sequence[_Block], other: Sequence[_Block]) -> float:
    """The share of the second prompt that begins as the first does."""
    first, second = ("".join(block.text for block in prompt) for prompt in (one, other))
    pairs = enumerate(zip(first, second, strict=False))
    same = next((place for place, (a, b) in pairs if a != b), len(first))
    return same / len(second)
