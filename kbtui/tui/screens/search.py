"""Searching the text of everything: hits while you type, the place beside them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.actions import bindings
from kbtui.tui.background import run_latest
from kbtui.tui.messages import OpenEntry
from kbtui.tui.widgets.hit_list import HitList, place_of
from kbtui.tui.widgets.markdown_view import MarkdownView, Source
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import Hit, SearchResult

SCOPES = ("default", "knowledge", "memory", "docs", "sessions", "all")
LIMIT = 50
_WORDS_AFTER = 0.05
_MEANING_AFTER = 0.35
_PREVIEW_AFTER = 0.06
_BESIDE_FROM = 110


class SearchScreen(Screen[None]):
    """Words at every key, meaning after a pause; Enter opens the hit at its line."""

    DEFAULT_CSS = """
    SearchScreen {
        #search-line { height: 1; background: $boost; }
        #search-line Input {
            width: 1fr; border: none; height: 1; padding: 0 1; background: $boost;
        }
        #search-scope { width: auto; padding: 0 1; color: $text-accent; }
        #search-state { height: 1; padding: 0 1; color: $text-muted; }
        #search-body { height: 1fr; layout: vertical; }
        #search-hits { height: 1fr; }
        #search-preview { height: 1fr; border-top: solid $foreground 20%; padding-left: 1; }
        #search-preview > .lines--flash { background: $foreground 8%; }
        &.-beside #search-body { layout: horizontal; }
        &.-beside #search-hits { width: 1fr; height: 100%; }
        &.-beside #search-preview {
            width: 1fr; height: 100%; border-top: none; border-left: solid $foreground 20%;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("search"),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("tab", "take_suggestion", "Take the suggestion", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__()
        self._kb = kb
        self._query = query
        self._scope = 0
        self._suggestion = ""
        self._answered = ""

    def compose(self) -> ComposeResult:
        """The line to type in, the hits, the place."""
        with Horizontal(id="search-line"):
            yield Input(self._query, placeholder="search", select_on_focus=False)
            yield Static(id="search-scope")
        yield Static(id="search-state")
        with Container(id="search-body"):
            yield HitList(id="search-hits")
            with Vertical():
                preview = MarkdownView(id="search-preview")
                preview.can_focus = False
                preview.keep_flash = True
                yield preview
        yield Footer()

    def on_mount(self) -> None:
        """Name the scope."""
        self._show_scope()

    def on_resize(self, event: events.Resize) -> None:
        """Put hits and place beside each other where there is room."""
        self.set_class(event.size.width >= _BESIDE_FROM, "-beside")

    @property
    def hits(self) -> HitList:
        """The hits."""
        return self.query_one(HitList)

    @property
    def scope(self) -> str:
        """Where is searched."""
        return SCOPES[self._scope]

    # Searching

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value)

    def _search(self, query: str) -> None:
        run_latest(self, "search", self._searched, query.strip())

    async def _searched(self, query: str) -> None:
        if not query:
            self._suggestion = self._answered = ""
            self.hits.nothing = "Type to search in the text of all entries."
            self.hits.show_hits(())
            self._say("")
            return
        await asyncio.sleep(_WORDS_AFTER)
        if not await self._ask(query, semantic=False):
            return
        await asyncio.sleep(_MEANING_AFTER - _WORDS_AFTER)
        await self._ask(query, semantic=True)

    async def _ask(self, query: str, *, semantic: bool) -> bool:
        try:
            result = await asyncio.to_thread(
                self._kb.search.search, query, self.scope, LIMIT, semantic=semantic
            )
        except KbtuiError as error:
            self._say(f"{error.message} {error.hint}", "$text-error")
            return False
        self._show(result)
        return True

    def _show(self, result: SearchResult) -> None:
        self._answered = result.query.strip()
        self._suggestion = result.suggestion or ""
        self.hits.nothing = "Nothing found."
        self.hits.show_hits(result.hits)
        count = len(result.hits)
        kind = "words and meaning" if result.semantic else "words"
        more = "+" if count >= LIMIT else ""
        text = f"{count}{more} hits by {kind} in {result.took_ms:,.0f} ms"
        parts: list[str | tuple[str, str]] = [(text, "$text-muted")]
        if result.suggestion:
            parts.append(
                (f"   did you mean {clean_line(result.suggestion)}? (Tab)", "$text-accent")
            )
        if result.notice:
            parts.append((f"   {clean_line(result.notice)}", "$text-warning"))
        self.query_one("#search-state", Static).update(Content.assemble(*parts))
        if not count:
            self.query_one(MarkdownView).show(Source(""))

    def _say(self, text: str, style: str = "$text-muted") -> None:
        self.query_one("#search-state", Static).update(Content.styled(clean_line(text), style))

    # Preview

    @on(RowList.Highlighted)
    def _highlighted(self) -> None:
        hit = self.hits.hit
        if hit is not None:
            run_latest(self, "preview", self._previewed, hit)

    async def _previewed(self, hit: Hit) -> None:
        from kbtui.tui.documents import load_document, message_line

        await asyncio.sleep(_PREVIEW_AFTER)
        document = await asyncio.to_thread(load_document, self._kb, hit.path)
        lines: tuple[int, int | None] = hit.lines
        if document.kind == "conversation" and hit.messages is not None:
            lines = (message_line(document, hit.messages[0]), None)
        view = self.query_one(MarkdownView)
        view.border_title = Content(place_of(hit))
        view.show(
            Source(document.body or document.reason, document.first_line, document.raw),
            reveal=lines,
        )

    # Actions

    def action_down(self) -> None:
        """Next hit."""
        self.hits.cursor += 1

    def action_up(self) -> None:
        """Previous hit."""
        self.hits.cursor -= 1

    def action_page(self, by: int) -> None:
        """A page further."""
        (self.hits.action_page_down if by > 0 else self.hits.action_page_up)()

    def action_take_suggestion(self) -> None:
        """Search for what was probably meant."""
        if self._suggestion:
            field = self.query_one(Input)
            field.value = self._suggestion
            field.cursor_position = len(field.value)

    def action_scope(self) -> None:
        """Search somewhere else."""
        self._scope = (self._scope + 1) % len(SCOPES)
        self._show_scope()
        self._search(self.query_one(Input).value)

    def _show_scope(self) -> None:
        shown = "knowledge, memory, docs" if self.scope == "default" else self.scope
        self.query_one("#search-scope", Static).update(Content(f"in {shown}"))

    @on(Input.Submitted)
    @on(RowList.Selected)
    def _choose(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open the hit at its line."""
        run_latest(self, "open", self._open)

    async def _open(self) -> None:
        query = self.query_one(Input).value.strip()
        if query != self._answered:
            # Enter came faster than the hits.
            await self._ask(query, semantic=False)
        hit = self.hits.hit
        if hit is not None:
            below = self.app.screen_stack[-2]
            self.dismiss(None)
            below.post_message(OpenEntry(hit.path, _line_to_open(hit)))

    def action_back(self) -> None:
        """Close the search."""
        self.dismiss(None)


def _line_to_open(hit: Hit) -> int:
    """The line, or for a conversation the message, that `OpenEntry` is to lead to."""
    if hit.messages is not None:
        return hit.messages[0]
    return hit.line if hit.lines[0] <= hit.line <= hit.lines[1] else hit.lines[0]
