"""The line that filters the tree while it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.widgets import Input

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.tui.widgets.notes_pane import NotesPane


class FilterInput(Input):
    """Esc gives up, Enter opens the best match, the arrows move in the tree."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", "Clear the filter", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
    ]

    @property
    def _pane(self) -> NotesPane:
        from kbtui.tui.widgets.notes_pane import NotesPane

        return next(node for node in self.ancestors if isinstance(node, NotesPane))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what is typed."""
        event.stop()
        self._pane.filter_changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open what the cursor is on."""
        event.stop()
        self._pane.filter_entered(event.value)

    def action_give_up(self) -> None:
        """Show everything again."""
        self._pane.end_filter()

    def action_move(self, by: int) -> None:
        """Move in the tree without leaving the line."""
        self._pane.knowledge_tree.cursor += by
