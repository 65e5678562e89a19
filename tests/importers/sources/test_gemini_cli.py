"""Sessions of Gemini CLI, in both forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.port import Skipped
from kbtui.importers.sources.gemini_cli import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = {"sessionId": "s-1", "projectHash": "ab", "startTime": "2026-01-05T10:00:00Z"}


def said(id_: str, kind: str, text: Any, **more: Any) -> dict[str, Any]:
    return {"id": id_, "timestamp": "2026-01-05T10:00:01Z", "type": kind, "content": text, **more}


TALK = [
    said("1", "user", [{"text": "How deep?"}, {"inlineData": {}}]),
    said("2", "gemini", "23 metres.", thoughts=[{"subject": "x"}], toolCalls=[{}, {}]),
    said("3", "info", "Request cancelled."),
]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_gemini_cli_sessions_of_both_forms_are_conversations(
    form: str, tmp_path: Path, read: Any
) -> None:
    file = tmp_path / f"session-1.{form}"
    lines = [ABOUT, *TALK] if form == "jsonl" else [{**ABOUT, "messages": TALK}]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    (found,) = read(SOURCE, file)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "How deep?"),
        ("assistant", "23 metres."),
    ]
    assert found.id == "s-1"
    assert dict(found.named) == {
        "file": 1,
        "notice of the program": 1,
        "step of a tool": 2,
        "thought": 1,
    }


def test_gemini_cli_lines_are_written_again_and_rewound(tmp_path: Path, read: Any) -> None:
    lines = [ABOUT, TALK[0], said("2", "gemini", "23"), said("2", "gemini", "23 metres.")]
    lines += [said("4", "user", "Wrong way"), {"$rewindTo": "4"}, said("5", "user", "How wide?")]
    file = tmp_path / "session-2.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["How deep?", "23 metres.", "How wide?"]
    assert found.branches == 1


def test_gemini_cli_subagents_are_named(tmp_path: Path, read: Any) -> None:
    file = tmp_path / "session-3.json"
    file.write_text(json.dumps({**ABOUT, "kind": "subagent", "messages": TALK}), "utf-8")
    (found,) = read(SOURCE, file)
    assert isinstance(found, Skipped)


@pytest.mark.parametrize("is_bare", [False, True])
def test_gemini_cli_checkpoints_are_conversations(
    tmp_path: Path, read: Any, *, is_bare: bool
) -> None:
    spoken = [
        ("user", {"text": "This is the Gemini CLI. We are setting up the context for our chat."}),
        ("model", {"text": "Got it. Thanks for the context!"}),
        ("user", {"text": "How deep?"}),
        ("model", {"functionCall": {"name": "look"}}),
        ("user", {"functionResponse": {"name": "look"}}),
        ("model", {"text": "23 metres."}),
    ]
    file = tmp_path / "checkpoint-well.json"
    history = [{"role": role, "parts": [part]} for role, part in spoken]
    whole = history if is_bare else {"history": history, "authType": "oauth-personal"}
    file.write_text(json.dumps(whole), "utf-8")
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["How deep?", "23 metres."]
    assert found.id == "checkpoint-well"
    assert dict(found.named) == {"notice of the program": 2, "step of a tool": 1}


def test_a_content_is_a_text_a_part_or_a_list_of_both(tmp_path: Path, read: Any) -> None:
    messages = [
        said("1", "user", ["How deep", {"text": " is it?"}]),
        said("2", "gemini", {"text": "23 metres."}),
        said("3", "user", ["And", [" wide?"]]),
    ]
    file = tmp_path / "session-1.json"
    file.write_text(json.dumps({**ABOUT, "messages": messages}), "utf-8")
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["How deep is it?", "23 metres.", "And wide?"]


def test_what_is_said_before_and_after_a_step_stays_apart(tmp_path: Path, read: Any) -> None:
    parts = [
        {"text": "thinking", "thought": True},
        {"text": "I look"},
        {"text": " first."},
        {"functionCall": {"name": "look"}},
        {"text": "23 metres."},
    ]
    history = [
        {"role": "user", "parts": [{"text": "How deep?"}]},
        {"role": "model", "parts": parts},
    ]
    file = tmp_path / "checkpoint-well.json"
    file.write_text(json.dumps(history), "utf-8")
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["How deep?", "I look first.\n\n23 metres."]
