"""What kbtui works around in markitdown, openpyxl, Beautiful Soup and what trafilatura needs."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
import zipfile
from importlib.metadata import requires

import bs4
import openpyxl
import pytest
from bs4.exceptions import ParserRejectedMarkup

_CHILD = "kbtui/documents/child.py"
_WATCH = """
import importlib.abc, sys, types
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {"magika", "pandas", "pdfminer", "pdfplumber"}:
            print(name)
            if name == "magika":
                sys.modules[name] = types.ModuleType(name)
            raise ImportError(name)
sys.meta_path.insert(0, Watch())
for _ in range(2):  # the first import ends at magika
    try:
        import markitdown.converters
    except ImportError:
        [sys.modules.pop(name) for name in list(sys.modules) if name.startswith("markitdown")]
"""


def test_markitdown_imports_libraries_for_what_kbtui_reads_otherwise() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WATCH], capture_output=True, text=True, check=True
    )
    asked = set(done.stdout.split())
    assert asked == {"magika", "pandas", "pdfminer"}, (
        f"`main` of {_CHILD} has to keep these away, and no others"
    )


def test_openpyxl_believes_the_size_that_a_sheet_names() -> None:
    made, changed = io.BytesIO(), io.BytesIO()
    book = openpyxl.Workbook()
    book.active.append(["one", "two"])
    book.save(made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'ref="A1:B1"', b'ref="A1:A1"'))
    (sheet,) = openpyxl.load_workbook(changed, read_only=True).worksheets
    told = f"`reset_dimensions` in {_CHILD} can go"
    assert list(sheet.iter_rows(values_only=True)) == [("one",)], told
    sheet.reset_dimensions()
    assert list(sheet.iter_rows(values_only=True)) == [("one", "two")]


def test_beautiful_soup_rejects_an_unknown_section() -> None:
    # When it doesn't, the second try in `_tree_of` of kbtui/importers/markup.py can go.
    with pytest.raises(ParserRejectedMarkup):
        bs4.BeautifulSoup("a <![x[ b ]]> c", "html.parser")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("notes.html", bs4.MarkupResemblesLocatorWarning),
        ('<?xml version="1.0"?><a/>', bs4.XMLParsedAsHTMLWarning),
    ],
)
def test_beautiful_soup_warns_of_text_that_looks_like_something_else(
    text: str, warning: type[Warning]
) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        bs4.BeautifulSoup(text, "html.parser")
    assert [each.category for each in given] == [warning], (
        f"{warning.__name__} needn't be ignored in kbtui/importers/markup.py"
    )


def test_the_cleaner_of_html_is_asked_for_by_an_extra() -> None:
    assert any("lxml[html_clean]" in each for each in requires("justext") or ()), (
        "`lxml_html_clean` of pyproject.toml can go: what trafilatura needs asks for it by itself"
    )
