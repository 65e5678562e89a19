"""What is taken of exports of Open WebUI."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.open_webui import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def message(id_: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    told = {"id": id_, "parentId": parent, "childrenIds": [], "role": role, "content": content}
    return {**told, "timestamp": 1_700_000_000 + int(id_[1:]), **more}


def chat(id_: str, *messages: dict[str, Any], current: str | None = None) -> dict[str, Any]:
    """A chat with all the fields that the program writes."""
    tree = {each["id"]: each for each in messages}
    inner = {
        "id": "", "title": "Soup", "models": ["llama3.2:3b"], "params": {}, "tags": [], "files": [],
        "history": {"messages": tree, "currentId": current or messages[-1]["id"]},
        "messages": [*messages], "timestamp": 1_700_000_000_000,
    }  # fmt: skip
    return {
        "id": id_, "user_id": "u", "title": "Soup", "chat": inner, "updated_at": 1_700_000_900,
        "created_at": 1_700_000_000, "share_id": None, "archived": False, "pinned": False,
        "meta": {}, "folder_id": None,
    }  # fmt: skip


def test_the_branch_that_was_shown_comes_with_its_times(tmp_path: Path, read: Any) -> None:
    talk = chat(
        "c1",
        message("m1", None, "user", "Leek soup?"),
        message("m2", "m1", "assistant", "Too salty."),
        message("m3", "m1", "assistant", "Boil leeks."),
        current="m3",
    )
    file = written(tmp_path / "a.json", [talk])
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    (found,) = read(SOURCE, file)
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "Leek soup?"),
        ("assistant", "Boil leeks."),
    ]
    assert (found.id, found.title, found.branches) == ("c1", "Soup", 1)
    assert found.created.timestamp() == 1_700_000_000
    assert found.updated.timestamp() == 1_700_000_900


def test_one_chat_alone_and_old_ones_without_a_tree_are_read(tmp_path: Path, read: Any) -> None:
    talk = chat("c1", message("m1", None, "user", "Hi"))
    del talk["chat"]["history"]
    (found,) = read(SOURCE, written(tmp_path / "a.json", talk))
    assert [each.text for each in found.messages] == ["Hi"]


def test_what_is_folded_is_counted_and_files_come_or_are_named(tmp_path: Path, read: Any) -> None:
    folded = (
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> hm\n</details>\n'
    )
    tool = '<details type="tool_calls" name="x">y</details>'
    picture = "data:image/jpeg;base64," + base64.b64encode(b"jpeg").decode()
    files = [
        {"type": "image", "url": picture},
        {"type": "file", "name": "lease.pdf", "file": {"data": {"content": "Rent: 900"}}},
        {"type": "file", "name": "gone.pdf"},
        {"type": "image", "url": "data:image/png;base64,$$$"},
    ]
    talk = chat(
        "c1",
        message("m1", None, "user", "See", files=files),
        message("m2", "m1", "assistant", f"{folded}Yes.{tool}"),
    )
    found, *rest = read(SOURCE, written(tmp_path / "a.json", [talk]))
    assert [each.text for each in found.messages] == ["See", "Yes."]
    assert found.messages[0].attached == ("image", "lease.pdf", "gone.pdf", "image")
    assert dict(found.named) == {"thought": 1, "step of a tool": 1, "file": 1}
    picture_note, paper, broken = rest
    assert isinstance(picture_note, ImportedNote)
    assert picture_note.data == b"jpeg"
    assert picture_note.title.endswith(".jpg")
    assert (paper.title, paper.text) == ("lease.pdf", "Rent: 900")
    assert isinstance(broken, Skipped)


@pytest.mark.parametrize("value", [None, 7, [], {"history": {"messages": [1], "currentId": 3}}])
def test_a_chat_that_is_none_is_told_of(tmp_path: Path, read: Any, value: Any) -> None:
    bad = {**chat("c2", message("m1", None, "user", "Hi")), "chat": value}
    good = chat("c1", message("m1", None, "user", "Hi"))
    found = read(SOURCE, written(tmp_path / "a.json", [bad, good, good]))
    assert [type(each) for each in found] == [Skipped, ImportedConversation, ImportedConversation]


def test_a_circle_of_parents_ends(tmp_path: Path, read: Any) -> None:
    talk = chat("c1", message("m1", "m2", "user", "A"), message("m2", "m1", "assistant", "B"))
    (found,) = read(SOURCE, written(tmp_path / "a.json", [talk]))
    assert [each.text for each in found.messages] == ["A", "B"]


def test_messages_that_only_their_parents_name_are_on_the_branch(tmp_path: Path, read: Any) -> None:
    asked = message("m1", None, "user", "How many posts?", childrenIds=["m2"])
    said = message("m2", None, "assistant", "Nine.")
    (found,) = read(SOURCE, written(tmp_path / "a.json", [chat("c1", asked, said)]))
    assert [each.text for each in found.messages] == ["How many posts?", "Nine."]
    assert found.branches == 0


def test_an_answer_that_only_its_items_hold_comes(tmp_path: Path, read: Any) -> None:
    thought = {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm."}]}
    parts = [{"type": "output_text", "text": "In March."}]
    items = [thought, {"type": "message", "role": "assistant", "content": parts}]
    talk = chat(
        "c1",
        message("m1", None, "user", ["When?", {"type": "text", "text": "Say."}]),
        message("m2", "m1", "assistant", "", output=items),
        message("m3", "m2", "assistant", "Rendered.", output=items, merged={"content": "Both."}),
    )
    (found,) = read(SOURCE, written(tmp_path / "a.json", [talk]))
    assert [each.text for each in found.messages] == [
        "When?\n\nSay.",
        "In March.",
        "Rendered.\n\nBoth.",
    ]
