"""The line that filters the tree while it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.widgets import Input

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.tui.notes.tree_panel import TreePanel


class FilterInput(Input):
    """Esc gives up, Enter opens the best match, the arrows move in the tree."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", "Clear the filter", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
    ]

    def __init__(self, panel: TreePanel, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder="filter", id=id, select_on_focus=False)
        self._panel = panel

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what is typed."""
        event.stop()
        self._panel.filter_changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open what the cursor is on."""
        event.stop()
        self._panel.filter_entered(event.value)

    def action_give_up(self) -> None:
        """Show everything again."""
        self._panel.end_filter()

    def action_move(self, by: int) -> None:
        """Move in the tree without leaving the line."""
        self._panel.knowledge_tree.cursor += by
