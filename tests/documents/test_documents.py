"""The text of documents: read by a child process, kept, and told with its place."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from kbtui import child_process
from kbtui.documents import child, documents
from kbtui.documents.documents import Documents, DocumentText, is_document, missing
from kbtui.errors import KbtuiError
from kbtui.workspace.layout import Workspace
from tests.documents import make

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MILL = "The kestrel nests in the old mill above Tarn."
SHEETS = {"Plan": [["when", "what"], [2026, None]], "Birds": [["kestrel", MILL, 3.5]]}
# One child process reads all of these.
FILES = {
    "a.pdf": make.pdf(title="Birds of Tarn"),
    "a.docx": make.docx("On kestrels", "Before.", MILL, "After."),
    "a.pptx": make.pptx("Nothing yet", MILL, "The end"),
    "a.xlsx": make.xlsx(**SHEETS),
    "a.html": make.HTML.encode(),
    "a.epub": make.epub(Arrival="Nothing.", Mill=MILL, Leaving="Nothing."),
    "latin.htm": "<meta charset=latin1><p>Zürich ist größer.".encode("latin-1"),
    "raised.htm": b"<p>10<sup>6</sup> kestrels, CO<sub>2</sub>",
    "classed.htm": b"<STYLE>.up, span.x { font-size:70%; vertical-align: super } .x::after {a:b}"
    b" .low{vertical-align:sub} td, p {vertical-align:super}</STYLE><p>10<span class='up b'>6</span>"
    b" kestrels, CO<span class=low>2</span>, m<font style='vertical-align: super'>3</font>",
    "raised.docx": make.docx(
        "a",
        "10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>6</w:t></w:r><w:r>"
        "<w:t xml:space='preserve'> kestrels",
    ),
    "locked.pdf": make.pdf(encrypted=True),
    "pictures.pdf": make.pdf([[], []]),
    "bomb.docx": make.docx("Heading", "x", bomb=600 << 20),
    "old.docx": b"\xd0\xcf\x11\xe0" + bytes(5000),
    "deep.html": b"<div>" * 50_000 + b"deep inside",
    "drm.epub": make.zipped({"META-INF/rights.xml": "<r/>"}),
    "empty.pdf": b"",
    "control.html": b"<p>red \x1b[31malert\x07 \xe2\x80\xaegnp",
    **{f"cut.{kind}": make.cut(data) for kind, data in (
        ("pdf", make.pdf()), ("docx", make.docx("a", "b")), ("pptx", make.pptx("a")),
        ("xlsx", make.xlsx(A=[[1]])), ("epub", make.epub(A="a")))},
    "zip.docx": make.zipped({"a": "b"}),
    "zip.pptx": make.zipped({"a": "b"}),
    "zip.xlsx": make.zipped({"a": "b"}),
    "zip.epub": make.zipped({"a": "b"}),
    "scrambled.docx": make.scrambled(make.docx("a", *map(str, range(900)))),
}  # fmt: skip


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DocumentText]]:
    root = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        (root / "docs").mkdir()
        for name, data in FILES.items():
            (root / "docs" / name).write_bytes(data)
        with Documents(Workspace(root)) as found:
            yield {name: found.read(f"docs/{name}") for name in FILES}
        assert {name: (root / "docs" / name).read_bytes() for name in FILES} == FILES


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "docs").mkdir()
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a.pdf", "page 2"),
        ("a.pptx", "slide 2"),
        ("a.xlsx", "sheet Birds"),
        ("a.epub", "Mill"),
        ("a.docx", ""),
        ("a.html", ""),
    ],
)
def test_a_sentence_in_the_middle_is_read_with_its_place(
    read: dict[str, DocumentText], name: str, place: str
) -> None:
    text = read[name]
    found = [number for number, line in enumerate(text.whole.split("\n"), 1) if MILL in line]
    assert [text.place_at(line) for line in found] == [place]
    assert text.problem == ""


def test_each_part_begins_on_the_line_that_is_told_of_it(read: dict[str, DocumentText]) -> None:
    text = read["a.pdf"]
    lines = text.whole.split("\n")
    assert [lines[start - 2] for start in text.starts] == ["[page 1]", "[page 2]", "[page 3]"]
    assert [text.place_at(start) for start in text.starts] == ["page 1", "page 2", "page 3"]


def test_titles_are_those_that_a_document_states(read: dict[str, DocumentText]) -> None:
    titles = {name: read[name].title for name in ("a.pdf", "a.html", "a.epub")}
    assert titles == {"a.pdf": "Birds of Tarn", "a.html": "Kestrels", "a.epub": "The Mill"}


def test_headings_and_tables_become_markdown(read: dict[str, DocumentText]) -> None:
    assert read["a.docx"].whole.startswith("# On kestrels\n")
    assert f"| kestrel | {MILL} | 3.5 |" in read["a.xlsx"].whole
    assert "| 2026 |" in read["a.xlsx"].whole


def test_what_is_raised_or_lowered_is_no_part_of_a_number(read: dict[str, DocumentText]) -> None:
    assert read["raised.htm"].whole.strip() == "10<sup>6</sup> kestrels, CO<sub>2</sub>"
    assert "10<sup>6</sup> kestrels" in read["raised.docx"].whole
    wanted = "10<sup>6</sup> kestrels, CO<sub>2</sub>, m<sup>3</sup>"
    assert read["classed.htm"].whole.strip() == wanted


def test_what_a_page_would_run_is_left_out(read: dict[str, DocumentText]) -> None:
    text = read["a.html"].whole
    assert not any(word in text for word in ("secret", "steal", "javascript", "color"))


def test_other_encodings_are_read_and_control_characters_are_not(
    read: dict[str, DocumentText],
) -> None:
    assert "Zürich ist größer." in read["latin.htm"].whole
    assert "[31malert" in read["control.html"].whole
    assert not set("\x1b\x07\u202e") & set(read["control.html"].whole)


def test_deeply_nested_pages_are_read(read: dict[str, DocumentText]) -> None:
    assert "deep inside" in read["deep.html"].whole


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("locked.pdf", "it is protected by a password"),
        ("old.docx", "it is protected by a password, or of an old format"),
        ("drm.epub", "it is protected against copying"),
        ("pictures.pdf", "it holds pictures of pages, and no text"),
        ("bomb.docx", "it unpacks to 600 MB"),
        *((f"{how}.{kind}", "it is damaged") for how in ("cut", "zip")
          for kind in ("docx", "pptx", "xlsx", "epub")),
        ("scrambled.docx", "it is damaged"),
        ("empty.pdf", "it is damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_the_reason(
    read: dict[str, DocumentText], name: str, why: str
) -> None:
    assert read[name].problem.startswith(why)
    assert read[name].parts == ()


def test_a_pdf_that_is_cut_short_is_read_or_refused(read: dict[str, DocumentText]) -> None:
    assert read["cut.pdf"].parts or read["cut.pdf"].problem


def test_a_text_is_kept_by_its_content_and_made_again_when_the_file_changes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workspace.docs / "a.pdf"
    file.write_bytes(make.pdf([["One"]]))
    with Documents(workspace) as found:
        assert found.read("docs/a.pdf").parts == (("page 1", "One"),)
        with monkeypatch.context() as patch:
            patch.setattr(documents, "_start", None)  # nothing is read again
            assert Documents(workspace).read("docs/a.pdf").parts == (("page 1", "One"),)
        for kept in (workspace.cache / "documents").iterdir():
            kept.write_bytes(kept.read_bytes().replace(b"One", b"Onx"))
        assert found.read("docs/a.pdf").parts == (("page 1", "One"),), "the damaged one is not used"
        file.write_bytes(make.pdf([["Two"]]))
        with monkeypatch.context() as patch:
            patch.setattr(documents, "_SECONDS", 0.0)
            assert found.read("docs/a.pdf").problem.startswith("reading it takes longer than")
    Documents(workspace).keep_only([])
    assert not list((workspace.cache / "documents").iterdir())
    with Documents(workspace, lambda: True) as found:
        assert found.read("docs/a.pdf").problem == "reading it was interrupted"
    with Documents(workspace) as found:
        assert found.read("docs/a.pdf").parts == (("page 1", "Two"),)


def test_a_child_that_dies_costs_one_file(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.docs / "a.html").write_text("<p>One.")
    monkeypatch.setattr(child_process.sys, "executable", "/bin/false")
    with Documents(workspace) as found:
        assert found.read("docs/a.html").problem == "whatever read it broke down"


def test_no_module_is_taken_out_of_the_folder_that_somebody_is_in(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.root / "json.py").write_text("raise SystemExit('it ran')")
    (workspace.docs / "a.html").write_text("<p>One.")
    monkeypatch.chdir(workspace.root)
    with Documents(workspace) as found:
        assert found.read("docs/a.html").parts


def test_without_the_extra_one_sentence_says_what_to_install(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.docs / "a.pdf").write_bytes(make.pdf())
    monkeypatch.setattr(documents, "find_spec", lambda name: (name == "pip") or None)
    assert Documents(workspace).read("docs/a.pdf").problem == missing()
    command = shlex.split(missing().partition(": ")[2])
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert command[-1].endswith("[documents]")


def test_a_large_document_is_refused_before_it_is_opened(workspace: Workspace) -> None:
    with (workspace.docs / "huge.docx").open("wb") as file:
        file.truncate(2 << 30)
    assert Documents(workspace).read("docs/huge.docx").problem == "it is larger than 200 MB"


def test_links_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("<p>Secret.")
    (workspace.docs / "a.html").symlink_to(tmp_path / "secret.html")
    with pytest.raises(KbtuiError):
        Documents(workspace).read("docs/a.html")


def test_answers_of_another_form_are_not_believed() -> None:
    for answer in ([], {"parts": 3}, {"parts": [["a"]]}, {"parts": [1]}):
        with pytest.raises(ValueError):
            documents._text(json.loads(json.dumps(answer)))


def test_documents_are_known_by_folder_and_ending() -> None:
    assert is_document("docs/a/b.PDF")
    assert is_document("knowledge/papers/x.epub")
    assert is_document("mine/x.docx", ["mine"])
    assert not is_document("memory/x.pdf")
    assert not is_document("docs/a.md")


def test_what_takes_long_is_read_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("page 1", "One"), ("page 2", "Two")]
    assert child._collect(iter(parts)) == (parts, False)
    monkeypatch.setattr(child, "_SECONDS", -1.0)
    assert child._collect(iter(parts)) == (parts[:1], True)


@pytest.mark.parametrize(
    ("pip", "command"),
    [(True, "python -m pip install"), (False, "uv pip install --python /here/python")],
)
def test_the_extra_is_installed_by_uv_where_the_environment_has_no_pip(
    *, monkeypatch: pytest.MonkeyPatch, pip: bool, command: str
) -> None:
    monkeypatch.setattr(documents.sys, "executable", "/here/python")
    monkeypatch.setattr(documents, "find_spec", lambda name: (name == "pip" and pip) or None)
    documents.missing.cache_clear()
    assert command in documents.missing()
    documents.missing.cache_clear()
