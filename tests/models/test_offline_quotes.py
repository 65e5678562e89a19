"""What the offline model quotes: whole sentences, however the note wraps its lines."""

from __future__ import annotations

from kbtui.models.offline_quotes import Result, best_quotes

NOTE = """# Storage

The station sends 144 readings a day from each sensor: some 300,000 rows a year. One
program writes them, one page reads
them.

- SQLite needs no server
  and survives a power cut
- A backup is a copy

| what | how |
|------|-----|
| Backup | nightly copy |
"""


def _quoted(question: str) -> list[str]:
    return [quote.text for quote in best_quotes(question, [Result(1, "knowledge/x.md", 1, NOTE)])]


def test_a_paragraph_is_quoted_whole_across_its_lines() -> None:
    (quote,) = _quoted("how many readings does a sensor send?")
    assert quote.startswith("The station sends")
    assert quote.endswith("One program writes them, one page reads them.")


def test_a_list_item_is_quoted_with_its_continuation_and_without_its_neighbour() -> None:
    assert _quoted("what does SQLite survive?") == [
        "SQLite needs no server and survives a power cut"
    ]


def test_a_row_of_a_table_is_quoted_alone() -> None:
    assert "| Backup | nightly copy |" in _quoted("is the backup a nightly copy?")
