"""What is taken of Google Keep's notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.keep import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def note(**more: Any) -> dict[str, Any]:
    return {
        "color": "DEFAULT", "isTrashed": False, "isPinned": False, "isArchived": False,
        "textContent": "Leeks", "title": "Soup", "userEditedTimestampUsec": 1_700_000_900_000_000,
        "createdTimestampUsec": 1_700_000_000_000_000, "textContentHtml": "<p>Leeks</p>", **more,
    }  # fmt: skip


def test_a_note_comes_with_its_times_labels_and_links(tmp_path: Path, read: Any) -> None:
    link = {"source": "WEBLINK", "title": "A recipe", "url": "https://x.org/a"}
    keep = tmp_path / "x/Takeout/Keep"
    written(keep / "Soup.json", note(labels=[{"name": "Food"}], annotations=[link]))
    (keep / "Soup.html").write_text("<html>Leeks</html>")
    with OpenedExport(tmp_path / "x") as opened:
        assert find_source(opened) is SOURCE
    (found,) = read(SOURCE, tmp_path / "x")
    assert (found.title, found.text) == ("Soup", "Leeks\n\n- [A recipe](https://x.org/a)")
    assert found.tags == ("Food",)
    assert found.created.timestamp() == 1_700_000_000
    assert found.updated.timestamp() == 1_700_000_900


def test_lists_keep_what_is_ticked_and_a_note_without_title_has_its_words(
    tmp_path: Path, read: Any
) -> None:
    items = [{"text": "Leeks", "isChecked": True}, {"text": "Salt", "isChecked": False}]
    (found,) = read(SOURCE, written(tmp_path / "a.json", note(textContent="", listContent=items)))
    assert found.text == "- [x] Leeks\n- [ ] Salt"
    (found,) = read(SOURCE, written(tmp_path / "b.json", note(title="")))
    assert found.title == "Leeks"


def test_pictures_come_though_their_ending_differs_and_missing_ones_are_told(
    tmp_path: Path, read: Any
) -> None:
    files = [{"filePath": "a1.jpg"}, {"filePath": "gone.png"}]
    written(tmp_path / "x/Keep/Soup.json", note(attachments=files))
    (tmp_path / "x/Keep/a1.jpeg").write_bytes(b"jpeg")
    found, picture, gone = read(SOURCE, tmp_path / "x")
    assert found.text.endswith("![a1.jpg](files/a1.jpg)\n\nAttached: gone.png")
    assert picture.at == "files/a1.jpg"
    assert isinstance(picture, ImportedNote)
    assert (picture.title, picture.data) == ("a1.jpg", b"jpeg")
    assert isinstance(gone, Skipped)


def test_the_bin_and_empty_notes_are_counted_and_cut_ones_told(tmp_path: Path, read: Any) -> None:
    for number in range(2):
        written(tmp_path / f"x/{number}.json", note(isTrashed=True))
    written(tmp_path / "x/3.json", note(title="", textContent=""))
    cut = written(tmp_path / "x/4.json", note())
    cut.write_bytes(cut.read_bytes()[:-9])
    assert [(each.place, each.why) for each in read(SOURCE, tmp_path / "x")] == [
        ("3.json", "It is empty."),
        (
            "4.json, number 1",
            "The text breaks off in the middle of it. What follows it is not read.",
        ),
        ("2 notes", "It was in the bin there."),
    ]


def test_a_note_in_the_archive_is_filed_apart(tmp_path: Path, read: Any) -> None:
    (found,) = read(SOURCE, written(tmp_path / "a.json", note(isArchived=True)))
    assert found.folder == "archive"


def test_marks_of_a_note_are_kept_which_only_its_page_says(tmp_path: Path, read: Any) -> None:
    page = '<h1 dir="ltr">Leeks</h1><p><span style="font-weight:700">two</span> of them</p>'
    items = [{"text": "Salt", "textHtml": "<p><i>Salt</i></p>", "isChecked": True}]
    more = note(textContent="Leeks\ntwo of them", textContentHtml=page, listContent=items)
    (found,) = read(SOURCE, written(tmp_path / "a.json", more))
    assert found.text == "# Leeks\n\n**two** of them\n\n- [x] *Salt*"
    more = {key: value for key, value in note().items() if key != "textContent"}
    (found,) = read(SOURCE, written(tmp_path / "b.json", more))
    assert found.text == "Leeks"


def test_a_page_that_says_less_than_the_text_is_passed_over(tmp_path: Path, read: Any) -> None:
    more = note(textContent="Two leeks", textContentHtml="<b>Two</b>")
    (found,) = read(SOURCE, written(tmp_path / "a.json", more))
    assert found.text == "Two leeks"
