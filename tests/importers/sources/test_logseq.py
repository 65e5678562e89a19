"""What is taken of Logseq's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.logseq import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def block(id_: str, text: str, *children: dict[str, Any]) -> dict[str, Any]:
    told = {"id": id_, "format": "markdown", "content": text, "properties": {}}
    return {**told, "children": [*children]}


def graph(*pages: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "blocks": [*pages]}


def page(title: str, *children: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {
        "id": f"p-{title}",
        "page-name": title,
        "properties": properties,
        "children": [*children],
    }


def test_pages_are_lists_with_their_properties(tmp_path: Path, read: Any) -> None:
    garden = page("Garden", block("b1", "TODO Sow", block("b2", "Peas")), tags=["home", "food"])
    kitchen = page("Kitchen", block("b00000003", "As ((b1-0-1-2))"), block("b1-0-1-2", "Boil"))
    file = written(tmp_path / "a.json", graph(garden, kitchen))
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    first, second = read(SOURCE, file)
    assert (first.title, first.text) == ("Garden", "tags:: home, food\n\n- TODO Sow\n  - Peas")
    assert second.text == "- As Boil\n- Boil"


def test_empty_pages_and_what_is_cut_are_told_of(tmp_path: Path, read: Any) -> None:
    file = written(tmp_path / "a.json", graph(page("A", block("b1", "Hi")), page("B"), page("C")))
    file.write_bytes(file.read_bytes()[:-20])
    found = read(SOURCE, file)
    assert [type(each) for each in found] == [ImportedNote, Skipped, Skipped]
