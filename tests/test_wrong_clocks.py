"""Zones, hours that come twice, and clocks that were wrong once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.importers.reading import time_of
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.jobs import DreamJob
from kbtui.memory.records.tombstones import Tombstones
from kbtui.search.index.chunker import ChunkLimits, read_document
from kbtui.search.query.parser import date_bounds
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.memory.newer_world import World

NEW_YORK, BERLIN = "EST+5EDT,M3.2.0/2,M11.1.0/2", "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def change(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


def test_a_message_belongs_to_the_local_day_on_which_it_was_said(
    in_zone: Callable[[str], None],
) -> None:
    said = {"id": 1, "time": "2026-07-01T03:31:00+00:00", "role": "user", "content": "19 kilos."}
    in_zone(NEW_YORK)
    (chunk,) = read_document(
        "sessions/a.jsonl", (json.dumps(said) + "\n").encode(), ChunkLimits()
    ).chunks
    assert chunk.updated == "2026-06-30"
    assert chunk.headings[0][1].endswith("30 June 2026")


@pytest.mark.parametrize("zone", [NEW_YORK, BERLIN])
def test_a_time_without_a_zone_in_an_export_is_a_local_one(
    in_zone: Callable[[str], None], zone: str
) -> None:
    in_zone(zone)
    found = time_of("2026-06-30T23:40:00")
    assert found is not None
    assert f"{found.astimezone():%Y-%m-%d %H:%M}" == "2026-06-30 23:40"
    assert time_of("2026-06-30T23:40:00Z") == datetime(2026, 6, 30, 23, 40, tzinfo=UTC)


def test_a_day_to_come_is_not_of_this_week() -> None:
    for value in ("today", "week", "year"):
        span = date_bounds(value, today=date(2026, 11, 23))
        assert span is not None
        assert span[1] == "2026-11-23"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return _history(tmp_path / "kb", lambda: datetime(2026, 3, 29, 0, 59, 30, tzinfo=UTC))


def _history(root: Path, clock: Callable[[], datetime]) -> History:
    workspace = create_workspace(root)
    history = History(workspace, Scanner(workspace), clock)
    history.open()
    with history.change(Actor.YOU, "A note.", Origin()) as change:
        change.write("knowledge/facts/a.md", "The hall clock is slow.\n")
    return history


def test_the_ends_of_the_calendar_name_no_commit_and_the_newest(history: History) -> None:
    with pytest.raises(NotFoundError, match="no commit up to"):
        history.resolve("0001-01-01")
    for rev in ("9999-12-31", "9999-12-31T23:59:59-12:00"):
        assert history.resolve(rev) == history.head()


def test_an_hour_that_does_not_exist_is_never_before_the_minute_that_precedes_it(
    history: History, in_zone: Callable[[str], None]
) -> None:
    in_zone(BERLIN)
    for rev in ("2026-03-29T01:59:50", "2026-03-29T02:30"):
        assert history.resolve(rev) == history.head()


def test_commits_are_in_their_order_though_a_clock_was_ahead(tmp_path: Path) -> None:
    now = datetime(2031, 5, 5, tzinfo=UTC)
    history = _history(tmp_path / "kb", lambda: now)
    now = datetime(2026, 11, 22, tzinfo=UTC)
    with history.change(Actor.YOU, "Another.", Origin()) as change:
        change.write("knowledge/facts/b.md", "The hall clock is right.\n")
    moments = history.moments()
    newest, oldest = (each.id for each in history.log())
    assert moments[oldest] < moments[newest] <= now.timestamp()


def test_a_conversation_of_a_day_to_come_is_not_the_latest_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path / "kb")
    world.say("The rent is 800 euros.", 1700)
    world.say("The rent is 850 euros.", 50)
    first, second = world.kb.sessions.list()
    assert first.updated < second.updated
    assert world.kb.due.abandoned(world.kb.sessions) == []
    world.kb.close()


def test_a_run_of_dream_on_a_day_to_come_makes_the_next_one_due_now(tmp_path: Path) -> None:
    now = datetime(2031, 5, 5, tzinfo=UTC)
    kb = KnowledgeBase.open(tmp_path / "kb", create=True, clock=lambda: now)
    with kb.history.change(Actor.DREAM, "Dreamt.", Origin()) as change:
        change.write("knowledge/facts/a.md", "The kiln is fired on Tuesdays.\n")

    class _News:
        def has_news(self) -> bool:
            return True

    job = DreamJob(_News(), kb.history, 24.0)  # type: ignore[arg-type]
    today = datetime(2026, 11, 24, tzinfo=UTC)
    assert job.next_due(today) == today
    assert job.next_due(now + timedelta(hours=1)) == now + timedelta(hours=24)
    kb.close()


def test_what_was_forgotten_under_a_clock_that_was_ahead_may_be_said_again(tmp_path: Path) -> None:
    now = datetime(2031, 5, 5, tzinfo=UTC)
    history = _history(tmp_path / "kb", lambda: now)
    stones = Tombstones(create_workspace(tmp_path / "kb"), history, lambda: now)
    fact = "The kiln is fired on Tuesdays."
    with history.change(Actor.YOU, "Forgotten.", Origin()) as change:
        stones.bury(change, [fact])
    now = datetime(2026, 11, 22, tzinfo=UTC)
    with history.change(Actor.YOU, "Later.", Origin()) as change:
        change.write("knowledge/facts/b.md", "The clock is right.\n")
    before, after = now - timedelta(days=9), now + timedelta(hours=1)
    now += timedelta(hours=2)
    assert stones.buried(fact)
    assert stones.buried(fact, said=[(before, fact), (datetime(2031, 5, 4, tzinfo=UTC), fact)])
    assert not stones.buried(fact, said=[(after, fact)])
