"""A real workspace with a real scripted endpoint beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.events import TextDelta, ToolFinished, TurnFailed, TurnFinished, TurnStarted
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from kbtui.agent.events import Event
    from kbtui.models.port import ChatModel, Message, Reply, ReplyEvent, ToolSpec
    from kbtui.sessions.store import Session
    from tests.scripted_server import ScriptedServer

# Patient, as the machine may be busy; a model that is to stall has options of its own.
QUICK = ModelOptions(first_token_seconds=60, idle_seconds=60, retries=0, backoff_seconds=0.01)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as opened:
        yield opened
        opened.sessions.close()


@pytest.fixture
def session(kb: KnowledgeBase) -> Session:
    return kb.sessions.create("test")


@pytest.fixture(scope="session")
def warm() -> None:
    """Imports litellm, so that no test's patience is spent on it."""
    litellm_model.warm_up()


@dataclass
class Told:
    """What a turn told, in order."""

    events: list[Event] = field(default_factory=list)

    @property
    def last(self) -> Any:
        return self.events[-1]

    @property
    def finished(self) -> TurnFinished:
        assert isinstance(self.last, TurnFinished), self.last
        return self.last

    @property
    def failed(self) -> TurnFailed:
        assert isinstance(self.last, TurnFailed), self.last
        return self.last

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def tools(self) -> list[ToolFinished]:
        return [event for event in self.events if isinstance(event, ToolFinished)]

    @property
    def used(self) -> list[tuple[str, bool]]:
        return [(event.tool, event.ok) for event in self.tools]


def model_at(server: ScriptedServer, options: ModelOptions = QUICK) -> LiteLLMModel:
    return LiteLLMModel("openai/scripted", server.url, "none", options)


async def ask(
    kb: KnowledgeBase, session: Session, text: str, model: ChatModel | None = None
) -> Told:
    told = Told()
    async for event in kb.agent.turn(session, text, model=model):
        told.events.append(event)
    assert sum(isinstance(event, TurnStarted) for event in told.events) <= 1
    ends = [isinstance(event, TurnFinished | TurnFailed) for event in told.events]
    assert ends.count(True) == 1
    assert ends[-1]
    return told


@dataclass
class Remote:
    """The same model as if it were on another machine."""

    inner: LiteLLMModel
    is_local: bool = False

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context_window(self) -> int:
        return self.inner.context_window

    @property
    def takes_tools(self) -> bool:
        return self.inner.takes_tools

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        return self.inner.stream(messages, tools)

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        return await self.inner.complete(messages, tools, force_tool=force_tool)


def assert_sound(messages: Sequence[dict[str, Any]]) -> None:
    """Every provider takes such a prompt: roles alternate, each call has its result behind it."""
    assert messages[0]["role"] == "system"
    waiting: list[str] = []
    before = "system"
    for message in messages[1:]:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == [], "a call without its result"
            assert role != before, f"two messages of {role} in a row"
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
        before = role if role != "tool" else before if waiting else "tool"
    assert waiting == []
    assert messages[-1]["role"] in ("user", "tool")
