"""The base class of the search screen and the switcher: an input above the list, always there."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.messages import OpenEntry
from kbtui.tui.notes.preview import Preview
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.finder import Finder


class QueryFinder(Finder):
    """A finder that finds as the user types; arrow keys move in the list, Enter takes a row.

    A subclass composes an `Input`, a `RowList` and a `Preview`.
    """

    BESIDE_COLUMNS = 110
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb, query)
        self.answered: str | None = None
        """The query of the results in the list; None before the first results."""

    # For subclasses

    async def find_at_once(self, query: str) -> None:
        """Fill the list without delay, because Enter was pressed before the results came."""
        await self.find(query)

    @abstractmethod
    async def take(self) -> None:
        """Act on the row under the cursor, as on Enter."""

    # Parts

    field = getters.query_one(Input)

    preview = getters.query_one(Preview)

    def on_mount(self) -> None:
        """Search even for an empty query."""
        if not self.first_query:
            self.search()

    def ask(self, query: str) -> None:
        """Replace the text of the input."""
        self.field.value = query
        self.field.cursor_position = len(query)

    def action_back(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_open()

    @latest("open")
    async def action_open(self) -> None:
        query = self.query_text
        if query != self.answered:
            # Enter was pressed before the results came.
            await self.find_at_once(query)
        await self.take()

    def leave_for(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        """Close, and show a file on the screen below."""
        below = self.app.screen_stack[-2]
        self.dismiss(None)
        below.post_message(OpenEntry(path, line, edit=edit))
