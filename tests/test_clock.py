"""The local day in a process that stays open over midnight, and over a flight."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kbtui.clock import DayWatch, local_day, local_now

HONOLULU, KIRITIMATI = "Pacific/Honolulu", "Pacific/Kiritimati"  # one day apart, at any moment


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch):
    yield lambda name: monkeypatch.setenv("TZ", name)
    monkeypatch.undo()
    time.tzset()


def test_the_day_follows_the_zone_of_the_machine_without_a_restart(zone) -> None:
    zone(HONOLULU)
    before = local_day()
    zone(KIRITIMATI)
    assert local_day() - before == timedelta(days=1)
    assert local_now().utcoffset() == timedelta(hours=14)


def test_midnight_is_noticed_once() -> None:
    now = [datetime(2026, 12, 31, 23, 59, tzinfo=UTC)]
    days = DayWatch(lambda: now[0])
    assert not days.changed()
    now[0] += timedelta(hours=9)  # the machine slept
    assert days.changed()
    assert not days.changed()


def test_another_zone_is_noticed_on_the_same_day() -> None:
    now = [datetime(2026, 7, 1, 12, tzinfo=UTC)]
    days = DayWatch(lambda: now[0])
    now[0] = now[0].astimezone(timezone(timedelta(hours=2)))
    assert days.changed()
