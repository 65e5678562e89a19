"""Cursor's databases, of all its generations."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.sources.cursor import SOURCE

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

TABS = "workbench.panel.aichat.view.aichat.chatdata"
WHEN = 1_750_000_000_000


def database(
    file: Path, newer: dict[str, Any] | None = None, older: dict[str, Any] | None = None
) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(file) as connection:
        for table, rows in (("cursorDiskKV", newer), ("ItemTable", older)):
            connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE, value BLOB)")
            for key, value in (rows or {}).items():
                data = value if isinstance(value, str) else json.dumps(value)
                connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, data))
    connection.close()
    return file


def bubble(kind: Any, text: str, **more: Any) -> dict[str, Any]:
    return {"_v": 3, "type": kind, "text": text, **more}


SPLIT = {
    "composerData:a": {
        "name": "Kestrels",
        "createdAt": WHEN,
        "fullConversationHeadersOnly": [
            {"bubbleId": each, "type": 1} for each in ("b1", "b2", "b3", "gone")
        ],
    },
    "bubbleId:a:b1": bubble(1, "Why does it hover?", images=[{"uuid": "p"}]),
    "bubbleId:a:b2": bubble(2, "", toolFormerData={"name": "read"}, thinking={"text": "Hm."}),
    "bubbleId:a:b3": bubble(2, "It faces the wind.", createdAt="2025-06-15T15:07:00.000Z"),
    "bubbleId:b:b1": bubble(1, "Of another."),
    "composerData:empty": {"name": "Empty", "fullConversationHeadersOnly": []},
}


def test_a_conversation_is_put_together_from_its_rows(tmp_path: Path, read: Any) -> None:
    talk, missing = None, None
    for each in read(SOURCE, database(tmp_path / "state.vscdb", SPLIT)):
        talk, missing = (each, missing) if isinstance(each, ImportedConversation) else (talk, each)
    assert talk is not None
    assert (talk.id, talk.title) == ("a", "Kestrels")
    assert [(each.role, each.text, each.attached) for each in talk.messages] == [
        ("user", "Why does it hover?", ("picture",)),
        ("assistant", "It faces the wind.", ()),
    ]
    assert dict(talk.named) == {"picture": 1, "step of a tool": 1, "thought": 1}
    assert talk.created is not None
    assert talk.created.year == 2025
    assert isinstance(missing, Skipped)
    assert "1 of its 4 messages" in missing.why


def test_older_ones_hold_the_messages_in_the_conversation_or_in_tabs(
    tmp_path: Path, read: Any
) -> None:
    whole = {"composerData:a": {"name": "Nest", "conversation": [bubble(1, "Where?")]}}
    tab = {
        "tabId": "t",
        "chatTitle": "Voles",
        "lastSendTime": WHEN,
        "bubbles": [bubble("user", "What?"), {"type": "ai", "rawText": "Voles."}],
    }
    file = database(tmp_path / "state.vscdb", whole, {TABS: {"tabs": [tab]}})
    nest, voles = read(SOURCE, file)
    assert [each.text for each in nest.messages] == ["Where?"]
    assert [(each.role, each.text) for each in voles.messages] == [
        ("user", "What?"),
        ("assistant", "Voles."),
    ]


def test_a_folders_database_says_where_the_answers_are(tmp_path: Path, read: Any) -> None:
    listed = {"composer.composerData": {"allComposers": [{"composerId": "a"}]}}
    folder = tmp_path / "User"
    database(folder / "workspaceStorage/x/state.vscdb", None, listed)
    database(folder / "globalStorage/state.vscdb", SPLIT)
    found = read(SOURCE, folder)
    assert [each.id for each in found if isinstance(each, ImportedConversation)] == ["a"]
    assert any("globalStorage" in each.why for each in found if isinstance(each, Skipped))


def test_while_cursor_runs_its_newest_rows_come_too_and_nothing_is_written(
    tmp_path: Path, read: Any
) -> None:
    file = database(tmp_path / "state.vscdb")
    running = sqlite3.connect(file)
    running.execute("PRAGMA journal_mode = WAL")
    running.execute(
        "INSERT INTO cursorDiskKV VALUES (?, ?)",
        ("composerData:new", json.dumps({"conversation": [bubble(1, "Just now.")]})),
    )
    running.commit()
    before = {each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()}
    (talk,) = read(SOURCE, file)
    assert talk.messages[0].text == "Just now."
    assert {
        each.name: each.stat().st_mtime_ns for each in tmp_path.iterdir()
    }.keys() == before.keys()
    running.close()


def test_a_row_that_is_no_json_and_a_zip_are_named(tmp_path: Path, read: Any) -> None:
    file = database(tmp_path / "state.vscdb", {**SPLIT, "composerData:bad": "{cut"})
    assert any("no JSON" in each.why for each in read(SOURCE, file) if isinstance(each, Skipped))
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(file, "globalStorage/state.vscdb")
    (skipped,) = read(SOURCE, packed)
    assert "unpack" in skipped.why


def test_another_programs_database_is_none_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    with OpenedExport(database(tmp_path / "other.db", {"x": 1}, {"y": 2})) as opened:
        assert not SOURCE.recognises(opened)
    file = database(
        tmp_path / "state.vscdb", {f"composerData:{n}": SPLIT["composerData:a"] for n in range(400)}
    )
    data = bytearray(file.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    with OpenedExport(file) as opened:
        names = SOURCE.recognises(opened)
        file.write_bytes(data)
        assert names
        try:
            found = list(SOURCE.read(opened))
        except UnreadableError:
            pytest.fail("one damaged file ends the reading of all")
    assert not any(isinstance(each, ImportedConversation) for each in found)


def test_a_prompt_that_only_its_editor_held_comes_too(tmp_path: Path, read: Any) -> None:
    words = [{"text": "What ", "type": "text"}, {"children": [{"text": "@file"}]}]
    lines = [{"children": words}, {"children": [{"text": "hovers?"}]}]
    rich = json.dumps({"root": {"children": lines}})
    rows = {"composerData:a": {"conversation": [bubble(1, "", richText=rich), bubble(2, "Kites.")]}}
    (talk,) = read(SOURCE, database(tmp_path / "state.vscdb", rows))
    assert [each.text for each in talk.messages] == ["What @file\nhovers?", "Kites."]


def test_messages_that_a_list_does_not_name_are_named(tmp_path: Path, read: Any) -> None:
    rows = {
        "composerData:a": {"fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}]},
        "bubbleId:a:b1": bubble(1, "Why does it hover?"),
        "bubbleId:a:b2": bubble(1, "Taken back."),
        "bubbleId:a:b3": bubble(2, "", thinking={"text": "Hm."}),
    }
    named, talk = read(SOURCE, database(tmp_path / "state.vscdb", rows))
    assert [each.text for each in talk.messages] == ["Why does it hover?"]
    assert named.why.startswith("1 message of it")
    assert not named.lost


def test_a_damaged_message_that_no_list_names_takes_nothing_along(
    tmp_path: Path, read: Any
) -> None:
    rows = {
        "composerData:a": {"fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}]},
        "bubbleId:a:b1": bubble(1, "Why does it hover?"),
        "bubbleId:a:b2": "{torn",
    }
    (talk,) = read(SOURCE, database(tmp_path / "state.vscdb", rows))
    assert [each.text for each in talk.messages] == ["Why does it hover?"]
