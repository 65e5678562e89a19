"""Conversations of nanobot come into another workspace."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources import nanobot
from kbtui.importers.sources.nanobot import SOURCE
from kbtui.sessions.log_records import SessionLog
from kbtui.text import unpack

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SAID = [
    {"role": "system", "content": "hidden"},
    {"role": "user", "content": "Hello", "timestamp": "2026-03-06T10:00:00"},
    {"role": "tool", "content": "hidden"},
    {"role": "assistant", "content": "Hi", "timestamp": "2026-03-06T10:00:05"},
]


def test_both_generations_and_what_was_remembered_are_read(tmp_path: Path, read: Any) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/MEMORY.md").write_text("# Memory\n\nLikes tea.\n")
    old = {"key": "cli:direct", "messages": [*SAID, None], "created_at": "2026-03-06T10:00:00"}
    (tmp_path / "sessions/cli_direct.json").write_text(json.dumps(old))
    lines = [{"_type": "metadata", "created_at": "2026-03-06T10:00:00"}, *SAID]
    (tmp_path / "sessions/telegram_7.jsonl").write_text("\n".join(map(json.dumps, lines)))
    skipped, old_one, new_one, note = read(SOURCE, tmp_path)
    assert isinstance(skipped, Skipped)
    for found, name in ((old_one, "cli_direct"), (new_one, "telegram_7")):
        assert isinstance(found, ImportedConversation)
        assert (found.id, [each.text for each in found.messages]) == (name, ["Hello", "Hi"])
    assert isinstance(note, ImportedNote)
    assert note.text.endswith("Likes tea.")


def test_of_a_long_log_what_was_masked_and_taken_back_stays_so(tmp_path: Path, read: Any) -> None:
    def mask(number: int, by: str) -> dict[str, Any]:
        return {"kind": "forget", "message": number, "spans": [[0, 5]], "by": by}

    texts = [f"Words {n} \N{SLIGHTLY SMILING FACE} {'and more ' * 9}" for n in range(9)]
    said = [{"id": n, "role": "user", "content": text} for n, text in enumerate(texts, 1)]
    lines = [
        {"kind": "session", "id": "s", "title": "Talk", "created": "2026-03-06T10:00:00"},
        *said[:4],
        mask(2, "a"),
        mask(3, "b"),
        *said[4:7],
        {"kind": "remember", "by": "b"},
        {"kind": "rewind", "to_message": 6},
        *said[7:],
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (found,) = read(SOURCE, tmp_path / "s.jsonl")
    whole = [each.content.strip() for each in SessionLog.of(lines).messages]
    assert [each.text for each in found.messages] == whole
    assert whole[1:3] == [f"[forgotten] {texts[1][6:]}".strip(), texts[2].strip()]
    assert len(whole) == 8


def test_a_damaged_note_is_reported_and_the_rest_comes(tmp_path: Path, read: Any) -> None:
    whole = tmp_path / "nanobot.zip"
    with zipfile.ZipFile(whole, "w") as packed:
        lines = [{"_type": "metadata", "created_at": "2026-03-06T10:00:00"}, *SAID]
        packed.writestr("sessions/telegram_7.jsonl", "\n".join(map(json.dumps, lines)))
        packed.writestr("memory/a.md", "Likes tea.")
        packed.writestr("memory/b.md", "Likes cocoa.")
    whole.write_bytes(whole.read_bytes().replace(b"Likes tea.", b"Likes te?."))
    _, skipped, note = read(SOURCE, whole)
    assert isinstance(skipped, Skipped)
    assert (skipped.place, skipped.lost) == ("memory/a.md", True)
    assert isinstance(note, ImportedNote)
    assert note.text == "Likes cocoa."


def test_a_mask_costs_its_own_message_only(
    tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []

    def counting(kept: Any) -> str:
        counted.append(unpack(kept))
        return counted[-1]

    monkeypatch.setattr(nanobot, "unpack", counting)
    said = [{"id": n, "role": "user", "content": f"Words {n}"} for n in range(1, 101)]
    masks = [{"kind": "forget", "message": n, "spans": [[0, 5]]} for n in range(1, 51)]
    lines = [{"kind": "session", "id": "s", "created": "2026-03-06T10:00:00"}, *said, *masks]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert len(read(SOURCE, tmp_path / "s.jsonl")) == 1
    assert len(counted) == 150
