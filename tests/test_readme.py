"""The README says what the program does."""

from __future__ import annotations

import re

from tests.readme import README, filled


def test_the_generated_parts_are_up_to_date() -> None:
    text = README.read_text("utf-8")
    assert filled(text) == text, "run: python -m tests.readme"


def test_every_file_that_the_readme_shows_exists() -> None:
    for target in re.findall(
        r"\]\((?!https?:|#)([^)]+)\)|src=\"([^\"]+)\"", README.read_text("utf-8")
    ):
        assert (README.parent / (target[0] or target[1])).exists(), target
