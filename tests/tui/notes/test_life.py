"""The life of a note: a chip of bars, its versions in its place, and differences between days."""

from __future__ import annotations

from kbtui.history.change import Actor
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.notes.life import bars
from tests.tui.notes_support import NotesApp, make_kb, opened, text_of, until

PATH, OLD_PATH = "knowledge/topics/tap.md", "knowledge/topics/kitchen.md"


def lived(tmp_path):
    """A note of three versions, of which the first has another name."""
    kb = make_kb(tmp_path, {"topics/kitchen.md": "# Tap\n\nIt drips. %%not to be seen%%\n"})
    with kb.history.change(Actor.YOU, "renamed") as change:
        change.rename(OLD_PATH, PATH)
    with kb.history.change(Actor.YOU, "fixed") as change:
        change.write(PATH, "# Tap\n\n- [ ] the plumber came\n")
    return kb


def test_the_bars_show_when_a_note_was_written_most():
    assert bars([0, 1, 2, 50, 99, 100]) == "█▁▁▄▁▁▆"
    assert bars([5.0, 5.0, 5.0]) == "█", "all at once"
    assert len(bars(range(2_000))) == 7


async def test_a_note_says_how_often_it_was_written_and_left_and_right_play_it(tmp_path):
    app = NotesApp(lived(tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        notes = await opened(pilot, PATH, 3)
        body = notes.view.body
        await until(pilot, lambda: "3 edits" in text_of(body))
        body.focus()
        await pilot.press("left")
        await until(pilot, lambda: "It drips." in text_of(body))
        assert "not to be seen" not in text_of(body)
        header = lambda: text_of(notes.view.query_one("#entry-header"))  # noqa: E731
        assert "As it was today" in header()
        assert "2 of 3" in header()
        await pilot.press("left", "left")
        await until(pilot, lambda: "1 of 3" in header())
        await pilot.press("right", "right")
        await until(pilot, lambda: "the plumber came" in text_of(body))
        assert "As it was" not in header()
        assert not notes.view.is_past


async def test_nothing_of_the_past_is_changed_and_escape_leads_back(tmp_path):
    kb = lived(tmp_path)
    with kb.history.change(Actor.YOU, "done") as change:
        change.write(PATH, "# Tap\n\n- [x] the plumber came\n")
    app = NotesApp(kb)
    async with app.run_test(size=(100, 30)) as pilot:
        notes = await opened(pilot, PATH, 3)
        await until(pilot, lambda: len(notes.view.life) == 4)
        notes.view.body.focus()
        await pilot.press("left")
        await until(pilot, lambda: "☐ the plumber" in text_of(notes.view.body))
        before = kb.history.head()
        await pilot.press("space", "r")
        assert kb.history.head() == before
        await pilot.press("escape")
        await until(pilot, lambda: "☑ the plumber" in text_of(notes.view.body))


async def test_a_note_is_compared_with_a_day_in_words(tmp_path):
    app = NotesApp(lived(tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        notes = await opened(pilot, PATH, 3)
        await pilot.press("equals_sign")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"today", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await until(pilot, lambda: "the plumber came" in text_of(app.screen.query_one(DiffView)))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert notes.current_path == PATH
        await pilot.press("equals_sign")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"soonish", "enter")
        await until(pilot, lambda: "names neither a past day nor a change" in app.toasts)
