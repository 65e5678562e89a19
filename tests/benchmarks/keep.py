"""Keep: weeks of messages through offline turns in one process, judged by the measuring data's tool.

    python -m tests.benchmarks keep [SET.jsonl] [--weeks d1,d2] [--most 5] [--words] [--show]
    python -m tests.benchmarks keep --diary conv-30 [--most 5] [--words] [--show]

The judge stands beside the measuring data (``tools/keep_eval.py``); a set without a path is the
development set. ``--show`` prints each judgement that failed. ``--diary`` takes what the first
speaker of a conversation says as their journal, and asks what it can answer, and what it can't;
``--show`` prints every question with the lines shown. ``--words`` leaves the embedding model out,
``--most`` limits the messages of a week and the questions. The thresholds of `kbtui.offline.answer` were
fitted on the weeks d1, d3, d5, d7 and o1, on conv-26 and conv-41; the others are for judging.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import importlib.util
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tests.benchmarks.judged_sets import CONVERSATIONS
from tests.benchmarks.material import DATA, needed
from tests.benchmarks.report import versions

_LOCOMO = DATA / "locomo"
_ADVERSARIAL = 5
_OTHERS = 40
JUDGE = DATA.parent / "tools" / "keep_eval.py"


def run(argv: list[str]) -> dict[str, Any]:
    """Feed the weeks and judge what is kept and answered."""
    parser = argparse.ArgumentParser(prog="keep")
    parser.add_argument("set", nargs="?", default=str(DATA / "keep" / "dev.jsonl"))
    parser.add_argument("--weeks", default="")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--diary", default="")
    parser.add_argument("--most", type=int, default=1_000)
    parser.add_argument("--words", action="store_true")
    options = parser.parse_args(argv)
    os.environ["KBTUI_SEARCH__SEMANTIC"] = "false" if options.words else "true"
    if options.diary:
        return _diary(options.diary, options.most, show=options.show)
    judging = _judging()
    weeks: dict[str, list[dict[str, Any]]] = {}
    for line in needed(Path(options.set)).read_text("utf-8").splitlines():
        message = json.loads(line)
        if not options.weeks or message["week"].startswith(tuple(options.weeks.split(","))):
            weeks.setdefault(message["week"], []).append(message)
    weeks = {name: messages[: options.most] for name, messages in weeks.items()}
    judge = judging.Judge()
    seen, expanded = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(KBTUI_MODEL="offline", HOME=folder, HF_HUB_OFFLINE="1")
        for name, messages in weeks.items():
            seen[name] = asyncio.run(_feed(Path(folder) / "ws" / name, messages, judging))
            expanded[name] = [judging.expanded(each, seen[name]["date"]) for each in messages]
            judge.week(expanded[name], seen[name])
    figures = judging.summary(judge.log, [m for ms in expanded.values() for m in ms], seen)
    judging.report(figures, f"{Path(options.set).stem} (offline, in one process)")
    if options.show:
        for each in judge.log:
            if each["good"] is False:
                print(json.dumps(each, ensure_ascii=False))
    return {"figures": {**figures, "versions": versions()}}


def _diary(conversation: str, most: int, *, show: bool) -> dict[str, Any]:
    """One speaker's turns of a conversation as a journal, and questions about them."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(KBTUI_MODEL="offline", HOME=folder, HF_HUB_OFFLINE="1")
        asked = asyncio.run(_asked_of_diary(Path(folder) / "ws", conversation, most))
    known = [each for each in asked if each["answers"]]
    others = [each for each in asked if not each["answers"]]
    if show:
        for each in asked:
            print(json.dumps(each, ensure_ascii=False))

    def share(of: list[dict[str, Any]], test: Callable[[dict[str, Any]], bool]) -> float:
        return round(sum(map(test, of)) / max(1, len(of)), 3)

    return {
        "figures": {
            "conversation": conversation,
            "questions": len(known),
            "answer in the first line": share(known, lambda each: each["right"][:1] == [True]),
            "answer in the lines shown": share(known, lambda each: any(each["right"])),
            "answered surely": share(known, lambda each: each["tier"] == "sure"),
            "answered with nothing": share(known, lambda each: each["tier"] == "none"),
            "answer in what is recalled": share(known, _is_recalled),
            "of somebody else": len(others),
            "those answered surely": share(others, lambda each: each["tier"] == "sure"),
            "those with something recalled": share(others, lambda each: bool(each["recalled"])),
            "versions": versions(),
        }
    }


def _is_recalled(asked: dict[str, Any]) -> bool:
    """True if a line that answers stands with a question that a model is asked."""
    return any(line in answer for line in asked["recalled"] for answer in asked["answers"])


