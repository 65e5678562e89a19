"""Models that answer badly while dreaming, over real HTTP: nothing changes, and it is tried later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from kbtui.models.litellm_model import warm_up
from tests.memory.dream_room import (
    MEMORY,
    add,
    archive,
    does,
    dream_room,
    machine,
    run,
    seen,
    state,
)
from tests.patience import PATIENCE
from tests.scripted_server import Reply, Request, ScriptedServer, call, raw_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.memory.background.jobs import WorkerEvent
    from tests.memory.memory_room import Room

FACTS = "# Facts\n\n- Lives in Graz\n"
GOOD = add("MEMORY.md", "Prefers dark mode")
CALLS = does(GOOD).tool_calls


@dataclass(frozen=True)
class Case:
    """A model that gives this answer to whatever it is asked."""

    name: str
    answer: Reply | Callable[[Request], Reply]

    def __str__(self) -> str:
        return self.name


def _echo_as_text(request: Request) -> Reply:
    return Reply(str(request.messages[-1]["content"]))


def _echo_of_the_instructions(request: Request) -> Reply:
    said = str(request.messages[0]["content"])
    return does(add("MEMORY.md", said[:3000].replace("\n", " ")))


ANYWHERE = [
    Case("empty", Reply("")),
    Case("blanks", Reply("  \n ")),
    Case("prose", Reply("Sure! I would add that the user prefers dark mode.")),
    Case("an echo of the prompt", _echo_as_text),
    Case("a refusal", Reply("I'm sorry, but I can't help with that.")),
    Case("an error text", Reply("Error: 502 Bad Gateway")),
    Case("no JSON", Reply(body=b"<html><body>502 Bad Gateway</body></html>")),
    Case("JSON that is no answer", Reply(body=b'{"detail": "busy"}')),
    Case("no choices", Reply(body=b'{"id": "x", "object": "chat.completion", "choices": []}')),
    Case("the wrong tool", Reply(tool_calls=[call("delete_everything", path="/")])),
    Case(
        "a hundred wrong tools",
        Reply(tool_calls=[call(f"tool_{number}", path="x") for number in range(100)]),
    ),
    Case("400", Reply("tools are not supported", status=400)),
    Case("401", Reply("bad key", status=401)),
    Case("404", Reply("no such model", status=404)),
    Case("429", Reply("slow down", status=429, headers={"Retry-After": "0"})),
    Case("500", Reply("boom", status=500)),
]
EDITING = [
    *ANYWHERE,
    Case(
        "half a JSON",
        Reply(tool_calls=[raw_call("curate", '{"edits": [{"do": "add_line", "path": "MEM')]),
    ),
    Case("a list for an object", Reply(tool_calls=[raw_call("curate", "[1, 2]")])),
    Case("wrong types", Reply(tool_calls=[call("curate", edits={"a": 1})])),
    Case("no edits", Reply(tool_calls=[call("curate")])),
    Case("cut off by length", Reply(tool_calls=CALLS, finish="length")),
    Case("stopped by a filter", Reply(tool_calls=CALLS, finish="content_filter")),
    Case("an error text for a line", does(add("MEMORY.md", "Error: rate limit exceeded"))),
    Case(
        "a refusal for a line",
        does(add("MEMORY.md", "I'm sorry, but I can't help with that.")),
    ),
    Case(
        "a note of what was true, in the line",
        does(add("MEMORY.md", "Lives in Linz, until then: Lives in Graz")),
    ),
    Case("an endless line", does(add("MEMORY.md", "word " * 2000))),
    Case("an echo of the instructions", _echo_of_the_instructions),
    Case("a file that isn't there", does(add("people/nobody", "Likes tea"))),
]
CUTS = [
    Case(f"{cut} at {at}", Reply(tool_calls=CALLS, cut_at=at, cut=cut))
    for cut in ("chunked", "clean", "eof")
    for at in range(0, 420, 140)
]


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    """Load litellm before anything is timed."""
    warm_up()


def _room(tmp_path: Path, server: ScriptedServer, patience: float = 10) -> Room:
    room = dream_room(tmp_path / "notes", server, patience=patience)
    room.write("USER.md", "# User\n\n- Name: Ada\n")
    machine(room, MEMORY=FACTS, topics__docker="# Docker\n\nRuns.\n")
    archive(room)
    return room


async def _holds(room: Room, server: ScriptedServer) -> None:
    """Run the bad answers, then good ones, and look after each that all is as it should be."""
    before = state(room)
    report = await run(room)
    assert report.kind == "postponed"
    assert report.error is not None
    assert report.text.startswith("Dream is put off: ")
    assert state(room) == before
    assert room.pipeline.inbox.list() == []
    assert seen(room) == 0
    server.replies[:] = [does(GOOD)]
    server._given = 0
    again = await run(room)
    assert again.kind == "changed", again.error
    assert room.read(MEMORY).count("- Prefers dark mode") == 1
    assert seen(room) == 1
    assert (await run(room)).kind == "nothing"
    room.close()


@pytest.mark.parametrize("case", EDITING, ids=str)
async def test_a_bad_answer_instead_of_edits_changes_nothing(
    tmp_path: Path, server: ScriptedServer, case: Case
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(case.answer)
    await _holds(room, server)


@pytest.mark.parametrize("case", CUTS, ids=str)
async def test_an_answer_cut_anywhere_changes_nothing(
    tmp_path: Path, server: ScriptedServer, case: Case
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(case.answer)
    await _holds(room, server)


async def test_a_stall_changes_nothing(tmp_path: Path, server: ScriptedServer) -> None:
    room = _room(tmp_path, server, patience=0.4)
    server.enqueue(Reply(tool_calls=CALLS, stall_at=30))
    await _holds(room, server)


async def test_the_network_that_fails_after_edits_takes_them_all_back(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(does(GOOD, add("nowhere", "x y")), Reply("down", status=503))
    await _holds(room, server)


async def test_a_bad_answer_is_asked_for_again_with_what_was_wrong(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(
        *[Reply(tool_calls=[raw_call("curate", '{"edits": 3}')])] * 3,
        does(GOOD),
    )
    report = await run(room)
    assert report.kind == "changed"
    assert "Your last answer could not be used" in str(server.prompts[-1].messages[-1]["content"])
    room.close()


async def test_what_is_known_already_is_no_bad_answer(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(does(add("MEMORY.md", "lives in Graz!")))
    report = await run(room)
    assert (report.kind, room.read(MEMORY), seen(room)) == ("read", FACTS, 1)
    room.close()


async def test_words_after_edits_end_the_run_and_keep_what_was_edited(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(does(GOOD, add("nowhere", "x y")), Reply("All done! I added the line."))
    report = await run(room)
    assert report.kind == "changed"
    assert report.ended != ""
    assert "- Prefers dark mode" in room.read(MEMORY)
    assert seen(room) == 1
    room.close()


async def test_the_worker_tells_once_and_tries_again_later(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = _room(tmp_path, server)
    server.enqueue(Reply("bad key", status=401))
    worker = room.pipeline.worker
    job = worker._jobs["dream"]
    notices: list[str] = []
    loop, finished = asyncio.get_running_loop(), asyncio.Event()
    worker.subscribe(lambda event: notices.append(event.text) if event.kind == "notice" else None)

    def note(event: WorkerEvent) -> None:
        if event.kind == "finished":
            loop.call_soon_threadsafe(finished.set)

    worker.subscribe(note)
    worker.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await finished.wait()  # it was due at the start
            assert len(server.prompts) == 1
            for _ in range(2):
                report = await asyncio.wrap_future(worker.submit("dream", job.run))
                assert report.error is not None
            assert len(notices) <= 1
            server.replies[:] = [does(GOOD)]
            server._given = 0
            report = await asyncio.wrap_future(worker.submit("dream", job.run))
    finally:
        await asyncio.to_thread(worker.close)
    assert report.error is None
    assert report.changed
    assert len([each for each in notices if "key" in each]) == 1
    assert "- Prefers dark mode" in room.read(MEMORY)
    room.close()
