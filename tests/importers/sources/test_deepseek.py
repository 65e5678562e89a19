"""Exports of DeepSeek."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.sources.deepseek import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def node(id_: str, parent: str | None, *fragments: tuple[str, str], **more: Any) -> dict[str, Any]:
    message = {
        "inserted_at": f"2026-01-05T10:0{len(id_)}:00+08:00",
        "fragments": [{"type": kind, "content": text} for kind, text in fragments],
        **more,
    }
    return {"id": id_, "parent": parent, "children": [], "message": message if fragments else None}


def export(file: Path, *nodes: dict[str, Any]) -> Path:
    talk = {
        "id": "d-1",
        "title": "Boiler",
        "inserted_at": "2026-01-05T10:00:00+08:00",
        "updated_at": "2026-01-05T10:09:00+08:00",
        "mapping": {each["id"]: each for each in nodes},
    }
    return written(file, [talk])


def test_deepseek_thoughts_and_searches_are_counted_and_the_newest_branch_comes(
    tmp_path: Path, read: Any
) -> None:
    file = export(
        tmp_path / "conversations.json",
        node("r", None),
        node("1", "r", ("REQUEST", "What does it cost?"), files=[{"file_name": "bill.pdf"}]),
        node("2", "1", ("THINK", "A price."), ("RESPONSE", "120 euros.")),
        node("33", "1", ("SEARCH", "prices"), ("RESPONSE", "130 euros.")),
    )
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["What does it cost?", "130 euros."]
    assert found.messages[0].attached == ("bill.pdf",)
    assert found.branches == 1
    assert dict(found.named) == {"file": 1, "step of a tool": 1}
    assert found.created.isoformat() == "2026-01-05T02:00:00+00:00"


def test_deepseek_answers_that_broke_off_hide_nothing(tmp_path: Path, read: Any) -> None:
    asked, answered = node("1", "gone", ("REQUEST", "Hello?")), node("2", "1", ("RESPONSE", "Hi."))
    file = export(tmp_path / "x.json", asked, answered, node("333", "2", ("THINK", "Hm.")))
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["Hello?", "Hi."]