async def _asked_of_diary(root: Path, conversation: str, most: int) -> list[dict[str, Any]]:
    from kbtui.agent.agent import Agent
    from kbtui.agent.quoting import Quoting
    from kbtui.agent.tools.base import new_turn_id
    from kbtui.knowledge_base import KnowledgeBase

    turns = _lines(conversation, "corpus.jsonl")
    speaker = turns[0]["speaker"]
    said = {
        each["id"]: " ".join(each["text"].split()) for each in turns if each["speaker"] == speaker
    }
    with KnowledgeBase.open(root, create=True) as kb:
        _write_days(root, [each for each in turns if each["speaker"] == speaker], speaker)
        kb.search.search("anything", wait=True)
        session = kb.sessions.create("diary")
        message = session.append("user", "a question", turn=new_turn_id())
        agent: Agent = kb.agent
        context = agent.tool_context(session, message, "", message.turn or "", kb.models.chat())
        asked = []
        own, others = _own(conversation, said), _others(conversation, speaker)
        for question, answers in [*islice(own, most), *islice(others, most)]:
            found = Quoting(context).answer(question)
            right = [any(line.text in said[each] for each in answers) for line in found.lines]
            texts = [line.text for line in found.lines]
            asked.append(
                {"q": question, "tier": found.tier, "right": right, "lines": texts}
                | {"answers": [said[each] for each in answers]}
                | {"recalled": [line.text for line in Quoting(context).about(question)]}
            )
        session.close()
    return asked


def _write_days(root: Path, turns: list[dict[str, Any]], speaker: str) -> None:
    days: dict[str, list[str]] = {}
    for turn in turns:
        begun = dt.datetime.strptime(turn["date"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007
        lines = days.setdefault(begun.date().isoformat(), [])
        when = begun + dt.timedelta(minutes=len(lines))
        lines.append(f"- {when:%H:%M} {' '.join(turn['text'].split())}")
    (root / "USER.md").write_text(f"# User\n\n- Name: {speaker}\n")
    for day, lines in days.items():
        (root / "memory" / f"{day}.md").write_text("\n".join([f"# {day}", "", *lines, ""]))


def _own(conversation: str, said: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Questions that the diary answers, with the turns that do."""
    of: dict[str, list[str]] = {}
    for line in needed(_LOCOMO / conversation / "qrels.tsv").read_text().splitlines()[1:]:
        query, turn, _ = line.split("\t")
        of.setdefault(query, []).append(turn)
    for each in _lines(conversation, "queries.jsonl"):
        answers = of.get(each["id"], [])
        if answers and all(turn in said for turn in answers) and each["category"] != _ADVERSARIAL:
            yield each["text"], answers


def _others(conversation: str, speaker: str) -> Iterator[tuple[str, list[str]]]:
    """Questions about two other people, asked of this one."""
    other = next(f"conv-{n}" for n in CONVERSATIONS if f"conv-{n}" != conversation)
    people = {turn["speaker"] for turn in _lines(other, "corpus.jsonl")}
    found = (each["text"] for each in _lines(other, "queries.jsonl"))
    for text in islice((t for t in found if any(name in t for name in people)), _OTHERS):
        yield re.sub("|".join(people), speaker, text), []


def _lines(conversation: str, file: str) -> list[dict[str, Any]]:
    text = needed(_LOCOMO / conversation / file).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _judging() -> Any:
    spec = importlib.util.spec_from_file_location("keep_eval", needed(JUDGE))
    if spec is None or spec.loader is None:
        raise ImportError(str(JUDGE))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def _feed(root: Path, messages: list[dict[str, Any]], judging: Any) -> dict[str, Any]:
    """What a week leaves behind, as the judge takes it."""
    from kbtui.agent.events import TurnFailed, TurnFinished
    from kbtui.knowledge_base import KnowledgeBase

    steps = []
    with KnowledgeBase.open(root, create=True) as kb:
        kb.search.search("anything", wait=True)  # by meaning from the first message on
        session = kb.sessions.create("week")
        after = judging.snapshot(root)
        for message in messages:
            step: dict[str, Any] = {"n": message["n"], "answer": "", "error": "no answer"}
            begun = time.monotonic()
            async for event in kb.agent.turn(session, message["text"]):
                if isinstance(event, TurnFinished):
                    step |= {"answer": event.text, "error": ""}
                elif isinstance(event, TurnFailed):
                    step["error"] = event.error
            took = round(time.monotonic() - begun, 2)
            steps.append({**step, "files": judging.snapshot(root), "seconds": took})
        await kb.memory.consolidator.run(session.id, everything=True)
        await kb.memory.dream.run()
        session.close()
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8", "replace")
        for top in ("knowledge", "memory", "sessions")
        for path in sorted((root / top).rglob("*"))
        if path.is_file()
    }
    secrets = {value for message in messages for value in message.get("never", ())}
    return {
        "week": messages[0]["week"],
        "date": dt.date.today().isoformat(),  # noqa: DTZ011 - the judge's own day
        "steps": steps,
        "after": after,
        "end": judging.snapshot(root),
        "secrets": {v: [path for path, text in texts.items() if v in text] for v in secrets},
    }
