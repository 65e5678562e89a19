"""Exports of Grok."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.port import Skipped
from kbtui.importers.sources.grok import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def answer(id_: str, parent: str | None, sender: str, text: str, **more: Any) -> dict[str, Any]:
    time = {"$date": {"$numberLong": f"{1748772000000 + 1000 * int(id_[1:])}"}}
    shape = {"_id": id_, "message": text, "sender": sender, "create_time": time}
    return {"response": {**shape, "parent_response_id": parent, **more}, "share_link": None}


def export(file: Path, *answers: dict[str, Any]) -> Path:
    about = {"id": "g-1", "title": "Boiler", "create_time": "2025-06-01T10:00:00.000000Z"}
    return written(file, {"conversations": [{"conversation": about, "responses": [*answers]}]})


def test_grok_times_of_mongodb_are_read_and_steps_are_counted(tmp_path: Path, read: Any) -> None:
    file = export(
        tmp_path / "prod-grok-backend.json",
        answer("r1", None, "human", "What does it cost?", file_attachments=["a1"]),
        answer("r2", "r1", "ASSISTANT", "3000 euros.", steps=[{}, {}], thinking_trace="Hm."),
    )
    (found,) = read(SOURCE, file)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "What does it cost?"),
        ("assistant", "3000 euros."),
    ]
    assert found.messages[0].time.isoformat() == "2025-06-01T10:00:01+00:00"
    assert dict(found.named) == {"file": 1, "step of a tool": 2, "thought": 1}


def test_grok_branches_are_counted(tmp_path: Path, read: Any) -> None:
    file = export(
        tmp_path / "x.json",
        answer("r1", None, "human", "One?"),
        answer("r2", "r1", "assistant", "Old."),
        answer("r3", "r1", "assistant", "New."),
    )
    (found,) = read(SOURCE, file)
    assert [each.text for each in found.messages] == ["One?", "New."]
    assert found.branches == 1


def test_grok_cards_of_sources_are_no_text(tmp_path: Path, read: Any) -> None:
    card = '<grok:render card_id="a"><argument name="citation_id">2</argument></grok:render>'
    (found,) = read(
        SOURCE, export(tmp_path / "x.json", answer("r1", None, "assistant", f"So {card}."))
    )
    assert [each.text for each in found.messages] == ["So."]


def test_a_conversation_without_answers_is_named(tmp_path: Path, read: Any) -> None:
    empty = {"conversation": {"id": "g-2", "title": "Nothing"}, "responses": []}
    file = written(tmp_path / "prod-grok-backend.json", {"conversations": [empty]})
    (found,) = read(SOURCE, file)
    assert isinstance(found, Skipped)
