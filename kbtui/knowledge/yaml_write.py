"""Writes single YAML values the way a person would, quoted only where they have to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import yaml

_PLAIN = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=[^\s,\[\]{}])")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# All that YAML doesn't call printable, and the line breaks that only YAML knows.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_RESOLVER: Any = yaml.resolver.Resolver()


def as_loaded(value: Any) -> Any:
    """Give the value as the hardened reader will read it back: text all through."""
    if isinstance(value, Mapping):
        return {str(key): as_loaded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_loaded(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(sep="T")
    return value.isoformat() if isinstance(value, date) else str(value)


def value_text(value: Any, style: str = "", *, flow: bool = False) -> str:
    """Write any value on one line; `style` is the quote that a scalar stood in before."""
    if isinstance(value, Mapping):
        pairs = (
            f"{scalar_text(str(key), flow=True)}: {value_text(item, flow=True)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(item, flow=True) for item in value) + "]"
    if isinstance(value, str):
        return scalar_text(value, style, flow=flow)
    # Numbers, dates and truth values are meant as such, unless they stood in quotes before.
    text = str(as_loaded(value))
    return scalar_text(text, style, flow=flow) if style in {"'", '"'} else text


def scalar_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """Write a text, in its former quotes where there were any, plain where that is safe."""
    if style == "'" and not re.search(r"[\n\r]", value) and not _UNPRINTABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and _may_be_plain(value, flow=flow):
        return value
    escaped = "".join(_ESCAPES.get(char, char) for char in value)
    return '"' + _UNPRINTABLE.sub(_escape, escaped) + '"'


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _may_be_plain(value: str, *, flow: bool) -> bool:
    if not _PLAIN.match(value) or value != value.strip() or value.startswith(("---", "...")):
        return False
    if re.search(r"[\n\r\t]|: | #|:$", value) or _UNPRINTABLE.search(value):
        return False
    # Readers disagree about what `?` and `:` may do between brackets.
    if flow and re.search(r"[,\[\]{}?:]", value):
        return False
    # What another program would read as a number or a truth value is quoted; a date is not:
    # it is meant to be one.
    tag = _RESOLVER.resolve(yaml.ScalarNode, value, (True, False))
    if tag == "tag:yaml.org,2002:timestamp":
        return _is_date(value)
    return bool(tag == "tag:yaml.org,2002:str")


def _is_date(value: str) -> bool:
    """True if a text that looks like a date is one; other programs stumble over 2026-02-31."""
    try:
        yaml.safe_load(value)
    except ValueError:
        return False
    return True
