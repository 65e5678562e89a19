"""What is taken of a folder of web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.web_folder import SOURCE

if TYPE_CHECKING:
    from pathlib import Path


def test_pages_keep_their_tree_links_and_pictures(tmp_path: Path, read: Any) -> None:
    page = (
        "<html><head><title>x</title></head><body><h1>Soup</h1><p>Boil <b>leeks</b>."
        '<img src="Soup%20files/pot.png"> <a href="../Garden/Peas.html#a">peas</a></p></body></html>'
    )
    (tmp_path / "x/Food/Soup files").mkdir(parents=True)
    (tmp_path / "x/Garden").mkdir()
    (tmp_path / "x/Food/Soup.html").write_text(page)
    (tmp_path / "x/Food/Soup files/pot.png").write_bytes(b"png")
    (tmp_path / "x/Garden/Peas.html").write_text("<p>Peas grow.</p>")
    (tmp_path / "x/Garden/Nothing.html").write_text("<script>1</script>")
    (tmp_path / "x/style.css").write_text("")
    with OpenedExport(tmp_path / "x") as opened:
        assert find_source(opened) is SOURCE
    found = read(SOURCE, tmp_path / "x")
    notes = {each.at: each for each in found if isinstance(each, ImportedNote)}
    assert set(notes) == {"Food/Soup.md", "Food/Soup files/pot.png", "Garden/Peas.md"}
    assert notes["Food/Soup.md"].title == "Soup"
    assert notes["Food/Soup.md"].text == (
        "Boil **leeks**.![](Soup%20files/pot.png) [peas](../Garden/Peas.md#a)"
    )
    assert [each.place for each in found if isinstance(each, Skipped)] == [
        "Garden/Nothing.html",
        "1 other file",
    ]


def test_hidden_parts_of_pages_are_counted(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.html").write_text("<p>seen</p><div style='display:none'>not seen</div>")
    found, hidden = read(SOURCE, tmp_path)
    assert found.text == "seen"
    assert hidden.place == "1 hidden part"


def test_pages_are_read_in_what_they_are_written_in(tmp_path: Path, read: Any) -> None:
    words = "Der Kürbis wächst."
    meta = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2">'
    (tmp_path / "a.html").write_bytes(f"<p>{words}</p>".encode("utf-16"))
    (tmp_path / "b.html").write_bytes(f"<p>{words}</p>".encode("cp1252"))
    (tmp_path / "c.html").write_bytes(f"{meta}<p>Růže</p>".encode("iso-8859-2"))
    (tmp_path / "d.html").write_bytes(f"<p>{words}".encode() + b"\xff</p>")
    found = [each.text for each in read(SOURCE, tmp_path)]
    assert found == [words, words, "Růže", f"{words}\ufffd"]


def test_a_picture_that_stands_in_its_page_becomes_a_file(tmp_path: Path, read: Any) -> None:
    (tmp_path / "x").mkdir()
    page = '<p>Look:</p><img style="a" src="data:image/jpeg;base64,anBn"><img src="data:image/png;base64,?">'
    (tmp_path / "x/A b.html").write_text(page)
    picture, note = read(SOURCE, tmp_path)
    assert (picture.at, picture.data) == ("x/A b 1.jpg", b"jpg")
    assert note.text == "Look:\n\n![](A%20b%201.jpg)"
