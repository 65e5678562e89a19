"""What kbtui works around in Python's own library, as its oldest supported version has it."""

from __future__ import annotations

import logging.handlers
import os
import stat
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

OLDEST = (3, 11)
of_the_oldest = pytest.mark.skipif(
    sys.version_info[:2] != OLDEST, reason="about the oldest Python that kbtui supports"
)


@of_the_oldest
def test_html_parser_fails_at_an_unknown_section() -> None:
    # When it doesn't, the second try of `markdown_of` in kbtui/importers/html_writer.py can go.
    with pytest.raises(AssertionError):
        HTMLParser().feed("a <![x[ b ]]> c")


def test_html_parser_counts_lines_for_each_element(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(HTMLParser, "updatepos", lambda _, i, j: counted.append(i) or j)
    HTMLParser().feed("<p>a</p>")
    assert counted, "`_Writer.updatepos` of kbtui/importers/html_writer.py can go"


def test_a_log_is_made_for_all_who_the_umask_lets_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    before = os.umask(0o022)
    try:
        logging.handlers.RotatingFileHandler(file).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644, "`_open` of kbtui/logs.py can go"
