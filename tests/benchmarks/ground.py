"""Ground: what a model makes up and isn't written, what is said in other words and is.

    python -m tests.benchmarks ground [--observations FILE] [--conversations 26,30] [--most 1]

Planted inventions (``inventions.json``) go through the real Consolidator, or through Dream, with a
model that is told what to answer; one counts as written if it stands in MEMORY.md, an entry or the
day's notes. Ordinary messages and requests (``ordinary.txt``, ``requests.txt``) go through it beside
a model that makes a fact of each; what counts is lines in MEMORY.md and entries.

True paraphrases are LoCoMo's observations, in the file ``locomo10.json`` of its authors (or of its
form, with ``sample_id`` and ``observation`` alone) in the folder ``locomo`` of the data, which
doesn't come with them; each against the session that it was made from, and against every other
session of the same two people. ``--most`` is how many of a kind are planted, and said. The share of words in
`kbtui.memory.edits.grounding` and the beginners in the language's file were fitted on conv-26 and
conv-30.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbtui.history.change import Actor
from kbtui.memory.edits.editor import Ground
from kbtui.memory.edits.memory_file import is_statement
from tests.benchmarks.material import DATA, needed
from tests.benchmarks.report import Table, versions
from tests.memory.dream_room import add, archive, dream_room, dreams, edit
from tests.memory.memory_room import Room, call_slice, open_room, scripted
from tests.scripted_server import Reply, Request, ScriptedServer

_HERE = Path(__file__).parent
_MEMORY = "memory/MEMORY.md"
_SAID = re.compile(r"#(\d+)\] USER: (.*)")
_A_SESSION = 10  # messages


def run(argv: list[str]) -> dict[str, Any]:
    """Plant inventions, say ordinary things, compare paraphrases."""
    parser = argparse.ArgumentParser(prog="ground")
    parser.add_argument("--observations", type=Path, default=DATA / "locomo" / "locomo10.json")
    parser.add_argument("--conversations", default="26,30")
    parser.add_argument("--most", type=int, default=1_000)
    options = parser.parse_args(argv)
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        planted = asyncio.run(_planted(Path(folder), options.most))
        lasting = {
            f"{name}, {'with' if graded else 'without'} importance": asyncio.run(
                _lasting(
                    Path(folder) / f"{name}-{graded}", _lines(name, options.most), graded=graded
                )
            )
            for name in ("ordinary", "requests")
            for graded in (True, False)
        }
    written = [case["line"] for case in planted if case["written"]]
    figures: dict[str, Any] = {
        "inventions": len(planted),
        "written": written,
        "not in the audit": [case["line"] for case in planted if not case["accounted"]],
        "lines outside the notes": lasting,
        "versions": versions(),
    }
    table = Table("Planted inventions", ["kind", "planted", "written"])
    kinds = dict.fromkeys(case["kind"] for case in planted)
    for kind in kinds:
        of = [case for case in planted if case["kind"] == kind]
        table.rows.append((kind, len(of), sum(case["written"] for case in of)))
    tables = [table]
    if not options.observations.exists():
        figures["paraphrases"] = f"There is no {options.observations}: they weren't measured."
    else:
        compared = _paraphrases(options.observations, options.conversations.split(","))
        figures["paraphrases"] = compared
        rows = [(name, *(of[key] for key in _COLUMNS)) for name, of in compared.items()]
        tables.append(Table("Paraphrases", ["conversation", *_COLUMNS], rows))
    return {"tables": tables, "figures": figures}


# Inventions ----------------------------------------------------------------------------------


async def _planted(root: Path, most: int) -> list[dict[str, Any]]:
    cases = json.loads((_HERE / "inventions.json").read_text("utf-8"))
    kinds = dict.fromkeys(case["kind"] for case in cases)
    chosen = [each for kind in kinds for each in [c for c in cases if c["kind"] == kind][:most]]
    done = []
    for number, case in enumerate(chosen):
        with ScriptedServer() as server:
            plant = _in_dream if case["kind"] == "dream" else _in_conversation
            room = await plant(root / f"case-{number}", server, case)
            texts = "\n".join([*_lasting_texts(room), *_notes(room)])
            kept = case.get("keeps", "") in texts
            accounted = room.pipeline.audit().not_grounded > 0
            written = case["never"] in texts or not kept
            done.append({**case, "written": written, "accounted": accounted})
            room.close()
    return done


async def _in_conversation(root: Path, server: ScriptedServer, case: dict[str, Any]) -> Room:
    room = open_room(root, **scripted(server))
    old = _known(room, case)
    talk = room.talk([(minute, role, text) for minute, (role, text) in enumerate(case["said"])])
    if old:
        answer = call_slice(corrections=[{"old": old, "new": case["line"], "message": 1}])
    else:
        fact = {"text": case["line"], "type": "user", "subject": "", "message": 1, "importance": 3}
        answer = call_slice(facts=[fact], notes=[case["line"]])
    server.enqueue(Reply(tool_calls=[answer]))
    await room.pipeline.consolidator.run(talk.id, everything=True)
    return room


async def _in_dream(root: Path, server: ScriptedServer, case: dict[str, Any]) -> Room:
    room = dream_room(root, server)
    old = _known(room, case)
    talk = room.talk([(minute, role, text) for minute, (role, text) in enumerate(case["said"])])
    archive(room, case["summary"], session=talk.id, messages=(1, len(case["said"])))
    wish = edit("MEMORY.md", old, case["line"]) if old else add("MEMORY.md", case["line"])
    await dreams(room, server, wish)
    return room


def _known(room: Room, case: dict[str, Any]) -> str:
    """Let a machine have written what a case corrects."""
    old = str(case.get("old", ""))
    if old:
        with room.history.change(Actor.CONSOLIDATOR, "earlier") as change:
            change.write(_MEMORY, f"# Facts\n\n- {old}\n")
    return old


def _lasting_texts(room: Room) -> Iterator[str]:
    room.library.refresh()
    for path in [_MEMORY, *(info.path for info in room.library.infos())]:
        if room.exists(path):
            yield room.read(path)


def _notes(room: Room) -> Iterator[str]:
    for file in room.workspace.memory.glob("????-??-??.md"):
        yield file.read_text("utf-8")


# Ordinary messages ---------------------------------------------------------------------------


def _lines(name: str, most: int) -> list[str]:
    return (_HERE / f"{name}.txt").read_text("utf-8").splitlines()[:most]


async def _lasting(root: Path, lines: list[str], *, graded: bool) -> int:
    """The lines that messages leave in MEMORY.md and entries beside a model that keeps them all."""

    def answer(request: Request) -> Reply:
        said = _SAID.findall(str(request.messages[-1]["content"]))
        facts = [_fact(int(number), text, graded=graded) for number, text in said]
        return Reply(tool_calls=[call_slice(facts=facts)])

    with ScriptedServer([answer]) as server:
        room = open_room(root, **scripted(server))
        for start in range(0, len(lines), _A_SESSION):
            said = lines[start : start + _A_SESSION]
            talk = room.talk([(start + minute, "user", text) for minute, text in enumerate(said)])
            await room.pipeline.consolidator.run(talk.id, everything=True)
        kept = [
            line
            for text in _lasting_texts(room)
            for line in text.rpartition("---\n")[2].splitlines()
            if is_statement(line)
        ]
        room.close()
    return len(kept)


def _fact(number: int, text: str, *, graded: bool) -> dict[str, Any]:
    words = text.rstrip(".").split()
    kind = "user" if text.startswith("I") else "topic"
    fact = {"text": text, "type": kind, "subject": words[-1], "message": number}
    return fact | ({"importance": 3 if "prefer" in text else 1} if graded else {})


# Paraphrases ---------------------------------------------------------------------------------


_COLUMNS = ("observations", "pass", "of another session", "stopped")


def _paraphrases(file: Path, numbers: list[str]) -> dict[str, Any]:
    samples = {each["sample_id"]: each for each in json.loads(file.read_text("utf-8"))}
    names = [f"conv-{number}" for number in numbers]
    return {name: _compared(name, samples[name]["observation"]) for name in names}


def _compared(conversation: str, observations: dict[str, Any]) -> dict[str, Any]:
    turns: dict[int, list[dict[str, Any]]] = {}
    path = needed(DATA / "locomo" / conversation / "corpus.jsonl")
    for line in path.read_text("utf-8").splitlines():
        turn = json.loads(line)
        turns.setdefault(turn["session"], []).append(turn)
    people = sorted({turn["speaker"] for each in turns.values() for turn in each})
    known = Ground.of([(None, " ".join(people))])
    grounds = {
        session: Ground.of([(_day(turn["date"]), turn["text"]) for turn in each], may_ask=True)
        for session, each in turns.items()
    }
    lines = [
        (int(session.split("_")[1]), text)
        for session, speakers in observations.items()
        for told in speakers.values()
        for text, _ in told
    ]
    passed = [not grounds[own].lacks(text, known) for own, text in lines]
    others = [
        bool(ground.lacks(text, known))
        for own, text in lines
        for session, ground in grounds.items()
        if session != own
    ]
    shares = (len(lines), sum(passed) / len(passed), len(others), sum(others) / len(others))
    return dict(zip(_COLUMNS, (round(each, 3) for each in shares), strict=True))


def _day(said: str) -> dt.date:
    return dt.datetime.strptime(said, "%I:%M %p on %d %B, %Y").date()  # noqa: DTZ007
