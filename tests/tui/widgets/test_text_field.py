"""The field for several lines: a change is taken back whatever it did to the scrollbar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st
from textual import events
from textual.app import App
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.widgets.text_field import TextField
from tests.tui.at_rest import until

if TYPE_CHECKING:
    from textual.app import ComposeResult

LINES = "\n".join(f"line {number}" for number in range(40))


class FieldApp(App[None]):
    CSS = "TextArea { height: 10; }"

    def __init__(self, field: TextArea) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        yield self.field


@pytest.mark.parametrize("kind", [TextField, lambda: NoteArea("x"), Prompt])
async def test_many_lines_that_came_are_taken_back_and_come_again(kind) -> None:
    app = FieldApp(kind())
    async with app.run_test(size=(40, 20)) as pilot:
        field = app.field
        before = field.text
        field.replace(LINES, (0, 0), field.document.end, maintain_selection_offset=False)
        await pilot.pause()
        assert field.show_vertical_scrollbar
        field.undo()
        await pilot.pause()
        assert field.text == before
        assert field.cursor_location[0] == 0
        field.redo()
        await pilot.pause()
        assert field.text == LINES
        field.select_all()
        await pilot.press("delete")
        field.undo()
        field.redo()
        await pilot.pause()
        assert field.text == ""


LONG_LINES = st.lists(
    st.text("ab [](*`\t漢é", max_size=90) | st.text("word ", min_size=60, max_size=200),
    min_size=1,
    max_size=4,
).map("\n".join)


@settings(deadline=None, max_examples=20)
@given(LONG_LINES, st.data())
async def test_wrapped_lines_are_drawn_as_textual_draws_them(text, data) -> None:
    app = FieldApp(NoteArea(text))
    async with app.run_test(size=(30, 20)) as pilot:
        field = app.field
        ends = [
            (row, data.draw(st.integers(0, len(field.document[row]))))
            for row in (data.draw(st.integers(0, field.document.line_count - 1)) for _ in range(2))
        ]
        field.focus()
        field.selection = Selection(*(ends if data.draw(st.booleans()) else ends[:1] * 2))
        await pilot.pause()
        for row in range(field.size.height):
            own, theirs = field._render_line(row), TextArea._render_line(field, row)
            assert own.simplify() == theirs.simplify(), f"row {row} of {text!r}"


async def test_a_key_in_a_long_line_draws_it_once_and_not_for_each_of_its_rows(monkeypatch) -> None:
    app = FieldApp(NoteArea("word " * 4_000))
    drawn = []
    get_line = NoteArea.get_line
    monkeypatch.setattr(
        NoteArea, "get_line", lambda self, row: (drawn.append(row), get_line(self, row))[1]
    )
    async with app.run_test(size=(120, 40)) as pilot:
        app.field.focus()
        await pilot.pause()
        drawn.clear()
        await pilot.press("x")
        await until(app, lambda: drawn)
        assert app.field.text.startswith("xword")
        assert drawn == [0]


@pytest.mark.parametrize("pasted", ["x" * 30_001, "word\n" * 90_000], ids=["line", "text"])
async def test_a_paste_after_which_a_key_would_take_seconds_is_refused_and_it_is_said(
    pasted: str,
) -> None:
    app = FieldApp(NoteArea("ab"))
    async with app.run_test():
        app.field.focus()
        app.post_message(events.Paste(pasted))
        await until(app, lambda: app._notifications)
        assert app.field.text == "ab"
        (said,) = app._notifications
        assert "Nothing was pasted" in said.message
        app.post_message(events.Paste(pasted[:20_000]))
        await until(app, lambda: app.field.text != "ab")
        assert len(app.field.text) == 20_002


@pytest.mark.parametrize("kind", [TextField, lambda: NoteArea("x"), Prompt])
async def test_the_cursor_stands_still_after_a_while_and_blinks_again_after_a_key(kind) -> None:
    app = FieldApp(kind())
    async with app.run_test(size=(40, 20)) as pilot:
        field = app.field
        field.focus()
        await pilot.press("x")
        shown = []
        for _ in range(20):
            field._toggle_cursor_blink_visible()
            shown.append(field._cursor_visible)
        assert (False in shown, shown[-1]) == (True, True)
        assert not field.blink_timer._active.is_set()
        await pilot.press("y")
        assert field.blink_timer._active.is_set()
