"""Parses tool calls that models write into their text, in the forms of their families.

Most forms are JSON that names the tool and holds the arguments, bare, in a fence, or between tags.
The others are JSON behind the name, elements that hold one argument each, calls as in Python, and
Gemma's. Which marks are around them doesn't matter, so an unknown mark around a known form doesn't
either.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Any

_NAMES = ("name", "tool", "function", "type", "action", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "input", "args")
_WRAPPINGS = ("function", "tool_call", "tool_calls")
_MARK = r"<[|\uff5c/]?[a-z][\w:|\uff5c\u2581]{0,40}[|\uff5c]?>|\[/?tool_calls\]|\[args\]"
_MARKS = re.compile(rf"(?:\s|```\w*|~~~\w*|[;,]|{_MARK})*", re.IGNORECASE)
_JSON_PREFIXES = ('{"', "{'", "{}", "[{", '["', "[]")
_PARTS_OF_MARKS = ("```", "<tool_calls>", "</tool_calls>")
_LOOKAHEAD = 64
_CALL_PREFIXES = tuple(
    [
        f'{opening}"{key}"'
        for opening in ("{", "[{")
        for key in (*_NAMES, *_ARGUMENTS, *_WRAPPINGS, "id", "tool_call_id")
    ]
)
_PYTHON_PREFIXES = ("", "[", "print(", "default_api.", "print(default_api.")
_XML_PREFIXES = ("<tool_call", "<function", "<invoke", "call:")

Call = tuple[str, Any]
"""The name of a tool and its arguments, an object or its JSON text."""


class Guess(Enum):
    """Whether a text is a call, as far as its beginning tells."""

    NO = "no"
    OPEN = "not known yet"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """The result of parsing a text.

    Attributes:
        calls: The calls in their order.
        is_data: The text is JSON or a call's mark, perhaps malformed, and calls no tool.
    """

    calls: tuple[Call, ...] = ()
    is_data: bool = False


def guess_data(prefix: str) -> Guess:
    """Return whether a text with this beginning is a tool call or other JSON."""
    rest = prefix[_skip_marks(prefix, 0) :]
    if any(mark.startswith(rest) for mark in _PARTS_OF_MARKS):
        return Guess.OPEN
    return _guess(rest, _JSON_PREFIXES)


def guess_call(prefix: str, tools: Collection[str]) -> Guess:
    """Return whether a text with this beginning is a call, and no other JSON or code."""
    named = [f"{before}{name}(" for name in tools for before in _PYTHON_PREFIXES]
    return _guess(prefix.lower(), (*_CALL_PREFIXES, *_XML_PREFIXES, *named))


def _guess(text: str, beginnings: Sequence[str]) -> Guess:
    begun = "".join(text[:_LOOKAHEAD].split())
    if any(begun.startswith(each) for each in beginnings):
        return Guess.YES
    return Guess.OPEN if any(each.startswith(begun) for each in beginnings) else Guess.NO


def read_written(text: str, tools: Collection[str]) -> TextWithCalls:
    """Parse the text from its first mark on; prose after calls is dropped: it precedes results."""
    for read in (_elements, _after_name, _as_json, _as_python, _as_gemma):
        if calls := tuple(read(text, tools)):
            return TextWithCalls(calls)
    return TextWithCalls(is_data=_is_data(text))


def calls_in(value: Any, tools: Collection[str]) -> list[Call]:
    """Return the calls in a JSON value; none if any part of it is something else."""
    if isinstance(value, list):
        found = [calls_in(each, tools) for each in value]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    wrapped = next((w for w in map(value.get, _WRAPPINGS) if isinstance(w, dict | list)), None)
    return _call(value, tools) if wrapped is None else calls_in(wrapped, tools)


def _call(value: dict[str, Any], tools: Collection[str]) -> list[Call]:
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name in tools and isinstance(inner, dict):
            return [(name, inner)]
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


# JSON ----------------------------------------------------------------------------------------


def _as_json(text: str, tools: Collection[str]) -> Iterator[Call]:
    calls = takewhile(bool, (calls_in(value, tools) for value, _ in _values(text)))
    return (call for found in calls for call in found)


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values that a text begins with, each with the place after it."""
    position = _skip_marks(text, 0)
    while position < len(text):
        try:
            value, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        position = _skip_marks(text, position)
        yield value, position


def _is_data(text: str) -> bool:
    """Return whether a text is JSON alone, or broken at its beginning."""
    if guess_data(text) is Guess.NO:
        return text.startswith(("<", "["))
    ends = [end for _, end in _values(text)]
    end = ends[-1] if ends else _skip_marks(text, 0)
    return bool(ends) == (end >= len(text))


