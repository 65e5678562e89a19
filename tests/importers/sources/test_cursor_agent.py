"""Transcripts of Cursor's agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import Skipped
from kbtui.importers.sources.cursor_agent import SOURCE

if TYPE_CHECKING:
    from pathlib import Path


def put(file: Path, *lines: tuple[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    shapes = ({"role": role, "message": {"content": content}} for role, content in lines)
    file.write_text("".join(f"{json.dumps(each)}\n" for each in shapes), "utf-8")
    return file


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def test_cursor_queries_come_without_what_the_program_adds(tmp_path: Path, read: Any) -> None:
    asked = "<attached_files>x</attached_files>\n<user_query>\nHow long?\n</user_query>"
    call = {"type": "tool_use", "name": "Read", "input": {}}
    put(tmp_path / "a/5f0c.jsonl", ("user", [text(asked)]), ("assistant", [text("30."), call]))
    (found,) = read(SOURCE, tmp_path)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "How long?"),
        ("assistant", "30."),
    ]
    assert found.id == "5f0c"
    assert found.created is not None
    assert dict(found.named) == {"step of a tool": 1}


def test_cursor_subagents_are_named_and_plain_strings_are_text(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "subagents/one.jsonl", ("user", [text("an order")]))
    put(tmp_path / "two.jsonl", ("user", "Hello"), ("assistant", "Hi"))
    subagent, found = read(SOURCE, tmp_path)
    assert isinstance(subagent, Skipped)
    assert [each.text for each in found.messages] == ["Hello", "Hi"]


@pytest.mark.parametrize("form", ["utf-8", "of windows"])
def test_cursor_transcripts_in_plain_text_are_conversations(
    tmp_path: Path, read: Any, form: str
) -> None:
    file = tmp_path / ".cursor/projects/garden/agent-transcripts/77.txt"
    file.parent.mkdir(parents=True)
    text = (
        "user:\n<user_query>\nHow wide?\n</user_query>\n\nassistant:\n[Thinking] I look.\nAt it.\n\n"
        "[Tool call] Read\n  path: a.md\n[Tool result] Read\n\nassistant:\nTwo metres.\n\nuser: no\n"
    )
    if form == "of windows":
        text = "\ufeff" + text.replace("\n", "\r\n")
    file.write_bytes(text.encode())
    with OpenedExport(tmp_path) as opened:
        assert find_source(opened) is SOURCE
    (found,) = read(SOURCE, tmp_path)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "How wide?"),
        ("assistant", "Two metres.\n\nuser: no"),
    ]
    assert found.id == "77"
    assert dict(found.named) == {"step of a tool": 2, "thought": 1}
