"""Lines of Markdown are classified as CommonMark does."""

from __future__ import annotations

import pytest

from kbtui.knowledge.format.lines import fenced, heading_of


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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```py\n# x\n```\nb", "```py\n# x\n```"),
        ("````md\n```py\nx\n```\n````\nb", "````md\n```py\nx\n```\n````"),
        ("~~~\n```\n~~~\nb", "~~~\n```\n~~~"),
        ("```\n```py\n```\nb", "```\n```py\n```"),
        ("```one``` line\nb", ""),
    ],
)
def test_a_fence_ends_at_one_of_its_sign_that_is_as_long_and_says_nothing(
    text: str, code: str
) -> None:
    assert "\n".join(line for line, is_code in fenced(text.split("\n")) if is_code) == code
