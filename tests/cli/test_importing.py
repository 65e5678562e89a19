"""`kbtui import`, and its way back."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from tests.importers.exports import chatgpt, claude, claude_message, node, written
from tests.importers.sources.test_joplin import MEMBERS as JOPLIN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


def _logs(kbtui: Command) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in kbtui.file("sessions").glob("*.jsonl")}


@pytest.mark.parametrize(
    ("file", "conversations", "messages", "branches"),
    [
        ("claude-ai/simonw-claude-to-sqlite/artifacts.json", 1, 20, 0),
        ("claude-ai/simonw-claude-to-sqlite/example.json", 1, 2, 0),
        ("claude-ai/sugurutakahashi/conversations.json", 2, 8, 0),
        ("chatgpt/librechat/chatgpt-export.json", 2, 10, 0),
        ("chatgpt/librechat/chatgpt-tree.json", 1, 6, 2),
    ],
)
def test_real_exports_come_in_whole(
    kbtui: Command, data_dir: Path, file: str, conversations: int, messages: int, branches: int
) -> None:
    export = str(data_dir / "exports" / file)
    preview = kbtui.ok("import", "--dry-run", "--json", export).json["imports"][0]
    assert preview["conversations"] == conversations
    assert (preview["messages"], preview["branches"]) == (messages, branches)
    assert not kbtui.ok("sessions", "--json").json
    report = kbtui.ok("import", "--json", export).json["imports"][0]
    assert (len(report["sessions"]), report["messages"]) == (conversations, messages)
    assert sum(each["branches"] for each in report["sessions"]) == branches
    assert report["skipped"] == []
    listed = kbtui.ok("sessions", "--json").json
    assert sum(each["messages"] for each in listed) == messages
    assert all(each["created"] < "2025-02" for each in listed)


def test_an_import_twice_is_an_import_once_and_a_grown_one_adds(
    kbtui: Command, tmp_path: Path
) -> None:
    export = written(
        tmp_path / "a.bin", [claude("c1", "I live in Oslo.", "Nice."), claude("c2", "Hi")]
    )
    kbtui.ok("import", str(export))
    before = _logs(kbtui)
    again = kbtui.ok("import", "--json", str(export)).json["imports"][0]
    assert (again["sessions"], again["known"]) == ([], 2)
    assert _logs(kbtui) == before
    more = claude(
        "c1",
        "I live in Oslo.",
        "Nice.",
        "And I work at Equinor.",
        updated_at="2024-04-01T00:00:00Z",
    )
    written(export, [more, claude("c2", "Hi")])
    grown = kbtui.ok("import", "--json", str(export)).json["imports"][0]
    assert [(each["kind"], each["messages"]) for each in grown["sessions"]] == [("grown", 1)]
    assert [each["messages"] for each in kbtui.ok("sessions", "--json").json] == [3, 1]
    kbtui.ok("undo", "--batch", grown["batch"])
    assert _logs(kbtui) == before


def test_an_import_is_taken_back_whole(kbtui: Command, tmp_path: Path) -> None:
    kbtui.ok("init", str(kbtui.root))
    project = {
        "uuid": "p1", "name": "Garden", "is_private": True, "prompt_template": "Be brief.",
        "docs": [{"uuid": "d1", "filename": "plan.md", "content": "Tomatoes in May."}],
    }  # fmt: skip
    written(tmp_path / "x/projects.json", [project])
    written(tmp_path / "x/conversations.json", [claude("c1", "Hello")])
    report = kbtui.ok("import", "--json", str(tmp_path / "x")).json["imports"][0]
    assert len(report["entries"]) == 2
    assert "Tomatoes" in kbtui.ok("search", "tomatoes").out
    undone = kbtui.ok("undo", "--json", "--batch", report["batch"]).json
    assert [each["outcome"] for each in undone["sessions"]] == ["removed"]
    assert _logs(kbtui) == {}
    assert not [*kbtui.file("knowledge").rglob("plan*.md")]


def test_a_manifest_is_explained(kbtui: Command, tmp_path: Path) -> None:
    files = [{"batch_index": 0, "export_url": "https://x", "filename": "conversations-000.zip"}]
    manifest = written(tmp_path / "m.json", {"version": 1, "total_files": 1, "data_files": files})
    done = kbtui("import", str(manifest))
    assert done.status == 1
    assert "conversations-000.zip" in done.err


def test_what_is_no_export_is_refused_by_name(kbtui: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"hello": 1}))
    done = kbtui("import", str(file))
    assert done.status == 2
    assert "no export that kbtui knows" in done.err


def test_without_a_model_conversations_are_quoted_as_they_are_and_nothing_is_made_of_them(
    kbtui: Command, tmp_path: Path
) -> None:
    talk = claude(
        "c1",
        "My sister Anna lives in Bergen. Can you plan a trip for us?",
        "Of course! You should book the Bergen Railway.",
    )
    report = kbtui.ok("import", "--json", str(written(tmp_path / "a.json", [talk]))).json
    assert report["memory"]["entries"] == []
    assert report["memory"]["waiting"] == 1
    assert not any(kbtui.file("knowledge").rglob("*anna*"))
    told = kbtui.ok("ask", "where does my sister Anna live?").out
    assert "My sister Anna lives in Bergen." in told
    assert "[1] sessions/" in told


def test_imported_conversations_are_left_alone_by_what_condenses_live_ones(
    kbtui: Command, tmp_path: Path
) -> None:
    talk = claude("c1", "My sister Anna lives in Bergen.", "How nice.")
    kbtui.ok("import", "--no-memory", str(written(tmp_path / "a.json", [talk])))
    assert "Nothing waits" in kbtui.ok("consolidate").err
    assert not kbtui.file("memory/history.jsonl").exists()


def test_where_a_model_costs_money_nothing_is_done_unless_that_is_said(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_MODELS__IMPORT__MODEL", "openai/gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    export = str(written(tmp_path / "a.json", [claude("c1", "Hello " * 400)]))
    done = kbtui.ok("import", export)
    assert "1 conversation" in done.out
    assert "memory by openai/gpt-4o-mini: about 599 tokens, $0.00" in done.out
    assert "--yes or --no-memory" in done.err
    assert _logs(kbtui) == {}
    found = kbtui.ok("import", "--json", export).json
    assert found["dry_run"] is True
    assert found["imports"][0]["memory"]["paid"] is True
    kbtui.ok("import", "--no-memory", export)
    assert len(_logs(kbtui)) == 1


def test_the_parts_of_an_export_in_a_folder_come_in_together(
    kbtui: Command, tmp_path: Path
) -> None:
    listed = [
        {"export_url": "https://x", "filename": f"conversations-{n:03}.zip"} for n in range(2)
    ]
    written(tmp_path / "x/manifest.json", {"version": 1, "data_files": listed})
    for number in range(2):
        with zipfile.ZipFile(tmp_path / f"x/conversations-{number:03}.zip", "w") as made:
            talks = [claude("both", "a", "b"), claude(f"c{number}", "a")]
            made.writestr("conversations.json", json.dumps(talks))
    kbtui.ok("import", str(tmp_path / "x"))
    assert len(_logs(kbtui)) == 3


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"PK\x03\x04 and then nothing", "damaged or cut short"),
        (b'[{"chat_messages": [', "breaks off"),
        (b"[[[[[", "no export that kbtui knows"),
        (b"", "no export that kbtui knows"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_comes(
    kbtui: Command, tmp_path: Path, data: bytes, told: str
) -> None:
    file = tmp_path / "a"
    file.write_bytes(data)
    done = kbtui("import", str(file))
    assert done.status
    assert told in done.err
    assert _logs(kbtui) == {}


@pytest.mark.parametrize("look", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    "value",
    [
        [{"messages": [{"role": "system", "content": "Be good."}]}],
        [{"mapping": {}, "title": "Gone", "create_time": 1.0}],
        [{"uuid": "p", "name": "Empty", "prompt_template": "", "docs": []}],
    ],
)
def test_an_export_of_which_nothing_comes_is_an_error_with_a_sentence(
    kbtui: Command, tmp_path: Path, value: Any, look: tuple[str, ...]
) -> None:
    export = str(written(tmp_path / "a.json", value))
    done = kbtui("import", *look, export)
    assert done.status == 1
    assert "Nothing of" in done.err
    assert "export it again" in done.err
    done = kbtui("import", "--json", *look, export)
    assert done.status == 1
    (told,) = done.json["imports"]
    assert "no conversation and no note" in told["error"]


def test_a_folder_of_several_programs_exports_is_read_by_each(
    kbtui: Command, tmp_path: Path
) -> None:
    place = tmp_path / "x"
    written(place / "conversations.json", [claude("c1", "Hi")])
    written(place / "users.json", [{"uuid": "u", "email_address": "a@example.org"}])
    written(place / "gpt/conversations.json", [chatgpt("g1", node("a", None, "user", "Ho"))])
    (place / "gpt/chat.html").write_text("<p>Ho</p>")
    (place / "vault").mkdir()
    (place / "vault/Soup.md").write_text("# Soup\n\nLeeks.\n")
    (place / "vault/deck.key").write_text("x")
    done = kbtui.ok("import", "--no-memory", "--json", str(place)).json["imports"]
    assert [each["source"] for each in done] == ["Claude.ai", "ChatGPT", "a folder of Markdown"]
    assert [len(each["sessions"]) for each in done] == [1, 1, 0]
    assert [len(each["entries"]) for each in done] == [0, 0, 1]
    assert [each["place"] for each in done[2]["skipped"]] == ["1 other file"]
    again = kbtui.ok("import", "--no-memory", "--json", str(place)).json["imports"]
    assert [each["known"] for each in again] == [1, 1, 1]


def test_a_jex_in_a_folder_is_an_export_of_its_own(kbtui: Command, tmp_path: Path) -> None:
    written(tmp_path / "x/conversations.json", [claude("c1", "Hi")])
    with tarfile.open(tmp_path / "x/notes.jex", "w") as made:
        for name, data in JOPLIN:
            about = tarfile.TarInfo(name)
            about.size = len(data)
            made.addfile(about, io.BytesIO(data))
    ended = kbtui("import", "--no-memory", "--json", str(tmp_path / "x"))
    assert ended.status == 1  # one note is locked
    done = ended.json["imports"]
    assert [each["source"] for each in done] == ["Claude.ai", "Joplin"]
    assert len(done[1]["entries"]) == 3
    assert not any(each["place"] == "1 other file" for each in done[0]["skipped"])


@pytest.mark.parametrize("broken", ['{"uuid": "c2", "chat_messages": tru}', "7"])
def test_a_partial_import_brings_what_it_can_and_says_what_is_missing(
    kbtui: Command, tmp_path: Path, broken: str
) -> None:
    whole = [json.dumps(claude(id_, "Hi")) for id_ in ("c1", "c3")]
    file = tmp_path / "conversations.json"
    file.write_text(f"[{whole[0]},{broken},{whole[1]}]")
    done = kbtui("import", "--no-memory", str(file))
    assert done.status == 1
    assert "Claude.ai: 2 conversations; 2 messages" in done.out
    assert "1 part of this export can't be read and is missing, the first is conv" in done.err
    (shape,) = kbtui("import", "--no-memory", "--json", str(file)).json["imports"]
    assert [each["lost"] for each in shape["skipped"]] == [True]


def test_a_damaged_member_of_a_zip_costs_only_what_stands_behind_it(
    kbtui: Command, tmp_path: Path
) -> None:
    talks = [claude(f"c{number}", sha256(bytes(number)).hexdigest()) for number in range(4000)]
    archive = tmp_path / "e.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", json.dumps(talks))
    data = bytearray(archive.read_bytes())
    data[len(data) * 3 // 4] ^= 0xFF
    archive.write_bytes(data)
    done = kbtui("import", "--no-memory", "--json", str(archive))
    assert done.status == 1
    assert 2500 <= len(done.json["imports"][0]["sessions"]) < 4000


def test_files_beside_an_export_that_nobody_reads_are_named(kbtui: Command, tmp_path: Path) -> None:
    written(tmp_path / "x/conversations.json", [claude("c1", "Hi")])
    written(tmp_path / "x/light_metadata.json", {"uuid": "d1", "logins": []})
    done = kbtui.ok("import", "--no-memory", str(tmp_path / "x"))
    assert "1 other file: No program that kbtui knows: light_metadata.json." in done.err


def test_one_program_without_a_thing_to_read_is_no_hindrance_to_the_next(
    kbtui: Command, tmp_path: Path
) -> None:
    written(tmp_path / "x/a.json", [{"uuid": "c", "chat_messages": []}])
    written(tmp_path / "x/b.json", [chatgpt("g1", node("a", None, "user", "Ho"))])
    done = kbtui("import", "--no-memory", str(tmp_path / "x"))
    assert done.status == 1
    assert "an export of Claude.ai" in done.err
    assert len(_logs(kbtui)) == 1


def test_what_is_not_brought_is_counted_and_told(kbtui: Command, tmp_path: Path) -> None:
    blocks = [{"type": "thinking"}, {"type": "text", "text": "Yes"}, {"type": "tool_use"}]
    message = claude_message(1, "Hi", content=[*blocks, *blocks], files=[{"file_name": "a.png"}])
    export = str(written(tmp_path / "a.json", [claude("c1", chat_messages=[message])]))
    told = "left out: 1 file, 2 steps of tools, 2 thoughts"
    assert told in kbtui.ok("import", "--dry-run", export).out
    assert told in kbtui.ok("import", "--no-memory", export).out
    again = kbtui.ok("import", "--no-memory", "--json", export).json["imports"][0]
    assert again["named"] == {"file": 1, "step of a tool": 2, "thought": 2}


def test_what_was_read_and_left_as_it_is_here_is_no_error(kbtui: Command, tmp_path: Path) -> None:
    value = {"uuid": "p", "name": "Garden", "prompt_template": "Be brief.", "docs": []}
    export = written(tmp_path / "a.json", value)
    report = kbtui.ok("import", "--json", "--no-memory", str(export)).json["imports"][0]
    note = kbtui.file(report["entries"][0])
    note.write_text(note.read_text() + "\nMine.\n")
    written(export, {**value, "prompt_template": "Be long."})
    told = kbtui.ok("import", "--no-memory", str(export))
    assert "that stays" in told.err


def test_a_bomb_is_not_unpacked(kbtui: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a.json", '[{"chat_messages": "' + "a" * 80_000_000 + '"}]')
    done = kbtui("import", str(file))
    assert done.status == 1
    assert "left out" in done.err


def test_the_citation_of_an_imported_conversation_opens_the_message(
    kbtui: Command, tmp_path: Path
) -> None:
    talk = claude("a", "How long does a kettle last?", "Ten years, if it is descaled.")
    kbtui.ok("import", str(written(tmp_path / "conversations.json", [talk])))

    said = kbtui.ok("ask", "How long does a kettle last?", "--json").lines[-1]
    cited = next(each for each in said["citations"] if each["path"].startswith("sessions/claude"))
    place = f"{cited['path']}:{cited['lines'][0]}"

    shown = kbtui.ok("show", place).out
    assert "## Assistant, 2024-03-05" in shown
    assert "Ten years, if it is descaled." in shown
    assert "How long" not in shown
    assert "How long" in kbtui.ok("show", cited["path"]).out
    assert place in kbtui.ok("search", "descaled", "--scope", "sessions").out
    assert kbtui("show", f"{cited['path']}:99").status == 1


def test_texts_in_no_message_are_named_with_their_path_and_first_file(
    kbtui: Command, tmp_path: Path
) -> None:
    talk = claude("c1", "Hi", notes=[{"author": "Bo", "text": "water the leeks tonight"}])
    file = written(tmp_path / "conversations.json", [talk])
    done = kbtui.ok("import", "--no-memory", str(file))
    assert "1 text" in done.err
    assert "1 at notes[].text, first in conversations.json" in done.err
