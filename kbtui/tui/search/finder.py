"""The line, the list and the preview that searching by text and opening by name share."""

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

_LOOK_SECONDS = 0.06
_LONGEST_LINE_CHARACTERS = 2_000


class Preview(MarkdownView):
    """Shows one document at a time, a moment after the last was asked for; takes no focus."""

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
        """Mark what a query asks for, in what is shown and in what comes."""
        if query != self._query:
            self._query, self._marker = query, marker(query) if query.strip() else None
            self._redraw()

    @latest("look")
    async def clear(self) -> None:
        """Show nothing."""
        self.border_title = "Preview"
        self.show(SourceText(""))

    @latest("look")
    async def look_at(
        self, path: str, lines: tuple[int, int] | None = None, message: int | None = None
    ) -> None:
        """Show a file at some of its lines, or a conversation at a message."""
        await asyncio.sleep(_LOOK_SECONDS)
        document = await asyncio.to_thread(load_document, self._kb, path)
        reveal: tuple[int, int | None] | None = lines
        if document.kind == "conversation" and message is not None:
            reveal = (message_line(document, message), None)
        self.show(document.source(whole=True), reveal=reveal)

    def content_at(self, index: int) -> Content:
        """A line with what was looked for marked in it."""
        content = super().content_at(index)
        if self._marker is None or len(content.plain) > _LONGEST_LINE_CHARACTERS:
            return content
        marks = [Span(start, end, ".preview--match") for start, end in self._marker(content.plain)]
        return content.add_spans(marks) if marks else content


class Finder(FullScreen[None]):
    """Finds while somebody types; the arrows move in the list, Enter takes a row.

    A subclass composes an `Input`, a `RowList` and a `Preview`, and says how to `find`, what to
    `look_at` and what to `take`.
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
        """The query that the list answers; None before the first answer."""

    # What a subclass gives

    @abstractmethod
    async def find(self, query: str) -> None:
        """Fill the list, perhaps in steps."""

    async def find_at_once(self, query: str) -> None:
        """Fill the list as fast as possible: somebody has pressed Enter already."""
        await self.find(query)

    @abstractmethod
    def look_at(self, preview: Preview) -> None:
        """Preview what the cursor is on."""

    @abstractmethod
    async def take(self) -> None:
        """Do what Enter means."""

    # Parts

    field = getters.query_one(Input)

    preview = getters.query_one(Preview)

    @property
    def rows(self) -> RowList[Any]:
        """The list that is seen."""
        return self.query_one(RowList)

    def on_mount(self) -> None:
        """Answer the line as it is, also where it is empty."""
        if not self.first_query:
            self.search()

    # Finding

    @property
    def query_text(self) -> str:
        """What is asked for."""
        return self.field.value.strip()

    def search(self) -> None:
        """Find what the line says now; what was looked for before is given up."""
        run_latest(self, "search", self.find, self.query_text)

    def ask(self, query: str) -> None:
        """Put another text into the line."""
        self.field.value = query
        self.field.cursor_position = len(query)

    @on(Input.Changed)
    def _typed(self) -> None:
        self.search()

    @on(RowList.Highlighted)
    def _highlighted(self) -> None:
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
            # Enter came faster than the answer.
            await self.find_at_once(query)
        await self.take()

    def leave_for(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        """Close, and show a file in the screen below."""
        below = self.app.screen_stack[-2]
        self.dismiss(None)
        below.post_message(OpenEntry(path, line, edit=edit))
