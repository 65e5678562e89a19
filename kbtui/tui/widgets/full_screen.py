"""Screens of their own: a title above, the keys below, between them the parts that one moves in."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.row_list import RowList
from kbtui.tui.widgets.title_row import TitleRow, folder_of

Result = TypeVar("Result")


class FullScreen(Screen[Result], Generic[Result]):
    """Has the class ``-beside`` where there is room for two parts beside each other.

    A subclass composes a body; a part of it with the class ``parts`` holds two. With few rows it
    has the class ``-short``, with very few ``-low``.
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
        """Put parts beside each other where there is room."""
        self.set_class(event.size.width >= self.BESIDE_COLUMNS, "-beside")

    def action_back(self) -> None:
        self.dismiss(None)


class ListScreen(FullScreen[None]):
    """Shows a list and something about the row under the cursor; what is typed can filter it."""

    DEFAULT_CSS = """
    ListScreen #filter { height: 1; border: none; padding: 0 1; background: $boost; }
    """
    FILTER_HINT = ""
    CHOOSES: ClassVar[str] = "open"
    """The action that a click on a row means."""
    rows: RowList[Any]
    """The list; whoever mounts it does so in a container of the screen's."""

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    @on(RowList.Selected)
    async def _selected(self) -> None:
        await self.run_action(self.CHOOSES)

    async def action_filter(self) -> None:
        if not self.query(Input):
            field = Input(placeholder=self.FILTER_HINT, id="filter")
            await self.mount(field, before=".parts")
        self.query_one(Input).focus()

    def filter_by(self, text: str) -> None:
        """Show what fits a text."""

    def end_filter(self) -> bool:
        """Show everything again; False where nothing was filtered."""
        if not self.query(Input):
            return False
        self.query(Input).remove()
        self.filter_by("")
        self.rows.focus()
        return True

    @on(Input.Changed)
    def _filter_by(self, event: Input.Changed) -> None:
        self.filter_by(event.value)

    @on(Input.Submitted)
    def _filtered(self) -> None:
        self.rows.focus()
