"""The panel of the knowledge tree with its filter, kept up to date with commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input

from kbtui.errors import KbtuiError
from kbtui.presentation.actors import actor_name
from kbtui.text import clean_line
from kbtui.tui.messages import OpenEntry, OpenSearch, go_to
from kbtui.tui.notes.fuzzy import names_of
from kbtui.tui.notes.knowledge_tree import ChangeMark, Folder, KnowledgeTree, LeftOut, build_tree
from kbtui.tui.notes.pages import pages_of
from kbtui.tui.terminal.background import latest
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import RowList
from kbtui.workspace.scan import LEFT_OUT

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from kbtui.history.change import Actor
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.notes import recent
else:
    recent = lazy_modules("notes.recent")

_MIN_RECENT_ROWS = 36
"""Height in rows from which recent changes fit below the tree."""
_REFRESH_SECONDS = 0.05
_COUNT_STYLE = "$text-muted not bold"


class TreePanel(Pane):
    """A pane with the tree, and a filter line above it when opened.

    In the filter, arrows move in the tree, Enter opens the best match, and Esc clears the filter.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "end_filter", "Clear the filter", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
    ]

    DEFAULT_CSS = """
    TreePanel.-roomy #notes-tree { height: auto; max-height: 70%; }
    TreePanel #notes-recent { display: none; }
    TreePanel.-roomy #notes-recent { display: block; }
    """

    def __init__(self, *, id: str | None = None, with_recent: bool = True) -> None:
        """Create the panel; `with_recent` shows recent changes below the tree if there is room."""
        super().__init__(id=id)
        self._with_recent = with_recent
        self._kb: KnowledgeBase | None = None
        self._filter_input: Input | None = None
        self._marks: dict[str, ChangeMark] = {}
        self._permanent_marks: Mapping[str, ChangeMark] = {}
        self._known_blobs: dict[str, str] = {}  # path to the blob the user saw last
        self._pending_reveal = ""
        self._search_number = 0
        self._searched_text = ""
        self.is_filled = False
        self.entries: dict[str, EntryInfo] = {}

    def compose(self) -> ComposeResult:
        yield KnowledgeTree(id="notes-tree")

    knowledge_tree = getters.query_one("#notes-tree", KnowledgeTree)

    def on_mount(self) -> None:
        self.label_with("Notes")

    def on_resize(self) -> None:
        super().on_resize()
        self._show_recent()

    def _show_recent(self) -> None:
        has_room = self._with_recent and self.is_filled and self.size.height >= _MIN_RECENT_ROWS
        self.set_class(has_room, "-roomy")
        if has_room and self._kb is not None and not self.query("#notes-recent"):
            self.mount(recent.RecentChanges(self._kb, id="notes-recent"))

    # Content

    def start(self, kb: KnowledgeBase) -> None:
        """Attach the knowledge base and fill the tree."""
        self._kb = kb
        self._show_count()
        self.read()

    def changed(self, paths: Sequence[str], actor: Actor, shown: str | None) -> None:
        """Mark what a commit changed, except what the user sees anyway, and reload."""
        machine = "" if actor.writes_human_text else actor_name(actor)
        for path in paths:
            if path.startswith("knowledge/") and not path.endswith("INDEX.md"):
                self._mark_changed(path, machine, is_seen=path == shown and not machine)
        self.read_again()

    def read_again(self) -> None:
        """Read the tree and the recent changes anew."""
        self.read()
        for changes in self.query("#notes-recent").results(recent.RecentChanges):
            changes.read()

    def _mark_changed(self, path: str, machine: str, *, is_seen: bool) -> None:
        old, entry = self._marks.get(path), self.entries.get(path)
        if old is None and entry is not None:
            self._known_blobs[path] = entry.blob
        if not is_seen:
            is_new = entry is None or (old is not None and old.new)
            self._marks[path] = ChangeMark(new=is_new, machine=machine)

    def clear_mark(self, path: str) -> None:
        if self._marks.pop(path, None) is not None:
            self._show_marks()

    def mark(self, marks: Mapping[str, ChangeMark]) -> None:
        """Set marks that stay when entries are opened."""
        self._permanent_marks = marks
        self._show_marks()

    def _show_marks(self) -> None:
        self.knowledge_tree.show_marks({**self._permanent_marks, **self._marks})

    def reveal(self, path: str) -> None:
        """Move the cursor to an entry once the tree has it, ending a filter that hides it."""
        entry = self.entries.get(path)
        if entry is None:
            self._pending_reveal = path
            return
        if self.knowledge_tree.filtering and not self.knowledge_tree.shows(path):
            self._end_filter()
        self.knowledge_tree.reveal(path, entry.category)

    @latest("tree")
    async def read(self) -> None:
        """Reload the tree, debounced so that several commits cost one reload.

        A single new note is scrolled to unless the tree has the focus, like today's note once
        the first statement is recorded.
        """
        if (kb := self._kb) is None:
            return
        before = self.entries
        try:
            if self.entries:
                await asyncio.sleep(_REFRESH_SECONDS)
            else:
                await self._show(kb, whole=False)
            await self._show(kb, whole=True)
        except KbtuiError as error:
            self.knowledge_tree.message = str(error)
            self.knowledge_tree.refresh()
            self.is_filled = True
            return
        came = [path for path in self.entries if path not in before] if before else []
        if len(came) == 1 and not self.knowledge_tree.has_focus:
            self.knowledge_tree.scroll_to_entry(came[0])
        # Warm the cache for the next search by name.
        await asyncio.to_thread(names_of, kb)

    async def _show(self, kb: KnowledgeBase, *, whole: bool) -> None:
        """Show the current entries, with marks on those that changed since they were viewed."""
        self.entries, root = await asyncio.to_thread(_load_tree, kb, whole=whole)
        self._marks = {
            path: mark
            for path, mark in self._marks.items()
            if path in self.entries and self.entries[path].blob != self._known_blobs.get(path)
        }
        self._show_count()
        self._show_marks()
        self.knowledge_tree.show_tree(root)
        self.is_filled = True
        self._show_recent()
        if self._filter_input is not None:
            await self._search(self._filter_input.value)
        path, self._pending_reveal = self._pending_reveal, ""
        if path in self.entries:
            self.reveal(path)

    def _show_count(self) -> None:
        count = f"{sum(entry.is_entry for entry in self.entries.values()):,}"
        self.label_with(Content.assemble("Notes ", (count, _COUNT_STYLE)))

    @on(RowList.Selected)
    def _choose_row(self, event: RowList.Selected) -> None:
        rows = self.knowledge_tree.items
        of = rows[event.index].of if event.index < len(rows) else None
        if isinstance(of, Folder):
            self.knowledge_tree.toggle(of)
        elif isinstance(of, LeftOut) and not of.is_text:
            name = clean_line(of.name)
            self.notify(f"{name} is left out of the history: {of.why}. {LEFT_OUT}", markup=False)
        elif of is not None:
            self.post_message(OpenEntry(of.path))

    # Filter

    async def start_filter(self, text: str = "") -> None:
        """Open the filter line, or focus it if it is open."""
        if self._filter_input is None:
            self._filter_input = Input(
                placeholder="filter", id="notes-filter", select_on_focus=False
            )
            await self.mount(self._filter_input, before="#notes-tree")
        if text:
            self._filter_input.value = text
            self._filter_input.cursor_position = len(text)
        go_to(self._filter_input)

    def _end_filter(self) -> None:
        self._search_number += 1
        if self._filter_input is not None:
            self._filter_input.remove()
            self._filter_input = None
        self.knowledge_tree.clear_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the keys of the filter only while it has the focus."""
        if action in {"end_filter", "move"}:
            return self.filter_has_focus
        return super().check_action(action, parameters)

    def action_end_filter(self) -> None:
        self._end_filter()
        go_to(self.knowledge_tree)

    def action_move(self, by: int) -> None:
        self.knowledge_tree.cursor += by

    @property
    def filter_has_focus(self) -> bool:
        return self._filter_input is not None and self._filter_input.has_focus

    @on(Input.Changed)
    @latest("filter")
    async def _filter_changed(self, event: Input.Changed) -> None:
        await self._search(event.value)

    async def _search(self, text: str) -> None:
        self._search_number += 1
        number = self._search_number
        if not text.strip():
            self._searched_text = text
            if self.knowledge_tree.filtering:
                self.knowledge_tree.clear_filter()
            return
        if self._kb is None:
            return
        root, best = await asyncio.to_thread(
            _matching_tree, self._kb, text, lambda: number != self._search_number
        )
        if number == self._search_number:
            self._searched_text = text
            self.knowledge_tree.show_matches(text, root, best)

    @on(Input.Submitted)
    @latest("open")
    async def _filter_entered(self, event: Input.Submitted) -> None:
        """Open the best match, or search the texts of all entries if no name matches."""
        text = event.value
        while (
            self._searched_text != text
            and self._filter_input is not None
            and self._filter_input.value == text
        ):
            # Enter was faster than the search, or the tree was reloaded meanwhile.
            await self._search(text)
        entry = self.knowledge_tree.entry
        if entry is not None:
            self.action_end_filter()
            self.post_message(OpenEntry(entry.path))
        elif self.knowledge_tree.item is None and text.strip():
            self.action_end_filter()
            self.post_message(OpenSearch(text.strip()))
        else:
            go_to(self.knowledge_tree)


def _load_tree(kb: KnowledgeBase, *, whole: bool) -> tuple[dict[str, EntryInfo], Folder]:
    """Return entries and pages by path and as a tree; unless `whole`, from a folder listing."""
    library = kb.library
    infos = [*library.infos(), *pages_of(kb, in_tree=True)] if whole else [*library.listing()]
    tree = build_tree(infos, library.left_out(), library.texts() if whole else {})
    return {info.path: info for info in infos}, tree


def _matching_tree(
    kb: KnowledgeBase, text: str, stale: Callable[[], bool]
) -> tuple[Folder, str | None]:
    """Return the tree of matching entries and the path of the best one."""
    matches = names_of(kb).search(text, stale=stale)
    best = matches[0].entry.path if matches else None
    return build_tree(match.entry for match in matches), best
