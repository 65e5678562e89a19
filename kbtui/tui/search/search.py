"""The search screen: hits as the user types, with a preview."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, Static

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.facts import plain_fact
from kbtui.knowledge.format.lines import heading_of
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import Names, names_of
from kbtui.search.query.parser import split_conditions
from kbtui.search.results import Hit, SearchResult
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.diff.correct import correct_everywhere
from kbtui.tui.messages import tell, tell_error
from kbtui.tui.notes.preview import Preview
from kbtui.tui.search.filters import QueryInput, condition_values, draw_chips, draw_offers, offered
from kbtui.tui.search.finder import QueryFinder
from kbtui.tui.search.hits import HitList, log_of, paths_in
from kbtui.tui.terminal.background import latest
from kbtui.tui.terminal.state import Searches
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import resolve_styles
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList
from kbtui.views.view import Audience
from kbtui.workspace.files import text_of
from kbtui.workspace.layout import ENTRIES

SCOPES = {
    "default": "Written",
    "knowledge": "Notes",
    "memory": "Memory",
    "docs": "Documents",
    "sessions": "Conversations",
    "all": "All",
}
"""The label of each scope; the default scope comprises the next three."""
LIMIT = 50
_WORDS_DELAY_SECONDS = 0.05
_MEANING_DELAY_SECONDS = 0.35
_QUERY_HINT = '"these words in a row"   -without   begin*'
_SAVED_MARK = "\N{BLACK STAR} "


class SearchScreen(QueryFinder):
    """The search screen: results by words at each key press, by meaning after a pause."""

    DEFAULT_CSS = """
    SearchScreen {
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
        &.-short #search-found { height: 3fr; }
        &.-short #search-preview { height: 2fr; }
        &.-low #search-preview { display: none; }
        &.-beside #search-preview { display: block; }
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
            with Pane(id="search-found", classes="split-list") as found:
                found.label_with("Search")
                with Horizontal(id="search-line"):
                    yield Static(id="search-chips")
                    yield QueryInput(placeholder="search", select_on_focus=False)
                yield Static(id="search-offers")
                yield Static(id="search-scope")
                yield Static(id="search-state")
                yield HitList(id="search-hits")
                yield ChoiceList(id="search-lately")
            preview = Preview(self.kb, id="search-preview", classes="split-detail framed")
            preview.border_title = "Preview"
            yield preview

    def on_mount(self) -> None:
        self.lately.empty = "Type to search in the text of all notes."
        self._show_scope()
        self._load_values()
        if self.first_query:
            self.ask(self.first_query)

    @latest("values")
    async def _load_values(self) -> None:
        self._values = await asyncio.to_thread(condition_values, self.kb)
        self._offer()

    hits = getters.query_one(HitList)

    lately = getters.query_one("#search-lately", ChoiceList)

    @property
    def rows(self) -> RowList[Any]:  # type: ignore[override]
        """The visible list."""
        return self.lately if self.has_class("-asks-nothing") else self.hits

    @property
    def scope(self) -> str:
        """The current scope."""
        return [*SCOPES][self._scope]

    # Conditions

    @property
    def query_text(self) -> str:
        """The conditions of the chips, then the text of the input."""
        return " ".join([*self._chips, super().query_text]).strip()

    def ask(self, query: str) -> None:
        """Search for another query; its conditions become chips."""
        chips, rest = split_conditions(query, whole=True)
        self._set_chips(chips)
        super().ask(rest)
        self.search()

    def _set_chips(self, chips: Sequence[str]) -> None:
        self._chips = [*chips]
        self.query_one("#search-chips", Static).update(draw_chips(chips))

    @on(Input.Changed)
    def _extract_chips(self) -> None:
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
        typed = self.field.value
        self._offers = offered(typed, self._values) if typed or not self._chips else []
        line = self.query_one("#search-offers", Static)
        line.display = bool(self._offers)
        line.update(draw_offers(self._offers, "" if typed else "Narrow by "))

    def action_take_offer(self, number: int) -> None:
        """Replace the last word by an offer; ignore an offer that no longer exists."""
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
        """Show hits by words, and after a pause by meaning as well."""
        self.set_class(not query, "-asks-nothing")
        if not query:
            await self._show_recent()
            return
        await asyncio.sleep(_WORDS_DELAY_SECONDS)
        if await self._search_for(query, semantic=False):
            await asyncio.sleep(_MEANING_DELAY_SECONDS - _WORDS_DELAY_SECONDS)
            await self._search_for(query, semantic=True)

    async def find_at_once(self, query: str) -> None:
        if query:
            await self._search_for(query, semantic=False)

    async def _search_for(self, query: str, *, semantic: bool) -> bool:
        try:
            result, names = await asyncio.to_thread(self._query_index, query, semantic)
        except KbtuiError as error:
            self._show_text(f"{error.message} {error.hint}", "$text-error")
            return False
        self._show(result, names)
        if semantic:
            await self._count_in_conversations(result)
        return True

    def _query_index(self, query: str, semantic: bool) -> tuple[SearchResult, Names]:
        result = self.kb.search.search(query, self.scope, LIMIT, semantic=semantic)
        view = self.kb.seen_by(Audience.OWN_MODEL)
        result = replace(result, hits=self.kb.newer.with_newer(result.hits, view))
        return result, names_of(self.kb.library, paths_in(result.hits), self.kb.sessions)

    async def _count_in_conversations(self, result: SearchResult) -> None:
        """Count the hits in conversations, and show the count if the query is still current."""
        query, scope = result.query, result.scope
        count = await asyncio.to_thread(self.kb.search.in_conversations, query, scope)
        if count and query.strip() == self.answered and scope == self.scope:
            self._counts["sessions"] = count
            self._show_scope()

    async def _show_recent(self) -> None:
        self._suggestion = self.answered = ""
        self._counts = {}
        self._show_scope()
        self.hits.show_hits((), Names())
        self.preview.clear()
        self._show_count("")
        self._show_text(_QUERY_HINT)
        saved, recent = await asyncio.to_thread(self._searches.read)
        choices = [Choice(f"{_SAVED_MARK}{query}", "saved", query) for query in saved]
        self.lately.show([*choices, *(Choice(f"  {query}", "", query) for query in recent)])

    def _show_count(self, label: str) -> None:
        self.query_one("#search-found", Pane).label_with("Search", place=label)

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
        self._show_count(f"{count}+ hits" if count >= LIMIT else counted(count, "hit"))
        self._show_state(self._notices(result))

    def _notices(self, result: SearchResult) -> Content:
        """Return the spelling suggestion and the result's notice."""
        parts = []
        if self._suggestion:
            key = "Tab" if result.hits else "Enter"
            suggestion = Content.styled(f"did you mean {self._suggestion}? ({key})", "$text-accent")
            parts.append(suggestion.stylize(Style.from_meta({"@click": "screen.take_suggestion"})))
        if result.notice:
            parts.append(Content.styled(clean_line(result.notice), "$text-muted"))
        return Content("   ").join(parts)

    def _show_text(self, text: str, style: str = "$text-muted") -> None:
        self._show_state(Content.styled(clean_line(text), style))

    def _show_state(self, state: Content) -> None:
        line = self.query_one("#search-state", Static)
        line.display = bool(state)
        line.update(state)

    def look_at(self) -> None:
        hit = self.hits.hit
        if hit is not None and not self.has_class("-asks-nothing"):
            self.preview.border_title = resolve_styles(self, with_sign(self.hits.named(hit)))
            path, message = self._target(hit)
            self.preview.look_at(path, (hit.line, hit.lines[1]), message)

    def _target(self, hit: Hit) -> tuple[str, int | None]:
        """Return the path to open for a hit and, in a conversation, the message.

        For a condensed hit that is the original conversation, as long as its log exists.
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
        """Show the scopes and the known hit counts, with fewer counts and gaps if too narrow."""
        line = self.query_one("#search-scope", Static)
        for gap, least in ((3, 0), (2, 0), (2, 1)):
            tabs = Content(" " * gap).join([*self._tabs(least)])
            if tabs.cell_length <= line.content_size.width:
                break
        line.update(tabs)

    def _tabs(self, least: int) -> Iterator[Content]:
        """Yield each scope's label, with its hit count if that is at least `least`."""
        for scope, label in SCOPES.items():
            count = self._counts.get(scope, -1)
            tab = Content(f"{label} {_count_text(count)}" if count >= least else label)
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
        is_saved = await asyncio.to_thread(self._searches.save, query)
        word = "Saved" if is_saved else "No longer saved"
        self.notify(f"{word}: {clean_line(query)}", markup=False)
        if self.has_class("-asks-nothing"):
            self.search()

    @latest("correct")
    async def action_correct(self) -> None:
        """Put the line of the hit under the cursor right, in every place that repeats it."""
        hit = None if self.has_class("-asks-nothing") else self.hits.hit
        if hit is None or hit.session is not None or hit.path.startswith("docs/"):
            tell(self, "Only what stands in notes and memory is corrected.", "warning")
            return
        try:
            text = await asyncio.to_thread(self.kb.library.read, hit.path)
            lines = text_of(text).split("\n")[hit.line - 1 : hit.lines[1]]
            telling = (each for each in lines if each.strip() and heading_of(each) is None)
            line = next(telling, hit.snippet)
            title = hit.title if hit.path.startswith(ENTRIES) else ""
            done = await correct_everywhere(self, self.kb, plain_fact(line), about=title)
        except KbtuiError as error:
            tell_error(self, error)
            return
        if done is not None:
            self.search()

    async def take(self) -> None:
        """Open the hit under the cursor; if there is none, search for the suggestion."""
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
    """Return the number of hits per scope, as far as it follows from a result."""
    counts = {result.scope: len(result.hits)}
    if result.scope in {"default", "all"} and len(result.hits) < LIMIT:
        docs = sum(hit.path.startswith("docs/") for hit in result.hits)
        conversations = sum(hit.session is not None for hit in result.hits)
        memory = sum(hit.path.startswith("memory/") for hit in result.hits if hit.session is None)
        notes = len(result.hits) - docs - memory - conversations
        counts |= {"knowledge": notes, "memory": memory, "docs": docs}
    return counts


def _count_text(count: int) -> str:
    return f"{count}+" if count >= LIMIT else str(count)
