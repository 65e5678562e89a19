"""The line that filters the history while it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.widgets import Input

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.tui.history.history import HistoryScreen


class HistoryFilterInput(Input):
    """Esc shows everything again, Enter goes to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", "Clear the filter", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder="words, a path, or who: you, agent, dream …", id=id)

    @property
    def _history(self) -> HistoryScreen:
        from kbtui.tui.history.history import HistoryScreen

        return next(node for node in self.ancestors if isinstance(node, HistoryScreen))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what is typed."""
        event.stop()
        self._history.filter_by(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the list."""
        event.stop()
        self._history.list.focus()

    def action_give_up(self) -> None:
        """Show everything again."""
        self._history.end_filter(self)

    def action_move(self, by: int) -> None:
        """Move in the list without leaving the line."""
        self._history.list.cursor += by
