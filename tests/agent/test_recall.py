"""What is known about a message stands with it, without anybody having searched."""

from __future__ import annotations

import asyncio
import threading
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent import recall
from kbtui.agent.events import NoticeGiven
from kbtui.knowledge_base import KnowledgeBase
from tests.agent.conftest import Remote, Told, ask, model_at
from tests.patience import PATIENCE
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.sessions.store import Session

pytestmark = pytest.mark.usefixtures("warm")
QUESTION = "How many volts does the pump of the greenhouse take?"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be busy."""
    monkeypatch.setattr(recall, "WAIT_SECONDS", 60.0)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    by_words = {"search": {"semantic": False}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=by_words) as opened:
        opened.library.create(
            "fact", "Greenhouse", body="It stands behind the house.\n\nThe pump takes 24 volts."
        )
        yield opened
        opened.sessions.close()


def found_in(server: ScriptedServer) -> str:
    """What was found for the last message, as the model was told it."""
    said = str(server.prompts[-1].messages[-1]["content"])
    _, _, found = said.partition("# Found for this message")
    return found.partition("Today is")[0]


async def test_what_is_known_about_a_message_stands_with_it_and_can_be_cited(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("It takes 24 volts [1].")]) as server:
        told = await ask(kb, session, QUESTION, model_at(server))
    assert "[1] knowledge/facts/greenhouse.md" in found_in(server)
    assert "The pump takes 24 volts." in found_in(server)
    (cited,) = told.finished.citations
    assert (cited.n, cited.path) == (1, "knowledge/facts/greenhouse.md")


async def test_what_is_found_changes_nothing_before_the_message(
    kb: KnowledgeBase, session: Session
) -> None:
    with ScriptedServer([Reply("So it is.")]) as server:
        await ask(kb, session, "Hello there", model_at(server))
        await ask(kb, session, QUESTION, model_at(server))
    first, second = (request.messages for request in server.prompts)
    assert second[: len(first) - 1] == first[:-1]


async def test_what_the_prompt_says_already_is_not_found_again(
    kb: KnowledgeBase, session: Session
) -> None:
    (kb.workspace.root / "memory/MEMORY.md").write_text("- The pump takes 24 volts.\n")
    with ScriptedServer([Reply("24.")]) as server:
        await ask(kb, session, QUESTION, model_at(server))
        assert "24 volts" in server.prompts[-1].messages[0]["content"]
    assert "24 volts" not in found_in(server)


async def test_what_was_said_in_the_conversation_itself_is_not_found(
    kb: KnowledgeBase, session: Session
) -> None:
    said = "My bicycle is a green Peugeot."
    with ScriptedServer([Reply("Nice.")]) as server:
        await ask(kb, session, said, model_at(server))
        await ask(kb, session, "What colour is my bicycle, the Peugeot?", model_at(server))
        assert said not in found_in(server)
        other = kb.sessions.create("test")
        await ask(kb, other, "What colour is my bicycle, the Peugeot?", model_at(server))
        assert said in found_in(server)


@pytest.mark.parametrize("remote", [False, True])
async def test_nothing_private_is_found_unasked(
    kb: KnowledgeBase, session: Session, *, remote: bool
) -> None:
    secret = "---\nprivate: true\n---\n# Safe\n\nThe code of the safe is walrus.\n"
    (kb.workspace.knowledge / "facts/safe.md").write_text(secret)
    kb.library.refresh()
    with ScriptedServer([Reply("I can't say.")]) as server:
        model: Any = model_at(server)
        await ask(kb, session, "What is the code of the safe?", Remote(model) if remote else model)
    assert "walrus" not in str(server.prompts[-1].body)


async def test_a_damaged_index_costs_no_turn_and_is_said(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("postings are broken")

    monkeypatch.setattr(kb.search, "search", fail)
    with ScriptedServer([Reply("Hello.")]) as server:
        told = await ask(kb, session, QUESTION, model_at(server))
    assert told.finished.text == "Hello."
    assert "Call `search`" in found_in(server)
    assert [each for each in notices(told) if "couldn't be looked up" in each]


def test_the_parts_of_a_prompt_hold_what_is_known_about_the_draft(
    kb: KnowledgeBase, session: Session
) -> None:
    parts = {each.name: each.tokens for each in kb.agent.prompt_parts(session, QUESTION)}
    assert parts["recall"] > 10


async def test_the_request_waits_for_a_slow_index(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = kb.search.search

    def slow(*args: Any, **named: Any) -> Any:
        sleep(1.0)
        return search(*args, **named)

    monkeypatch.setattr(kb.search, "search", slow)
    with ScriptedServer([Reply("24.")]) as server:
        told = await ask(kb, session, QUESTION, model_at(server))
    assert "The pump takes 24 volts." in found_in(server)
    assert notices(told) == []


async def test_a_turn_goes_on_without_an_index_that_takes_too_long_and_says_so(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(kb.search, "search", lambda *_, **__: let_go.wait(60))
    monkeypatch.setattr(recall, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(recall, "_END_WAIT_SECONDS", 0.0)
    with ScriptedServer([Reply("Hello.")]) as server:
        told = await ask(kb, session, QUESTION, model_at(server))
    assert told.finished.text == "Hello."
    assert "Call `search`" in found_in(server)
    assert any("within 0 s" in each for each in notices(told))
    assert not let_go.is_set()
    let_go.set()


async def test_a_turn_that_is_stopped_waits_for_no_index(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, searching = threading.Event(), threading.Event()

    def search(*_: object, **__: object) -> None:
        searching.set()
        let_go.wait()

    monkeypatch.setattr(kb.search, "search", search)
    monkeypatch.setattr(recall, "WAIT_SECONDS", 3 * PATIENCE)
    with ScriptedServer([Reply("Hello.")]) as server:
        turn = asyncio.create_task(ask(kb, session, QUESTION, model_at(server)))
        while not searching.is_set():  # noqa: ASYNC110 - set in a thread
            await asyncio.sleep(0.01)
        turn.cancel()
        ended, _ = await asyncio.wait([turn], timeout=PATIENCE)
        let_go.set()
    assert ended
    assert turn.cancelled()
    assert server.prompts == []


def notices(told: Told) -> list[str]:
    return [each.text for each in told.events if isinstance(each, NoticeGiven)]
