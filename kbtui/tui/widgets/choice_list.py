"""A list of things to choose from, each a label and a remark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from textual.content import Content

from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice(NamedTuple):
    """One thing to choose: what is shown, a remark beside it, and what it stands for."""

    label: str
    detail: str
    value: Any


class ChoiceList(RowList):
    """Choices one below the other; the remark stands at the right."""

    def __init__(
        self,
        choices: Sequence[Choice] = (),
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        self._choices = list(choices)
        super().__init__(id=id)

    def show_choices(self, choices: Sequence[Choice], cursor: int = 0) -> None:
        """Replace what there is to choose."""
        self._choices = list(choices)
        self.rows_changed(cursor)

    @property
    def choice(self) -> Choice | None:
        """What the cursor is on."""
        return self._choices[self.cursor] if self._choices else None

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self._choices)

    def empty_text(self) -> Content:
        """Say that nothing is left."""
        return Content.styled(" Nothing matches.", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw label and remark."""
        choice = self._choices[index]
        detail = Content.styled(clean_line(choice.detail), ".rows--muted")
        room = max(8, width - detail.cell_length - 3)
        label = Content(f" {clean_line(choice.label)}").truncate(room, ellipsis=True)
        gap = max(1, width - label.cell_length - detail.cell_length - 1)
        return [(label + Content(" " * gap) + detail).truncate(width)]
