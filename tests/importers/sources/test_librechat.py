"""What is taken of LibreChat's conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import Skipped
from kbtui.importers.sources.librechat import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "00000000-0000-0000-0000-000000000000"


def message(id_: str, parent: str, text: str, *, mine: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "messageId": id_, "conversationId": "c1", "parentMessageId": parent, "text": text,
        "sender": "User" if mine else "GPT-4o", "isCreatedByUser": mine,
        "createdAt": f"2025-03-01T09:00:0{id_[1:]}.000Z", **more,
    }  # fmt: skip


def talk(*messages: dict[str, Any]) -> dict[str, Any]:
    return {
        "conversationId": "c1", "endpoint": "openAI", "title": "Soup", "exportAt": "Sat Mar 01 2025",
        "branches": True, "recursive": True, "options": {"model": "gpt-4o"}, "messages": [*messages],
    }  # fmt: skip


MESSAGES = (
    message("m1", ROOT, "Leek soup?", mine=True),
    message("m2", "m1", "Too salty."),
    message("m3", "m1", "Boil leeks."),
)


@pytest.mark.parametrize("form", ["a list", "one within the other"])
def test_the_latest_branch_comes_in_either_form(tmp_path: Path, read: Any, form: str) -> None:
    messages: tuple[dict[str, Any], ...] = MESSAGES
    if form != "a list":
        messages = ({**MESSAGES[0], "children": [*MESSAGES[1:]]},)
    file = written(tmp_path / "a.json", talk(*messages))
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    (found,) = read(SOURCE, file)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "Leek soup?"),
        ("assistant", "Boil leeks."),
    ]
    assert (found.id, found.title, found.branches) == ("c1", "Soup", 1)


def test_blocks_are_text_and_what_is_hidden_is_counted(tmp_path: Path, read: Any) -> None:
    blocks = [
        {"type": "think", "think": "secretly"},
        {"type": "tool_call", "tool_call": {}},
        {"type": "text", "text": {"value": "Boil"}},
        {"type": "text", "text": "leeks."},
    ]
    messages = (
        message("m1", ROOT, "See", mine=True, files=[{"filename": "pot.png"}]),
        message("m2", "m1", "", content=blocks),
    )
    (found,) = read(SOURCE, written(tmp_path / "a.json", talk(*messages)))
    assert [each.text for each in found.messages] == ["See", "Boil\n\nleeks."]
    assert found.messages[0].attached == ("pot.png",)
    assert dict(found.named) == {"file": 1, "thought": 1, "step of a tool": 1}


def test_one_of_which_messages_are_missing_loses_none_of_the_others(
    tmp_path: Path, read: Any
) -> None:
    messages = (MESSAGES[0], message("m5", "m4", "Later"))
    (found,) = read(SOURCE, written(tmp_path / "a.json", talk(*messages)))
    assert [each.text for each in found.messages] == ["Leek soup?", "Later"]


def test_one_without_messages_and_one_that_is_cut_are_told_of(tmp_path: Path, read: Any) -> None:
    empty = talk({"parentMessageId": ROOT})
    (found,) = read(SOURCE, written(tmp_path / "a.json", empty))
    assert isinstance(found, Skipped)
    file = written(tmp_path / "b.json", talk(*MESSAGES))
    file.write_bytes(file.read_bytes()[:-30])
    (found,) = read(SOURCE, file)
    assert "breaks off" in found.why
