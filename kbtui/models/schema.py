"""Structured output: validation of tool arguments, and ways to force an answer's shape.

Validation errors are sentences that tell a model how to correct its call. Harmless mistakes of
small models are repaired: a number or boolean written as text, a single value where a list is
expected, a list where an object with one list is expected, null for an optional argument, an
unpaired surrogate. jsonschema does none of this, takes 0.1 s to import, and reports "1 is not of
type 'string'".

Endpoints differ in how they can be made to answer in a shape. These ways are tried in order, and
the one that worked is remembered: a forced tool choice; a response format with a JSON schema; the
schema in the prompt, with code fences tolerated. (llama.cpp's server ignores the object form of
``tool_choice``; many proxies reject one or two of them.)
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kbtui.errors import UsageError
from kbtui.models.port import Message, Reply, ToolCall, ToolSpec
from kbtui.models.written_calls import calls_in
from kbtui.text import storable

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_BOOLEANS = {"true": True, "false": False}


_NAMES = re.compile(r"(?:tags|related)\Z")
_BETWEEN, _BULLET = re.compile(r"[,;\n]"), re.compile(r"\A\s*[-*•]\s")
_HASHED = re.compile(r"#([^\s,#]+)")
_ALL_HASHED = re.compile(r"(?:#[^\s,#]+[\s,]*)+")


class ArgumentError(UsageError):
    """Invalid arguments of a tool call."""


def parse_arguments(
    text: str, schema: Mapping[str, Any], renamed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Parse and validate the JSON arguments of a tool call; `renamed` as in `ToolSpec`.

    Raises:
        ArgumentError: The text isn't a JSON object, or doesn't match the schema.
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
        return parse_arguments(value, schema, renamed) if is_object else _refuse_non_object(value)
    if isinstance(value, dict):
        value = {renamed.get(name, name): each for name, each in value.items()} | {
            name: each for name, each in value.items() if name not in renamed
        }
    return check_arguments(value, schema)


def check_arguments(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a value against an object schema, and return it with harmless mistakes repaired.

    Raises:
        ArgumentError: The value doesn't match the schema.
    """
    required = schema.get("required", ())
    if isinstance(value, list) and len(required) == 1 and _is_list(schema, required[0]):
        value = {required[0]: value}
    if not isinstance(value, dict):
        return _refuse_non_object(value)
    checked = _check(value, {"type": "object", **schema}, "")
    return dict(checked)


def _is_list(schema: Mapping[str, Any], name: str) -> bool:
    return bool(schema.get("properties", {}).get(name, {}).get("type") == "array")


def _refuse_non_object(value: Any) -> dict[str, Any]:
    raise ArgumentError(f"The arguments must be a JSON object, not {_type_name(value)}.")


def _check(value: Any, schema: Mapping[str, Any], place: str) -> Any:
    kind = schema.get("type")
    if isinstance(value, str):
        value = storable(value)
    if isinstance(kind, str):
        value = _coerce(value, kind, place)
        if not _has_type(value, kind):
            raise ArgumentError(
                f"{_describe_path(place)} must be {_with_article(kind)}, not {_type_name(value)}."
            )
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(map(str, schema["enum"]))
        raise ArgumentError(f"{_describe_path(place)} must be one of {choices}; {value!r} is not.")
    if isinstance(value, dict):
        return _check_object(value, schema, place)
    if isinstance(value, list):
        return _check_list(value, schema, place)
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        raise ArgumentError(
            f"{_describe_path(place)} is longer than {schema['maxLength']} characters."
        )
    return value


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    given = {name: item for name, item in value.items() if item is not None or name in required}
    if missing := [name for name in required if name not in given]:
        raise ArgumentError(f"{_describe_path(_join_path(place, missing[0]))} is missing.")
    extra = schema.get("additionalProperties", True)
    if extra is False and properties:
        _check_names(given, properties)
    free = extra if isinstance(extra, dict) else {}
    return {
        storable(name): _check(item, properties.get(name, free), _join_path(place, name))
        for name, item in given.items()
    }


