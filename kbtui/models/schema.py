"""Answers in a given shape: checks the arguments of tools, and gets a shaped answer at all.

A model is told in a sentence what is wrong, so that it can do better. Harmless slips of small
models are put right: a number or truth value written as text, one value where a list is wanted, a
list where an object is wanted that holds nothing but one, null for an argument that may be left
out, half of a character. That is half of this file; the other
half isn't left to jsonschema, which takes 0.1 s to import and says "1 is not of type 'string'".

Endpoints understand different ways to ask for a shape, tried in this order, and the one that worked
is remembered: a forced tool choice; a response format with a JSON schema; the schema in words, with
fences tolerated. (llama.cpp's server ignores the object form of ``tool_choice``; many proxies
refuse one or two.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kbtui.errors import UsageError
from kbtui.models.port import Message, Reply, ToolCall, ToolSpec
from kbtui.models.written_calls import calls_in

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_TRUTH = {"true": True, "false": False}


class ArgumentError(UsageError):
    """Arguments that a tool can't be called with."""


def parse_arguments(
    text: str, schema: Mapping[str, Any], renamed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Read the JSON text of a tool call and check it; `renamed` as in `ToolSpec`.

    Raises:
        ArgumentError: it isn't JSON, isn't an object, or doesn't fit the schema.
    """
    try:
        value = json.loads(text or "{}")
    except ValueError as error:
        raise ArgumentError(f"The arguments are not valid JSON: {error}.") from None
    except RecursionError:
        raise ArgumentError("The arguments are nested too deeply.") from None
    if isinstance(value, str):
        # Some models encode the object twice.
        is_object = value.lstrip().startswith("{")
        return parse_arguments(value, schema, renamed) if is_object else _refuse(value)
    if isinstance(value, dict):
        value = {renamed.get(name, name): each for name, each in value.items()} | {
            name: each for name, each in value.items() if name not in renamed
        }
    return check_arguments(value, schema)


def check_arguments(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Check a value against an object schema and return it with harmless slips put right.

    Raises:
        ArgumentError: it doesn't fit.
    """
    required = schema.get("required", ())
    if isinstance(value, list) and len(required) == 1 and _is_list(schema, required[0]):
        value = {required[0]: value}
    if not isinstance(value, dict):
        return _refuse(value)
    checked = _check(value, {"type": "object", **schema}, "")
    return dict(checked)


def _is_list(schema: Mapping[str, Any], name: str) -> bool:
    return bool(schema.get("properties", {}).get(name, {}).get("type") == "array")


def _refuse(value: Any) -> dict[str, Any]:
    raise ArgumentError(f"The arguments must be a JSON object, not {_kind(value)}.")


def _check(value: Any, schema: Mapping[str, Any], place: str) -> Any:
    kind = schema.get("type")
    if isinstance(value, str):
        value = _sound(value)
    if isinstance(kind, str):
        value = _coerced(value, kind)
        if not _is(value, kind):
            raise ArgumentError(f"{_named(place)} must be {_article(kind)}, not {_kind(value)}.")
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(map(str, schema["enum"]))
        raise ArgumentError(f"{_named(place)} must be one of {choices}; {value!r} is not.")
    if isinstance(value, dict):
        return _check_object(value, schema, place)
    if isinstance(value, list):
        return _check_list(value, schema, place)
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        raise ArgumentError(f"{_named(place)} is longer than {schema['maxLength']} characters.")
    return value


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    given = {name: item for name, item in value.items() if item is not None or name in required}
    if missing := [name for name in required if name not in given]:
        raise ArgumentError(f"{_named(_below(place, missing[0]))} is missing.")
    extra = schema.get("additionalProperties", True)
    unknown = [name for name in given if name not in properties]
    if unknown and properties and extra is False:
        known = ", ".join(list(properties)[:12])
        raise ArgumentError(f"There is no argument {unknown[0]!r}; there are: {known}.")
    free = extra if isinstance(extra, dict) else {}
    return {
        _sound(name): _check(item, properties.get(name, free), _below(place, name))
        for name, item in given.items()
    }


def _check_list(value: list[Any], schema: Mapping[str, Any], place: str) -> list[Any]:
    if len(value) > schema.get("maxItems", len(value)):
        raise ArgumentError(f"{_named(place)} has more than {schema['maxItems']} items.")
    items = schema.get("items", {})
    return [_check(item, items, f"{place}[{number}]") for number, item in enumerate(value)]


def _sound(text: str) -> str:
    """A text that can be written as UTF-8: JSON may hold one half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _coerced(value: Any, kind: str) -> Any:
    if isinstance(value, str):
        text = value.strip()
        if kind == "boolean":
            return _TRUTH.get(text.lower(), value)
        if kind in ("integer", "number"):
            return _number(text, value)
        if kind in ("array", "object") and text[:1] in "[{" and text:
            return _json(text, value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "array" and isinstance(value, str) and value:
        return [value]
    return value


def _number(text: str, otherwise: Any) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return otherwise


def normal_form(arguments: str) -> str:
    """Arguments with their keys sorted, so that equal calls are equal; broken ones as they are."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _named(place: str) -> str:
    return f"The argument {place!r}" if place else "The value"


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    for kind, types in _TYPES.items():
        if isinstance(value, types):
            return _article(kind) if kind != "null" else "null"
    return type(value).__name__


class ShapeForcing(StrEnum):
    """A way to force the shape of an answer."""

    TOOL_CHOICE = "tool-choice"
    JSON_SCHEMA = "json-schema"
    PLAIN_JSON = "plain-json"


LADDER = tuple(ShapeForcing)
_FENCE = re.compile(r"```(?:json|JSON)?\s*\n(.*?)```", re.DOTALL)


def ladder_from(way: ShapeForcing | None) -> tuple[ShapeForcing, ...]:
    """The ways to try, the one that worked last time first."""
    return LADDER if way is None else (way, *(other for other in LADDER if other is not way))


def request_options(way: ShapeForcing, tool: ToolSpec) -> dict[str, Any]:
    """The arguments that a request has in addition, to force `tool`."""
    if way is ShapeForcing.TOOL_CHOICE:
        return {
            "tools": [describe(tool)],
            "tool_choice": {"type": "function", "function": {"name": tool.name}},
        }
    if way is ShapeForcing.JSON_SCHEMA:
        schema = {"name": tool.name, "schema": dict(tool.parameters)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


def forcing_messages(
    way: ShapeForcing, messages: Sequence[Message], tool: ToolSpec
) -> list[Message]:
    """The prompt, with the shape in words where the request itself can't say it."""
    if way is ShapeForcing.TOOL_CHOICE:
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
    for value in data_in(reply.text):
        written = calls_in(value, (tool.name,))
        whole = json.dumps(written[0][1] if written else value, ensure_ascii=False)
        if _fits(whole, tool):
            checked = parse_arguments(whole, _accepted(tool))
            arguments = json.dumps(checked, ensure_ascii=False)
            return Reply("", (ToolCall("call_1", tool.name, arguments),), "tool_calls", reply.usage)
    return None


def data_in(text: str) -> Iterator[dict[str, Any] | list[Any]]:
    """Find the JSON objects and lists that a text is, or that it holds in a fence or among words.

    The most likely comes first.
    """
    candidates = [text.strip(), *(block.strip() for block in _FENCE.findall(text))]
    for opening, closing in ("{}", "[]"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end:
            candidates.append(text[begin : end + 1])
    for candidate in candidates:
        value = _json(candidate, None)
        if isinstance(value, dict | list):
            yield value


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
