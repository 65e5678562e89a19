"""Sessions of Codex CLI, of all its generations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.reading import OF_A_SUBAGENT
from kbtui.importers.sources.codex import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

META = {"type": "session_meta", "payload": {"id": "c-1", "cwd": "/app", "instructions": "be good"}}
CONTEXT = "<environment_context><cwd>/app</cwd></environment_context>"


def event(kind: str, text: str) -> dict[str, Any]:
    payload = {"type": kind, "message": text}
    return {"timestamp": "2026-05-01T10:00:00Z", "type": "event_msg", "payload": payload}


def bare(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def item(role: str, text: str) -> dict[str, Any]:
    when = "2026-05-01T10:00:01Z"
    return {"timestamp": when, "type": "response_item", "payload": bare(role, text)}


def texts(file: Path, lines: list[Any], read: Any) -> list[tuple[str, str]]:
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    (found,) = read(SOURCE, file)
    return [(each.role, each.text) for each in found.messages]


def test_what_is_told_twice_is_taken_once(tmp_path: Path, read: Any) -> None:
    lines = [
        META,
        item("developer", "rules"),
        item("user", CONTEXT),
        event("user_message", "Fix it"),
        item("user", "Fix it"),
        {"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "hm"}},
        {"type": "response_item", "payload": {"type": "function_call", "arguments": "{}"}},
        event("agent_message", "Done"),
        item("assistant", "Done"),
        {"type": "compacted", "payload": {"message": "so far"}},
    ]
    assert texts(tmp_path / "rollout.jsonl", lines, read) == [
        ("user", "Fix it"),
        ("assistant", "Done"),
    ]


@pytest.mark.parametrize(
    "injected",
    [
        CONTEXT,
        "<user_instructions>\nx\n</user_instructions>",
        "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
        "<turn_aborted>x</turn_aborted>",
    ],
)
def test_context_for_the_model_is_no_users_word(injected: str, tmp_path: Path, read: Any) -> None:
    lines = [META, item("user", injected), item("user", "Fix it"), item("assistant", "Done")]
    assert texts(tmp_path / "x.jsonl", lines, read) == [("user", "Fix it"), ("assistant", "Done")]


def test_an_editors_context_is_cut_off_the_request(tmp_path: Path, read: Any) -> None:
    whole = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it\n"
    assert texts(tmp_path / "x.jsonl", [META, event("user_message", whole)], read) == [
        ("user", "Fix it")
    ]


def test_the_generation_of_bare_lines_is_read(tmp_path: Path, read: Any) -> None:
    first = {"id": "old-1", "timestamp": "2025-06-01T08:00:00Z", "instructions": "x"}
    lines = [
        first,
        bare("user", CONTEXT),
        bare("user", "Hello"),
        {"record_type": "state"},
        bare("assistant", "Hi"),
    ]
    assert texts(tmp_path / "x.jsonl", lines, read) == [("user", "Hello"), ("assistant", "Hi")]
    (found,) = read(SOURCE, tmp_path / "x.jsonl")
    assert (found.id, str(found.created)) == ("old-1", "2025-06-01 08:00:00+00:00")


def test_the_generation_of_one_object_is_read(tmp_path: Path, read: Any) -> None:
    file = tmp_path / "rollout.json"
    session = {"id": "older", "timestamp": "2025-05-01T08:00:00Z"}
    file.write_text(json.dumps({"session": session, "items": [bare("user", "Hello")]}, indent=2))
    (found,) = read(SOURCE, file)
    assert (found.id, found.messages[0].text, found.title) == ("older", "Hello", "Hello")


def test_a_fork_keeps_its_own_id_and_a_subagent_is_nobodys_conversation(
    tmp_path: Path, read: Any
) -> None:
    parent = {"type": "session_meta", "payload": {"id": "parent"}}
    sub = {"type": "session_meta", "payload": {"id": "sub", "source": {"subagent": "review"}}}
    name = {
        "type": "event_msg",
        "payload": {"type": "thread_name_updated", "thread_name": "Repair"},
    }
    for file, lines in {
        "a": [META, parent, event("user_message", "Hello"), name],
        "b": [sub, event("user_message", "an order")],
    }.items():
        (tmp_path / f"{file}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found, subagent = read(SOURCE, tmp_path)
    assert subagent == Skipped("b.jsonl", OF_A_SUBAGENT)
    assert isinstance(found, ImportedConversation)
    assert (found.id, found.title) == ("c-1", "Repair")


def test_bad_lines_are_told_of_and_nulls_break_nothing(tmp_path: Path, read: Any) -> None:
    file = tmp_path / "x.jsonl"
    odd: list[dict[str, Any]] = [
        {"type": kind, "payload": {"type": None}} for kind in ("response_item", "event_msg")
    ]
    odd += [
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": None}}
    ]
    lines = [json.dumps(each) for each in (META, *odd, event("user_message", "Hello"))]
    file.write_text("\n".join([*lines[:2], '{"cut', *lines[2:]]))
    skipped, found = read(SOURCE, file)
    assert isinstance(skipped, Skipped)
    assert [each.text for each in found.messages] == ["Hello"]


def completed(kind: str, text: str, form: str = "text") -> dict[str, Any]:
    inner = {"type": kind, "content": [{"type": form, "text": text}]}
    payload = {"type": "item_completed", "item": inner}
    return {"timestamp": "2026-05-01T10:00:00Z", "type": "event_msg", "payload": payload}


def test_codex_logs_that_go_on_in_another_notation_lose_and_double_nothing(
    tmp_path: Path, read: Any
) -> None:
    lines = [
        META,
        item("user", "One?"),
        event("user_message", "One?"),
        item("assistant", "One."),
        event("agent_message", "One."),
        completed("UserMessage", "Two?"),
        item("user", "Two?"),
        completed("AgentMessage", "Two.", "Text"),
        completed("Reasoning", ""),
        item("user", "Three?"),
    ]
    assert texts(tmp_path / "x.jsonl", lines, read) == [
        ("user", "One?"),
        ("assistant", "One."),
        ("user", "Two?"),
        ("assistant", "Two."),
        ("user", "Three?"),
    ]


def test_codex_completed_items_count_whatever_their_case_and_plans_too(
    tmp_path: Path, read: Any
) -> None:
    said = [{"type": "userMessage", "content": [{"type": "text", "text": "How wide?"}]}]
    said += [
        {"type": kind, "text": text} for kind, text in (("Plan", "Ask"), ("agent_message", "2"))
    ]
    lines = [
        {"type": "event_msg", "payload": {"type": "item_completed", "item": each}} for each in said
    ]
    assert texts(tmp_path / "a.jsonl", [META, *lines], read) == [
        ("user", "How wide?"),
        ("assistant", "Ask"),
        ("assistant", "2"),
    ]


def test_codex_history_written_again_at_its_own_times_counts_once(
    tmp_path: Path, read: Any
) -> None:
    said = [item("user", "How wide?"), item("assistant", "Two.")]
    exact = [{**each, "timestamp": f"2026-05-01T10:0{n}:00.250Z"} for n, each in enumerate(said)]
    later = {**exact[0], "timestamp": "2026-05-01T10:05:00.250Z"}
    assert texts(tmp_path / "a.jsonl", [META, *exact, *exact, later], read) == [
        ("user", "How wide?"),
        ("assistant", "Two."),
        ("user", "How wide?"),
    ]
