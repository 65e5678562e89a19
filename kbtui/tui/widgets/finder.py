"""The one screen of a list beside a preview: search, open, history, inbox, memory, tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.full_screen import FullScreen
from kbtui.tui.widgets.row_list import RowList


class Finder(FullScreen[None]):
    """A list that may be narrowed by a query, beside a preview of the row under the cursor.

    A subclass gives the rows (`find`), shows the current one (`look_at`), and takes its actions
    from the registry; selecting a row runs that which is called `CHOOSES`. It composes ``parts`` of
    two: the list, of the class ``split-list``, and the preview, of the class ``split-detail``. The
    query stands in an input that is always there, or in a line that ``/`` opens.
    """

    DEFAULT_CSS = """
    Finder {
        #filter { height: 1; border: none; padding: 0 1; background: $boost; }
        .split-list, .split-detail { height: 1fr; }
        &.-beside .split-list, &.-beside .split-detail { width: 1fr; height: 100%; }
    }
    """
    FILTER_HINT = ""
    CHOOSES: ClassVar[str] = "open"
    rows: RowList[Any]
    """The list with the rows that were found."""

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb)
        self.first_query = query

    # For subclasses

    async def find(self, query: str) -> None:
        """Fill the list with the rows that match, perhaps in several steps."""

    def look_at(self) -> None:
        """Preview the row under the cursor."""

    # The query

    @property
    def query_text(self) -> str:
        """The current query."""
        field = next(iter(self.query(Input)), None)
        return field.value.strip() if field is not None else ""

    def search(self) -> None:
        """Find the rows of the current query, cancelling the search before."""
        run_latest(self, "search", self.find, self.query_text)

    @on(Input.Changed)
    def _query_changed(self) -> None:
        self.search()

    @on(Input.Submitted, "#filter")
    def _focus_rows(self) -> None:
        self.rows.focus()

    async def action_filter(self) -> None:
        if not self.query("#filter"):
            await self.mount(Input(placeholder=self.FILTER_HINT, id="filter"), before=".parts")
        self.query_one("#filter").focus()

    @property
    def is_filtering(self) -> bool:
        """Whether the user is typing in the line that ``/`` opened."""
        return any(field.has_focus for field in self.query("#filter"))

    def end_filter(self) -> bool:
        """Show all rows again; return False if there was no filter."""
        filters = self.query("#filter")
        if not filters:
            return False
        filters.remove()
        run_latest(self, "search", self.find, "")
        self.rows.focus()
        return True

    # The rows

    @on(RowList.Highlighted)
    def _row_highlighted(self) -> None:
        self.look_at()

    @on(RowList.Selected)
    async def _run_chosen(self) -> None:
        await self.run_action(self.CHOOSES)

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    def action_page(self, by: int) -> None:
        self.rows.action_page(by)

    def action_back(self) -> None:
        if not self.end_filter():
            super().action_back()
