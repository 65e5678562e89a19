"""The preview of a document: beside a list, below a map, and in a popup for links."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content, Span

from kbtui.knowledge.format.body import line_named
from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.query.parser import Marker, marker
from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.messages import OpenEntry, leave_for
from kbtui.tui.notes.documents import Document, load_document, load_links, message_line
from kbtui.tui.notes.embeds import with_embeds
from kbtui.tui.terminal.background import in_threads, latest
from kbtui.tui.terminal.graphics import graphics_of
from kbtui.tui.widgets.dialogs import ReadingDialog
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import resolve_styles

_DEBOUNCE_SECONDS = 0.06
_LINKS_AFTER_SECONDS = 0.25
"""Seconds that a document is looked at before its links are resolved, as in the reader."""
_MAX_MARKED_CHARACTERS = 2_000


class Preview(MarkdownView):
    """A document as the reader shows it, debounced; it can't be focused."""

    can_focus = False
    keep_flash = True
    LOOKS: ClassVar[Mapping[str, str]] = {
        **MarkdownView.LOOKS,
        "preview--match": "bold $text-warning on $warning-muted",
        "lines--flash": "on $foreground 8%",
    }

    def __init__(
        self, kb: KnowledgeBase, *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.set_classes(classes or ())
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
        await self.show_document(document, reveal)

    async def show_document(
        self, document: Document, reveal: tuple[int, int | None] | None = None
    ) -> None:
        """Show a loaded document, and shortly after it its links and what it embeds."""
        self.show(document.source(), reveal=reveal)
        if document.entry is None and not document.is_picture:
            return
        await asyncio.sleep(_LINKS_AFTER_SECONDS)
        links = await asyncio.to_thread(load_links, self._kb, document)
        sharp = graphics_of(self.app) is not None
        async for shown in in_threads(with_embeds(self._kb, document, links, sharp=sharp)):
            self.show(await asyncio.to_thread(document.source, shown), top=None)

    def content_at(self, index: int) -> Content:
        """Return the line with the matches highlighted."""
        content = super().content_at(index)
        if self._marker is None or len(content.plain) > _MAX_MARKED_CHARACTERS:
            return content
        spans = [Span(start, end, ".preview--match") for start, end in self._marker(content.plain)]
        return content.add_spans(spans) if spans else content


class LinkTarget(NamedTuple):
    """The target file of a link, and the link itself, which may name a part of it."""

    path: str
    link: LinkRef


class PreviewScreen(ReadingDialog[None]):
    """A dialog that shows link targets one at a time, and opens one."""

    NEEDS_ALL_HINTS = False
    DEFAULT_CSS = """
    PreviewScreen Preview { height: 24; max-height: 75vh; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Go there", show=False),
        Binding("K,right", "next(1)", "Next link", show=False),
        Binding("left", "next(-1)", "Link before", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, targets: Sequence[LinkTarget]) -> None:
        super().__init__()
        self._kb = kb
        self._targets = targets
        self._index = 0
        self._line: int | None = None
        more = "K next link · " if len(targets) > 1 else ""
        self.HINT = f"{more}Enter goes there · Esc closes"

    def compose_question(self) -> ComposeResult:
        yield Preview(self._kb, id="preview-text")

    def on_mount(self) -> None:
        self.action_next(0)

    def action_next(self, by: int) -> None:
        self._index = (self._index + by) % len(self._targets)
        self._show(self._targets[self._index])

    @latest("preview")
    async def _show(self, target: LinkTarget) -> None:
        document = await asyncio.to_thread(load_document, self._kb, target.path)
        self._line = None
        if (part := target.link.heading) and target.link.kind == "file":
            self._line = int(part)
        elif part:
            self._line = await asyncio.to_thread(line_named, document.text, part)
        position = f" {self._index + 1}/{len(self._targets)}" if len(self._targets) > 1 else ""
        self.query_one(Vertical).border_title = resolve_styles(
            self, with_sign(document.named) + Content(position)
        )
        reveal = (self._line, None) if self._line is not None else None
        await self.query_one(Preview).show_document(document, reveal)

    def action_open(self) -> None:
        leave_for(self, OpenEntry(self._targets[self._index].path, self._line))
