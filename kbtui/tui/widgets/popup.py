"""The completion popup of a text field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import Choice

if TYPE_CHECKING:
    from textual import events

_MAX_ROWS = 8
_SELECTED_STYLE = "bold $foreground on $primary 22%"


class Popup(Static):
    """A list of completions with one selected, `rows` of them visible; hidden while empty.

    The value of a choice is the text that it inserts.
    """

    DEFAULT_CSS = """
    Popup {
        height: auto; max-height: 10; padding: 0 1; background: $background;
        border: round $border-blurred; border-title-color: $text-muted;
    }
    """

    class Picked(Message):
        """Posted when a choice is clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.choices: list[Choice[str]] = []
        self.at = 0
        self.rows = _MAX_ROWS
        self.kind = ""
        self.display = False

    @property
    def chosen(self) -> Choice[str] | None:
        """The selected choice."""
        return self.choices[self.at] if self.choices else None

    def show_choices(self, kind: str, choices: Sequence[Choice[str]], title: str = "") -> None:
        """Show choices of one kind, keeping the selection; no choices hide the popup."""
        previous = self.chosen.value if self.chosen and kind == self.kind else None
        self.kind, self.choices = kind, list(choices)
        values = [choice.value for choice in choices]
        self.at = values.index(previous) if previous in values else 0
        self.border_title = title
        self.display = bool(self.choices)
        self.refresh(layout=True)

    def hide(self) -> None:
        """Hide the popup."""
        self.show_choices("", ())

    def move(self, step: int) -> None:
        """Move the selection, wrapping around."""
        if self.choices:
            self.at = (self.at + step) % len(self.choices)
            self.refresh()

    def get_content_height(self, *_: object) -> int:
        return min(len(self.choices), self.rows)

    def _visible_range(self) -> range:
        """Return the visible choices; a small terminal may have no room for `rows`."""
        rows = min(self.rows, self.content_size.height or self.rows)
        first = max(0, min(self.at - rows // 2, len(self.choices) - rows))
        return range(first, min(first + rows, len(self.choices)))

    def render(self) -> Content:
        width = self.content_size.width
        rows = [self.choices[at] for at in self._visible_range()]
        widest = max((len(choice.label) for choice in self.choices), default=0)
        label_width = min(widest, max(12, width // 2))
        lines = [
            self._row(choice, label_width, width, chosen=choice is self.chosen) for choice in rows
        ]
        return Content("\n").join(lines)

    def _row(self, choice: Choice[str], label_width: int, width: int, *, chosen: bool) -> Content:
        label = Content(clean_line(choice.label)).truncate(label_width, ellipsis=True, pad=True)
        detail = Content(f"  {clean_line(choice.detail)}")
        if not chosen:
            label = label.stylize("$primary")
            detail = detail.stylize("$text-muted")
        row = (label + detail).truncate(max(1, width), ellipsis=True, pad=True)
        return row.stylize(_SELECTED_STYLE) if chosen else row

    def on_click(self, event: events.Click) -> None:
        at = self._visible_range().start + event.get_content_offset_capture(self).y
        if 0 <= at < len(self.choices):
            self.at = at
            self.post_message(self.Picked())
