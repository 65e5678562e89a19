"""Continue's sessions, as it keeps them on the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.sources.continue_dev import SOURCE

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def session(*history: dict[str, Any], id_: str = "c-1") -> dict[str, Any]:
    return {
        "sessionId": id_,
        "title": "Kestrels",
        "workspaceDirectory": "file:///home/me/birds",
        "history": list(history),
    }


def item(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"role": role, "content": content, **more}, "contextItems": []}


SESSION = session(
    {
        "message": {
            "role": "user",
            "content": [
                {"type": "text", "text": "Why does it hover?"},
                {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,AA"}},
            ],
        },
        "contextItems": [{"name": "birds.py", "content": "print()"}],
        "editorState": {"type": "doc"},
    },
    item("thinking", "Hm."),
    item("assistant", "", toolCalls=[{"id": "t", "function": {"name": "read"}}]),
    item("tool", "a file"),
    item("assistant", "It faces the wind."),
)


def test_a_session_comes_with_what_was_said_and_names_the_rest(tmp_path: Path, read: Any) -> None:
    (tmp_path / "c-1.json").write_text(json.dumps(SESSION))
    (talk,) = read(SOURCE, tmp_path / "c-1.json")
    assert (talk.id, talk.title) == ("c-1", "Kestrels")
    assert [(each.role, each.text, each.attached) for each in talk.messages] == [
        ("user", "Why does it hover?", ("birds.py", "picture")),
        ("assistant", "It faces the wind.", ()),
    ]
    assert dict(talk.named) == {"picture": 1, "file": 1, "thought": 1, "step of a tool": 2}


def test_the_list_of_sessions_says_when_each_was(tmp_path: Path, read: Any) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "c-1.json").write_text(json.dumps(SESSION))
    listed = [{"sessionId": "c-1", "title": "Kestrels", "dateCreated": "1750000000000"}]
    (folder / "sessions.json").write_text(json.dumps(listed))
    (talk,) = read(SOURCE, folder)
    assert talk.created is not None
    assert talk.created.year == 2025


def test_an_empty_session_is_named_and_a_cut_one_too(tmp_path: Path, read: Any) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(session(item("system", "Be good."))))
    whole = json.dumps(SESSION)
    (folder / "b.json").write_text(whole[: len(whole) // 2])
    found = read(SOURCE, folder)
    assert not any(isinstance(each, ImportedConversation) for each in found)
    assert sum(isinstance(each, Skipped) for each in found) == 2
