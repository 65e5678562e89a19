"""A list, and beside or below it the difference that belongs to the selected row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from textual import events

    from kbtui.tui.diff.diff_view import DiffView
    from kbtui.tui.widgets.row_list import RowList

_BESIDE_COLUMNS = 120


class ListAndDiff(Screen[None]):
    """Moves in both; the class ``-full`` gives the difference the whole screen.

    A subclass composes a title (``split-title``), and a body (``split-body``) of a list
    (``split-list``) and of what holds the difference (``split-detail``).

    Attributes:
        rows: The list.
        diff: The difference of the selected row.
    """

    DEFAULT_CSS = """
    ListAndDiff {
        .split-title { height: 1; padding: 0 1; color: $text-muted; background: $boost; }
        .split-body { height: 1fr; layout: vertical; }
        .split-list { height: 2fr; }
        .split-detail { height: 3fr; border-top: solid $foreground 20%; }
        &.-beside .split-body { layout: horizontal; }
        &.-beside .split-list { width: 2fr; height: 100%; }
        &.-beside .split-detail {
            width: 3fr; height: 100%; border-top: none; border-left: solid $foreground 20%;
        }
        &.-full .split-list { display: none; }
        &.-full .split-detail { width: 1fr; height: 100%; border: none; }
    }
    """

    rows: RowList
    diff: DiffView

    def on_resize(self, event: events.Resize) -> None:
        """Put list and difference beside each other where there is room."""
        self.set_class(event.size.width >= _BESIDE_COLUMNS, "-beside")

    def give_room(self, *, to_diff: bool) -> None:
        """Give the difference the whole screen, or share it with the list again."""
        self.set_class(to_diff, "-full")
        (self.diff if to_diff else self.rows).focus()

    def action_down(self) -> None:
        """Next row, or the next line of the difference that has the screen."""
        self._move(1)

    def action_up(self) -> None:
        """Previous row, or line."""
        self._move(-1)

    def _move(self, by: int) -> None:
        if self.has_class("-full"):
            self.diff.scroll_relative(y=by, animate=False)
        else:
            self.rows.cursor += by

    def action_next_hunk(self) -> None:
        """Go to the next changed place."""
        self.diff.go_to_hunk(1)

    def action_previous_hunk(self) -> None:
        """Go to the changed place before."""
        self.diff.go_to_hunk(-1)

    def action_side_by_side(self) -> None:
        """Show before and after beside each other, or one below the other."""
        self.diff.toggle_side_by_side()

    def action_back(self) -> None:
        """Return to the list, or close the screen."""
        if self.has_class("-full"):
            self.give_room(to_diff=False)
        else:
            self.dismiss(None)
