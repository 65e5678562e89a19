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
