"""A folder of Markdown is copied as it lies."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.markdown_folder import SOURCE

if TYPE_CHECKING:
    from pathlib import Path


def test_notes_and_pictures_keep_their_places(tmp_path: Path, read: Any) -> None:
    (tmp_path / "Über uns/img").mkdir(parents=True)
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/x.md").write_text("x")
    (tmp_path / "Über uns/My Note.md").write_text("---\ntags: [a]\n---\n\n# Us\n\n![](img/a.png)\n")
    (tmp_path / "Über uns/img/a.png").write_bytes(b"\x89PNG")
    (tmp_path / "plain.markdown").write_text("no heading")
    (tmp_path / "b.md").write_text("# Bee\n\ntext")
    (tmp_path / "bad.md").write_bytes(b"a\x00b")
    (tmp_path / "run.py").write_text("x")
    items = read(SOURCE, tmp_path)
    notes = {each.at: each for each in items if isinstance(each, ImportedNote)}
    assert set(notes) == {"Über uns/My Note.md", "Über uns/img/a.png", "plain.md", "b.md"}
    assert (notes["b.md"].title, notes["b.md"].text.strip()) == ("Bee", "text")
    assert notes["Über uns/My Note.md"].text.startswith("---\ntags: [a]\n---\n\n# Us")
    assert (notes["Über uns/My Note.md"].title, notes["plain.md"].title) == ("Us", "plain")
    assert notes["Über uns/img/a.png"].data == b"\x89PNG"
    assert [each.place for each in items if isinstance(each, Skipped)] == ["bad.md", "1 other file"]


def test_a_single_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A")
    with OpenedExport(tmp_path / "a.md") as opened:
        assert not SOURCE.recognises(opened)


def test_bins_and_conflict_copies_are_named_and_stay_out(tmp_path: Path, read: Any) -> None:
    packed = tmp_path / "vault.zip"
    with zipfile.ZipFile(packed, "w") as vault:
        for name in (
            *("n.md", ".trash/old.md", ".obsidian/x.md", "logseq/.recycle/p.md"),
            "a/n.sync-conflict-20261126-101010-ABC.md",
        ):
            vault.writestr(name, f"# {name}\n\ntext\n")
    note, binned, copies = read(SOURCE, packed)
    assert note.at == "n.md"
    assert (binned.place, copies.place) == ("2 notes", "1 conflict copy")
    assert "a/n.sync-conflict" in copies.why
