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
    assert (first.title, first.text) == ("Garden", "tags:: home, food\n\n- [ ] Sow\n  - Peas")
    assert second.text == "- As Boil\n- Boil"


def test_empty_pages_and_what_is_cut_are_told_of(tmp_path: Path, read: Any) -> None:
    file = written(tmp_path / "a.json", graph(page("A", block("b1", "Hi")), page("B"), page("C")))
    file.write_bytes(file.read_bytes()[:-20])
    found = read(SOURCE, file)
    assert [type(each) for each in found] == [ImportedNote, Skipped, Skipped]


def test_tasks_dates_embeds_and_own_lines_of_blocks(tmp_path: Path, read: Any) -> None:
    dated = "TODO dig\nSCHEDULED: <2026-12-01 Tue>\nDEADLINE: <2026-12-05 Sat .+1w>\nid:: b1-0-1-2"
    logged = "DONE x\ncolour:: red\n:LOGBOOK:\nCLOCK: [2026-01-01]\n:END:\ncollapsed:: true"
    blocks = (
        block("b1-0-1-2", dated),
        block("b2", "see {{embed ((b1-0-1-2))}}, [it](((b1-0-1-2))), {{embed [[Other]]}}"),
        block("b3", logged, block("b4", "CANCELLED y")),
        block("b5-0-1-2", "as ((b6-0-1-2))"),
        block("b6-0-1-2", "in ((b1-0-1-2)), ((b5-0-1-2))"),
    )
    (found,) = read(SOURCE, written(tmp_path / "a.json", graph(page("Bed", *blocks))))
    first, second, third, colour, fourth, fifth, _ = found.text.split("\n")
    assert first == "- [ ] dig ⏳ 2026-12-01 📅 2026-12-05"
    assert second == "- see [ ] dig ⏳ 2026-12-01 📅 2026-12-05, it, [[Other]]"
    assert (third, colour, fourth) == ("- [x] x", "  colour:: red", "  - [-] y")
    assert fifth.startswith("- as in [ ] dig ⏳ 2026-12-01 📅 2026-12-05, as in ")
