"""A popup preview of link targets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from kbtui.knowledge.format.body import line_named
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.messages import OpenEntry, leave_for
from kbtui.tui.notes.documents import load_document
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import ReadingDialog
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import resolve_styles


class LinkTarget(NamedTuple):
    """The target file of a link, and the link itself, which may name a part of it."""

    path: str
    link: LinkRef


class PreviewScreen(ReadingDialog[None]):
    """A dialog that shows link targets one at a time, and opens one."""

    NEEDS_ALL_HINTS = False
    DEFAULT_CSS = """
    PreviewScreen MarkdownView { height: 24; max-height: 75vh; }
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
        yield MarkdownView(id="preview-text")

    def on_mount(self) -> None:
        self.query_one(MarkdownView).focus()
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
        self.query_one(MarkdownView).show(document.source(), reveal=reveal)

    def action_open(self) -> None:
        leave_for(self, OpenEntry(self._targets[self._index].path, self._line))
