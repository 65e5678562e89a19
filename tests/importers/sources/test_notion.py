"""Notion's pages, databases and files come with clean names and links that lead somewhere."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.notion import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

A, B, C, D = (letter * 32 for letter in "abcd")
PAGES = {
    f"Home {A}.md": (
        f"# Home\n\n[Plan](Home%20{A}/Plan%20(x)%20{B}.md) and [Tasks](Tasks%20{C}.csv)\n\n"
        f"![cat](Home%20{A}/cat.png) and [web](https://e.org) and"
        f" [there](https://www.notion.so/Plan-{B})"
    ),
    f"Home {A}/Plan (x) {B}.md": f"# Plan: x\n\n[Up](../Home%20{A}.md)",
    f"Home {A}/cat.png": "PNG",
    f"Tasks {C}.csv": "Name,Status\nBuy,Done\n",
    f"Tasks {C}_all.csv": '\ufeffName,Status\nBuy,Done\n"Pay | rent","a\nb"\n',
    f"Tasks/Buy {D}.md": ("# Buy\n\nTags: shop, food\nCreated: August 3, 2021 5:00 PM\n\nMilk.\n"),
}


def put(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def zipped(pages: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in pages.items():
            file.writestr(name, data)
    return target.getvalue()


def by_path(items: list[Any]) -> dict[str, ImportedNote]:
    assert not [each for each in items if isinstance(each, Skipped)]
    return {each.at: each for each in items}


def test_names_lose_their_ids_and_links_follow(tmp_path: Path, read: Any) -> None:
    found = by_path(read(SOURCE, put(tmp_path, PAGES)))
    assert set(found) == {"Home.md", "Home/Plan (x).md", "Home/cat.png", "Tasks.md", "Tasks/Buy.md"}
    home = found["Home.md"]
    assert (home.id, home.title) == (A, "Home")
    assert home.text == (
        "[Plan](Home/Plan%20%28x%29.md) and [Tasks](Tasks.md)\n\n"
        "![cat](Home/cat.png) and [web](https://e.org) and [there](Home/Plan%20%28x%29.md)"
    )
    assert found["Home/Plan (x).md"].text == "[Up](../Home.md)"
    assert found["Home/cat.png"].data == b"PNG"


def test_a_database_is_a_table_of_all_rows_that_link_to_their_pages(
    tmp_path: Path, read: Any
) -> None:
    found = by_path(read(SOURCE, put(tmp_path, PAGES)))
    assert found["Tasks.md"].text.split("\n") == [
        "| Name | Status |",
        "| --- | --- |",
        "| [Buy](Tasks/Buy.md) | Done |",
        "| Pay \\| rent | a<br>b |",
    ]
    buy = found["Tasks/Buy.md"]
    assert (buy.tags, str(buy.created)) == (("shop", "food"), "2021-08-03 17:00:00+00:00")
    assert "Milk." in buy.text


def test_zips_in_a_zip_are_one_export(tmp_path: Path, read: Any) -> None:
    names = list(PAGES)
    parts = [{f"Export-{'0' * 8}-0000-0000-0000-{'0' * 12}/{n}": PAGES[n] for n in names[:3]}]
    parts.append({name: PAGES[name] for name in names[3:]})
    outer = {f"ExportBlock-1-Part-{n}.zip": zipped(part) for n, part in enumerate(parts, 1)}
    (tmp_path / "x.zip").write_bytes(zipped(outer))
    found = by_path(read(SOURCE, tmp_path / "x.zip"))
    assert len(found) == 5
    assert "[Tasks](Tasks.md)" in found["Home.md"].text


def test_html_pages_become_markdown(tmp_path: Path, read: Any) -> None:
    html = (
        "<html><head><title>Home</title><style>x</style></head><body><article>"
        "<header><h1 class='page-title'>Home</h1></header><div class='page-body'>"
        f"<p><a href='Plan%20{B}.html'>Plan</a></p><ul class='to-do-list'><li>"
        "<div class='checkbox checkbox-on'></div> <span>Pay</span></li></ul></div></article></body>"
    )
    pages = {f"Home {A}.html": html, f"Plan {B}.html": "<h1>Plan</h1>x", "index.html": "<h1>i</h1>"}
    found = by_path(read(SOURCE, put(tmp_path, pages)))
    assert set(found) == {"Home.md", "Plan.md"}
    assert found["Home.md"].text == "[Plan](Plan.md)\n\n- [x] Pay"


def test_pages_of_one_name_stay_apart(tmp_path: Path, read: Any) -> None:
    pages = {f"Notes {A}.md": f"# Notes\n[b](Notes%20{B}.md)", f"Notes {B}.md": "# Notes\nb"}
    found = by_path(read(SOURCE, put(tmp_path, pages)))
    assert found["Notes.md"].text == "[b](Notes%202.md)"
    assert found["Notes 2.md"].id == B


def test_a_damaged_part_and_an_empty_table_are_told_of_or_empty(tmp_path: Path, read: Any) -> None:
    good = zipped({f"Home {A}.md": "# Home", f"T {B}.csv": ""})
    outer = {"E-Part-1.zip": good, "E-Part-2.zip": good[:40], "E-Part-3.zip": "no zip"}
    (tmp_path / "x.zip").write_bytes(zipped(outer))
    found = read(SOURCE, tmp_path / "x.zip")
    assert sorted(each.place for each in found if isinstance(each, Skipped)) == [
        "E-Part-2.zip",
        "E-Part-3.zip",
    ]
    assert [each.at for each in found if isinstance(each, ImportedNote)] == ["Home.md", "T.md"]


@pytest.mark.parametrize("name", ["Home.md", "Home abc.md", f"{A}.txt"])
def test_other_folders_are_not_recognised(name: str, tmp_path: Path) -> None:
    with OpenedExport(put(tmp_path, {name: "# x"})) as opened:
        assert not SOURCE.recognises(opened)


def test_rows_of_one_name_lead_to_the_page_with_their_values(tmp_path: Path, read: Any) -> None:
    pages = {
        f"Books {A}.csv": "Name,Status,Due\nSame,Open,May 1\nSame,Done,\nSame,Lost,\n",
        f"Books/Same {B}.md": "# Same\n\nStatus: Done\n\nsecond",
        f"Books/Same {C}.md": "# Same\n\nStatus: Open\nDue: May 1\n\nfirst",
    }
    found = by_path(read(SOURCE, put(tmp_path / "x", pages)))
    assert found["Books.md"].text.splitlines()[2:] == [
        "| [Same](Books/Same%202.md) | Open | May 1 |",
        "| [Same](Books/Same.md) | Done |  |",
        "| Same | Lost |  |",
    ]


def test_rows_lead_to_pages_by_their_titles_and_properties_in_any_language(
    tmp_path: Path, read: Any
) -> None:
    title = "Peas/Beans: a title that is longer than the name of its file"
    pages = {
        f"Books {A}.csv": f"名称,状态\n{title},x\nSame,完成\nSame,打开\n",
        f"Books/Peas Beans a title {B}.md": f"# {title}\n\n状态: x",
        f"Books/Same {C}.md": "# Same\n\n状态: 打开",
        f"Books/Same {D}.md": "# Same\n\n状态: 完成",
    }
    notes = {each.at: each for each in read(SOURCE, put(tmp_path / "x", pages))}
    assert notes["Books.md"].text.split("\n")[2:] == [
        f"| [{title}](Books/Peas%20Beans%20a%20title.md) | x |",
        "| [Same](Books/Same%202.md) | 完成 |",
        "| [Same](Books/Same.md) | 打开 |",
    ]


def test_related_pages_are_links_and_do_not_part_a_row_from_its_page(
    tmp_path: Path, read: Any
) -> None:
    web = f"Ada B (https://www.notion.so/Ada-B-{B}?pvs=21)"
    pages = {
        f"Books {A}.csv": f"Name,By\nSame,{web}\nSame,Carl (People/Carl%20{C}.md) and (x)\n",
        f"Books/Same {D}.md": f"# Same\n\nBy: Carl (../People/Carl%20{C}.md) and (x)",
        f"Books/Same {'e' * 32}.md": f"# Same\n\nBy: {web}, gone (https://notion.so/{'f' * 32})",
        f"People/Ada B {B}.md": "# Ada B",
        f"People/Carl {C}.md": "# Carl",
    }
    found = by_path(read(SOURCE, put(tmp_path / "x", pages)))
    assert found["Books.md"].text.split("\n")[3] == (
        "| [Same](Books/Same.md) | [Carl](People/Carl.md) and (x) |"
    )
    assert found["Books/Same.md"].text == "By: [Carl](../People/Carl.md) and (x)"
    gone = f"gone (https://notion.so/{'f' * 32})"
    assert found["Books/Same 2.md"].text == f"By: [Ada B](../People/Ada%20B.md), {gone}"
