"""Searching the text of everything: hits while you type, the place beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, Static

from kbtui.errors import KbtuiError
from kbtui.search.results import counted_in_conversations
from kbtui.text import clean, clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.search.finder import Finder, Preview
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import RowList
from kbtui.workspace.layout import CATEGORIES, short_name

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import Hit, SearchResult

SCOPES = ("default", "knowledge", "memory", "docs", "sessions", "all")
LIMIT = 50
_WORDS_AFTER_SECONDS = 0.05
_MEANING_AFTER_SECONDS = 0.35
FILTERS = 'type:decision  tag:auth  path:projects/  updated:week  "exact phrase"  -without  begin*'
"""Conditions that narrow a search, shown where nothing is typed yet."""


class HitList(RowList):
    """Hits of three lines each: title and place, then the snippet."""

    ROW_HEIGHT: ClassVar[int] = 3

    def __init__(self, *, id: str | None = None) -> None:
        self.hits: tuple[Hit, ...] = ()
        self.nothing = "Type to search in the text of all entries."
        super().__init__(id=id)

    def show_hits(self, hits: Sequence[Hit]) -> None:
        """Show hits; the cursor stays with its hit if the person moved it."""
        kept = self.hit if self.cursor else None
        self.hits = tuple(hits)
        places = (
            index
            for index, hit in enumerate(self.hits)
            if kept is not None and (hit.path, hit.lines) == (kept.path, kept.lines)
        )
        self.rows_changed(next(places, 0))

    @property
    def hit(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    @property
    def row_count(self) -> int:
        """How many hits there are."""
        return len(self.hits)

    def empty_text(self) -> Content:
        """Why there is nothing."""
        return Content.styled(f" {self.nothing}", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one hit."""
        hit = self.hits[index]
        head = Content.assemble(
            (f" {clean_line(hit.title)}", ".rows--strong"),
            (f"  {clean_line(hit.heading)}" if hit.heading else "", ".rows--muted"),
            (f"  also in {counted(len(hit.also), 'place')}" if hit.also else "", ".rows--muted"),
        )
        right = Content.styled(place_of(hit), ".rows--muted").truncate(width // 2, ellipsis=True)
        head = head.truncate(max(4, width - right.cell_length - 3), ellipsis=True)
        gap = " " * (width - head.cell_length - right.cell_length - 1)
        snippet = snippet_of(hit)
        lines = snippet.wrap(max(10, width - 4))[:2]
        indented = [Content("   ") + line for line in lines]
        return [head + Content(gap) + right, *indented]


class SearchScreen(Finder):
    """Words at every key, meaning after a pause; Enter opens the hit at its line."""

    DEFAULT_CSS = """
    SearchScreen {
        #search-body { height: 1fr; layout: vertical; }
        #search-found { height: 1fr; border-subtitle-color: $text-muted; }
        #search-line { height: 1; }
        #search-line Input { width: 1fr; border: none; height: 1; background: $boost; }
        #search-scope { width: auto; padding: 0 0 0 2; color: $text-accent; }
        #search-state { height: auto; max-height: 3; color: $text-muted; }
        #search-hits { height: 1fr; }
        #search-preview { height: 1fr; }
        &.-wide-finder #search-body { layout: horizontal; }
        &.-wide-finder #search-found, &.-wide-finder #search-preview {
            width: 1fr; height: 100%;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("search"),
        Binding("tab", "take_suggestion", "Take the suggestion", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb, query)
        self._scope = 0
        self._suggestion = ""

    def compose(self) -> ComposeResult:
        """The line to type in, the hits, the place."""
        with Divided(id="search-body"):
            with Pane(id="search-found") as found:
                found.label_with("Search")
                with Horizontal(id="search-line"):
                    yield Input(self.first_query, placeholder="search", select_on_focus=False)
                    yield Static(id="search-scope")
                yield Static(id="search-state")
                yield HitList(id="search-hits")
            preview = Preview(self.kb, id="search-preview")
            preview.add_class("framed")
            yield preview
        yield Hints()

    def on_mount(self) -> None:
        """Name the scope."""
        self._show_scope()

    @property
    def hits(self) -> HitList:
        """The hits."""
        return self.query_one(HitList)

    @property
    def scope(self) -> str:
        """Where is searched."""
        return SCOPES[self._scope]

    # Searching

    async def find(self, query: str) -> None:
        """Show hits by words, and after a pause by meaning too."""
        if not query:
            self._show_nothing()
            return
        await asyncio.sleep(_WORDS_AFTER_SECONDS)
        if await self._ask(query, semantic=False):
            await asyncio.sleep(_MEANING_AFTER_SECONDS - _WORDS_AFTER_SECONDS)
            await self._ask(query, semantic=True)

    async def find_at_once(self, query: str) -> None:
        """Show hits by words."""
        if query:
            await self._ask(query, semantic=False)

    async def _ask(self, query: str, *, semantic: bool) -> bool:
        try:
            result = await asyncio.to_thread(
                self.kb.search.search, query, self.scope, LIMIT, semantic=semantic
            )
        except KbtuiError as error:
            self._say(f"{error.message} {error.hint}", "$text-error")
            return False
        self._show(result)
        if semantic:
            await self._count(result)
        return True

    async def _count(self, result: SearchResult) -> None:
        """Say how many places in conversations answer as well, where those aren't searched."""
        query, scope = result.query, result.scope
        count = await asyncio.to_thread(self.kb.search.in_conversations, query, scope)
        if count and query.strip() == self.answered and scope == self.scope:
            line = self.query_one("#search-state", Static)
            line.update(self._state_of(result, counted_in_conversations(count)))

    def _show_nothing(self) -> None:
        self._suggestion = self.answered = ""
        self.hits.nothing = "Type to search in the text of all entries."
        self.hits.show_hits(())
        self.preview.clear()
        self._say(FILTERS)

    def _show(self, result: SearchResult) -> None:
        self.answered = result.query.strip()
        self._suggestion = clean_line(result.suggestion or "")
        self.preview.mark(self.answered)
        self.hits.nothing = "Nothing found."
        self.hits.show_hits(result.hits)
        if not result.hits:
            self.preview.clear()
        self.query_one("#search-state", Static).update(self._state_of(result))

    def _state_of(self, result: SearchResult, elsewhere: str = "") -> Content:
        count = len(result.hits)
        kind = "words and meaning" if result.semantic else "words"
        found = f"{count}+ hits" if count >= LIMIT else counted(count, "hit")
        said = f"{found} by {kind} in {result.took_ms:,.0f} ms"
        parts: list[Content | tuple[str, str]] = [(said, "$text-muted")]
        if self._suggestion:
            key = "Tab" if count else "Enter"
            meant = Content.styled(f"did you mean {self._suggestion}? ({key})", "$text-accent")
            click = Style.from_meta({"@click": "screen.take_suggestion"})
            parts += [("   ", ""), meant.stylize(click)]
        if elsewhere:
            click = Style.from_meta({"@click": "screen.conversations"})
            parts += [("   ", ""), Content.styled(elsewhere, "$text-accent").stylize(click)]
        if result.notice:
            parts.append((f"   {clean_line(result.notice)}", "$text-warning"))
        return Content.assemble(*parts)

    def _say(self, text: str, style: str = "$text-muted") -> None:
        self.query_one("#search-state", Static).update(Content.styled(clean_line(text), style))

    def look_at(self, preview: Preview) -> None:
        """Show the place of the hit."""
        hit = self.hits.hit
        if hit is not None:
            preview.border_title = Content(clean_line(hit.title))
            lines = (hit.line, hit.lines[1])
            preview.look_at(hit.path, lines, hit.messages[0] if hit.messages else None)

    # Actions

    def action_take_suggestion(self) -> None:
        """Search for what was probably meant."""
        if self._suggestion:
            self.ask(self._suggestion)

    def action_conversations(self) -> None:
        """Search the conversations."""
        self._scope = SCOPES.index("sessions")
        self._show_scope()
        self.search()

    def action_scope(self) -> None:
        """Search somewhere else."""
        self._scope = (self._scope + 1) % len(SCOPES)
        self._show_scope()
        self.search()

    def _show_scope(self) -> None:
        shown = "knowledge, memory, docs" if self.scope == "default" else self.scope
        text = Content(f"in {shown}").stylize(Style.from_meta({"@click": "screen.scope"}))
        self.query_one("#search-scope", Static).update(text)

    async def take(self) -> None:
        """Open the hit at its line; where there is none, search for what was probably meant."""
        hit = self.hits.hit
        if hit is not None:
            self.leave_for(hit.path, _line_to_open(hit))
        else:
            self.action_take_suggestion()


def _line_to_open(hit: Hit) -> int:
    """The line, or for a conversation the message, that `OpenEntry` is to lead to."""
    if hit.messages is not None:
        return hit.messages[0]
    return hit.line


def place_of(hit: Hit) -> str:
    """Where a hit is beside its title: its folder and line, or the message of a conversation."""
    if hit.session is not None and hit.messages is not None:
        return f"conversation · message {hit.messages[0]}"
    folder = clean_line(short_name(hit.path).rpartition("/")[0])
    shown = folder.capitalize() if folder in CATEGORIES else folder
    return f"{shown} · line {hit.line}" if shown else f"line {hit.line}"


def snippet_of(hit: Hit) -> Content:
    """The snippet in one line with its matches marked."""
    parts: list[str | tuple[str, str]] = []
    at = 0
    for start, end in sorted(hit.matches):
        if start >= at:
            parts += [_flat(hit.snippet[at:start]), (_flat(hit.snippet[start:end]), ".rows--match")]
            at = end
    parts.append(_flat(hit.snippet[at:]))
    return Content.assemble(*parts)


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
