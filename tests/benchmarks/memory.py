"""Memory: long dialogues through the whole pipeline with the offline model, and what survives.

For each dialogue of the measuring data: its turns become a session, the session is condensed, and
then every message is accounted for twice, by ``audit`` and by a recount that knows only the files.
For LoCoMo's dialogues the questions with an answer in the text (categories 1 and 4) are searched
in knowledge and memory alone, beside the raw turns at the same number of characters.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import DATA, make_vault, needed
from tests.benchmarks.report import Table, versions

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import Hit

ANSWERED = {1, 4}
TOP = 10
SURVIVAL_BAR, SIZE_BAR, DROPPED_BAR, FLAT_BAR = 0.8, 0.4, 0.05, 0.05
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be been but by did do does for from had has have he her his i in is it"
        " its my no not of on or our she so some that the their them they this to was we were"
        " which who will with you your"
    )
)


@dataclass
class Made:
    """What became of one dialogue."""

    name: str
    messages: int = 0
    characters: int = 0
    pending: int = 0
    archived: int = 0
    dropped: int = 0
    unaccounted: int = 0
    recount_differs: bool = False
    entries: int = 0
    memory_characters: int = 0
    seconds: float = 0.0
    found: int = 0
    found_raw: int = 0
    questions: int = 0


def run(argv: list[str]) -> dict[str, Any]:
    """Feed, recount, search; see the module."""
    parser = argparse.ArgumentParser(prog="memory")
    parser.add_argument("--dialogue", action="append", default=[], help="only this one")
    parser.add_argument("--most", type=int, default=100_000, help="turns of a dialogue")
    parser.add_argument("--prompts", default="100,1000,10000", help="messages and entries; or none")
    options = parser.parse_args(argv)
    made = []
    with needed(DATA / "dialogues/long_sessions.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            dialogue = json.loads(line)
            if not options.dialogue or dialogue["id"] in options.dialogue:
                dialogue["turns"] = dialogue["turns"][: options.most]
                made.append(_measure(dialogue))
    figures = _totals(made)
    tables = [_survival_table(made), _totals_table(figures)]
    if sizes := [int(count) for count in options.prompts.split(",") if count]:
        prompts = {str(count): _prompt_tokens(count) for count in sizes}
        figures["prompt_tokens"] = prompts
        tables.append(_prompt_table(prompts))
    return {"tables": tables, "figures": {"versions": versions("whoosh-reloaded"), **figures}}


def _open(folder: Path) -> KnowledgeBase:
    from kbtui.knowledge_base import KnowledgeBase

    overrides = {"models": {"chat": {"model": "offline"}}, "search": {"semantic": False}}
    return KnowledgeBase.open(folder, create=True, overrides=overrides)


# Dialogues -----------------------------------------------------------------------------------


def _measure(dialogue: dict[str, Any]) -> Made:
    made = Made(dialogue["id"], messages=len(dialogue["turns"]))
    with tempfile.TemporaryDirectory() as folder, _open(Path(folder) / "notes") as kb:
        session = kb.sessions.create("bench", title=dialogue["id"])
        for turn in dialogue["turns"]:
            text = f"{turn.get('speaker', turn['role'])} ({turn.get('ts', '')}): {turn['text']}"
            session.append(turn["role"], text)
            made.characters += len(turn["text"])
        session.close()
        begun = time.perf_counter()
        while True:
            outcome = asyncio.run(kb.memory.consolidator.run(session.id, everything=True))
            if outcome.kind == "nothing" or kb.memory.ledger.pending(session.id) is None:
                break
        made.seconds = time.perf_counter() - begun
        _account(kb, made)
        _ask(kb, DATA / "locomo" / made.name, made)
    return made


def _account(kb: KnowledgeBase, made: Made) -> None:
    audit = kb.memory.audit()
    made.pending, made.archived = audit.pending, audit.archived
    made.dropped, made.unaccounted = audit.dropped, audit.unaccounted
    made.recount_differs = _recount(kb.workspace.root) != (
        audit.messages,
        audit.archived + audit.dropped,
        audit.pending + audit.unaccounted,
    )
    made.entries = len(kb.library.infos())
    made.memory_characters = sum(
        len(file.read_text("utf-8"))
        for folder in (kb.workspace.knowledge, kb.workspace.memory)
        for file in folder.rglob("*.md")
        if file.name not in {"INDEX.md", "HISTORY.md"}
    ) + sum(
        len(json.loads(line)["content"])
        for line in (kb.workspace.memory / "history.jsonl").read_text("utf-8").splitlines()
    )


def _recount(root: Path) -> tuple[int, int, int]:
    """Messages, covered and uncovered ones, read from the files by nothing of the program's."""
    covered: dict[str, set[int]] = {}
    for line in (root / "memory/history.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        first, last = record["messages"]
        covered.setdefault(record["session"], set()).update(range(first, last + 1))
    messages = inside = 0
    for log in (root / "sessions").glob("*.jsonl"):
        records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        numbers = {record["id"] for record in records if isinstance(record.get("id"), int)}
        messages += len(numbers)
        inside += len(numbers & covered.get(log.stem, set()))
    return messages, inside, messages - inside


def _ask(kb: KnowledgeBase, folder: Path, made: Made) -> None:
    """Count the questions whose answer's words all stand in the hits, and in the raw turns."""
    if not folder.is_dir():
        return
    kb.search.sync()
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        query = json.loads(line)
        wanted = _content_words(str(query["answer"]))
        if query["category"] not in ANSWERED or not wanted:
            continue
        made.questions += 1
        hits = kb.search.search(query["text"], "knowledge,memory", TOP, semantic=False).hits
        text = "\n".join(_text_of(kb, hit) for hit in hits)
        made.found += wanted <= _content_words(text)
        raw = kb.search.search(query["text"], "sessions", 100, semantic=False).hits
        made.found_raw += wanted <= _content_words(_up_to(kb, raw, len(text)))


def _up_to(kb: KnowledgeBase, hits: tuple[Hit, ...], characters: int) -> str:
    text = ""
    for hit in hits:
        if len(text) >= characters:
            break
        text += _text_of(kb, hit) + "\n"
    return text[:characters]


def _text_of(kb: KnowledgeBase, hit: Hit) -> str:
    first, last = hit.lines
    lines = (kb.workspace.root / hit.path).read_text("utf-8").splitlines()[first - 1 : last]
    if hit.path.endswith(".jsonl"):
        return "\n".join(str(json.loads(line).get("content", "")) for line in lines)
    return "\n".join(lines)


def _content_words(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(word.removesuffix("s") for word in words if word not in _COMMON)


# Prompts -------------------------------------------------------------------------------------


def _prompt_tokens(count: int) -> int:
    """Tokens of one turn's prompt with so many messages and entries."""
    from kbtui.agent.context import assemble

    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        make_vault(notes / "knowledge", count)
        with _open(notes) as kb:
            session = kb.sessions.create("bench")
            log = kb.workspace.sessions / f"{session.id}.jsonl"
            session.append("user", "How are the plants on the balcony doing this week?")
            session.close()
            _lengthen(log, count)
            opened = kb.sessions.open(session.id)
            prompt = assemble(kb, opened, "What was decided about the database?")
            opened.close()
            return sum(part.tokens for part in prompt.parts)


def _lengthen(log: Path, count: int) -> None:
    """Repeat the one message of a log until there are `count`, with ids of their own."""
    record = json.loads(log.read_text("utf-8").splitlines()[-1])
    with log.open("a", encoding="utf-8") as file:
        for number in range(2, count + 1):
            role = "user" if number % 2 else "assistant"
            file.write(json.dumps({**record, "id": number, "role": role}) + "\n")


# Reporting -----------------------------------------------------------------------------------


def _totals(made: list[Made]) -> dict[str, Any]:
    asked = [one for one in made if one.questions]
    messages = sum(one.messages for one in made)
    found, raw = sum(one.found for one in asked), sum(one.found_raw for one in asked)
    return {
        "dialogues": len(made),
        "messages": messages,
        "archived": sum(one.archived for one in made),
        "pending": sum(one.pending for one in made),
        "dropped_share": sum(one.dropped for one in made) / max(1, messages),
        "unaccounted": sum(one.unaccounted for one in made),
        "recounts_that_differ": sum(one.recount_differs for one in made),
        "entries": sum(one.entries for one in made),
        "seconds_per_1000_messages": 1000 * sum(one.seconds for one in made) / max(1, messages),
        "size_share": sum(one.memory_characters for one in made)
        / max(1, sum(one.characters for one in made)),
        "questions": sum(one.questions for one in asked),
        "survival": found / max(1, raw),
    }


def _survival_table(made: list[Made]) -> Table:
    columns = ["dialogue", "messages", "archived", "dropped", "unaccounted", "entries"]
    columns += ["size share", "s", "questions", "found", "found raw"]
    table = Table("memory, by dialogue", columns)
    for one in made:
        share = one.memory_characters / max(1, one.characters)
        counts = (one.messages, one.archived, one.dropped, one.unaccounted, one.entries)
        asked = (one.questions, one.found, one.found_raw)
        table.row(one.name, *counts, share, one.seconds, *asked)
    return table


def _totals_table(figures: dict[str, Any]) -> Table:
    table = Table("memory, in all", ["figure", "value", "bar"])
    bars = {"survival": f">= {SURVIVAL_BAR}", "size_share": f"<= {SIZE_BAR}"}
    bars |= {"dropped_share": f"<= {DROPPED_BAR}", "unaccounted": "0", "recounts_that_differ": "0"}
    for name, value in figures.items():
        table.row(name, value, bars.get(name))
    return table


def _prompt_table(prompts: dict[str, int]) -> Table:
    table = Table("prompt tokens of one turn", ["messages and entries", "tokens", "spread", "bar"])
    smallest = min(prompts.values())
    for count, tokens in prompts.items():
        table.row(count, tokens, tokens / smallest - 1, f"<= {FLAT_BAR}")
    return table
