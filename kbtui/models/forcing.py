"""Gets an answer in a given shape out of endpoints that differ in what they understand.

Three ways, tried in this order, and the one that worked is remembered for the endpoint: a forced
tool choice; a response format with a JSON schema; the schema in words, with fences tolerated.
(llama.cpp's server ignores the object form of ``tool_choice``; many proxies refuse one or two.)
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kbtui.models.port import Message, Reply, ToolCall
from kbtui.models.schema import ArgumentError, check_arguments, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kbtui.models.port import ToolSpec


class Way(StrEnum):
    """A way to force the shape of an answer."""

    TOOL_CHOICE = "tool-choice"
    JSON_SCHEMA = "json-schema"
    PLAIN_JSON = "plain-json"


LADDER = tuple(Way)
_FENCE = re.compile(r"```(?:json|JSON)?\s*\n(.*?)```", re.DOTALL)


def ladder_from(way: Way | None) -> tuple[Way, ...]:
    """The ways to try, the one that worked last time first."""
    return LADDER if way is None else (way, *(other for other in LADDER if other is not way))


def request_options(way: Way, tool: ToolSpec) -> dict[str, Any]:
    """The arguments that a request has in addition, to force `tool`."""
    if way is Way.TOOL_CHOICE:
        return {
            "tools": [describe(tool)],
            "tool_choice": {"type": "function", "function": {"name": tool.name}},
        }
    if way is Way.JSON_SCHEMA:
        schema = {"name": tool.name, "schema": dict(tool.parameters)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


def forcing_messages(way: Way, messages: Sequence[Message], tool: ToolSpec) -> list[Message]:
    """The prompt, with the shape in words where the request itself can't say it."""
    if way is Way.TOOL_CHOICE:
        return list(messages)
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    order = (
        f"{tool.description}\n\nAnswer with one JSON object and nothing else. "
        f"It must fit this JSON Schema:\n{schema}"
    )
    return [*messages, Message("user", order)]


def accept(reply: Reply, tool: ToolSpec) -> Reply | None:
    """Take a complete and valid answer, as a call of `tool`; None for anything else."""
    if reply.finish not in ("stop", "tool_calls"):
        return None
    for call in reply.tool_calls:
        if call.name == tool.name and _fits(call.arguments, tool):
            return Reply(reply.text, (call,), "tool_calls", reply.usage)
    value = find_object(reply.text)
    if value is None:
        return None
    try:
        arguments = json.dumps(check_arguments(value, _accepted(tool)), ensure_ascii=False)
    except ArgumentError:
        return None
    return Reply("", (ToolCall("call_1", tool.name, arguments),), "tool_calls", reply.usage)


def find_object(text: str) -> dict[str, Any] | None:
    """Find the one JSON object that a text is, or that it holds in a fence or among words."""
    candidates = [text.strip(), *(block.strip() for block in _FENCE.findall(text))]
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        candidates.append(text[begin : end + 1])
    for candidate in candidates:
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def describe(tool: ToolSpec) -> dict[str, Any]:
    """Describe a tool as the OpenAI protocol wants it."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _accepted(tool: ToolSpec) -> Mapping[str, Any]:
    return tool.parameters if tool.accepted is None else tool.accepted


def _fits(arguments: str, tool: ToolSpec) -> bool:
    try:
        parse_arguments(arguments, _accepted(tool))
    except ArgumentError:
        return False
    return True
