"""Of each newer layout every text comes in, or is named and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.parts import count
from tests.importers.twins import TWINS

if TYPE_CHECKING:
    from pathlib import Path

LEFT = {
    "Claude, 2026": {
        "chat_messages.content.content.text": 1,  # a tool's answer to what came as a file
        "chat_messages.content.thinking": 1,
        "creator.full_name": 1,
        "full_name": 1,
    },
    "ChatGPT, 2026": {"mapping.f.message.content.thoughts.summary": 1},
    "Gemini": {"header": 1, "products": 1, "title": 1},  # the name of the product, and a verb
    "Gemini, web page": {".html": 3},
    "LibreChat": {"exportAt": 1},
    "Telegram": {"about": 1},
    "Slack": {"files.name": 1},
    "WhatsApp": {".txt": 1},
    "Joplin": {".md": 1},
    "Cursor": {"text": 1},
    "Continue": {"history.message.content": 1},
    "aider": {".md": 8},
    "Codex CLI": {"payload.instructions": 1, "payload.message": 1},
}
"""Where texts stand that don't come, and how many."""
NAMED = {
    "Claude, 2026": {"file": 1, "thought": 1},
    "ChatGPT, 2026": {"thought": 1},
    "Open WebUI": {"file": 1},
    "Telegram": {"picture": 1},
    "Slack": {"file": 1},
    "WhatsApp": {"notice of the program": 1},
    "Cursor": {"picture": 1, "step of a tool": 1, "thought": 1},
    "Continue": {"file": 1, "picture": 1, "step of a tool": 2, "thought": 1},
    "aider": {"command to the program": 1, "notice of the program": 4},
    "Codex CLI": {"thought": 1},
}


@pytest.mark.parametrize("name", TWINS)
def test_what_does_not_come_is_named(tmp_path: Path, name: str) -> None:
    TWINS[name](tmp_path / "export")
    found = count(tmp_path / "export")
    assert found["out"] > 0
    assert found["rest"] == LEFT.get(name, {})
    assert found["named"] == NAMED.get(name, {})
