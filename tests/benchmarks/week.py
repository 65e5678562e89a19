"""Week: what a real model leaves of a week of messages, said, condensed and dreamed about.

    python -m tests.benchmarks week [SET.jsonl] --model openai/NAME --base http://127.0.0.1:8081/v1
        [--weeks bakery] [--most 20] [--folder DIR]
    python -m tests.benchmarks week [SET.jsonl] --chosen [--window 32768]

A set has a message a line, as `keep` takes them; ``weeks.jsonl`` is the one without a path. Each day
is a conversation (four messages, where a set names no days). They are said to the agent, then
condensed by ``kbtui consolidate`` and dreamed about by ``kbtui dream``. Counted are the values (a
group of words of which one must stand there) of all that is worth keeping, in MEMORY.md, entries
and notes of days, and the answers that are JSON. Every line that is left is printed with who wrote
it, to be read by hand: whether it is true no program can tell.

With ``--chosen`` a scripted model chooses every message that is worth keeping, and writes it as
models do, in four ways by turns: as it was said, of "the user", cut short, and as its values alone.
Then counted is what it chose of which a value of its line stands nowhere afterwards. Secrets don't
count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from kbtui.cli.root import run as kbtui
from tests.benchmarks.material import needed
from tests.benchmarks.report import Table, versions
from tests.scripted_server import Reply, Request, ScriptedServer, call

_HERE = Path(__file__).parent
_A_DAY = 4  # messages
_KINDS = {"person": "person", "decision": "decision", "project": "project"}
_THIRD_PERSON = {
    "I'm": "the user is",
    "I": "The user",
    "my": "the user's",
    "My": "The user's",
    "me": "them",
}
_SESSION_NOTE = re.compile(r"memory/\d{4}-\d\d-\d\d-.*")
_WEEKDAYS = {"mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": 5, "sun": 6}
_LINE = re.compile(r"^(?:[-*] |\w)")
_JSON = re.compile(r'\A\s*(?:```\w*\s*)?[{\[]\s*["{]')


def run(argv: list[str]) -> dict[str, Any]:
    """Say the weeks, and show what is left of them."""
    parser = argparse.ArgumentParser(prog="week")
    parser.add_argument("set", nargs="?", type=Path, default=_HERE / "weeks.jsonl")
    parser.add_argument("--model", default="openai/scripted")
    parser.add_argument("--base", default="")
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--window", type=int, default=32_768, help="with --chosen, in tokens")
    parser.add_argument("--weeks", default="")
    parser.add_argument("--most", type=int, default=1_000, help="messages")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    lines = needed(options.set).read_text("utf-8").splitlines()
    messages = [json.loads(line) for line in lines[: options.most]]
    wanted = tuple(options.weeks.split(","))
    weeks = groupby(
        (each for each in messages if each["week"].startswith(wanted)), lambda m: m["week"]
    )
    columns = ["week", "values", "kept", "messages", "whole", "raw JSON", "answers", "minutes"]
    table, figures = Table("Weeks", columns), []
    if not (options.chosen or options.base):
        parser.error("say --base, or --chosen")
    chooser = _Chooser(messages)
    scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # embedding may go on
    with scratch as folder, ScriptedServer([chooser.reply]) as server:
        home = options.folder or Path(folder)
        base = server.url if options.chosen else options.base
        os.environ.update(_environment(home, options.model, base))
        if options.chosen:
            windows = {f"KBTUI_MODELS__{role}__CONTEXT_WINDOW" for role in ("CONSOLIDATE", "DREAM")}
            os.environ.update(dict.fromkeys(windows, str(options.window)))
        for name, of in weeks:
            week = _Week(name, list(of), home / "ws" / name)
            week.say_and_condense()
            table.rows.append(week.row())
            figures.append(week.figures())
    chosen = {"chosen": len(chooser.chosen), "nowhere": _nowhere(figures, chooser.chosen)}
    return {
        "tables": [table],
        "figures": {**chosen, "weeks": figures, "versions": versions()},
    }


def _nowhere(weeks: list[dict[str, Any]], chosen: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Return the lines chosen of which a value stands nowhere, with these values."""
    lost = (
        (chosen[text], [each for each in values if _stands([each], chosen[text])])
        for week in weeks
        for text, values in week["missing"]
        if text in chosen
    )
    return [each for each in lost if each[1]]


