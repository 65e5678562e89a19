"""Keep: weeks of messages through offline turns in one process, judged by the measuring data's tool.

    python -m tests.benchmarks keep [SET.jsonl] [--weeks d1,d2] [--show]
    python -m tests.benchmarks keep --talk [--show]

The judge stands beside the measuring data (``tools/keep_eval.py``); a set without a path is the
development set. ``--show`` prints each judgement that failed. ``--talk`` counts the lines that
conversations replace, in which hardly anybody corrects anything; ``--show`` prints them.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbtui.offline.understand import Said, understand

from kbtui.knowledge.format.facts import Fact
from kbtui.offline.lines import Line
from tests.benchmarks.judged_sets import CONVERSATIONS
from tests.benchmarks.material import DATA, needed
from tests.benchmarks.report import versions

_PEOPLE = {"user", "human"}
JUDGE = DATA.parent / "tools" / "keep_eval.py"


def run(argv: list[str]) -> dict[str, Any]:
    """Feed the weeks and judge what is kept and answered."""
    parser = argparse.ArgumentParser(prog="keep")
    parser.add_argument("set", nargs="?", default=str(DATA / "keep" / "dev.jsonl"))
    parser.add_argument("--weeks", default="")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--talk", action="store_true")
    options = parser.parse_args(argv)
    if options.talk:
        return _talk(show=options.show)
    judging = _judging()
    weeks: dict[str, list[dict[str, Any]]] = {}
    for line in needed(Path(options.set)).read_text("utf-8").splitlines():
        message = json.loads(line)
        if not options.weeks or message["week"].startswith(tuple(options.weeks.split(","))):
            weeks.setdefault(message["week"], []).append(message)
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


def _talk(*, show: bool) -> dict[str, Any]:
    """How many lines three conversations (300 turns each) and the dialogues replace."""
    said: list[list[str]] = []
    for number in CONVERSATIONS:
        turns = needed(DATA / "locomo" / f"conv-{number}" / "corpus.jsonl").read_text("utf-8")
        texts = [json.loads(line)["text"] for line in turns.splitlines()[:300]]
        said.append([re.sub(r"\[shared.*?\]", "", text) for text in texts])
    lines = needed(DATA / "dialogues" / "long_sessions.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        turns = json.loads(line)["turns"]
        said.append([each["text"] for each in turns if each["role"].lower() in _PEOPLE][:80])
    replaced = [fact for texts in said for fact in _replaced(texts)]
    for fact in replaced if show else ():
        print(json.dumps([fact.replaces, fact.text], ensure_ascii=False))
    return {"figures": {"conversations": len(said), "lines replaced": len(replaced)}}


def _replaced(texts: list[str]) -> Iterator[Fact]:
    kept: list[Line] = []
    before: list[Said] = []
    for text in texts:
        for fact in understand(text, before[-8:], kept[-60:]).facts:
            if fact.replaces:
                yield fact
                kept = [line for line in kept if line.text != fact.replaces]
            kept.append(Line(f"knowledge/facts/{fact.subject}.md", fact.subject, fact.text))
        before.append(Said("user", text))


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
