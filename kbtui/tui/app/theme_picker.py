"""Choosing the colours, with a look at each before it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from kbtui.tui.widgets.choice_list import Choice, ChoiceList
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


class ThemeScreen(ModalScreen[str | None]):
    """Moving shows a theme at once; Enter keeps it, Esc goes back to the one before."""

    DEFAULT_CSS = """
    ThemeScreen {
        align: right middle;
        background: transparent;
        & > Vertical {
            width: 40; max-width: 95%; height: auto; max-height: 80%; margin: 0 2;
            background: $surface; border: round $primary 60%; padding: 0 1;
            border-title-color: $primary; border-subtitle-color: $text-muted;
        }
        ChoiceList { height: auto; max-height: 24; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Keep"),
        Binding("escape,q", "back", "Back"),
    ]

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        """Offer themes by name, each with a remark."""
        super().__init__()
        self._names = list(names)
        self._before = ""

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical() as box:
            box.border_title = Content("Theme")
            box.border_subtitle = Content("Enter keeps · Esc back")
            yield ChoiceList([Choice(name, remark, name) for name, remark in self._names])

    def on_mount(self) -> None:
        """Start on the theme that is used."""
        self._before = self.app.theme
        names = [name for name, _ in self._names]
        themes = self.query_one(ChoiceList)
        themes.cursor = names.index(self._before) if self._before in names else 0
        themes.focus()

    @on(RowList.Highlighted)
    def _show(self, event: RowList.Highlighted) -> None:
        if self._before:
            self.app.theme = self._names[event.index][0]

    @on(RowList.Selected)
    def action_take(self) -> None:
        """Keep the theme that is shown."""
        self.dismiss(self._names[self.query_one(ChoiceList).cursor][0])

    def action_back(self) -> None:
        """Use the theme from before."""
        self.app.theme = self._before
        self.dismiss(None)
