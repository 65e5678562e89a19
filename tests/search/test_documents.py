"""Search in documents: text is extracted after other files, and again after changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.documents import documents
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.documents import make
from tests.search.helpers import Desk, eventually, paths

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MILL = "The kestrel nests in the old mill above Tarn."


def test_a_sentence_in_the_middle_is_found_with_its_page_in_each_kind(desk: Desk) -> None:
    desk.write("docs/birds/report.pdf", make.pdf())
    desk.write("docs/letter.docx", make.docx("On owls", "Before.", "An owl sleeps in the barn."))
    desk.write("docs/book.epub", make.epub(Arrival="Nothing.", Storks="A stork stood on the roof."))
    desk.write("docs/page.html", make.HTML.replace(MILL, "A heron waits at the weir."))
    desk.write("docs/talk.pptx", make.pptx("Nothing yet", "The swift never lands"))
    desk.write("knowledge/topics/owl.md", "# Owls\n\nBirds of the night.\n")
    index = desk.index()
    found = {
        word: index.search(word, "docs").hits[0]
        for word in ("nests tarn", "owl barn", "stork roof", "heron weir", "swift lands")
    }
    assert {word: (hit.path, hit.heading) for word, hit in found.items()} == {
        "nests tarn": ("docs/birds/report.pdf", "page 2"),
        "owl barn": ("docs/letter.docx", "On owls"),
        "stork roof": ("docs/book.epub", "Storks"),
        "heron weir": ("docs/page.html", "On kestrels"),
        "swift lands": ("docs/talk.pptx", "slide 2 > The swift never lands"),
    }
    text = documents.Documents(desk.workspace).read("docs/birds/report.pdf").whole.split("\n")
    assert MILL in text[found["nests tarn"].line - 1]


def test_a_changed_document_is_read_again_and_serves_until_then(desk: Desk) -> None:
    desk.write("docs/a.pdf", make.pdf([["An osprey fishes."]]))
    index = desk.index()
    assert paths(index.search("osprey")) == ["docs/a.pdf"]
    desk.write("docs/a.pdf", make.pdf([["A buzzard circles."]]))
    index.refresh(["docs/a.pdf"])
    index.refresh_now()
    assert paths(index.search("osprey")) == ["docs/a.pdf"] or paths(index.search("buzzard"))
    assert paths(index.search("buzzard")) == ["docs/a.pdf"]
    assert paths(index.search("osprey")) == []
    (desk.root / "docs/a.pdf").unlink()
    index.sync()
    assert paths(index.search("buzzard")) == []
    assert not list((desk.workspace.cache / "documents").iterdir())


def test_what_cannot_be_searched_is_named_with_the_reason(desk: Desk) -> None:
    desk.write("docs/locked.pdf", make.pdf(encrypted=True))
    desk.write("docs/scan.pdf", make.pdf([[]]))
    desk.write("docs/fine.pdf", make.pdf())
    (desk.root / "docs/link.pdf").symlink_to("fine.pdf")
    report = desk.index().sync()
    assert dict(report.skipped) == {
        "docs/link.pdf": "it is a link",
        "docs/locked.pdf": "it is protected by a password",
        "docs/scan.pdf": "it holds pictures of pages, and no text",
    }
    assert desk.index().sync().changed == 0, "what can't be read isn't tried again"


def test_beside_the_notes_of_a_vault_what_the_history_leaves_out_is_not_named_again(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path / "vault", in_place=True)
    (desk.root / "note.md").symlink_to("elsewhere.md")
    (desk.root / "report.pdf").symlink_to("elsewhere.pdf")
    try:
        assert desk.index().sync().skipped == (("knowledge/report.pdf", "it is a link"),)
    finally:
        desk.close()


def test_without_the_extra_pages_are_searched_as_they_are_until_it_is_installed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("docs/page.html", make.HTML)
    desk.write("docs/a.pdf", make.pdf([["An osprey fishes."]]))
    with monkeypatch.context() as patch:
        patch.setattr(documents, "find_spec", lambda _: None)
        index = desk.index()
        assert dict(index.sync().skipped) == {"docs/a.pdf": documents.missing()}
        assert paths(index.search("kestrel")) == ["docs/page.html"]
        index.close()
    index = desk.index()
    assert paths(index.search("osprey")) == ["docs/a.pdf"]
    assert paths(index.search("scripted secret")) == []


def test_the_app_reads_documents_behind_what_is_text(desk: Desk) -> None:
    desk.write("docs/a.pdf", make.pdf([["An osprey fishes."]]))
    desk.write("knowledge/topics/owl.md", "# Owls\n")
    index = desk.index()
    index.start()
    eventually(lambda: paths(index.search("osprey")) == ["docs/a.pdf"])
    desk.write("docs/b.pdf", make.pdf([["A buzzard circles."]]))
    eventually(lambda: paths(index.search("buzzard")) == ["docs/b.pdf"])


def test_documents_beside_notes_in_place_are_searched_and_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "vault/papers").mkdir(parents=True)
    (tmp_path / "vault/note.md").write_text("# Note\n")
    (tmp_path / "vault/papers/osprey.pdf").write_bytes(make.pdf([["An osprey fishes."]]))
    (tmp_path / "vault/papers/index.html").write_text("<p>An osprey on a page.")
    workspace = create_workspace(tmp_path / "vault")
    assert workspace.in_place
    scanner = Scanner(workspace)
    settings = SearchSettings(semantic=False)
    index = SearchIndex(workspace, scanner, settings, RoleSettings())
    found = index.search("osprey")
    assert paths(found) == ["knowledge/papers/osprey.pdf"]
    assert workspace.file(paths(found)[0]) == "papers/osprey.pdf"
    assert list(scanner.scan("knowledge")) == ["knowledge/note.md"]
    assert index.sync().changed == 0
    index.close()
