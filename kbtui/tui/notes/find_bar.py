"""Finding in the text that is edited, and writing something else in its place."""

from __future__ import annotations

import re
from bisect import bisect_left

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static
from textual.widgets.text_area import Selection

from kbtui.tui.notes.note_area import NoteArea

Place = tuple[int, int, int]
"""Row, first column, and the column behind the last."""


def pattern_of(query: str) -> re.Pattern[str] | None:
    """What finds a query as it is written; capitals count only where it has some."""
    as_written = 0 if query != query.lower() else re.IGNORECASE
    return re.compile(re.escape(query), as_written) if query else None


def places_in(lines: list[str], query: str) -> list[Place]:
    """All places where a query stands, in order."""
    pattern = pattern_of(query)
    if pattern is None:
        return []
    return [
        (row, found.start(), found.end())
        for row, line in enumerate(lines)
        for found in pattern.finditer(line)
    ]


def replaced(lines: list[str], query: str, by: str) -> str:
    """The text with `by` in every place where a query stands."""
    pattern = pattern_of(query)
    return "\n".join(pattern.sub(lambda _: by, line) if pattern else line for line in lines)


class FindBar(Vertical):
    """Two fields below the text: what is looked for, and what to write in its place."""

    DEFAULT_CSS = """
    FindBar {
        height: auto; display: none;
        Horizontal { height: 1; }
        Input { height: 1; padding: 0 1; width: 1fr; background: $boost; }
        Input, Input:focus { border: none; }
        Static { width: auto; min-width: 9; padding: 0 1; color: $text-muted; }
    }
    """

    def __init__(self, area: NoteArea) -> None:
        super().__init__(id="find-bar")
        self._area = area

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Input(placeholder="Find: Enter next, Esc closes", id="find-what")
            yield Static(id="find-count", markup=False)
        yield Input(placeholder="Replace: Enter one, Ctrl+R all", id="find-by")

    _what = getters.query_one("#find-what", Input)

    @property
    def _places(self) -> list[Place]:
        return places_in(self._area.document.lines, self._what.value)

    def open(self) -> None:
        """Come up, with what is selected as what is looked for."""
        self.display = True
        chosen = self._area.selected_text
        if chosen and "\n" not in chosen:
            self._what.value = chosen
        self._area.show_found(pattern_of(self._what.value))
        self._what.focus()

    def close(self) -> bool:
        """Go away, with the cursor in the text where it is; False where it isn't there."""
        if not self.display:
            return False
        self.display = False
        self._area.show_found(None)
        self._area.focus()
        return True

    def go_on(self) -> None:
        """Select the next place behind the cursor; behind the last one the first."""
        self._go_to(max(self._area.selection))

    def _go_to(self, start: tuple[int, int]) -> None:
        places = self._places
        count = self.query_one("#find-count", Static)
        if not places:
            count.update("none" if self._what.value else "")
            return
        at = bisect_left(places, (*start, 0)) % len(places)
        row, first, end = places[at]
        self._area.selection = Selection((row, first), (row, end))
        self._area.scroll_cursor_visible(center=True)
        count.update(f"{at + 1:,}/{len(places):,}")

    def replace_all(self) -> None:
        """Replace every place, as one change that Ctrl+Z takes back."""
        area, places = self._area, self._places
        if not places:
            self._go_to((0, 0))
            return
        cursor = area.cursor_location
        text = replaced(area.document.lines, self._what.value, self._by)
        area.replace(text, (0, 0), area.document.end)
        row = min(cursor[0], area.document.line_count - 1)
        area.move_cursor((row, min(cursor[1], len(area.document.get_line(row)))))
        self.query_one("#find-count", Static).update(f"{len(places):,} done")

    @property
    def _by(self) -> str:
        return self.query_one("#find-by", Input).value

    @on(Input.Changed, "#find-what")
    def _typed(self, event: Input.Changed) -> None:
        self._area.show_found(pattern_of(event.value))
        self._go_to(min(self._area.selection))

    @on(Input.Submitted, "#find-what")
    def _next(self) -> None:
        self.go_on()

    @on(Input.Submitted, "#find-by")
    def _replace(self) -> None:
        first, last = sorted(self._area.selection)
        if (first[0], first[1], last[1]) in self._places and first[0] == last[0]:
            self._area.replace(self._by, first, last, maintain_selection_offset=False)
        self.go_on()
