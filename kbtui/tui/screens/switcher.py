"""Opening an entry by a few letters of its name; what isn't there can be made at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from kbtui.errors import KbtuiError
from kbtui.text import clean_line, slugify
from kbtui.tui.actions import bindings
from kbtui.tui.background import run_latest
from kbtui.tui.fuzzy import matched_spans, names_of
from kbtui.tui.messages import OpenEntry
from kbtui.tui.tell import tell_error
from kbtui.tui.widgets.markdown_view import MarkdownView, Source
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.fuzzy import FuzzyIndex

LIMIT = 200
_PREVIEW_FROM = 110
_PREVIEW_DELAY = 0.06


class EntryNamesList(RowList):
    """Entries that match, and at the end the offer to make one."""

    def __init__(self) -> None:
        self.entries: list[EntryInfo] = []
        self.query_text = ""
        self.offer = ""
        self._filled = False
        super().__init__(id="switcher-list")

    def show_entries(self, entries: list[EntryInfo], query: str) -> None:
        """Show what was found for `query`; a name that nobody has can be made."""
        self.entries, self.query_text, self._filled = entries, query, True
        taken = {name.casefold() for e in entries[:20] for name in (e.title, *e.aliases)}
        title = clean_line(query)
        self.offer = title if title and title.casefold() not in taken else ""
        self.rows_changed(0)

    @property
    def entry(self) -> EntryInfo | None:
        """The entry under the cursor; None on the offer."""
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    @property
    def row_count(self) -> int:
        """Entries, and the offer."""
        return len(self.entries) + bool(self.offer)

    def empty_text(self) -> Content:
        """Say that there is nothing yet."""
        text = " No entries yet: type a title to make one." if self._filled else " …"
        return Content.styled(text, ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw an entry with its folder, or the offer."""
        if index >= len(self.entries):
            return [
                Content.assemble((" + ", ".rows--good"), f"make “{self.offer}”").truncate(
                    width, ellipsis=True
                )
            ]
        entry = self.entries[index]
        title = clean_line(entry.title) or clean_line(entry.slug)
        place = clean_line(entry.category)
        named = f"{place}/{clean_line(entry.slug)}"
        if slugify(entry.slug) != slugify(title) and len(title) + len(named) + 4 <= width:
            place = named
        right = Content.styled(place, ".rows--muted").truncate(width // 2, ellipsis=True)
        room = max(4, width - right.cell_length - 3)
        name = Content(f" {title}")
        for start, end in matched_spans(title, self.query_text):
            name = name.stylize(".rows--match", start + 1, end + 1)
        name = name.truncate(room, ellipsis=True)
        gap = " " * (width - name.cell_length - right.cell_length - 1)
        return [name + Content(gap) + right]


class SwitcherScreen(ModalScreen[None]):
    """Type, see, Enter. Recent entries come first where nothing is typed."""

    DEFAULT_CSS = """
    SwitcherScreen {
        align: center top;
        background: $background 60%;
        #switcher {
            width: 72; max-width: 96%; height: 80%; margin-top: 2; background: $surface;
            border: round $primary 60%; padding: 0 1;
            border-title-color: $text-primary; border-subtitle-color: $text-muted;
        }
        &.-preview #switcher { width: 132; }
        Input { border: none; height: 1; padding: 0 1; background: $boost; margin-bottom: 1; }
        Input:focus { border: none; }
        #switcher-list { width: 1fr; }
        #switcher-preview {
            display: none; width: 1fr; border-left: solid $foreground 20%; padding-left: 1;
        }
        &.-preview #switcher-preview { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("switcher"),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, query: str = "") -> None:
        super().__init__()
        self._kb = kb
        self._query = query
        self._searches = 0

    def compose(self) -> ComposeResult:
        """The line to type in, the matches, a preview."""
        with Vertical(id="switcher") as box:
            box.border_title = Content("Open")
            box.border_subtitle = Content("Enter opens · Esc closes")
            yield Input(
                self._query, placeholder="title, name, alias or #tag", select_on_focus=False
            )
            with Horizontal():
                yield EntryNamesList()
                preview = MarkdownView(id="switcher-preview")
                preview.can_focus = False
                yield preview

    def on_mount(self) -> None:
        """Show what was changed last."""
        if not self._query:
            self._search("")

    def on_resize(self, event: events.Resize) -> None:
        """Show the preview where there is room."""
        self.set_class(event.size.width >= _PREVIEW_FROM, "-preview")

    @property
    def names(self) -> EntryNamesList:
        """The matches."""
        return self.query_one(EntryNamesList)

    # Searching

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value)

    def _search(self, query: str) -> None:
        run_latest(self, "search", self._searched, query)

    async def _searched(self, query: str) -> None:
        self._searches += 1
        number = self._searches
        names = names_of(self._kb.library)

        def find() -> list[EntryInfo]:
            index: FuzzyIndex = names.current()
            if not query.strip():
                return index.recent(LIMIT)
            found = index.search(query, LIMIT, stale=lambda: number != self._searches)
            return [match.entry for match in found]

        entries = await asyncio.to_thread(find)
        if number == self._searches:
            self.names.show_entries(entries, query)

    @on(RowList.Highlighted)
    def _preview(self) -> None:
        entry = self.names.entry
        if entry is not None and self.has_class("-preview"):
            run_latest(self, "preview", self._previewed, entry.path)

    async def _previewed(self, path: str) -> None:
        from kbtui.tui.documents import load_document

        await asyncio.sleep(_PREVIEW_DELAY)
        document = await asyncio.to_thread(load_document, self._kb, path)
        view = self.query_one("#switcher-preview", MarkdownView)
        view.show(Source(document.body or document.reason, document.first_line, document.raw))

    # Actions

    def action_down(self) -> None:
        """Next entry."""
        self.names.cursor += 1

    def action_up(self) -> None:
        """Previous entry."""
        self.names.cursor -= 1

    def action_page(self, by: int) -> None:
        """A page further."""
        (self.names.action_page_down if by > 0 else self.names.action_page_up)()

    @on(Input.Submitted)
    @on(RowList.Selected)
    def _choose(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open the entry, or make it."""
        run_latest(self, "open", self._open)

    async def _open(self) -> None:
        query = self.query_one(Input).value
        if query != self.names.query_text:
            # Enter came faster than the matches.
            await self._searched(query)
        entry = self.names.entry
        if entry is not None:
            self._leave_for(entry.path)
        elif self.names.offer:
            await self._make(self.names.offer)

    async def _make(self, title: str) -> None:
        from kbtui.knowledge.templates import ENTRY_TYPES
        from kbtui.tui.screens.dialogs import NewEntryDialog
        from kbtui.tui.widgets.notes_actions import first_line_to_fill

        chosen = await self.app.push_screen_wait(NewEntryDialog(ENTRY_TYPES, title=title))
        if chosen is None:
            return
        try:
            entry = await asyncio.to_thread(self._kb.library.create, chosen.type, chosen.title)
        except KbtuiError as error:
            tell_error(self, error)
            return
        self._leave_for(entry.path, first_line_to_fill(entry.text), edit=True)

    def _leave_for(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        below = self.app.screen_stack[-2]
        self.dismiss(None)
        below.post_message(OpenEntry(path, line, edit=edit))

    def action_back(self) -> None:
        """Close without opening anything."""
        self.dismiss(None)
