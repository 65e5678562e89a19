"""Searching the text of everything: hits while you type, the place beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, Static

from kbtui.errors import KbtuiError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import Names, names_of
from kbtui.search.query.parser import split_conditions
from kbtui.search.results import Hit, SearchResult
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.search.filters import QueryInput, chips_drawn, offered, offers_drawn, values_of
from kbtui.tui.search.finder import Finder, Preview
from kbtui.tui.search.hits import HitList, log_of, paths_in
from kbtui.tui.terminal.background import latest
from kbtui.tui.terminal.state import Searches
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.line_view import coloured
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList

SCOPES = {
    "default": "Library",
    "knowledge": "Notes",
    "memory": "Memory",
    "docs": "Documents",
    "sessions": "Conversations",
    "all": "All",
}
"""Where is searched, by scope and as people say it; the next three are the library."""
LIMIT = 50
_WORDS_AFTER_SECONDS = 0.05
_MEANING_AFTER_SECONDS = 0.35
_MORE = '"these words in a row"   -without   begin*'
_SAVED = "\N{BLACK STAR} "


class SearchScreen(Finder):
    """Words at every key, meaning after a pause; Enter opens the hit at its line."""

    DEFAULT_CSS = """
    SearchScreen {
        #search-found { height: 1fr; }
        #search-line { height: 1; padding: 0 1; }
        #search-chips { width: auto; max-width: 70%; height: 1; }
        #search-line > Input {
            border: none; height: 1; width: 1fr; background: transparent; padding: 0;
        }
        #search-offers { display: none; height: auto; max-height: 2; padding: 0 1; }
        #search-offers, #search-chips, #search-state {
            link-style: none; link-color: $text-muted; link-background-hover: transparent;
        }
        #search-scope {
            height: auto; max-height: 2; margin: 1 0; padding: 0 1;
            link-color: $text-muted; link-style: none;
            link-color-hover: $text-primary; link-style-hover: underline;
            link-background-hover: transparent;
        }
        &.-short #search-scope { margin: 0 0 1 0; }
        &.-low #search-scope { margin: 0; }
        #search-state { height: auto; max-height: 3; padding: 0 1 1 1; color: $text-muted; }
        &.-low #search-state { padding: 0 1; }
        #search-hits, #search-lately { height: 1fr; }
        #search-lately { display: none; }
        &.-asks-nothing #search-hits { display: none; }
        &.-asks-nothing #search-lately { display: block; }
        #search-preview { height: 1fr; }
        &.-short #search-found { height: 3fr; }
        &.-short #search-preview { height: 2fr; }
        &.-low #search-preview { display: none; }
        &.-beside #search-found, &.-beside #search-preview {
            display: block; width: 1fr; height: 100%;
        }
    }
    """
    TITLE_TEXT = "Search"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("search"),
        Binding("tab", "complete", "Take what is offered", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb, query)
        self._scope = 0
        self._suggestion = ""
        self._chips: list[str] = []
        self._offers: list[str] = []
        self._values: Mapping[str, Sequence[str]] = {}
        self._counts: dict[str, int] = {}
        self._searches = Searches(kb.workspace.root)

    def compose_body(self) -> ComposeResult:
        with Divided(id="search-body", classes="parts"):
            with Pane(id="search-found") as found:
                found.label_with("Search")
                with Horizontal(id="search-line"):
                    yield Static(id="search-chips")
                    yield QueryInput(placeholder="search", select_on_focus=False)
                yield Static(id="search-offers")
                yield Static(id="search-scope")
                yield Static(id="search-state")
                yield HitList(id="search-hits")
                yield ChoiceList(id="search-lately")
            preview = Preview(self.kb, id="search-preview")
            preview.add_class("framed")
            preview.border_title = "Preview"
            yield preview

    def on_mount(self) -> None:
        self.lately.empty = "Type to search in the text of all notes."
        self._show_scope()
        self._learn_values()
        if self.first_query:
            self.ask(self.first_query)

    @latest("values")
    async def _learn_values(self) -> None:
        self._values = await asyncio.to_thread(values_of, self.kb)
        self._offer()

    hits = getters.query_one(HitList)

    lately = getters.query_one("#search-lately", ChoiceList)

    @property
    def rows(self) -> RowList[Any]:
        """The list that is seen."""
        return self.lately if self.has_class("-asks-nothing") else self.hits

    @property
    def scope(self) -> str:
        """Where is searched."""
        return [*SCOPES][self._scope]

    # Conditions

    @property
    def query_text(self) -> str:
        """The chips, and what is typed behind them."""
        return " ".join([*self._chips, super().query_text]).strip()

    def ask(self, query: str) -> None:
        """Ask for something else; its conditions become chips."""
        chips, rest = split_conditions(query, whole=True)
        self._set_chips(chips)
        super().ask(rest)
        self.search()

    def _set_chips(self, chips: Sequence[str]) -> None:
        self._chips = [*chips]
        self.query_one("#search-chips", Static).update(chips_drawn(chips))

    @on(Input.Changed)
    def _made_chips(self) -> None:
        chips, rest = split_conditions(self.field.value)
        if chips:
            self._set_chips([*self._chips, *chips])
            self.field.value = rest
            self.field.cursor_position = len(rest)
        self._offer()

    @on(QueryInput.AtStart)
    def _drop_last_chip(self) -> None:
        if self._chips:
            self.action_drop_chip(len(self._chips) - 1)

    def action_drop_chip(self, number: int) -> None:
        self._set_chips([*self._chips[:number], *self._chips[number + 1 :]])
        self.search()

    def _offer(self) -> None:
        """Offer what the last word may become."""
        typed = self.field.value
        self._offers = offered(typed, self._values) if typed or not self._chips else []
        line = self.query_one("#search-offers", Static)
        line.display = bool(self._offers)
        line.update(offers_drawn(self._offers, "" if typed else "Narrow by "))

    def action_take_offer(self, number: int) -> None:
        """Put an offer in the place of the last word; one that is gone by now does nothing."""
        if number >= len(self._offers):
            return
        before = self.field.value.rpartition(" ")[0]
        whole = f"{before} {self._offers[number]}".lstrip()
        self.field.value = whole if whole.endswith(":") else f"{whole} "
        self.field.cursor_position = len(self.field.value)
        self.field.focus()

    def action_complete(self) -> None:
        if self._offers:
            self.action_take_offer(0)
        else:
            self.action_take_suggestion()

    # Searching

    async def find(self, query: str) -> None:
        """Show hits by words, and after a pause by meaning too."""
        self.set_class(not query, "-asks-nothing")
        if not query:
            await self._show_nothing()
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
            result, names = await asyncio.to_thread(self._found, query, semantic)
        except KbtuiError as error:
            self._say(f"{error.message} {error.hint}", "$text-error")
            return False
        self._show(result, names)
        if semantic:
            await self._count(result)
        return True

    def _found(self, query: str, semantic: bool) -> tuple[SearchResult, Names]:
        result = self.kb.search.search(query, self.scope, LIMIT, semantic=semantic)
        return result, names_of(self.kb.library, paths_in(result.hits), self.kb.sessions)

    async def _count(self, result: SearchResult) -> None:
        """Say how many places in conversations answer as well, where those aren't searched."""
        query, scope = result.query, result.scope
        count = await asyncio.to_thread(self.kb.search.in_conversations, query, scope)
        if count and query.strip() == self.answered and scope == self.scope:
            self._counts["sessions"] = count
            self._show_scope()

    async def _show_nothing(self) -> None:
        """Show what was looked for before, saved searches first."""
        self._suggestion = self.answered = ""
        self._counts = {}
        self._show_scope()
        self.hits.show_hits((), Names())
        self.preview.clear()
        self._count_hits("")
        self._say(_MORE)
        saved, last = await asyncio.to_thread(self._searches.read)
        choices = [Choice(f"{_SAVED}{query}", "saved", query) for query in saved]
        self.lately.show([*choices, *(Choice(f"  {query}", "", query) for query in last)])

    def _count_hits(self, said: str) -> None:
        self.query_one("#search-found", Pane).label_with("Search", place=said)

    def _show(self, result: SearchResult, names: Names) -> None:
        if result.query.strip() != self.answered:
            self._counts = {}
        self.answered = result.query.strip()
        self._counts |= counts_of(result)
        self._show_scope()
        self._suggestion = clean_line(result.suggestion or "")
        self.preview.mark(self.answered)
        self.hits.show_hits(result.hits, names)
        if not result.hits:
            self.preview.clear()
        count = len(result.hits)
        kind = "words and meaning" if result.semantic else "words"
        found = f"{count}+ hits" if count >= LIMIT else counted(count, "hit")
        self._count_hits(f"{found} by {kind} in {result.took_ms:,.0f} ms")
        self._show_state(self._state_of(result))

    def _state_of(self, result: SearchResult) -> Content:
        """What was probably meant, and what else there is to know."""
        parts = []
        if self._suggestion:
            key = "Tab" if result.hits else "Enter"
            meant = Content.styled(f"did you mean {self._suggestion}? ({key})", "$text-accent")
            parts.append(meant.stylize(Style.from_meta({"@click": "screen.take_suggestion"})))
        if result.notice:
            parts.append(Content.styled(clean_line(result.notice), "$text-muted"))
        return Content("   ").join(parts)

    def _say(self, text: str, style: str = "$text-muted") -> None:
        self._show_state(Content.styled(clean_line(text), style))

    def _show_state(self, state: Content) -> None:
        line = self.query_one("#search-state", Static)
        line.display = bool(state)
        line.update(state)

    def look_at(self, preview: Preview) -> None:
        """Show the place of the hit."""
        hit = self.hits.hit
        if hit is not None:
            preview.border_title = coloured(preview, signed(self.hits.named(hit)))
            path, message = self._target(hit)
            preview.look_at(path, (hit.line, hit.lines[1]), message)

    def _target(self, hit: Hit) -> tuple[str, int | None]:
        """What to show of a hit: a file, or a conversation and its message.

        Of what was condensed it is the conversation that it was made of, while that is there.
        """
        log = log_of(hit)
        if hit.session and hit.messages and self.kb.workspace.place(log).is_file():
            return log, hit.messages[0]
        return hit.path, None

    # Actions

    def action_take_suggestion(self) -> None:
        if self._suggestion:
            self.ask(self._suggestion)

    def action_scope(self, scope: str = "") -> None:
        self._scope = [*SCOPES].index(scope) if scope else (self._scope + 1) % len(SCOPES)
        self._show_scope()
        self.search()

    def _show_scope(self) -> None:
        """The places, with how many hits each has where that is known, as far as there is room."""
        line = self.query_one("#search-scope", Static)
        for gap, least in ((3, 0), (2, 0), (2, 1)):
            tabs = Content(" " * gap).join([*self._tabs(least)])
            if tabs.cell_length <= line.content_size.width:
                break
        line.update(tabs)

    def _tabs(self, least: int) -> Iterator[Content]:
        """The name of each place, with the count of its hits where that isn't less than `least`."""
        for scope, said in SCOPES.items():
            count = self._counts.get(scope, -1)
            tab = Content(f"{said} {_count_said(count)}" if count >= least else said)
            if scope == self.scope:
                yield tab.stylize("bold $primary underline")
            else:
                yield tab.stylize(Style.from_meta({"@click": f"screen.scope('{scope}')"}))

    async def action_save(self) -> None:
        query = self.query_text
        if self.has_class("-asks-nothing") and self.lately.item is not None:
            query = self.lately.item.value
        if not query:
            return
        kept = await asyncio.to_thread(self._searches.save, query)
        word = "Saved" if kept else "No longer saved"
        self.notify(f"{word}: {clean_line(query)}", markup=False)
        if self.has_class("-asks-nothing"):
            self.search()

    async def take(self) -> None:
        """Open the hit at its line; where there is none, search for what was probably meant."""
        if self.has_class("-asks-nothing"):
            if self.lately.item is not None:
                self.ask(self.lately.item.value)
            return
        if self.hits.unfold():
            return
        hit = self.hits.hit
        if hit is not None:
            await asyncio.to_thread(self._searches.remember, self.answered or "")
            path, message = self._target(hit)
            self.leave_for(path, message or hit.line)
        else:
            self.action_take_suggestion()


def counts_of(result: SearchResult) -> dict[str, int]:
    """How many hits each place has, as far as a result tells."""
    counts = {result.scope: len(result.hits)}
    if result.scope in {"default", "all"} and len(result.hits) < LIMIT:
        docs = sum(hit.path.startswith("docs/") for hit in result.hits)
        talks = sum(hit.session is not None for hit in result.hits)
        memory = sum(hit.path.startswith("memory/") for hit in result.hits if hit.session is None)
        notes = len(result.hits) - docs - memory - talks
        counts |= {"knowledge": notes, "memory": memory, "docs": docs}
    return counts


def _count_said(count: int) -> str:
    return f"{count}+" if count >= LIMIT else str(count)
