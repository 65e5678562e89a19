from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from textual.app import App

from kbtui.tui.history.time_slider import TimeSlider, another_day, read_commits
from kbtui.tui.history.time_travel import read_since
from tests.tui.history.test_time_travel import ALICE, kb, past
from tests.tui.notes_support import NotesApp, text_of, until

__all__ = ["kb"]


def test_commits_are_those_that_did_something_oldest_first(kb):
    commits = read_commits(kb.history, kb.first)
    assert commits[0].id == kb.first.id
    assert len(commits) == 4
    assert [each.time for each in commits] == sorted(each.time for each in commits)


def test_days_are_stepped_over_to_their_last_change(kb):
    day = timedelta(days=1)
    one = kb.first
    commits = [
        replace(one, time=one.time + day * n, id=f"{n}{at}") for n in (0, 3, 9) for at in "ab"
    ]
    assert another_day(commits, 4, -1) == 3
    assert another_day(commits, 3, -1) == 1
    assert another_day(commits, 1, -1) == 0, "on the first day to the first change"
    assert another_day(commits, 0, 1) == 3
    assert another_day(commits, 4, 1) == 5


def test_since_says_what_is_different_now_gone_or_came_later(kb):
    since = read_since(kb.history, kb.first.id)
    assert {path: mark.word for path, mark in since.marks.items()} == {
        ALICE: "changed since",
        "knowledge/people/bob.md": "gone since",
    }
    assert since.summary == "2 notes changed since · 1 note came later  "
    assert read_since(kb.history, kb.history.head()).summary == ""


@pytest.mark.parametrize("width", [1, 12, 40, 200])
async def test_the_strip_fits_its_width(kb, width):
    class SliderApp(App):
        def compose(self):
            yield TimeSlider(kb.first)

    app = SliderApp()
    async with app.run_test(size=(width, 5)) as pilot:
        slider = app.query_one(TimeSlider)
        slider.show([replace(kb.first, id=str(n)) for n in range(500)])
        slider.focus()
        await pilot.press("left", "end", "right")
        assert slider.at == 499
        if width >= 40:
            line = slider.render().plain
            assert len(line) == slider.content_size.width
            assert line.endswith("● now")


async def test_keys_step_through_time_and_the_tree_marks_what_differs_from_now(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb)
        tree = screen.notes.knowledge_tree
        await until(pilot, lambda: len(screen.slider.commits) == 4)
        await until(pilot, lambda: "changed since" in text_of(tree))
        assert "gone since" in text_of(tree)
        await pilot.press("full_stop")
        await until(pilot, lambda: "Knows nobody." in text_of(screen.notes.view.body))
        await until(pilot, lambda: "changed since" not in text_of(tree))
        assert "gone since" in text_of(tree)
        await pilot.press("comma")
        await until(pilot, lambda: screen.slider.at == 0)
        await pilot.press("full_stop", "full_stop", "full_stop", "full_stop")
        await until(pilot, lambda: "Docker" in text_of(tree) and "Bob" not in text_of(tree))
        assert screen.notes.current_path == ALICE, "what is read stays"
        banner = screen.query_one("#past-banner")
        await until(pilot, lambda: "You wrote ■ Docker" in str(banner.render()))
        assert "since" not in str(banner.render())
        await pilot.press("less_than_sign")
        await until(pilot, lambda: "Bob" in text_of(tree))
        assert screen.slider.at == 0, "all was done on one day"
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: screen.slider.at == len(screen.slider.commits) - 1)
        await pilot.press("T")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_the_slider_takes_arrows_and_a_tiny_terminal(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(40, 12)) as pilot:
        screen = await past(pilot, kb, None)
        await until(pilot, lambda: len(screen.slider.commits) == 4)
        screen.slider.focus()
        await pilot.press("right", "right")
        await until(pilot, lambda: "Bob" not in text_of(screen.notes.knowledge_tree))
        assert screen.slider.has_focus
