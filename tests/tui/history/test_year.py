from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta

import pytest
from textual.app import App

from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.history.year import YearCounts, YearView, level, read_year
from tests.tui.history.test_history_screen import history
from tests.tui.notes_support import NotesApp, make_kb, text_of, until

TODAY = date(2026, 11, 24)  # a Tuesday


class YearApp(App):
    def __init__(self, days) -> None:
        super().__init__()
        self._days = days

    def compose(self):
        yield YearView(YearCounts(self._days, Counter({"You": 9, "Dream": 3})), TODAY)


def rows_of(app: App) -> list[str]:
    year = app.query_one(YearView)
    return [year.render_line(y).text for y in range(9)]


def test_a_day_is_the_fuller_the_more_was_written() -> None:
    assert [level(count, 100) for count in (0, 1, 5, 30, 100)] == [0, 1, 2, 3, 4]
    assert level(1, 1) == 4


async def test_it_shows_a_year_and_the_cursor_walks_in_it():
    day = TODAY - timedelta(days=10)
    app = YearApp(Counter({TODAY: 1, day: 9, TODAY - timedelta(days=365): 3}))
    async with app.run_test(size=(120, 12)) as pilot:
        year = app.query_one(YearView)
        rows = rows_of(app)
        assert sum(len([c for c in row[4:] if c == "■"]) for row in rows[1:8]) == 53 * 7 - 5
        assert "Today  1 note written" in rows[8]
        assert "Dec" in rows[0]
        await pilot.press("p")
        assert year.day == day
        assert "Saturday 14 November  9 notes written" in rows_of(app)[8]
        await pilot.press("left", "down")
        assert year.day == day - timedelta(days=6)
        assert "nothing written" in rows_of(app)[8]
        await pilot.press("n", "n", "right", "down")
        assert year.day == TODAY, "there is no day after today"


@pytest.mark.parametrize("width", [3, 20, 40, 79, 113, 300])
async def test_it_fits_any_width_and_stays_in_what_is_shown(width):
    app = YearApp(Counter({TODAY - timedelta(days=n): n for n in range(370)}))
    async with app.run_test(size=(width, 12)) as pilot:
        year = app.query_one(YearView)
        assert {year.render_line(y).cell_length for y in range(9)} == {year.content_size.width}
        await pilot.press(*["left"] * 60)
        assert width < 9 or any("■" in row for row in rows_of(app))
        assert year.day <= TODAY


async def test_beside_the_weeks_it_says_who_wrote_how_much_where_there_is_room():
    app = YearApp(Counter({TODAY: 1}))
    async with app.run_test(size=(200, 12)) as pilot:
        mine, dreams = rows_of(app)[1:3]
        assert mine.rstrip().endswith("▬ 9")
        assert dreams.rstrip().endswith("▬ 3")
        assert mine.count("▬") > 2 * dreams.count("▬") > 0
        await pilot.resize_terminal(120, 12)
        assert "▬" not in "".join(rows_of(app))


async def test_in_a_tall_window_the_year_is_always_there_and_follows_the_list(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(150, 50)) as pilot:
        screen = await history(pilot, kb)
        await until(pilot, lambda: screen.query(YearView))
        assert screen.rows.has_focus
        assert len(screen.rows.commits) == 2
        await pilot.press("h", "up")
        await until(pilot, lambda: not screen.rows.commits)
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.rows.commits) == 2)
        assert screen.query_one(YearView).day == datetime.now().astimezone().date()
        assert screen.rows.day is None
        await pilot.resize_terminal(150, 30)
        await pilot.press("h")
        await until(pilot, lambda: screen.rows.day is not None)
        await pilot.press("h")
        await until(pilot, lambda: not screen.query(YearView))


@pytest.fixture
def kb(tmp_path):
    kb = make_kb(tmp_path, {"topics/notes.md": "# Notes\n"})
    kb.library.create("person", "Alice", actor=Actor.DREAM)
    return kb


def test_days_count_what_was_written_and_no_upkeep(kb):
    today = datetime.now().astimezone().date()
    assert read_year(kb.history, None, today) == ({today: 2}, {"You": 1, "Dream": 1})
    path = "knowledge/topics/notes.md"
    assert read_year(kb.history, path, today) == ({today: 1}, {"You": 1})


@pytest.mark.parametrize("size", [(110, 40), (40, 12)])
async def test_h_shows_the_year_and_the_list_what_was_done_on_the_day(kb, size):
    app = NotesApp(kb)
    async with app.run_test(size=size) as pilot:
        screen = await history(pilot, kb)
        await pilot.press("h")
        await until(pilot, lambda: screen.query(YearView))
        await pilot.press("up")
        await until(pilot, lambda: not screen.rows.commits, "nothing was done yesterday")
        await pilot.press("down", "enter")
        await until(pilot, lambda: len(screen.rows.commits) == 2)
        assert screen.rows.has_focus
        await until(pilot, lambda: "Alice" in text_of(screen.rows))
        await pilot.press("escape")
        await until(pilot, lambda: not screen.query(YearView))
        assert screen.rows.day is None
        assert app.screen is screen


def test_what_kbtui_keeps_in_order_by_itself_is_no_day_of_writing(tmp_path):
    kb = KnowledgeBase.open(tmp_path / "kb", create=True)
    today = datetime.now().astimezone().date()
    try:
        assert [*kb.history.log()], "its own documents are recorded"
        assert read_year(kb.history, None, today) == ({}, {})
    finally:
        kb.close()
