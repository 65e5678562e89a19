"""Documents on the command line: found, shown, and named where they can't be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.documents import make

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

pytestmark = pytest.mark.usefixtures("lexical")
MILL = "The kestrel nests in the old mill above Tarn."


@pytest.fixture
def lexical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")


def test_a_document_is_found_with_its_page_and_shown_with_page_marks(kbtui: Command) -> None:
    kbtui.file("docs").mkdir(exist_ok=True)
    kbtui.file("docs/a.pdf").write_bytes(make.pdf(title="Birds"))
    found = kbtui.ok("search", "nests tarn", "--lexical", "--json").json["hits"][0]
    shown = kbtui.ok("show", "docs/a.pdf").out
    assert (found["path"], found["heading"]) == ("docs/a.pdf", "page 2")
    assert "[page 2]\nOn the second page there is more.\nThe kestrel nests" in shown
    assert MILL in shown.splitlines()[found["line"] - 1]
    shape = kbtui.ok("show", "docs/a.pdf", "--json").json
    assert shape["title"] == "Birds"
    assert [part["place"] for part in shape["parts"]] == ["page 1", "page 2", "page 3"]


def test_what_cannot_be_read_is_said_when_it_is_shown_and_by_the_doctor(kbtui: Command) -> None:
    kbtui.file("docs").mkdir(exist_ok=True)
    kbtui.file("docs/locked.pdf").write_bytes(make.pdf(encrypted=True))
    shown = kbtui("show", "docs/locked.pdf")
    assert (shown.status, "it is protected by a password" in shown.err) == (1, True)
    findings = kbtui("doctor", "--json").json
    assert "docs/locked.pdf: it is protected by a password" in [each["text"] for each in findings]


def test_import_keeps_a_document_and_says_what_cannot_be_read(
    kbtui: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(make.pdf())
    (tmp_path / "locked.pdf").write_bytes(make.pdf(encrypted=True))
    looked = kbtui.ok("import", "--dry-run", str(tmp_path / "a.pdf"))
    assert "a document, to be kept under docs/" in looked.out
    assert not kbtui.file("docs/a.pdf").exists()
    done = kbtui.ok("import", str(tmp_path / "a.pdf"), str(tmp_path / "locked.pdf"))
    assert done.out == "Kept as docs/a.pdf\nKept as docs/locked.pdf\n"
    assert "docs/locked.pdf: it is protected by a password" in done.err
    hit = kbtui.ok("search", "nests tarn", "--lexical", "--json").json["hits"][0]
    assert (hit["path"], hit["heading"]) == ("docs/a.pdf", "page 2")
    assert "It is here already: docs/a.pdf" in kbtui.ok("import", str(tmp_path / "a.pdf")).out
