"""How a conversation stands in a prompt, for models that work on it: a line for each message.

A message's further lines are indented, so nothing that was said can pass for one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

CONVERSATION = "## Conversation to Process"
_INDENT = "  "
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
