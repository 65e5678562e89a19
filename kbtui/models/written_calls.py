"""Parses tool calls that small models write into their text.

A call is JSON: bare, fenced, or in ``<tool_call>`` tags; one, several, or a list of them. The tool
is named by one of the keys `_NAMES`; the arguments are under one of `_ARGUMENTS`, or siblings of
the name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

_NAMES = ("name", "tool", "function", "type", "action")
_ARGUMENTS = ("arguments", "parameters", "input", "args")
_WRAPPINGS = ("function", "tool_call", "tool_calls")
_MARKS = re.compile(r"(?:\s|```\w*|</?tool_calls?>)*")
_JSON_PREFIXES = ('{"', "{'", "{}", "[{", '["', "[]")
_PARTS_OF_MARKS = ("```", "<tool_calls>", "</tool_calls>")
_LOOKAHEAD = 64


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """The result of parsing a text.

    Attributes:
        calls: Pairs of tool name and arguments, the latter an object or its JSON text.
        is_data: The text is JSON, perhaps malformed, and calls no tool.
    """

    calls: tuple[tuple[str, Any], ...] = ()
    is_data: bool = False


def may_be_data(prefix: str) -> bool:
    """Return whether a text with this beginning may turn out to be a tool call or other JSON."""
    rest = prefix[_skip_marks(prefix, 0) :]
    beginning = "".join(rest[:_LOOKAHEAD].split())
    return any(mark.startswith(rest) for mark in _PARTS_OF_MARKS) or any(
        each.startswith(beginning) or beginning.startswith(each) for each in _JSON_PREFIXES
    )


def read_written(text: str, tools: Collection[str]) -> TextWithCalls:
    """Parse a complete text; prose after calls is dropped: it precedes the results."""
    if not may_be_data(text):
        return TextWithCalls()
    values: list[Any] = []
    position = _skip_marks(text, 0)
    while position < len(text):
        try:
            value, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        values.append(value)
        position = _skip_marks(text, position)
    called = takewhile(bool, (calls_in(value, tools) for value in values))
    calls = tuple(call for calls in called for call in calls)
    is_data = bool(values) == (position >= len(text))  # JSON alone, or broken at its beginning
    return TextWithCalls(calls, is_data=is_data and not calls)


def calls_in(value: Any, tools: Collection[str]) -> list[tuple[str, Any]]:
    """Return the calls in a JSON value; none if any part of it is something else."""
    if isinstance(value, list):
        found = [calls_in(each, tools) for each in value]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    wrapped = next((w for w in map(value.get, _WRAPPINGS) if isinstance(w, dict | list)), None)
    return _call(value, tools) if wrapped is None else calls_in(wrapped, tools)


def _call(value: dict[str, Any], tools: Collection[str]) -> list[tuple[str, Any]]:
    named = next((key for key in _NAMES if _names_tool(value.get(key), tools)), None)
    if named is None:
        return []
    nested = next((key for key in _ARGUMENTS if _is_object(value.get(key))), None)
    beside = {key: each for key, each in value.items() if key != named}
    return [(value[named], beside if nested is None else value[nested])]


def _names_tool(value: Any, tools: Collection[str]) -> bool:
    return isinstance(value, str) and value in tools


def _is_object(value: Any) -> bool:
    """Return whether a value is an object, or the JSON text of one."""
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))


def _skip_marks(text: str, position: int) -> int:
    marks = _MARKS.match(text, position)
    return marks.end() if marks else position
