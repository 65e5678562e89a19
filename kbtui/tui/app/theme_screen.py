"""The theme picker, with a live preview."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult

from kbtui.tui.widgets.dialogs import ListDialog
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList


class ThemeScreen(ListDialog[str]):
    """A list of themes: moving previews, Enter keeps, Esc restores the previous theme."""

    DEFAULT_CSS = """
    ThemeScreen {
        align: right middle;
        background: transparent;
        & > Vertical { width: 40; max-height: 80%; margin: 0 2; }
        ChoiceList { max-height: 24; margin: 0; }
    }
    """
    TITLE_TEXT = "Theme"
    HINT = "Enter keeps · Esc back"

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        """Initialize the list with (name, remark) pairs."""
        super().__init__()
        self._names = list(names)
        self._before = ""

    def compose_question(self) -> ComposeResult:
        yield ChoiceList([Choice(name, remark, name) for name, remark in self._names])

    def on_mount(self) -> None:
        self._before = self.app.theme
        names = [name for name, _ in self._names]
        self.choices.cursor = names.index(self._before) if self._before in names else 0
        self.choices.focus()

    @on(RowList.Highlighted)
    def _show(self, event: RowList.Highlighted) -> None:
        if self._before:
            self.app.theme = self._names[event.index][0]

    def action_cancel(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)
