"""A line of Markdown by itself is read as CommonMark does."""

from __future__ import annotations

import pytest

from kbtui.knowledge.format.lines import heading_of


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("## C#", (2, "C#")),
        ("## C# ##", (2, "C#")),
        ("## ##", (2, "")),
        (" # A \r\n", (1, "A")),
        ("#tag", None),
    ],
)
def test_only_marks_behind_a_blank_close_a_heading(
    line: str, heading: tuple[int, str] | None
) -> None:
    assert heading_of(line) == heading
