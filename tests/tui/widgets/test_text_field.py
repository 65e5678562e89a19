"""The field for several lines: a change is taken back whatever it did to the scrollbar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.app import App

from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.widgets.text_field import TextField

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widgets import TextArea

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