def _check_names(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if unknown := next((name for name in given if name not in known), None):
        names = ", ".join(list(known)[:12])
        raise ArgumentError(f"There is no argument {unknown!r}; there are: {names}.")


def _check_list(value: list[Any], schema: Mapping[str, Any], place: str) -> list[Any]:
    if len(value) > schema.get("maxItems", len(value)):
        raise ArgumentError(f"{_describe_path(place)} has more than {schema['maxItems']} items.")
    items = schema.get("items", {})
    return [_check(item, items, f"{place}[{number}]") for number, item in enumerate(value)]


def _coerce(value: Any, kind: str, place: str) -> Any:
    if isinstance(value, str):
        return _coerce_list(value, place) if kind == "array" else _coerce_text(value, kind)
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def _coerce_text(value: str, kind: str) -> Any:
    text = value.strip()
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), value)
    if kind in ("integer", "number"):
        return _number(text, value)
    return _parse_json(text, value) if kind == "object" and text[:1] == "{" else value


def _coerce_list(value: str, place: str) -> Any:
    """Return a list that was given as a text: as JSON or Python write one, or as people list tags.

    Only names without commas are told apart by them.
    """
    text = value.strip()
    if text[:1] in ("[", "{"):
        found = _parse_json(text, None)
        if found is None:
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                found = ast.literal_eval(text)
        return value if found is None else found
    if _NAMES.search(place):
        tags = _HASHED.findall(text) if _ALL_HASHED.fullmatch(text) else _BETWEEN.split(text)
        return [tag for each in tags if (tag := _BULLET.sub("", each).strip())]
    return [value] if text else []


def _number(text: str, default: Any) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return default


def normal_form(arguments: str) -> str:
    """Return arguments with sorted keys, for comparing calls; invalid JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _parse_json(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _join_path(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _describe_path(place: str) -> str:
    return f"The argument {place!r}" if place else "The value"


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    for kind, types in _TYPES.items():
        if isinstance(value, types):
            return _with_article(kind) if kind != "null" else "null"
    return type(value).__name__


class ShapeForcing(StrEnum):
    """A way to force an answer's shape."""

    TOOL_CHOICE = "tool-choice"
    JSON_SCHEMA = "json-schema"
    PLAIN_JSON = "plain-json"


LADDER = tuple(ShapeForcing)
_FENCE = re.compile(r"```(?:json|JSON)?\s*\n(.*?)```", re.DOTALL)


def ladder_from(way: ShapeForcing | None) -> tuple[ShapeForcing, ...]:
    """Return the ways to try, starting with the one that worked last time."""
    return LADDER if way is None else (way, *(other for other in LADDER if other is not way))


def request_options(way: ShapeForcing, tool: ToolSpec) -> dict[str, Any]:
    """Return the request options that force a call of `tool`."""
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
    """Return the prompt, with the schema added where the request options don't carry it."""
    if way is ShapeForcing.TOOL_CHOICE:
        return list(messages)
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    order = (
        f"{tool.description}\n\nAnswer with one JSON object and nothing else. "
        f"It must fit this JSON Schema:\n{schema}"
    )
    return [*messages, Message("user", order)]


def accept(reply: Reply, tool: ToolSpec) -> Reply | None:
    """Return a complete, valid answer as a call of `tool`, or None for any other answer."""
    if reply.finish not in ("stop", "tool_calls"):
        return None
    for call in reply.tool_calls:
        if call.name == tool.name and _is_valid(call.arguments, tool):
            return Reply(reply.text, (call,), "tool_calls", reply.usage)
    for value in data_in(reply.text):
        written = calls_in(value, (tool.name,))
        whole = json.dumps(written[0][1] if written else value, ensure_ascii=False)
        if _is_valid(whole, tool):
            checked = parse_arguments(whole, _validation_schema(tool))
            arguments = json.dumps(checked, ensure_ascii=False)
            return Reply("", (ToolCall("call_1", tool.name, arguments),), "tool_calls", reply.usage)
    return None


def data_in(text: str) -> Iterator[dict[str, Any] | list[Any]]:
    """Yield the JSON objects and lists that a text consists of or contains, most likely first."""
    candidates = [text.strip(), *(block.strip() for block in _FENCE.findall(text))]
    for opening, closing in ("{}", "[]"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end:
            candidates.append(text[begin : end + 1])
    for candidate in candidates:
        value = _parse_json(candidate, None)
        if isinstance(value, dict | list):
            yield value


def describe(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool's definition in the format of the OpenAI protocol."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _validation_schema(tool: ToolSpec) -> Mapping[str, Any]:
    return tool.parameters if tool.accepted is None else tool.accepted


def _is_valid(arguments: str, tool: ToolSpec) -> bool:
    try:
        parse_arguments(arguments, _validation_schema(tool))
    except ArgumentError:
        return False
    return True
