from __future__ import annotations

import pytest

from kbtui.search.query.parser import marker


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("planning", "We plan the plans, not planes.", ["plan", "plans"]),
        ('"exact phrase" storage', "An exact  phrase, storage too", ["exact  phrase", "storage"]),
        ("archi*", "An archive of architects; arch", ["archive", "architects"]),
        ("type:decision tag:auth", "type decision auth", []),
        ("café", "Cafe and CAFÉ", ["Cafe", "CAFÉ"]),
        ("-draft plan", "draft plan", ["plan"]),
        ("", "anything", []),
    ],
)
def test_it_marks_what_the_index_would_find(query, text, marked):
    assert [text[start:end] for start, end in marker(query)(text)] == marked
