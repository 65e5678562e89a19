"""Find and replace in the editor."""

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
"""Row, start column, and end column (exclusive) of a match."""


def pattern_of(query: str) -> re.Pattern[str] | None:
    """Return the pattern of a literal query, case-sensitive only if it has capitals."""
    as_written = 0 if query != query.lower() else re.IGNORECASE
    return re.compile(re.escape(query), as_written) if query else None


def places_in(lines: list[str], query: str) -> list[Place]:
    """Return all matches of a query, in order."""
    pattern = pattern_of(query)
    if pattern is None:
        return []
    return [
        (row, found.start(), found.end())
        for row, line in enumerate(lines)
        for found in pattern.finditer(line)
    ]


def replaced(lines: list[str], query: str, by: str) -> str:
    """Return the text with every match of a query replaced by `by`."""
    pattern = pattern_of(query)
    return "\n".join(pattern.sub(lambda _: by, line) if pattern else line for line in lines)


class FindBar(Vertical):
    """A bar below the text with inputs for query and replacement."""

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

    _query_input = getters.query_one("#find-what", Input)

    @property
    def _matches(self) -> list[Place]:
        return places_in(self._area.document.lines, self._query_input.value)

    def open(self) -> None:
        """Show the bar, with the selected text as the query."""
        self.display = True
        chosen = self._area.selected_text
        if chosen and "\n" not in chosen:
            self._query_input.value = chosen
        self._area.set_search_pattern(pattern_of(self._query_input.value))
        self._query_input.focus()

    def close(self) -> bool:
        """Hide the bar and focus the text, and return whether it was shown."""
        if not self.display:
            return False
        self.display = False
        self._area.set_search_pattern(None)
        self._area.focus()
        return True

    def go_on(self) -> None:
        """Select the next match after the cursor, wrapping around."""
        self._go_to(max(self._area.selection))

    def _go_to(self, start: tuple[int, int]) -> None:
        matches = self._matches
        count = self.query_one("#find-count", Static)
        if not matches:
            count.update("none" if self._query_input.value else "")
            return
        at = bisect_left(matches, (*start, 0)) % len(matches)
        row, first, end = matches[at]
        self._area.selection = Selection((row, first), (row, end))
        self._area.scroll_cursor_visible(center=True)
        count.update(f"{at + 1:,}/{len(matches):,}")

    def replace_all(self) -> None:
        """Replace every match in one undoable edit."""
        area, matches = self._area, self._matches
        if not matches:
            self._go_to((0, 0))
            return
        cursor = area.cursor_location
        text = replaced(area.document.lines, self._query_input.value, self._replacement)
        area.replace(text, (0, 0), area.document.end)
        row = min(cursor[0], area.document.line_count - 1)
        area.move_cursor((row, min(cursor[1], len(area.document.get_line(row)))))
        self.query_one("#find-count", Static).update(f"{len(matches):,} done")

    @property
    def _replacement(self) -> str:
        return self.query_one("#find-by", Input).value

    @on(Input.Changed, "#find-what")
    def _query_changed(self, event: Input.Changed) -> None:
        self._area.set_search_pattern(pattern_of(event.value))
        self._go_to(min(self._area.selection))

    @on(Input.Submitted, "#find-what")
    def _next(self) -> None:
        self.go_on()

    @on(Input.Submitted, "#find-by")
    def _replace(self) -> None:
        first, last = sorted(self._area.selection)
        if (first[0], first[1], last[1]) in self._matches and first[0] == last[0]:
            self._area.replace(self._replacement, first, last, maintain_selection_offset=False)
        self.go_on()