# JSON behind the tool's name -----------------------------------------------------------------

_LEADS = (
    r"\bto=(?:functions\.)?|\bfunctions?\.|\[tool_calls\]\s*|>>>\s*|\baction:\s*"
    r"|<[|\uff5c]tool[\u2581_]call[\u2581_]begin[|\uff5c]>(?:function<[|\uff5c]tool[\u2581_]sep[|\uff5c]>)?"
    r"|<\uff5ctool\u2581sep\uff5c>|<function="
)
_GAP = (
    r"(?::\d+)?(?:\s|>|json|commentary|```\w*|\[args\]|\[call_id\]\w+|action input:"
    r"|<[|\uff5c][\w\u2581]{1,40}[|\uff5c]>)*(?=\{)"
)


def _after_name(text: str, tools: Collection[str]) -> Iterator[Call]:
    names = "|".join(map(re.escape, sorted(tools, key=len, reverse=True)))
    if not names:
        return
    position = 0
    pattern = re.compile(rf"(?:{_LEADS})({names}){_GAP}", re.IGNORECASE)
    while found := pattern.search(text, position):
        try:
            value, position = json.JSONDecoder().raw_decode(text, found.end())
        except (ValueError, RecursionError):
            return
        yield found[1], value


# Elements that hold one argument each --------------------------------------------------------

_ELEMENT = re.compile(r"<(?:function|invoke|tool_call)(?:=|\s+name=[\"']|>\s*)([\w.-]+)[\"']?\s*>?")
_ARGUMENT = re.compile(
    r"<parameter(?:=|\s+name=[\"'])([\w.-]+)[\"']?[^>]*>(.*?)</parameter>"
    r"|<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>",
    re.DOTALL,
)
_PREFIXES = re.compile(r"(?<=[</])(?:\uff5cdsml\uff5c|minimax:|seed:)", re.IGNORECASE)


def _elements(text: str, tools: Collection[str]) -> Iterator[Call]:
    text = _PREFIXES.sub("", text)
    begun = [found for found in _ELEMENT.finditer(text) if found[1] in tools]
    for number, found in enumerate(begun, 1):
        end = begun[number].start() if number < len(begun) else len(text)
        held = _ARGUMENT.findall(text, found.end(), end)
        if held:
            yield (
                found[1],
                {key or other: _plain(value or last) for key, value, other, last in held},
            )


def _plain(value: str) -> Any:
    """Return an argument without the line ends around it; a list or an object as what it is."""
    value = value.removeprefix("\n").removesuffix("\n")
    if value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# Calls as in Python --------------------------------------------------------------------------


def _as_python(text: str, tools: Collection[str]) -> Iterator[Call]:
    source = text[_skip_marks(text, 0) :]
    ends = [at for at in (source.find("```"), source.find("<|")) if at >= 0]
    try:
        tree = ast.parse(source[: min(ends, default=len(source))].strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Expr) else None
        for each in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            yield from _python_call(each, tools)


def _python_call(node: ast.expr | None, tools: Collection[str]) -> Iterator[Call]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "print" and node.args:
        yield from _python_call(node.args[0], tools)
    elif name in tools and not node.args:
        try:
            yield (
                name,
                {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg},
            )
        except (ValueError, TypeError, RecursionError):
            return


# Gemma's -------------------------------------------------------------------------------------

_GEMMA_CALL = re.compile(r"call:([\w.-]+)\{(.*?)\}(?=\s*(?:<|call:|\Z))", re.DOTALL)
_GEMMA_TEXT = re.compile(r"<escape>(.*?)<escape>|<\|\"\|>(.*?)<\|\"\|>", re.DOTALL)
_GEMMA_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")


def _as_gemma(text: str, tools: Collection[str]) -> Iterator[Call]:
    for found in _GEMMA_CALL.finditer(text):
        if found[1] not in tools:
            continue
        texts: list[str] = []

        def keep(each: re.Match[str], texts: list[str] = texts) -> str:
            texts.append(each[1] if each[1] is not None else each[2])
            return f'"\\u0000{len(texts) - 1}"'

        source = _GEMMA_KEY.sub(r'\1"\2":', f"{{{_GEMMA_TEXT.sub(keep, found[2])}}}")
        try:
            value = json.loads(source)
        except (ValueError, RecursionError):
            continue
        yield found[1], _filled(value, texts)


def _filled(value: Any, texts: list[str]) -> Any:
    """Return a value with its texts put back."""
    if isinstance(value, dict):
        return {key: _filled(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, texts) for each in value]
    is_text = isinstance(value, str) and value.startswith("\0")
    return texts[int(value[1:])] if is_text else value
