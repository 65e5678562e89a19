"""A look at a document beside a list of them, with the words that were looked for marked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content, Span

from kbtui.tui.markdown.markdown_view import MarkdownView, Source
from kbtui.tui.terminal.background import run_latest

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.query.marking import Marker

_DELAY = 0.06
_LONGEST_LINE = 2_000


class Preview(MarkdownView):
    """Shows one document at a time, a moment after the last was asked for; takes no focus."""

    can_focus = False
    keep_flash = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"preview--match"}
    DEFAULT_CSS = """
    Preview {
        & > .preview--match { background: $warning-muted; color: $text-warning; text-style: bold; }
        & > .lines--flash { background: $foreground 8%; }
    }
    """

    def __init__(self, kb: KnowledgeBase, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._kb = kb
        self._query = ""
        self._marker: Marker | None = None

    def mark(self, query: str) -> None:
        """Mark what a query asks for, in what is shown and in what comes."""
        if query != self._query:
            from kbtui.search.query.marking import marker

            self._query, self._marker = query, marker(query) if query.strip() else None
            self._redraw()

    def look_at(
        self, path: str, lines: tuple[int, int] | None = None, message: int | None = None
    ) -> None:
        """Show a file at some of its lines, or a conversation at a message."""
        run_latest(self, "look", self._look_at, path, lines, message)

    def clear(self) -> None:
        """Show nothing."""
        run_latest(self, "look", self._nothing)

    async def _nothing(self) -> None:
        self.show(Source(""))

    async def _look_at(self, path: str, lines: tuple[int, int] | None, message: int | None) -> None:
        from kbtui.tui.notes.documents import load_document, message_line

        await asyncio.sleep(_DELAY)
        document = await asyncio.to_thread(load_document, self._kb, path)
        reveal: tuple[int, int | None] | None = lines
        if document.kind == "conversation" and message is not None:
            reveal = (message_line(document, message), None)
        text = document.body or document.reason
        self.show(Source(text, document.first_line, document.raw), reveal=reveal)

    def content_at(self, index: int) -> Content:
        """A line with what was looked for marked in it."""
        content = super().content_at(index)
        if self._marker is None or len(content.plain) > _LONGEST_LINE:
            return content
        marks = [Span(start, end, ".preview--match") for start, end in self._marker(content.plain)]
        return content.add_spans(marks) if marks else content
