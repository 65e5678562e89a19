"""Lines that say what the person has to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtui.offline.duties import names_duty


@pytest.mark.parametrize("row", (Path(__file__).parent / "duties.tsv").read_text().splitlines())
def test_what_is_to_be_done_is_told_from_what_happens(row: str) -> None:
    kind, text = row.split("\t")
    assert names_duty(text) == (kind == "yes")


@pytest.mark.parametrize("text", ["", "on Friday", "Freitag", "2026-12-04", "Buy", "☐", "- "])
def test_a_line_that_says_nothing_is_none(text: str) -> None:
    assert not names_duty(text)
