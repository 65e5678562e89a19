"""What is taken of Joplin's .jex, and of the same as a folder."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.joplin import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

BOOK, INNER, SOUP, PLAN, PICTURE, TAG, LOCKED = (f"{n:032x}" for n in range(1, 8))


def item(id_: str, kind: int, title: str, text: str = "", **fields: str) -> tuple[str, bytes]:
    told = {"id": id_, "created_time": "2024-03-05T09:00:00.000Z",
            "updated_time": "2024-03-06T09:00:00.000Z", **fields, "type_": str(kind)}  # fmt: skip
    lines = "\n".join(f"{key}: {value}" for key, value in told.items())
    head = "\n\n".join(filter(None, (title, text)))
    return f"{id_}.md", (f"{head}\n\n{lines}" if head else lines).encode()


MEMBERS = (
    item(SOUP, 1, "Soup/a plan?", f"Boil.\n\n![pot](:/{PICTURE}) [more](:/{PLAN}) [?](:/{'f' * 32})",
         parent_id=INNER, source_url="https://x.org/a"),
    item(PLAN, 1, "Plan", "name: value", parent_id=BOOK, is_todo="1", todo_completed="0"),
    item(LOCKED, 1, "Locked", parent_id=BOOK, encryption_applied="1"),
    item(BOOK, 2, "Kitchen"),
    item(INNER, 2, "Warm/cold", parent_id=BOOK),
    item(PICTURE, 4, "pot", file_extension="png"),
    item(TAG, 5, "food"),
    item("a" * 32, 6, "", note_id=SOUP, tag_id=TAG),
    item("b" * 32, 13, "", item_id=SOUP),
    (f"resources/{PICTURE}.png", b"png"),
)  # fmt: skip


@pytest.fixture(params=["a tar", "a folder"])
def export(request: Any, tmp_path: Path) -> Path:
    place = tmp_path / "notes.jex"
    if request.param == "a tar":
        with tarfile.open(place, "w") as tar:
            for name, data in MEMBERS:
                about = tarfile.TarInfo(name)
                about.size = len(data)
                tar.addfile(about, io.BytesIO(data))
    else:
        for name, data in MEMBERS:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
    return place


def test_notebooks_are_folders_and_links_lead_to_notes_and_files(export: Path, read: Any) -> None:
    with OpenedExport(export) as opened:
        assert find_source(opened) is SOURCE
    found = read(SOURCE, export)
    notes = {each.at: each for each in found if isinstance(each, ImportedNote)}
    assert set(notes) == {
        "Kitchen/Warm cold/Soup a plan.md",
        "Kitchen/Plan.md",
        "resources/pot.png",
    }
    soup = notes["Kitchen/Warm cold/Soup a plan.md"]
    assert soup.text == (
        f"Boil.\n\n![pot](../../resources/pot.png) [more](../Plan.md) [?](:/{'f' * 32})"
    )
    assert (soup.title, soup.tags, soup.url) == ("Soup/a plan?", ("food",), "https://x.org/a")
    assert f"{soup.created:%Y-%m-%d %H:%M} {soup.updated:%d}" == "2024-03-05 09:00 06"
    assert notes["Kitchen/Plan.md"].text == "- [ ] Plan\n\nname: value"
    assert notes["resources/pot.png"].data == b"png"
    assert [(each.place, each.why) for each in found if isinstance(each, Skipped)] == [
        ("Locked", "It is encrypted. Export it again as JEX, unlocked."),
        ("1 other item", "Old versions and settings of Joplin."),
    ]


def test_of_one_that_is_cut_what_is_whole_comes_and_it_is_said(tmp_path: Path, read: Any) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, text in MEMBERS:
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text))
    file = tmp_path / "a"
    file.write_bytes(data.getvalue()[:1700])
    first, *rest = read(SOURCE, file)
    assert first.title == "Soup/a plan?"
    assert "cut or damaged" in rest[-1].why


def test_a_day_on_which_joplin_reminds_is_kept(tmp_path: Path, read: Any) -> None:
    due = {"is_todo": "1", "todo_completed": "0", "todo_due": "1796126400000"}
    for name, data in (
        item(SOUP, 1, "Soup", "Boil.", **due),
        item(PLAN, 1, "Plan", is_todo="1", todo_due="0"),
    ):
        (tmp_path / name).write_bytes(data)
    texts = {each.title: each.text for each in read(SOURCE, tmp_path)}
    assert texts["Soup"].startswith("- [ ] Soup 📅 2026-12-01")
    assert "📅" not in texts["Plan"]


def test_notes_in_the_bin_stay_out_and_conflicts_are_tagged(tmp_path: Path, read: Any) -> None:
    for name, data in (
        item(SOUP, 1, "Soup", "Boil.", deleted_time="1796126400000"),
        item(PLAN, 1, "Plan", "Theirs.", is_conflict="1", deleted_time="0"),
    ):
        (tmp_path / name).write_bytes(data)
    plan, binned = read(SOURCE, tmp_path)
    assert (plan.title, plan.tags) == ("Plan", ("conflict",))
    assert (binned.place, binned.why) == ("1 note", "It was in the bin there.")


def test_a_note_in_html_becomes_markdown(tmp_path: Path, read: Any) -> None:
    page = f'<p>Boil <b>twice</b> <img src=":/{PICTURE}" alt="pot"></p>'
    note = item(SOUP, 1, "Soup", page, markup_language="2")
    for name, data in (note, item(PICTURE, 4, "pot", file_extension="png")):
        (tmp_path / name).write_bytes(data)
    (found,) = read(SOURCE, tmp_path)
    assert found.text == "Boil **twice** ![pot](resources/pot.png)"
