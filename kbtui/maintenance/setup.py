"""Trying out a model for what it is to do here: make memory, and call tools."""

from __future__ import annotations

from dataclasses import dataclass

from kbtui.agent.tools.toolbox import Toolbox
from kbtui.errors import ModelAnswerError, ModelError, ModelToolsError, ModelWindowError
from kbtui.memory.background.service import condensed
from kbtui.models.port import ChatModel, Message

_SAID = """\
[2026-03-06 10:00 #1] USER: My sister Alma moved to Graz in March. Remember that.
[2026-03-06 10:01 #2] ASSISTANT: I will."""
_TOOL = "read"
_ASKED = (
    Message("system", "You help with somebody's notes. Use the tools to look things up."),
    Message("user", "Read the entry people/alma and tell me where she lives."),
)
_UNFIT = (ModelAnswerError, ModelToolsError, ModelWindowError)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it: whether it makes `memory` in the right form, and calls `tools` by itself."""

    memory: bool
    tools: bool


async def try_model(model: ChatModel) -> Trial:
    """Have a model condense a short conversation, and answer what takes a tool.

    Raises:
        ModelError: it can't be asked at all.
    """
    return Trial(await _makes_memory(model), await _calls_tools(model))


async def _makes_memory(model: ChatModel) -> bool:
    try:
        answer = await condensed(model, _SAID)
    except _UNFIT:
        return False
    return any("Graz" in text for text in (answer.summary, *(fact.text for fact in answer.facts)))


async def _calls_tools(model: ChatModel) -> bool:
    if not model.takes_tools:
        return False
    tools = [spec for spec in Toolbox().specs_for(model.context_window) if spec.name == _TOOL]
    try:
        reply = await model.complete(_ASKED, tools)
    except _UNFIT:
        return False
    except ModelError as error:
        if type(error) is not ModelError:
            raise
        return False  # a server that only says that it rejects the request
    return any(call.name == _TOOL for call in reply.tool_calls)
