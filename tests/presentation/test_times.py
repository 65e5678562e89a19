"""Times as people say them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from kbtui.presentation.times import day_heading, format_day, format_time

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 24, 14, 30, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=59), "now"),
        (timedelta(minutes=4), "4 min"),
        (timedelta(minutes=60), "13:30"),
        (timedelta(days=1), "yesterday 14:30"),
        (timedelta(days=2), "Sun 14:30"),
        (timedelta(days=7), "17 Nov"),
        (timedelta(days=365), "24 Nov 2025"),
        (timedelta(seconds=-90), "14:31"),
    ],
)
def test_a_time_is_as_short_as_it_stays_clear(passed: timedelta, words: str) -> None:
    assert format_time(NOW - passed, NOW) == words


def test_a_time_of_another_zone_is_said_in_ones_own() -> None:
    utc = datetime(2026, 11, 24, 9, 5, tzinfo=UTC)
    assert format_time(utc, NOW) == "11:05"


def test_days_have_names_above_what_happened_on_them() -> None:
    today = NOW.date()
    assert day_heading(today, today) == "Today"
    assert day_heading(date(2026, 11, 23), today) == "Yesterday"
    assert day_heading(date(2026, 11, 3), today) == "Tuesday 3 November"
    assert day_heading(date(2025, 11, 3), today) == "Monday 3 November 2025"
    assert format_day(date(2025, 1, 2), today) == "2 Jan 2025"
