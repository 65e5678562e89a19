"""Help on keys, commands and settings, in a pipe and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.cli.help import PAGES, render_page

if TYPE_CHECKING:
    from tests.cli.conftest import Command

PAGE = """# Keys

| Key | What it does |
| --- | --- |
| `/` | Filter \\| find |
| `ctrl+s` | Save the entry; the change can be undone in the history, as any other. |
"""


@pytest.mark.parametrize(
    ("topic", "word"), zip(PAGES, ("ctrl+s", "kbtui log", "search.roots"), strict=True)
)
def test_a_page_is_shown_as_markdown_in_a_pipe(kbtui: Command, topic: str, word: str) -> None:
    out = kbtui.ok("help", topic).out
    assert out.startswith(f"# {topic.title()}\n")
    assert word in out


def test_on_a_terminal_a_table_has_columns_and_no_line_is_too_long() -> None:
    lines = render_page(PAGE, 50).splitlines()
    assert lines[0] == "Keys"
    assert lines[2].split() == ["Key", "What", "it", "does"]
    assert lines[3] == "/       Filter | find"
    assert max(map(len, lines)) <= 50
    assert " ".join(" ".join(lines[4:]).split()).endswith("as any other.")


def test_help_on_a_command_is_that_commands_own(kbtui: Command) -> None:
    assert kbtui.ok("help", "inbox", "accept").out == kbtui.ok("inbox", "accept", "--help").out
    assert kbtui.ok("help").out == kbtui.ok("--help").out
    done = kbtui("help", "inbox", "nonsense")
    assert done.status == 2
    assert "nonsense" in done.err
