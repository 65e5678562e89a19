"""A trial of a model for the two tasks it has here: making memory and calling tools."""

from __future__ import annotations

from dataclasses import dataclass

from kbtui.agent.tools.toolbox import Toolbox
from kbtui.errors import ModelAnswerError, ModelError, ModelToolsError, ModelWindowError
from kbtui.memory.background.service import condensed
from kbtui.models.port import ChatModel, Message

_CONVERSATION = """\
[2026-03-06 10:00 #1] USER: My sister Alma moved to Graz in March. Remember that.
[2026-03-06 10:01 #2] ASSISTANT: I will."""
_TOOL = "read"
_TOOL_PROMPT = (
    Message("system", "You help with somebody's notes. Use the tools to look things up."),
    Message("user", "Read the entry people/alma and tell me where she lives."),
)
_UNFIT_ERRORS = (ModelAnswerError, ModelToolsError, ModelWindowError)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result: whether a model makes valid `memory`, and calls `tools` by itself."""

    memory: bool
    tools: bool


async def try_model(model: ChatModel) -> Trial:
    """Have a model condense a short conversation, and answer a question that needs a tool.

    Raises:
        ModelError: it can't be called at all.
    """
    return Trial(await _makes_memory(model), await _calls_tools(model))


async def _makes_memory(model: ChatModel) -> bool:
    try:
        answer = await condensed(model, _CONVERSATION)
    except _UNFIT_ERRORS:
        return False
    return any("Graz" in text for text in (answer.summary, *(fact.text for fact in answer.facts)))


async def _calls_tools(model: ChatModel) -> bool:
    if not model.takes_tools:
        return False
    tools = [spec for spec in Toolbox().specs_for(model.context_window) if spec.name == _TOOL]
    try:
        reply = await model.complete(_TOOL_PROMPT, tools)
    except _UNFIT_ERRORS:
        return False
    except ModelError as error:
        if type(error) is not ModelError:
            raise
        return False  # the server rejected the request without a reason
    return any(call.name == _TOOL for call in reply.tool_calls)
