"""Calls that a model wrote into its text, in the forms that small models give them.

A call is JSON: bare, fenced, or in ``<tool_call>`` tags; one, several, or a list of them. Its
tool stands under one of `_NAMES`, its arguments under one of `_ARGUMENTS` or beside the name.
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
_BEGINNINGS = ('{"', "{'", "{}", "[{", '["', "[]")
_PARTS_OF_MARKS = ("```", "<tool_calls>", "</tool_calls>")
_LONGEST_BLANK = 64


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """A text as it was read.

    Attributes:
        calls: Tools and their arguments, an object or its JSON.
        is_data: It is JSON, or was to be, and calls nothing.
    """

    calls: tuple[tuple[str, Any], ...] = ()
    is_data: bool = False


def may_be_data(begun: str) -> bool:
    """True as long as a text that begins so may be a call, or other JSON."""
    rest = begun[_end_of_marks(begun, 0) :]
    beginning = "".join(rest[:_LONGEST_BLANK].split())
    return any(mark.startswith(rest) for mark in _PARTS_OF_MARKS) or any(
        each.startswith(beginning) or beginning.startswith(each) for each in _BEGINNINGS
    )


def read_written(text: str, tools: Collection[str]) -> TextWithCalls:
    """Read a whole text; words after calls are left out: they tell of what wasn't done yet."""
    if not may_be_data(text):
        return TextWithCalls()
    values: list[Any] = []
    place = _end_of_marks(text, 0)
    while place < len(text):
        try:
            value, place = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError):
            break
        values.append(value)
        place = _end_of_marks(text, place)
    called = takewhile(bool, (calls_in(value, tools) for value in values))
    calls = tuple(call for calls in called for call in calls)
    is_data = bool(values) == (place >= len(text))  # JSON alone, or broken at its beginning
    return TextWithCalls(calls, is_data=is_data and not calls)


def calls_in(value: Any, tools: Collection[str]) -> list[tuple[str, Any]]:
    """The calls that a JSON value is; none where any part of it is something else."""
    if isinstance(value, list):
        found = [calls_in(each, tools) for each in value]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    wrapped = next((w for w in map(value.get, _WRAPPINGS) if isinstance(w, dict | list)), None)
    return _call(value, tools) if wrapped is None else calls_in(wrapped, tools)


def _call(value: dict[str, Any], tools: Collection[str]) -> list[tuple[str, Any]]:
    named = next((key for key in _NAMES if _is_one_of(value.get(key), tools)), None)
    if named is None:
        return []
    nested = next((key for key in _ARGUMENTS if _is_object(value.get(key))), None)
    beside = {key: each for key, each in value.items() if key != named}
    return [(value[named], beside if nested is None else value[nested])]


def _is_one_of(value: Any, tools: Collection[str]) -> bool:
    return isinstance(value, str) and value in tools


def _is_object(value: Any) -> bool:
    """True for an object, or for one that was encoded twice."""
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))


def _end_of_marks(text: str, place: int) -> int:
    marks = _MARKS.match(text, place)
    return marks.end() if marks else place
