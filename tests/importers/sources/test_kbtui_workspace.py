"""A workspace of kbtui's own comes into another one whole."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.kbtui_workspace import SOURCE
from kbtui.knowledge_base import KnowledgeBase


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
