"""The line on top: which session, which model, how full its context is, what it has cost."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from kbtui.text import clean_line

_CENT = 0.01


class HeaderLine(Static):
    """Title on the left, the model's state on the right; the title gives way."""

    session_title: reactive[str] = reactive("")
    model: reactive[str] = reactive("")
    context_share: reactive[float | None] = reactive[float | None](None)
    cost: reactive[float | None] = reactive[float | None](None)

    def render(self) -> Content:
        """Both sides, fitted into the width."""
        width = self.content_size.width
        state = self._state()
        name = Content.styled("kbtui", "bold $primary")
        title = clean_line(self.session_title)
        left = name + Content.styled(f" · {title}" if title else "", "$foreground")
        room = width - state.cell_length - 2
        if room < name.cell_length:
            return left.truncate(max(1, width), ellipsis=True)
        return left.truncate(room, ellipsis=True, pad=True) + "  " + state

    def _state(self) -> Content:
        parts = [clean_line(self.model)] if self.model else []
        if self.context_share is not None:
            parts.append(f"ctx {self.context_share:.0%}")
        if self.cost is not None:
            parts.append("<$0.01" if 0 < self.cost < _CENT else f"${self.cost:.2f}")
        return Content.styled(" │ ".join(parts), "$text-muted")