class _Chooser:
    """A model that condenses: it chooses all that is worth keeping, and words it as models do."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        kept = [each for each in messages if each["keep"] is True and not each.get("never")]
        self._kept = {each["text"]: each for each in kept}
        self.chosen: dict[str, str] = {}  # the line written for each message

    def reply(self, request: Request) -> Reply:
        """Answer a request for the next words, for what to save, or for edits."""
        if request.tools == ["curate"]:
            return Reply(tool_calls=[call("curate", edits=[])])
        if request.tools != ["save_memory"]:
            return Reply("Okay.")
        prompt = "\n".join(str(each["content"]) for each in request.messages)
        facts = [
            self._fact(each, int(found[1]), place)
            for place, each in enumerate(self._kept.values())
            if (found := re.search(_shown(each["text"]), prompt))
        ]
        saved = {"summary": "They talked.", "notes": [], "facts": facts, "corrections": []}
        return Reply(tool_calls=[call("save_memory", **saved)])

    def _fact(self, message: dict[str, Any], number: int, place: int) -> dict[str, Any]:
        text = " ".join(message["text"].split())
        names = [each[0] for each in message["must"] if each[0][:1].isupper()]
        kind = _KINDS.get(message["kind"], "user") if names else "user"
        wordings = (
            text,
            _of_user(text),
            " ".join(text.split()[: max(3, len(text.split()) * 2 // 3)]),
            ", ".join(each[0].strip("*@") for each in message["must"]),
        )
        line = self.chosen[message["text"]] = wordings[place % len(wordings)]
        return {
            "text": line,
            "type": kind,
            "subject": names[0].rstrip("*") if kind != "user" else "",
            "message": number,
            "importance": 3,
        }


def _shown(text: str) -> str:
    """Return the pattern of a message in a prompt, whose number comes before it."""
    return rf"#(\d+)\] USER: {re.escape(text.splitlines()[0])}"


def _of_user(text: str) -> str:
    """Return a statement in the third person, as most models write it."""
    for said, written in _THIRD_PERSON.items():
        text = re.sub(rf"\b{said}\b", written, text)
    return text


def _environment(home: Path, model: str, base: str) -> dict[str, str]:
    folders = {
        f"XDG_{name}_HOME": str(home / name.lower())
        for name in ("DATA", "CONFIG", "CACHE", "STATE")
    }
    settings = {"KBTUI_MODEL": model, "KBTUI_API_BASE": base, "KBTUI_API_KEY": "none"}
    patience = {"KBTUI_MODELS__FIRST_TOKEN_SECONDS": "600"}
    return {**folders, **settings, **patience, "HF_HUB_OFFLINE": "1"}


class _Week:
    """One week of one person, in a workspace of its own."""

    def __init__(self, name: str, messages: list[dict[str, Any]], root: Path) -> None:
        self.name = name
        self.messages = messages
        self.root = root
        self.answers: list[str] = []
        self.minutes = 0.0

    def say_and_condense(self) -> None:
        """Say all messages, condense them, and let Dream read that."""
        begun = time.monotonic()
        asyncio.run(self._say())
        for command in (["consolidate", "--yes"], ["dream"]):
            print(f"$ kbtui {' '.join(command)}", flush=True)
            kbtui(["-w", str(self.root), *command])
        self.minutes = round((time.monotonic() - begun) / 60, 1)
        print(f"\n# What is left of the week {self.name}\n")
        for line in self._left():
            print(line)

    async def _say(self) -> None:
        from kbtui.agent.events import TurnFailed, TurnFinished
        from kbtui.knowledge_base import KnowledgeBase

        with KnowledgeBase.open(self.root, create=True) as kb:
            for day, said in groupby(self.messages, self._day):
                session = kb.sessions.create(f"day {day}")
                for message in said:
                    async for event in kb.agent.turn(session, message["text"]):
                        if isinstance(event, TurnFinished | TurnFailed):
                            failed = isinstance(event, TurnFailed)
                            self.answers.append(f"({event.error})" if failed else event.text)
                    print(f"{message['text']}\n    {self.answers[-1]!r}", flush=True)
                session.close()

    def _day(self, message: dict[str, Any]) -> int:
        return int(message.get("day") or (message["n"] - 1) // _A_DAY + 1)

    def _left(self) -> Iterator[str]:
        from kbtui.knowledge_base import KnowledgeBase

        with KnowledgeBase.open(self.root) as kb:
            for path, text in self._texts().items():
                origins = kb.history.blame(path, text=text)
                yield f"## {path}"
                for line, origin in zip(text.splitlines(), origins, strict=False):
                    yield f"{origin.actor.value:>13} | {line}"

    def _texts(self) -> dict[str, str]:
        """MEMORY.md, the entries and the notes of days, by their paths."""
        files = [
            *(self.root / "memory").glob("*.md"),
            *(each for each in (self.root / "knowledge").rglob("*.md") if each.name != "INDEX.md"),
        ]
        found = {each.relative_to(self.root).as_posix(): each.read_text("utf-8") for each in files}
        return {
            path: text
            for path, text in sorted(found.items())
            if "HISTORY" not in path and not _SESSION_NOTE.fullmatch(path)
        }

    def _missing(self) -> list[tuple[str, list[str]]]:
        """The messages worth keeping, with what of each stands nowhere."""
        text = "\n".join(self._texts().values())
        later = [value for each in self.messages for value in each.get("gone", ())]
        found = []
        for message in self.messages:
            if message["keep"] is True:
                groups = [each for each in message["must"] if not set(each) & set(later)]
                missing = [each[0] for each in groups if not _stands(each, text)]
                found.append((message["text"], missing))
        return found

    def figures(self) -> dict[str, Any]:
        """All that is counted."""
        missing = self._missing()
        values = sum(len(each["must"]) for each in self.messages if each["keep"] is True)
        lost = sum(len(values) for _, values in missing)
        return {
            "week": self.name,
            "values": values,
            "kept": round(1 - lost / max(1, values), 3),
            "messages": len(missing),
            "whole": sum(not values for _, values in missing),
            "raw JSON": sum(bool(_JSON.match(each)) for each in self.answers),
            "answers": len(self.answers),
            "minutes": self.minutes,
            "missing": [each for each in missing if each[1]],
        }

    def row(self) -> tuple[Any, ...]:
        """The figures of the table."""
        figures = self.figures()
        return tuple(value for name, value in figures.items() if name != "missing")


def _stands(group: list[str], text: str) -> bool:
    """True if one of some words stands in a text; `*` stands for any ending, `@fri` for Fridays."""
    for word in group:
        if word.startswith("@"):
            days = re.findall(r"\d{4}-\d\d-\d\d", text)
            if any(_weekday(day) == _WEEKDAYS[word[1:]] for day in days):
                return True
        ending = r"\w*" if word.endswith("*") else r"(?!\w)"
        if re.search(rf"(?<!\w){re.escape(word.rstrip('*'))}{ending}", text, re.IGNORECASE):
            return True
    return False


def _weekday(day: str) -> int:
    import datetime as dt

    try:
        return dt.date.fromisoformat(day).weekday()
    except ValueError:
        return -1
