"""The switcher: open an entry by a few letters of its name, or create it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from kbtui.knowledge.library.library import EntryInfo
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import Named, kind_of, title_of
from kbtui.text import clean_line
from kbtui.tui.actions.registry import bindings
from kbtui.tui.notes.entry_actions import first_line_to_fill, new_entry
from kbtui.tui.notes.fuzzy import (
    TEXTS_AFTER_SECONDS,
    names_of,
    search_texts,
    worth_searching,
)
from kbtui.tui.notes.knowledge_tree import marked
from kbtui.tui.notes.preview import Preview
from kbtui.tui.search.finder import QueryFinder
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.row_list import RowList, justified_row

LIMIT = 200


class FoundEntry(NamedTuple):
    """A row: an entry found by name, or by its text with the `line`; None to create one."""

    entry: EntryInfo | None = None
    line: int | None = None


class EntryNamesList(RowList[FoundEntry]):
    """A list of entries found by name, an offer to create one, and entries found by text."""

    def __init__(self) -> None:
        self.items: Sequence[FoundEntry] = ()
        self.query_text = ""
        self.offer = ""
        self._is_filled = False
        super().__init__(id="switcher-list")

    def show_entries(self, entries: list[EntryInfo], query: str) -> None:
        """Show the entries found for `query`; offer to create one if the title isn't taken."""
        self.query_text, self._is_filled = query, True
        taken = {name.casefold() for e in entries[:20] for name in (e.title, *e.aliases)}
        title = clean_line(query)
        self.offer = title if title and title.casefold() not in taken else ""
        self.show([*map(FoundEntry, entries), *[FoundEntry()] * bool(self.offer)], 0)

    def show_in_texts(self, found: list[tuple[EntryInfo, int]]) -> None:
        """Append the entries found by their text, each with the line."""
        named = {row.entry.path for row in self.items if row.entry is not None}
        new = (each for each in found if each[0].path not in named)
        self.show([*self.items, *(FoundEntry(*each) for each in new)])

    @property
    def found(self) -> FoundEntry:
        """The row under the cursor; its entry is None for the offer or in an empty list."""
        return self.item or FoundEntry()

    def empty_text(self) -> Content:
        """Return a hint to create a note, or an ellipsis while loading."""
        text = "No notes yet: type a title to make one." if self._is_filled else "…"
        return Content.styled(text, ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        entry, line = self.items[index]
        if entry is None:
            offer = Content.assemble((" + ", ".rows--good"), f"make “{self.offer}”")
            return [offer.truncate(width, ellipsis=True)]
        named = Named(entry.path, title_of(entry), kind_of(entry.type, entry.path))
        name = Content(" ") + with_sign(named)
        if line is not None:
            remark = Content.styled("  in its text", ".rows--muted")
            return [(name + remark).truncate(width, ellipsis=True)]
        name = marked(name, named.title, self.query_text)
        return [justified_row(name, Content.styled(self._place(entry), ".rows--muted"), width)]

    def _place(self, entry: EntryInfo) -> str:
        """Return the kind of a page, or the path of an entry whose title isn't unique."""
        named = (row.entry for row in self.items if row.entry is not None and row.line is None)
        is_ambiguous = sum(title_of(each) == title_of(entry) for each in named) > 1
        is_page = entry.category.startswith("@")
        return clean_line(
            f"{entry.category}/{entry.slug}" if is_ambiguous else entry.category[1:] * is_page
        )


class SwitcherScreen(QueryFinder, ModalScreen[None]):
    """The switcher; lists recent entries while nothing is typed."""

    DEFAULT_CSS = """
    SwitcherScreen {
        align: center top;
        background: $background 60%;
        #switcher {
            width: 72; max-width: 95%; height: 80%; margin-top: 2; background: $surface;
            border: round $border; padding: 0 1;
            border-title-color: $text-primary; border-subtitle-color: $text-muted;
        }
        &.-beside #switcher { width: 128; }
        Input { border: none; height: 1; padding: 0 1; background: $boost; margin-bottom: 1; }
        Input:focus { border: none; }
        &.-low #switcher { height: 100%; margin-top: 0; }
        &.-low Input { margin-bottom: 0; }
        #switcher-list { width: 1fr; }
        #switcher-preview {
            display: none; width: 1fr; border-left: solid $foreground 20%; padding-left: 1;
        }
        &.-beside #switcher-preview { display: block; }
    }
    """
    BINDINGS = bindings("switcher")

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__(kb, query)
        self._search_count = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="switcher") as box:
            box.border_title = Content("Open")
            box.border_subtitle = Content("Enter opens · Esc closes")
            yield Input(
                self.first_query, placeholder="title, name, alias or #tag", select_on_focus=False
            )
            with Horizontal():
                yield EntryNamesList()
                yield Preview(self.kb, id="switcher-preview")

    names = getters.query_one(EntryNamesList)

    async def find(self, query: str) -> None:
        """Show the entries found by name, and after a pause those found by their text."""
        await self.find_at_once(query)
        if worth_searching(query):
            await asyncio.sleep(TEXTS_AFTER_SECONDS)
            self.names.show_in_texts(await asyncio.to_thread(search_texts, self.kb, query))

    async def find_at_once(self, query: str) -> None:
        """Show the entries found by name, or the most recent ones for an empty query."""
        self._search_count += 1
        number = self._search_count

        def load() -> list[EntryInfo]:
            index, stale = names_of(self.kb), lambda: number != self._search_count
            return [match.entry for match in index.search(query, LIMIT, stale=stale)]

        entries = await asyncio.to_thread(load)
        if number == self._search_count:
            self.answered = query
            self.names.show_entries(entries, query)

    @property
    def rows(self) -> EntryNamesList:  # type: ignore[override]
        """The entries found."""
        return self.names

    def look_at(self) -> None:
        entry = self.names.found.entry
        if entry is None:
            self.preview.clear()
        elif self.preview.display:
            self.preview.look_at(entry.path)

    async def take(self) -> None:
        entry, line = self.names.found
        if entry is not None:
            self.leave_for(entry.path, line)
        elif self.names.offer:
            await self._create(self.names.offer)

    async def _create(self, title: str) -> None:
        entry = await new_entry(self, self.kb, title)
        if entry is not None:
            self.leave_for(entry.path, first_line_to_fill(entry.text), edit=True)
