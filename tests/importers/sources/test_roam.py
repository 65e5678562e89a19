"""What is taken of Roam's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.roam import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def block(uid: str, text: str, *children: dict[str, Any]) -> dict[str, Any]:
    told = {"string": text, "uid": uid, "create-time": 1_700_000_000_000}
    return {**told, "edit-time": 1_700_000_900_000, "children": [*children]}


def page(title: str, *children: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "uid": f"p-{title}", "edit-time": 1_700_000_000_000,
            "create-time": 1_700_000_000_000, "children": [*children]}  # fmt: skip


def test_pages_are_lists_with_tasks_references_and_several_lines(tmp_path: Path, read: Any) -> None:
    garden = page(
        "Garden",
        block("b00000001", "{{[[TODO]]}} Sow", block("b00000002", "Peas\nin rows")),
        block("b00000003", "As in ((b00000009)), not ((unknown-1))"),
    )
    kitchen = page("Kitchen", block("b00000009", "Boil [[Leeks]]"), block("b2", "{{[[DONE]]}} Eat"))
    file = written(tmp_path / "a.json", [garden, kitchen])
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    first, second = read(SOURCE, file)
    assert first.text == (
        "- [ ] Sow\n  - Peas\n    in rows\n- As in Boil [[Leeks]], not ((unknown-1))"
    )
    assert second.text == "- Boil [[Leeks]]\n- [x] Eat"
    assert (first.title, first.id) == ("Garden", "p-Garden")
    assert first.updated.timestamp() == 1_700_000_900


def test_empty_pages_and_a_list_that_is_cut_are_told_of(tmp_path: Path, read: Any) -> None:
    file = written(tmp_path / "a.json", [page("A", block("b1", "Hi")), page("B"), page("C")])
    file.write_bytes(file.read_bytes()[:-20])
    found = read(SOURCE, file)
    assert [type(each) for each in found] == [ImportedNote, Skipped, Skipped]
    assert "breaks off" in found[-1].why


def test_blocks_within_blocks_without_end_are_no_hindrance(tmp_path: Path, read: Any) -> None:
    deep = block("b", "x")
    for _ in range(100):
        deep = block("b", "x", deep)
    (found,) = read(SOURCE, written(tmp_path / "a.json", [page("A", deep)]))
    assert found.text.count("- x") == 101


def test_roam_pages_may_say_their_title_late(tmp_path: Path, read: Any) -> None:
    blocks = [{"string": f"Row {number}", "uid": f"b{number}"} for number in range(3000)]
    file = written(tmp_path / "x.json", [{"children": blocks, "title": "Leeks", "uid": "p1"}])
    (found,) = read(SOURCE, file)
    assert found.title == "Leeks"


def test_roam_code_headings_tasks_aliases_and_embeds_are_as_markdown_has_them(
    tmp_path: Path, read: Any
) -> None:
    code = page(
        "Code",
        block("b00000001", "```python\ndef f():\n    return 1```"),
        block("b00000002", "after [[Garden]] {{[[TODO]]}} weed"),
        {**block("b00000003", "Rows"), "heading": 2},
        block("b00000004", "[the garden]([[Garden]]) {{[[embed]]: ((b00000003))}}"),
    )
    (found,) = read(SOURCE, written(tmp_path / "a.json", [code]))
    assert found.text == (
        "- ```python\n  def f():\n      return 1\n  ```\n- [ ] after [[Garden]] weed\n- ## Rows\n"
        "- [[Garden|the garden]] Rows"
    )


def test_references_in_referenced_blocks_and_with_a_label_are_followed(
    tmp_path: Path, read: Any
) -> None:
    bed = page("Bed", block("b00000001", "water ((b00000002)), [label](((b00000002)))"))
    other = page("Other", block("b00000002", "the well ((b00000003))"))
    deep = page("Deep", block("b00000003", "of stone {{embed: ((b00000002))}}"))
    first, *_ = read(SOURCE, written(tmp_path / "a.json", [bed, other, deep]))
    assert first.text.startswith("- water the well of stone ")
    assert first.text.endswith(", label")


def test_fences_that_roam_ends_on_their_last_line_close_and_code_stays(
    tmp_path: Path, read: Any
) -> None:
    code = "```py\nreturn 1```\nthen\n```js\nf(((b00000009)))```"
    title = {**block("b00000009", "{{[[TODO]]}} weed"), "heading": 3}
    (found,) = read(SOURCE, written(tmp_path / "a.json", [page("A", block("b1", code), title)]))
    assert found.text == (
        "- ```py\n  return 1\n  ```\n  then\n  ```js\n  f(((b00000009)))\n  ```\n- [ ] weed"
    )


def test_emphasis_of_roams_becomes_obsidians_outside_of_code(tmp_path: Path, read: Any) -> None:
    said = "^^bright^^ and __slanted__, a__b__c, `^^x^^ __y__`"
    (found,) = read(SOURCE, written(tmp_path / "a.json", [page("A", block("b1", said))]))
    assert found.text == "- ==bright== and *slanted*, a__b__c, `^^x^^ __y__`"
