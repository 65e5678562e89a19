"""Texts of others as they stand in a prompt: conversations by line, files in blocks between tags.

A message's further lines are indented and a line like a tag is moved in by a blank, so nothing
that was said can pass for one of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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


FILE, ARCHIVE, PROBLEMS, CATALOGUE = "file", "archive", "problems", "index"
_TAGS = f"{FILE}|{ARCHIVE}|{PROBLEMS}|{CATALOGUE}"
_LIKE_TAG = re.compile(rf"^(?=</?(?:{_TAGS})\b)", re.MULTILINE | re.IGNORECASE)


def as_block(tag: str, text: str, **attributes: object) -> str:
    """Write a block; attributes that are None are left out."""
    said = "".join(
        f' {name}="{_plain(str(value))}"' for name, value in attributes.items() if value is not None
    )
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    return f"<{tag}{said}>\n{_LIKE_TAG.sub(' ', whole)}</{tag}>"


def _plain(value: str) -> str:
    return " ".join(value.replace('"', "'").split())
