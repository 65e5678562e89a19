"""Relative dates become the days that they meant when it was said."""

from __future__ import annotations

from datetime import date

import pytest

from kbtui.memory.records.dates import absolute_dates, without_stamp

FRIDAY = date(2026, 3, 6)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Met Alice yesterday.", "Met Alice on 2026-03-05."),
        ("The demo is tomorrow", "The demo is on 2026-03-07"),
        ("due by tomorrow", "due by 2026-03-07"),
        ("Tonight: dinner", "on 2026-03-06: dinner"),
        ("moved three days ago", "moved on 2026-03-03"),
        ("leaves in 2 weeks", "leaves on 2026-03-20"),
        ("Review next Monday", "Review on 2026-03-09"),
        ("started last Friday", "started on 2026-02-27"),
        ("the day after tomorrow", "on 2026-03-08"),
        ("gestern angekommen", "2026-03-05 angekommen"),
        ("llegó ayer", "llegó 2026-03-05"),
    ],
)
def test_a_relative_date_is_settled(said: str, kept: str) -> None:
    assert absolute_dates(said, FRIDAY) == kept


@pytest.mark.parametrize(
    "said",
    [
        "likes today's papers",
        'the song "Yesterday" by the Beatles',
        "runs `date -d yesterday`",
        "see [[notes of today]]",
        "in five minutes",
        "reads USA Today-like papers",
        "subscribed to USA Today",
    ],
)
def test_what_may_mean_something_else_stays(said: str) -> None:
    assert absolute_dates(said, FRIDAY) == said


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("signed today", "signed today (2026-03-06)"),
        ("call Bob tomorrow", "call Bob tomorrow (2026-03-07)"),
        ("gestern angekommen", "gestern (2026-03-05) angekommen"),
        ("I read USA Today", "I read USA Today"),
        ('the song "Yesterday" by the Beatles', 'the song "Yesterday" by the Beatles'),
    ],
)
def test_word_for_word_the_date_stands_behind(said: str, kept: str) -> None:
    dated = absolute_dates(said, FRIDAY, verbatim=True)
    assert dated == kept
    assert absolute_dates(dated, FRIDAY) == dated


def test_a_stamp_before_a_history_entry_is_not_said_twice() -> None:
    assert without_stamp("[2026-03-06 10:00] User shared.") == "User shared."
    assert without_stamp("2026-03-06: User shared.") == "User shared."
    assert without_stamp("User shared.") == "User shared."
    assert without_stamp("Met on 2026-03-06.") == "Met on 2026-03-06."
