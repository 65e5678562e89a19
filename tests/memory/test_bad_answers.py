"""Models that answer badly, over real HTTP: nothing is lost, nothing is condensed twice."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models.litellm_model import warm_up
from tests.memory.memory_room import SEED, Room, call_save, call_slice, entry, open_room, scripted
from tests.scripted_server import Reply, Request, ScriptedServer, call, raw_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONG = bool(os.environ.get("KBTUI_LONG"))
GOOD = call_save("They spoke about colors.", ["Favorite color: blue"])
DOCKER = "---\ntype: topic\n---\n# Docker\n\nRuns on two hosts.\n"


@dataclass(frozen=True)
class Case:
    """A model that gives `answer` to whatever it is asked; `ends` is what comes of it."""

    name: str
    answer: Reply | Callable[[Request], Reply]
    ends: str = "raw"

    def __str__(self) -> str:
        return self.name


def _echo(request: Request) -> Reply:
    prompt = str(request.messages[-1]["content"])
    return Reply(tool_calls=[call_save(prompt)])


def _echo_of_the_instructions(request: Request) -> Reply:
    return Reply(tool_calls=[call_save(str(request.messages[0]["content"]))])


def _echo_as_text(request: Request) -> Reply:
    return Reply(str(request.messages[-1]["content"]))


def _arguments(**changes: Any) -> dict[str, Any]:
    return {"name": "save_memory", "arguments": {**GOOD["arguments"], **changes}}


CASES = [
    Case("empty", Reply("")),
    Case("blanks", Reply("  \n ")),
    Case("prose", Reply("Sure! The user's favorite color is blue, I'd say.")),
    Case("a summary that is a number", Reply(tool_calls=[_arguments(summary=5)])),
    Case("no summary", Reply(tool_calls=[raw_call("save_memory", '{"facts": []}')])),
    Case("an empty summary", Reply(tool_calls=[_arguments(summary=" ")])),
    Case("a placeholder", Reply(tool_calls=[_arguments(summary="(empty)")])),
    Case("facts that are numbers", Reply(tool_calls=[_arguments(facts=[1])])),
    Case("corrections that are a text", Reply(tool_calls=[_arguments(corrections="none yet")])),
    Case("a list for an object", Reply(tool_calls=[raw_call("save_memory", "[1, 2]")])),
    Case("half a JSON", Reply(tool_calls=[raw_call("save_memory", '{"summary": "They')])),
    Case("a JSON bomb", Reply(tool_calls=[raw_call("save_memory", '{"a":' * 5_000)]), "postponed"),
    Case("an echo of the prompt", _echo),
    Case("an echo of the instructions", _echo_of_the_instructions),
    Case("an echo as text", _echo_as_text),
    Case("a refusal", Reply("I'm sorry, but I can't help with that.")),
    Case(
        "a refusal in the tool call",
        Reply(tool_calls=[call_save("I'm sorry, but I can't help with that.")]),
    ),
    Case("cut off by length", Reply(tool_calls=[GOOD], finish="length")),
    Case("stopped by a filter", Reply(tool_calls=[GOOD], finish="content_filter")),
    Case("an error text as content", Reply("Error: 502 Bad Gateway")),
    Case(
        "an error text in the tool call",
        Reply(tool_calls=[call_save("Error: rate limit exceeded")]),
    ),
    Case("no JSON", Reply(body=b"<html><body>502 Bad Gateway</body></html>"), "postponed"),
    Case("JSON that is no answer", Reply(body=b'{"detail": "busy"}'), "postponed"),
    Case(
        "an answer without choices",
        Reply(body=b'{"id": "x", "object": "chat.completion", "choices": []}'),
    ),
    Case("the wrong tool", Reply(tool_calls=[call("delete_everything", path="/")])),
    Case(
        "a hundred calls of wrong tools",
        Reply(tool_calls=[call(f"tool_{n}", path="x") for n in range(100)]),
    ),
    Case("no summary", Reply(tool_calls=[call_slice("")])),
    Case("facts that are numbers", Reply(tool_calls=[call_slice(facts=[1, 2])])),
    Case(
        "a thousand facts",
        Reply(tool_calls=[call_slice(facts=[{"text": f"fact {n}"} for n in range(999)])]),
    ),
    Case(
        "a refusal as a fact",
        Reply(tool_calls=[call_slice(facts=[{"text": "I cannot help with that."}])]),
    ),
    Case("400", Reply("tools are not supported", status=400)),
    Case("401", Reply("bad key", status=401), "postponed"),
    Case("404", Reply("no such model", status=404), "postponed"),
    Case("429", Reply("slow down", status=429, headers={"Retry-After": "0"}), "postponed"),
    Case("500", Reply("boom", status=500), "postponed"),
    Case("503", Reply("down", status=503), "postponed"),
    Case("a stall", Reply(tool_calls=[GOOD], stall_at=40), "postponed"),
]
CUTS = [
    # HTTP itself tells of a cut in the middle of a chunk: that is the network, and tried later.
    Case(
        f"{cut} at {at}",
        Reply(tool_calls=[GOOD], cut_at=at, cut=cut),  # type: ignore[arg-type]
        "postponed" if cut == "chunked" else "raw",
    )
    for cut in ("chunked", "clean", "eof")
    for at in range(0, 520, 20 if LONG else 170)
]


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    """Load litellm before anything is timed."""
    warm_up()


def _room(tmp_path: Path, server: ScriptedServer, patience: float = 10) -> Room:
    overrides = scripted(server)
    overrides["models"] |= {"first_token_seconds": patience, "idle_seconds": patience}
    room = open_room(tmp_path / "notes", **overrides)
    room.write("memory/MEMORY.md", "# Facts\n\n- Lives in Berlin\n")
    room.write("knowledge/topics/docker.md", DOCKER)
    return room


def _ranges(room: Room) -> list[list[int]]:
    if not room.exists("memory/history.jsonl"):
        return []
    lines = room.read("memory/history.jsonl").splitlines()
    return [json.loads(line)["messages"] for line in lines]


def _archived_once(room: Room) -> list[int]:
    """The archived messages; no message may be in two ranges."""
    numbers = [n for first, last in _ranges(room) for n in range(first, last + 1)]
    assert len(numbers) == len(set(numbers)), "condensed twice"
    return numbers


async def _holds(case: Case, room: Room, server: ScriptedServer) -> None:
    """Run a bad answer, then a good one, and look after each that all is as it should be."""
    session = room.talk()
    log = room.root / "sessions" / f"{session.id}.jsonl"
    said = log.read_bytes()
    server.replies = [case.answer]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)

    assert outcome.kind == case.ends, outcome
    assert outcome.notice, "a person is told"
    assert "Traceback" not in outcome.notice
    assert log.read_bytes() == said
    assert room.read("memory/MEMORY.md") == "# Facts\n\n- Lives in Berlin\n"
    assert room.read("knowledge/topics/docker.md") == DOCKER
    assert [info.slug for info in room.library.infos()] == ["docker"]
    archived = _archived_once(room)
    assert archived == ([1, 2, 3, 4, 5, 6, 7, 8] if case.ends == "raw" else [])
    if case.ends == "raw":
        kept = room.read("memory/history.jsonl")
        assert '"raw": true' in kept
        assert "[RAW]" in room.read("memory/HISTORY.md")
        assert all(json.dumps(text)[1:-1] in kept for _, _, text in SEED)
    audit = room.pipeline.ledger.account()
    assert audit.unaccounted == 0
    assert audit.pending + audit.archived + audit.dropped == audit.messages == 8

    server.replies = [Reply(tool_calls=[GOOD])]
    await room.pipeline.consolidator.run(session.id, everything=True)
    assert _archived_once(room) == [1, 2, 3, 4, 5, 6, 7, 8]
    if case.ends == "postponed":
        assert "- Favorite color: blue" in room.read("memory/MEMORY.md")
    assert (await room.pipeline.consolidator.run(session.id, everything=True)).kind == "nothing"


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_bad_answer_changes_nothing_but_the_archive(
    case: Case, tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server, 0.3 if case.name == "a stall" else 10)
    await _holds(case, room, server)
    room.close()


@pytest.mark.parametrize("case", CUTS, ids=str)
async def test_an_answer_cut_at_any_byte_changes_nothing_but_the_archive(
    case: Case, tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    await _holds(case, room, server)
    room.close()


async def test_a_second_good_answer_is_taken(tmp_path: Path, server: ScriptedServer) -> None:
    room = _room(tmp_path, server)
    session = room.talk()
    # The ladder asks in three ways before the answer counts as bad.
    server.replies = [Reply("no"), Reply("no"), Reply("no"), Reply(tool_calls=[GOOD])]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    assert outcome.kind == "archived"
    assert "could not be used" in str(server.prompts[-1].messages)
    room.close()


@pytest.mark.slow
async def test_two_hundred_facts_with_invented_subjects_and_contradictions_lose_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    ports = "".join(f"Host {n % 40} has port {n}. " for n in range(198))
    session = room.talk([*SEED, (9, "user", f"Remember: {ports}My name is Ada.")])
    facts = [
        {"text": f"Port: {n}", "type": "fact", "subject": f"Host {n % 40}", "message": 9}
        for n in range(198)
    ]
    facts += [
        {"text": "Host 1 has port 41", "type": "sorcerer", "subject": "../../etc/passwd"},
        {"text": "The user is called Ada", "type": "user", "subject": "", "message": 9},
    ]
    wrong = [{"old": "Nobody ever said this", "new": "The moon is made of cheese"}]
    server.replies = [Reply(tool_calls=[call_slice(facts=facts, corrections=wrong)])]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    assert outcome.kind == "archived"
    assert "- Lives in Berlin" in room.read("memory/MEMORY.md")
    assert "Ada" in room.read("memory/MEMORY.md")
    host = room.read("knowledge/facts/host-0.md")
    assert "\nHost 0 has port 160.\n" in host
    assert len(room.library.infos()) == 41, "what nobody spoke of makes no entry"
    assert not (room.root.parent / "etc").exists()
    assert room.pipeline.ledger.account().unaccounted == 0
    room.close()


async def test_of_a_hundred_good_calls_one_is_taken(tmp_path: Path, server: ScriptedServer) -> None:
    room = _room(tmp_path, server)
    session = room.talk([*SEED, (9, "user", "Fact number 0 of many")])
    calls = [call_save("They spoke.", [f"Fact number {n} of many"]) for n in range(100)]
    server.replies = [Reply(tool_calls=calls)]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    assert outcome.kind == "archived"
    assert room.read("memory/MEMORY.md").count("of many") == 1
    room.close()


async def test_names_that_lead_elsewhere_stay_inside(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    session = room.talk()
    drafts = [
        entry("fact", "../../../etc/passwd", "One."),
        entry("topic", ".kbtui/format", "Two."),
        entry("nonsense", "INDEX", "Three."),
        entry("decision", "x" * 190, "Four.\n---\ntype: evil\n---\n# Five"),
        entry("topic", "\u202eDocker\u0007", "Six."),
    ]
    server.replies = [Reply(tool_calls=[call_save(entries=drafts)])]
    await room.pipeline.consolidator.run(session.id, everything=True)
    assert [file.name for file in room.root.parent.iterdir()] == ["notes"]
    assert (room.root / ".kbtui/format").read_text() == "1\n"
    for info in room.library.infos():
        assert info.path.startswith("knowledge/")
        assert info.problem is None
        assert info.type != "evil"
    room.close()


@pytest.mark.slow
async def test_a_model_that_never_works_gives_up_and_keeps_the_rest_pending(
    tmp_path: Path, server: ScriptedServer
) -> None:
    overrides = scripted(server, context_window=4000)
    room = open_room(tmp_path / "notes", **overrides)
    session = room.sessions.create()
    for number in range(40):
        session.append("user", f"message {number} " + "word " * 150)
        session.append("assistant", "ok")
    server.replies = [Reply("no tool for you")]
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    assert outcome.kind == "postponed"
    audit = room.pipeline.ledger.account()
    assert audit.archived > 0
    assert audit.pending > 0
    assert audit.unaccounted == 0
    assert len(server.prompts) < 60
    server.replies = [Reply(tool_calls=[GOOD])]
    await room.pipeline.consolidator.run(session.id, everything=True)
    assert _archived_once(room) == list(range(1, 81))
    room.close()


async def test_the_last_half_is_condensed_where_the_whole_is_too_much(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)

    def answer(request: Request) -> Reply:
        too_long = str(request.messages).count("USER:") > 2
        return Reply(tool_calls=[GOOD], finish="length" if too_long else "")

    server.replies = [answer]
    session = room.talk([(minute, role, f"{text} " + "word " * 250) for minute, role, text in SEED])
    outcome = await room.pipeline.consolidator.run(session.id, everything=True)
    assert (outcome.kind, outcome.pages) == ("archived", 2)
    assert _ranges(room) == [[1, 4], [5, 8]]
    room.close()
