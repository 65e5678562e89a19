"""Base classes of full screens: a title row, a body, and key hints."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.terminal.layout import TellsSizes
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.row_list import RowList
from kbtui.tui.widgets.title_row import TitleRow, folder_of

Result = TypeVar("Result")


class FullScreen(TellsSizes, Screen[Result], Generic[Result]):
    """A screen between a title row and key hints, with a body that the subclass composes.

    A container of the class ``parts`` in the body holds two parts, side by side if the screen is
    wide enough for the class ``-beside``. With few rows the screen has the class ``-short``, with
    very few ``-low``.
    """

    DEFAULT_CSS = """
    FullScreen {
        overflow: hidden;
        .parts { height: 1fr; layout: vertical; }
        &.-beside .parts { layout: horizontal; }
    }
    """
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-short"), (30, "-tall")]  # noqa: RUF012 - as in Screen
    TITLE_TEXT = ""
    BESIDE_COLUMNS: ClassVar[int] = 120

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__()
        self.kb = kb

    def compose(self) -> ComposeResult:
        yield TitleRow(self.TITLE_TEXT, folder_of(self.kb))
        yield from self.compose_body()
        yield Hints()

    def compose_body(self) -> ComposeResult:
        return ()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= self.BESIDE_COLUMNS, "-beside")

    def action_back(self) -> None:
        self.dismiss(None)


class ListScreen(FullScreen[None]):
    """A screen with a list, details of the row under the cursor, and an optional filter."""

    DEFAULT_CSS = """
    ListScreen #filter { height: 1; border: none; padding: 0 1; background: $boost; }
    """
    FILTER_HINT = ""
    CHOOSES: ClassVar[str] = "open"
    """The action that selecting a row runs."""
    rows: RowList[Any]
    """The list, mounted by the subclass in a container of the screen."""

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    @on(RowList.Selected)
    async def _run_chosen(self) -> None:
        await self.run_action(self.CHOOSES)

    async def action_filter(self) -> None:
        if not self.query(Input):
            field = Input(placeholder=self.FILTER_HINT, id="filter")
            await self.mount(field, before=".parts")
        self.query_one(Input).focus()

    def filter_by(self, text: str) -> None:
        """Show the rows that match `text`."""

    def end_filter(self) -> bool:
        """Remove the filter; return False if there was none."""
        if not self.query(Input):
            return False
        self.query(Input).remove()
        self.filter_by("")
        self.rows.focus()
        return True

    @on(Input.Changed)
    def _apply_filter(self, event: Input.Changed) -> None:
        self.filter_by(event.value)

    @on(Input.Submitted)
    def _focus_rows(self) -> None:
        self.rows.focus()
