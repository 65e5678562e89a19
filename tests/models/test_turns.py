"""Who talks goes first: the background and a person at one server, in one process and in two."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message
from kbtui.models.turns import Turns
from tests.scripted_server import Reply as Scripted, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = "http://127.0.0.1:9/v1"
ASK = [Message("user", "Hello?")]
TALKING = """
import sys
import threading
from pathlib import Path
from kbtui.models.turns import Turns
with Turns(sys.argv[1], Path(sys.argv[2])).talking():
    print("talking", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def talker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process in which somebody talks."""
    command = [sys.executable, "-c", TALKING, SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"talking\n"
        yield process
        process.kill()


class Asked:
    """Requests of the background: those that are given up, and one that is answered."""

    def __init__(self) -> None:
        self.made = self.given_up = 0
        self.is_made = asyncio.Event()
        self.is_given_up = asyncio.Event()
        self.answer = asyncio.Event()

    async def __call__(self) -> str:
        self.made += 1
        self.is_made.set()
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            self.is_given_up.set()
            raise
        return "answer"


async def test_a_request_is_given_up_when_somebody_begins_to_talk_and_made_again(
    tmp_path: Path,
) -> None:
    turns, asked = Turns(SERVER, tmp_path), Asked()
    work = asyncio.create_task(turns.after(asked))
    await asked.is_made.wait()
    asked.is_made.clear()
    with turns.talking():
        await asked.is_given_up.wait()
        assert (asked.made, asked.given_up) == (1, 1)
    await asked.is_made.wait()
    asked.answer.set()
    assert await work == "answer"
    assert (asked.made, asked.given_up) == (2, 1)


async def test_nothing_is_asked_while_another_process_talks_and_its_death_ends_that(
    tmp_path: Path, talker: subprocess.Popen[bytes]
) -> None:
    asked = Asked()
    asked.answer.set()
    work = asyncio.create_task(Turns(SERVER, tmp_path).after(asked))
    assert not (await asyncio.wait([work], timeout=1.5))[0]
    assert asked.made == 0
    talker.kill()
    assert await work == "answer"


async def test_other_servers_and_several_who_talk_hold_up_nobody(tmp_path: Path) -> None:
    asked = Asked()
    asked.answer.set()
    one = Turns(SERVER, tmp_path)
    with one.talking(), one.talking():
        assert await Turns("http://127.0.0.1:10/v1", tmp_path).after(asked) == "answer"


async def test_an_error_and_the_end_of_the_waiting_pass_through(tmp_path: Path) -> None:
    turns = Turns(SERVER, tmp_path)

    async def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await turns.after(fail)
    asked = Asked()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await turns.after(asked)
    assert asked.given_up == 1


async def test_a_file_in_the_way_is_no_reason_not_to_talk(tmp_path: Path) -> None:
    (tmp_path / "talking").write_text("")
    asked = Asked()
    asked.answer.set()
    turns = Turns(SERVER, tmp_path)
    with turns.talking():
        assert await turns.after(asked) == "answer"


async def test_a_condensing_leaves_the_server_to_a_chat_and_comes_back() -> None:
    arrived = threading.Event()

    def slow(_request: object) -> Scripted:
        arrived.set()
        return Scripted("condensed", stall_at=0)

    with ScriptedServer([slow, Scripted("hello"), Scripted("condensed")]) as server:
        chat = LiteLLMModel("openai/one", server.url, "key")
        background = LiteLLMModel("openai/one", server.url, "key", ModelOptions(in_background=True))
        work = asyncio.create_task(background.complete(ASK))
        assert await asyncio.to_thread(arrived.wait, 60)
        said = [event async for event in chat.stream(ASK)]
        assert said[-1].text == "hello"
        assert (await work).text == "condensed"
        assert len(server.prompts) == 3
