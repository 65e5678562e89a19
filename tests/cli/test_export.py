"""`kbtui export`: everything can leave, and what is private stays unless it is asked for."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.workspace import files
from kbtui.workspace.files import blob_id
from tests.importers.exports import claude, written
from tests.obsidian import Vault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

SECRET = "---\ntype: fact\nprivate: true\n---\n# Safe\n\nThe code is 4711. ![](safe.png)\n"


@pytest.fixture
def filled(kbtui: Command) -> Command:
    """A workspace with notes, one of them private, a picture each, a document and a session."""
    for path, data in {
        "knowledge/topics/boat.md": b"---\ntype: topic\ntags: [sea]\n---\n# Boat\n\n![](boat.png)\n",
        "knowledge/topics/boat.png": b"\x89PNG boat",
        "knowledge/facts/safe.md": SECRET.encode(),
        "knowledge/facts/safe.png": b"\x89PNG safe",
        "docs/manual.txt": b"How to sail.\r\n",
        "SOUL.md": b"# Soul\n",
    }.items():
        file = kbtui.file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    kbtui.ok("ask", "remember that the mooring is at pier 9", "--session", "Mooring")
    return kbtui


def tree(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and ".kbtui" not in file.parts
    }


def test_a_folder_is_a_workspace_again_with_the_same_bytes(filled: Command, tmp_path: Path) -> None:
    filled.ok("export", "-o", "out", "--private")
    here, there = tree(filled.root), tree(tmp_path / "out")
    assert there == {path: here[path] for path in there}
    assert set(here) - set(there) <= {"memory/tombstones.jsonl"}
    filled.bare("-w", str(tmp_path / "out"), "list")
    assert tree(tmp_path / "out") == there


def test_what_is_private_stays_with_its_pictures_and_records(
    filled: Command, tmp_path: Path
) -> None:
    done = filled.ok("export", "-o", "out")
    there = tree(tmp_path / "out")
    assert "knowledge/topics/boat.png" in there
    assert "docs/manual.txt" in there
    assert not {"knowledge/facts/safe.md", "knowledge/facts/safe.png"} & set(there)
    assert b"4711" not in b"".join(there.values())
    assert "2 private ones stayed here" in done.err


@pytest.mark.parametrize("target", ["out", "out.zip", "out.json", "out.md"])
def test_conversations_leave_but_for_those_that_used_what_is_private(
    filled: Command, tmp_path: Path, target: str
) -> None:
    filled.ok("ask", "What is the code of the safe?", "--session", "Combination")
    done = filled.ok("export", "-o", target)
    assert "The log of all changes" in done.err
    assert "3 private ones stayed here" in done.err
    everything = filled.ok("export", "-o", f"all-{target}", "--private")
    assert "private" not in everything.err

    def held(name: str) -> bytes:
        place = tmp_path / name
        if name.endswith(".zip"):
            packed = zipfile.ZipFile(place)
            return b"".join(packed.read(each) for each in packed.namelist())
        return b"".join(tree(place).values()) if place.is_dir() else place.read_bytes()

    assert b"mooring is at pier 9" in held(target)
    assert b"code of the safe" not in held(target)
    assert b"code of the safe" in held(f"all-{target}")
    if target == "out":
        again = filled.bare("-w", str(tmp_path / target), "sessions")
        assert "Mooring" in again.out


@pytest.mark.parametrize("form", ["md", "json"])
def test_one_file_has_the_entries_and_goes_to_the_output(filled: Command, form: str) -> None:
    said = filled.ok("export", "--format", form).out
    assert "# Boat" in said
    assert "4711" not in said
    assert "4711" in filled.ok("export", "--format", form, "--private").out


def test_one_text_has_memory_and_conversations_and_says_what_it_cant_hold(
    filled: Command, tmp_path: Path
) -> None:
    said = filled.ok("export", "-o", "all.md", "--private")
    text = (tmp_path / "all.md").read_text()
    assert "<!-- memory/MEMORY.md -->" in text
    assert "# Mooring" in text
    assert re.search(r"<!-- sessions/\S+\.jsonl -->\n\n# Mooring\n\n## You", text)
    parts = text.count("<!-- ")
    assert said.out == f"{parts} files written to all.md\n"
    assert "other files can't be in one text" in said.err
    assert len(tree_of(filled, tmp_path)) == parts + int(said.err.split()[1])


def tree_of(command: Command, folder: Path) -> dict[str, bytes]:
    command.ok("export", "-o", "whole", "--private")
    return tree(folder / "whole")


def test_the_json_of_all_has_entries_and_files(filled: Command, tmp_path: Path) -> None:
    filled.ok("export", "-o", "all.json")
    shape = json.loads((tmp_path / "all.json").read_text())
    assert set(shape) == {"format", "workspace", "entries", "files", "conversations"}
    [talk] = shape["conversations"]
    assert talk["title"] == "Mooring"
    assert "the mooring is at pier 9" in talk["messages"][0]["text"]
    boat = next(each for each in shape["entries"] if each["title"] == "Boat")
    assert (boat["path"], boat["type"], boat["tags"]) == (
        "knowledge/topics/boat.md",
        "topic",
        ["sea"],
    )
    assert boat["text"].endswith("![](boat.png)\n")
    files = {each["path"]: each for each in shape["files"]}
    assert files["docs/manual.txt"]["text"] == "How to sail.\r\n"
    assert files["knowledge/topics/boat.png"]["base64"]


def test_a_zip_holds_the_same_as_a_folder(filled: Command, tmp_path: Path) -> None:
    filled.ok("export", "-o", "out")
    filled.ok("export", "-o", "out.zip")
    packed = zipfile.ZipFile(io.BytesIO((tmp_path / "out.zip").read_bytes()))
    assert {name: packed.read(name) for name in packed.namelist()} == tree(tmp_path / "out")


@pytest.mark.parametrize("target", ["there", "there.zip", "there.md"])
def test_nothing_is_written_over_unasked(filled: Command, tmp_path: Path, target: str) -> None:
    place = tmp_path / target
    if target == "there":
        place.mkdir()
        place = place / "mine.txt"
    place.write_text("mine")
    done = filled("export", "-o", target)
    assert (done.status, place.read_text()) == (2, "mine")
    assert "--overwrite" in done.err
    assert not list(tmp_path.glob(".there*"))
    filled.ok("export", "-o", target, "--overwrite")


def test_no_export_lands_in_the_workspace_itself(filled: Command) -> None:
    assert filled("export", "-o", str(filled.root / "out")).status == 2


def test_a_session_leaves_as_markdown_and_json(filled: Command, tmp_path: Path) -> None:
    said = filled.ok("export", "--session", "Mooring").out
    assert re.match(r"<!-- sessions/\S+\.jsonl -->\n\n# Mooring\n", said)
    assert "pier 9" in said
    filled.ok("export", "--session", "mooring", "-o", "m.json")
    shape = json.loads((tmp_path / "m.json").read_text())
    assert shape["title"] == "Mooring"
    assert next(set(each) for each in shape["messages"]) == {
        "id",
        "time",
        "role",
        "text",
        "citations",
    }
    assert [each["role"] for each in shape["messages"]] == ["user", "assistant"]


def test_one_that_no_list_has_leaves_as_json_too(filled: Command, tmp_path: Path) -> None:
    log = next(filled.file("sessions").glob("*.jsonl"))
    log.rename(tmp_path / "log")
    log.symlink_to(tmp_path / "log")
    shape = json.loads(filled.ok("export", "--session", log.stem, "--format", "json").out)
    assert (shape["id"], shape["title"]) == (log.stem, "Mooring")


def test_what_cannot_be_asked_is_said(filled: Command) -> None:
    assert filled("export").status == 2
    assert filled("export", "--format", "zip").status == 2
    assert filled("export", "--session", "Mooring", "--format", "zip").status == 2
    assert filled("export", "--session", "nobody").status == 1


def test_a_vault_leaves_as_it_lies(kbtui: Command, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "Sub").mkdir(parents=True)
    (vault / "Sub/My note.md").write_text("# My note\n\n![[a.png]]\n")
    (vault / "Sub/a.png").write_bytes(b"\x89PNG")
    kbtui.bare("init", str(vault))
    done = kbtui.bare("-w", str(vault), "export", "-o", "out", "--json")
    assert done.status == 0, done
    assert done.json["private_kept_back"] == 0
    assert tree(tmp_path / "out") == tree(vault)
    kbtui.bare("-w", str(vault), "remember", "I like tea.")
    kbtui.bare("-w", str(vault), "export", "-o", "again")
    listed = kbtui.bare("-w", str(tmp_path / "again"), "list", "--json")
    assert "Sub/My note.md" in [each["path"] for each in listed.json]
    assert "tea" in (tmp_path / "again/.kbtui/memory/MEMORY.md").read_text()


def test_obsidian_follows_each_link_of_the_example_and_of_a_vault_as_before(
    kbtui: Command, tmp_path: Path, data_dir: Path
) -> None:
    kbtui.bare("init", "--demo", "demo")
    for name in ("obsidian-help-en", "kepano-obsidian"):
        shutil.copytree(data_dir / "vaults" / name, tmp_path / name)
        kbtui.bare("init", name)
    for name in ("demo", "obsidian-help-en", "kepano-obsidian"):
        done = kbtui.bare("-w", name, "export", "--format", "obsidian", "-o", f"{name}-out")
        assert done.status == 0, done
        there = Vault.at(tmp_path / f"{name}-out")
        before = None if name == "demo" else Vault.at(tmp_path / name)
        assert [*there.broken()] == ([*before.broken()] if before else [])
        assert [*there.bad_properties()] == ([*before.bad_properties()] if before else [])
        assert there.bad_names() == (before.bad_names() if before else [])
        assert len(there.notes()) > 10


def test_obsidian_gets_links_by_names_and_conversations_as_notes(
    filled: Command, tmp_path: Path
) -> None:
    person = "---\ntype: person\naliases: [Ally]\n---\n# Alice Müller\n\n## At work\n\nWelds.\n"
    filled.file("knowledge/people/alice-mueller.md").write_text(person)
    filled.file("knowledge/topics/welding.md").write_text(
        '---\ntype: topic\nrelated: [people/alice-mueller, Ally]\nseen: "[[Ally]]"\n---\n'
        "# Welding\n\n[[Alice Müller]] and [[ally|she]], ![[Ally#At work]], [[boat]], [[Safe]].\n"
        "\n| who |\n| --- |\n| [[Ally]] |\n\n`[[Ally]]`\n\n> | who |\n> | --- |\n> | [[Ally]] |\n"
    )
    filled.ok("export", "--format", "obsidian", "-o", "out")
    there = Vault.at(tmp_path / "out")
    assert [said for _, said in there.broken()] == ["[[Safe]]"]
    assert not [*there.bad_properties()]
    text = (tmp_path / "out/knowledge/topics/welding.md").read_text()
    assert "[[alice-mueller|Alice Müller]] and [[alice-mueller|she]]" in text
    assert "![[alice-mueller#At work|Ally#At work]], [[boat]], [[Safe]]." in text
    assert "| [[alice-mueller\\|Ally]] |\n\n`[[Ally]]`" in text
    assert "> | [[alice-mueller\\|Ally]] |\n" in text
    assert 'related: ["[[alice-mueller]]", "[[alice-mueller]]"]' in text
    assert 'seen: "[[alice-mueller|Ally]]"' in text
    (talk,) = (tmp_path / "out/Conversations").glob("*.md")
    assert talk.name.endswith(" Mooring.md")
    assert "pier 9" in talk.read_text()


def test_a_conversation_with_a_title_of_many_bytes_leaves_for_obsidian(
    filled: Command, tmp_path: Path
) -> None:
    filled.ok(
        "ask", "remember that the mooring is full", "--session", "\N{ANCHOR}" * 79 + "\U0001f6a2"
    )
    filled.ok("ask", "remember that the pier is long", "--session", "\U0001f6a2" * 80)
    filled.ok("export", "--format", "obsidian", "-o", "out")
    assert len([*(tmp_path / "out/Conversations").glob("*.md")]) == 3


def test_an_imported_conversation_names_no_answer_of_another_program_kbtuis(
    filled: Command, tmp_path: Path
) -> None:
    talk = claude("a", "How long does a kettle last?", "Ten years.")
    filled.ok("import", str(written(tmp_path / "conversations.json", [talk])))

    out = filled.ok("export", "--session", "Talk a", "--format", "md", "-o", "-").out

    assert "## Assistant, 2024-03-05" in out
    assert "kbtui" not in out


@pytest.mark.parametrize("target", ["out", "out.zip", "out.json", "out.md"])
def test_what_cant_be_read_stays_here_by_name_and_all_else_leaves(
    filled: Command, tmp_path: Path, target: str
) -> None:
    folder = filled.root / "knowledge/topics"
    os.mkfifo(folder / "pipe.png")
    (folder / "loop").symlink_to(".")
    (folder / "line\nbreak.png").write_bytes(b"x")
    with (folder / "film.mp4").open("wb") as film:
        film.truncate(files.READ_LIMIT + 1)
    done = filled("export", "-o", target)
    said = done.err
    assert done.status == 1
    assert "files written" in done.out
    assert all(name in said for name in ("topics/pipe.png: ", "topics/loop: ", "line break.png: "))
    assert "film.mp4: " not in said
    if target == "out":
        there = tree(tmp_path / "out")
        assert len(there["knowledge/topics/film.mp4"]) == files.READ_LIMIT + 1
        assert "knowledge/topics/boat.md" in there


def test_what_is_new_or_changed_from_a_day_on_leaves_alone(filled: Command, tmp_path: Path) -> None:
    long_ago = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
    workspace = tmp_path / "old"
    with KnowledgeBase.open(workspace, create=True, clock=lambda: long_ago) as kb:
        kb.library.create("topic", "Old", body="Long ago.")
        kb.library.create("topic", "Changed", body="Long ago.")
    manual = workspace / "docs/manual.txt"
    manual.write_text("How to sail.\n")
    os.utime(manual, (long_ago.timestamp(), long_ago.timestamp()))
    with KnowledgeBase.open(workspace) as kb:
        kb.library.create("topic", "New", body="Today.")
        changed = kb.library.find("Changed")
        kb.library.write(
            changed.path,
            changed.text.replace("Long ago", "Today"),
            expecting=blob_id(changed.text.encode()),
            actor=Actor.YOU,
            reason="edited",
        )
    for since, wanted in (("2026-01-11", {"new", "changed"}), ("2026-01-10", {"old", "manual"})):
        filled.bare("-w", str(workspace), "export", "-o", f"since-{since}", "--since", since)
        stems = {
            path.rpartition("/")[2].partition(".")[0] for path in tree(tmp_path / f"since-{since}")
        }
        assert wanted <= stems
        assert ("old" in stems) is (since == "2026-01-10")
    assert filled("export", "-o", "x", "--since", "someday").status == 2
    assert filled("export", "--session", "Mooring", "--since", "2026-01-10").status == 2
