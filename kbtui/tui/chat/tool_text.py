"""What a tool was asked, in one line and in full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONG = 60
_ONE_LINE = 100


def argument_line(arguments: Mapping[str, Any]) -> str:
    """The arguments that identify the call, e.g. ``"auth" limit=5``; long texts are left out."""
    parts: list[str] = []
    for name, value in arguments.items():
        if isinstance(value, str):
            if 0 < len(value) <= _LONG and "\n" not in value:
                parts.append(f'"{value}"' if not parts else f"{name}={value}")
        elif isinstance(value, bool | int | float):
            parts.append(f"{name}={value}")
    return shorten(" ".join(parts), _ONE_LINE)


def argument_details(arguments: Mapping[str, Any]) -> str:
    """All arguments, each on a line of its own or below its name."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
    return "\n".join(lines)


def parsed_arguments(text: str) -> dict[str, Any]:
    """A call's arguments as the model wrote them; what isn't an object is shown as it is."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": text}
