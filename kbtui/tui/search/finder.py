"""The base class of the search screen and the switcher, and their preview."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.query.parser import Marker, marker
from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.messages import OpenEntry
from kbtui.tui.notes.documents import load_document, message_line
from kbtui.tui.terminal.background import latest, run_latest
from kbtui.tui.widgets.full_screen import FullScreen
from kbtui.tui.widgets.row_list import RowList

_DEBOUNCE_SECONDS = 0.06
_MAX_MARKED_CHARACTERS = 2_000


class Preview(MarkdownView):
    """A preview of one document, debounced; it can't be focused."""

    can_focus = False
    keep_flash = True
    LOOKS: ClassVar[Mapping[str, str]] = {
        **MarkdownView.LOOKS,
        "preview--match": "bold $text-warning on $warning-muted",
        "lines--flash": "on $foreground 8%",
    }

    def __init__(self, kb: KnowledgeBase, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kb = kb
        self._query = ""
        self._marker: Marker | None = None

    def mark(self, query: str) -> None:
        """Highlight the matches of a query in this document and the next ones."""
        if query != self._query:
            self._query, self._marker = query, marker(query) if query.strip() else None
            self._redraw()

    @latest("look")
    async def clear(self) -> None:
        """Empty the preview."""
        self.border_title = "Preview"
        self.show(SourceText(""))

    @latest("look")
    async def look_at(
        self, path: str, lines: tuple[int, int] | None = None, message: int | None = None
    ) -> None:
        """Show a file at the given lines, or a conversation at a message."""
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        document = await asyncio.to_thread(load_document, self._kb, path)
        reveal: tuple[int, int | None] | None = lines
        if document.kind == "conversation" and message is not None:
            reveal = (message_line(document, message), None)
        self.show(document.source(whole=True), reveal=reveal)

    def content_at(self, index: int) -> Content:
        """Return the line with the matches highlighted."""
        content = super().content_at(index)
        if self._marker is None or len(content.plain) > _MAX_MARKED_CHARACTERS:
            return content
        spans = [Span(start, end, ".preview--match") for start, end in self._marker(content.plain)]
        return content.add_spans(spans) if spans else content


class Finder(FullScreen[None]):
    """A screen that finds as the user types; arrow keys move in the list, Enter takes a row.

    A subclass composes an `Input`, a `RowList` and a `Preview`, and implements `find`, `look_at`
    and `take`.
    """

    BESIDE_COLUMNS = 110
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb)
        self.first_query = query
        self.answered: str | None = None
        """The query of the results in the list; None before the first results."""

    # For subclasses

    @abstractmethod
    async def find(self, query: str) -> None:
        """Fill the list with results, perhaps in several steps."""

    async def find_at_once(self, query: str) -> None:
        """Fill the list without delay, because Enter was pressed before the results came."""
        await self.find(query)

    @abstractmethod
    def look_at(self, preview: Preview) -> None:
        """Preview the row under the cursor."""

    @abstractmethod
    async def take(self) -> None:
        """Act on the row under the cursor, as on Enter."""

    # Parts

    field = getters.query_one(Input)

    preview = getters.query_one(Preview)

    @property
    def rows(self) -> RowList[Any]:
        """The visible list."""
        return self.query_one(RowList)

    def on_mount(self) -> None:
        """Search even for an empty query."""
        if not self.first_query:
            self.search()

    # Finding

    @property
    def query_text(self) -> str:
        """The current query."""
        return self.field.value.strip()

    def search(self) -> None:
        """Search for the current query, cancelling the previous search."""
        run_latest(self, "search", self.find, self.query_text)

    def ask(self, query: str) -> None:
        """Replace the text of the input."""
        self.field.value = query
        self.field.cursor_position = len(query)

    @on(Input.Changed)
    def _search_changed(self) -> None:
        self.search()

    @on(RowList.Highlighted)
    def _preview_row(self) -> None:
        self.look_at(self.preview)

    # Actions

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    def action_page(self, by: int) -> None:
        self.rows.action_page(by)

    @on(Input.Submitted)
    @on(RowList.Selected)
    def _chosen(self) -> None:
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
