"""How a conversation stands in a prompt, for models that work on it: a line for each message.

Whoever asks writes it (`as_line`), and the offline model reads it back (`read_lines`). A message's
further lines are indented, so nothing that was said can pass for a message of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

CONVERSATION = "## Conversation to Process"
_INDENT = "  "
_LINE = re.compile(
    r"^\[(?P<time>\d{4}-\d{2}-\d{2} \d{2}:\d{2})\] (?P<role>USER|ASSISTANT)"
    r"(?: \[tools: (?P<tools>[^\]\n]*)\])?:(?: (?P<text>.*))?$"
)
_TIME = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class Said:
    """One message; `time` is the wall clock of whoever said it."""

    time: datetime
    role: str
    text: str
    tools: tuple[str, ...] = ()


def as_line(said: Said) -> str:
    """Write a message: ``[2026-03-06 10:00] USER: What's my ...``."""
    tools = f" [tools: {', '.join(said.tools)}]" if said.tools else ""
    text = said.text.strip().replace("\n", f"\n{_INDENT}")
    return f"[{said.time.strftime(_TIME)}] {said.role.upper()}{tools}: {text}"


def read_lines(text: str) -> list[Said]:
    """Read the messages back; what stands outside of them is passed over."""
    found: list[Said] = []
    for line in text.splitlines():
        if match := _LINE.match(line):
            tools = tuple(tool for tool in (match["tools"] or "").split(", ") if tool)
            time = datetime.strptime(match["time"], _TIME)  # noqa: DTZ007 - a wall clock's time
            found.append(Said(time, match["role"].lower(), match["text"] or "", tools))
        elif found and line.startswith(_INDENT):
            last = found[-1]
            text = f"{last.text}\n{line.removeprefix(_INDENT)}"
            found[-1] = Said(last.time, last.role, text, last.tools)
    return found


def conversation_in(prompt: str) -> list[Said]:
    """The messages of a prompt that asks for a conversation to be worked on."""
    _, found, rest = prompt.partition(CONVERSATION)
    return read_lines(rest) if found else []
