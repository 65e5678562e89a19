"""A workspace of kbtui's own comes into another one whole."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.kbtui_workspace import SOURCE
from kbtui.knowledge_base import KnowledgeBase
from tests.e2e.program import ok


@pytest.fixture
def own(tmp_path: Path) -> Path:
    root = tmp_path / "own"
    with KnowledgeBase.open(root, create=True) as kb:
        kb.library.create("person", "Alice", body="Works on [[topics/tea]].")
        kb.library.create("topic", "Tea", body="Green.")
        (root / "knowledge/topics/pot.png").write_bytes(b"\x89PNG")
        (root / "docs/house").mkdir(parents=True)
        (root / "docs/house/lease.txt").write_text("Rent: 980")
        (root / "memory").mkdir(exist_ok=True)
        (root / "memory/2026-11-25.md").write_text("# 2026-11-25\n\n- 10:00 the kettle leaks\n")
        (root / "memory/HISTORY.md").write_text("made of the archive\n")
        session = kb.sessions.create("test")
        session.append("user", "the kettle leaks", turn="t")
        session.close()
    return root


@pytest.mark.parametrize("form", ["folder", "zip", "folder in a zip"])
def test_entries_days_documents_and_conversations_come_with_their_places(
    own: Path, tmp_path: Path, read: Any, form: str
) -> None:
    place = own
    if form != "folder":
        top = own.parent if form == "folder in a zip" else own
        place = tmp_path / "packed.zip"
        with zipfile.ZipFile(place, "w") as packed:
            for file in filter(Path.is_file, own.rglob("*")):
                if ".kbtui" not in file.parts:
                    packed.write(file, file.relative_to(top))
    with OpenedExport(place) as opened:
        assert find_source(opened) is SOURCE
    found = read(SOURCE, place)
    notes = {each.at or each.title: each for each in found if isinstance(each, ImportedNote)}
    entries = {"people/alice.md", "topics/tea.md", "topics/pot.png"}
    assert set(notes) == {*entries, "memory/2026-11-25.md", "lease.txt"}
    assert notes["people/alice.md"].text.startswith("---\ntype: person\n")
    assert notes["lease.txt"].folder == "house"
    (said,) = [each for each in found if isinstance(each, ImportedConversation)]
    assert [each.text for each in said.messages] == ["the kettle leaks"]
    (left,) = [each for each in found if isinstance(each, Skipped)]
    assert "kbtui sync" in left.why


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A workspace with what an export has: a private entry, a picture, a day, a conversation."""
    root = tmp_path / "own"
    with KnowledgeBase.open(root, create=True) as kb:
        kb.library.create("person", "Alice", body="Works on [[topics/tea]].", tags=["x"])
        kb.library.create("topic", "Tea", body="Green.\n\n---\n\nWith [[people/alice|A]].")
        kb.library.create("topic", "Diary", body="Secret.", private=True)
        (root / "knowledge/topics/pot--1.png").write_bytes(b"\x89PNG")
        (root / "docs/house").mkdir(parents=True)
        (root / "docs/house/lease.txt").write_text("Rent: 980")
        (root / "memory/2026-11-25.md").write_text("# 2026-11-25\n\n- 10:00 the kettle leaks\n")
        session = kb.sessions.create("test")
        session.append("user", "# the kettle\n\n## leaks, badly", turn="t")
        session.append("assistant", "In the diary.", turn="t", meta={"private": ["x.md"]})
        session.close()
    return root


@pytest.mark.parametrize("form", ["json", "md", "obsidian", "folder", "zip"])
def test_every_form_of_an_own_export_comes_back_as_what_it_was(
    told: Path, tmp_path: Path, form: str
) -> None:
    target = tmp_path / ("out" if form in ("folder", "obsidian") else f"out.{form}")
    ok("export", "-o", target, "--format", form, "--private", workspace=told)
    place = tmp_path / "w"
    ok("init", place)
    ok("import", "--no-memory", target, workspace=place)
    listed = {each["title"]: each for each in ok("list", "--json", workspace=place).json}
    assert {"Alice", "Tea", "Diary"} <= set(listed)
    assert (listed["Alice"]["type"], listed["Alice"]["tags"]) == ("person", ["x"])
    assert [title for title, each in listed.items() if each["private"]] == ["Diary"]
    text = ok("show", "tea", workspace=place).out
    assert "\n---\n\nWith [[" in text
    assert "people/alice.md" in ok("links", "tea", workspace=place).out
    assert any("2026-11-25" in each["path"] for each in listed.values())
    (log,) = place.glob("sessions/*.jsonl")
    said = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    said = [each for each in said if each.get("role")]
    assert [each["content"] for each in said] == [
        "# the kettle\n\n## leaks, badly",
        "In the diary.",
    ]
    assert [bool(each.get("meta", each).get("private")) for each in said] == [False, True]
    if form != "md":
        files = {file.name for file in place.rglob("*") if file.is_file()}
        assert {"pot--1.png", "lease.txt"} <= files
    again = ok("import", "--no-memory", "--json", target, workspace=place).json["imports"]
    assert all(not each["sessions"] and not each["entries"] for each in again)


@pytest.mark.parametrize("form", ["json", "md"])
def test_a_conversation_that_was_exported_alone_comes_back(
    told: Path, tmp_path: Path, form: str
) -> None:
    (session,) = [file.stem for file in told.glob("sessions/*.jsonl")]
    target = tmp_path / f"one.{form}"
    ok("export", "-o", target, "--session", session, "--private", workspace=told)
    place = tmp_path / "w"
    ok("init", place)
    (done,) = ok("import", "--no-memory", "--json", target, workspace=place).json["imports"]
    assert (done["messages"], done["entries"], done["skipped"]) == (2, [], [])


def test_private_ones_of_settings_stay_private_in_json(told: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    ok(
        "export",
        "-o",
        target,
        "--private",
        workspace=told,
        KBTUI_PRIVACY__PRIVATE_PATHS='["people/"]',
    )
    place = tmp_path / "w"
    ok("init", place)
    ok("import", "--no-memory", target, workspace=place)
    listed = {each["title"]: each["private"] for each in ok("list", "--json", workspace=place).json}
    assert listed["Alice"] is True
    assert listed["Tea"] is False


def test_notes_that_look_like_an_export_stay_notes_of_their_folder(tmp_path: Path) -> None:
    place = tmp_path / "vault"
    place.mkdir()
    (place / "a.md").write_text("<!-- draft.md -->\n\nText of a note.\n")
    (place / "b.md").write_text("---\nsession: 3\n---\n# Third session\n\nWe talked.\n")
    with OpenedExport(place) as opened:
        found = find_source(opened)
    assert found is not None
    assert found.name == "a folder of Markdown"
