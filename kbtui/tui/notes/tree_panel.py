"""The tree with its title and its filter, kept up to date with what commits change."""

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
from kbtui.tui.terminal.later import later
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
    recent = later("notes.recent")

_ROOMY_ROWS = 36
"""Rows from which on the last changes have room below the tree."""
_REFRESH_SECONDS = 0.05
_QUIET = "$text-muted not bold"


class TreePanel(Pane):
    """Title, filter line while there is one, and the tree.

    In the filter the arrows move in the tree, Enter opens the best match, Esc gives up.
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
        """Show the tree alone, or `with_recent` the last changes below it where there is room."""
        super().__init__(id=id)
        self._with_recent = with_recent
        self._kb: KnowledgeBase | None = None
        self._field: Input | None = None
        self._marks: dict[str, ChangeMark] = {}
        self._lasting: Mapping[str, ChangeMark] = {}
        self._seen: dict[str, str] = {}  # by path the blob of what a person last knew
        self._to_reveal = ""
        self._searches = 0
        self._searched = ""
        self.is_filled = False
        self.entries: dict[str, EntryInfo] = {}

    def compose(self) -> ComposeResult:
        yield KnowledgeTree(id="notes-tree")

    knowledge_tree = getters.query_one("#notes-tree", KnowledgeTree)

    def on_mount(self) -> None:
        """Have a name from the first frame on."""
        self.label_with("Notes")

    def on_resize(self) -> None:
        """There may be room for more."""
        super().on_resize()
        self._show_recent()

    def _show_recent(self) -> None:
        """Show the last changes where there is room below the tree."""
        has_room = self._with_recent and self.is_filled and self.size.height >= _ROOMY_ROWS
        self.set_class(has_room, "-roomy")
        if has_room and self._kb is not None and not self.query("#notes-recent"):
            self.mount(recent.RecentChanges(self._kb, id="notes-recent"))

    # Content

    def start(self, kb: KnowledgeBase) -> None:
        """Fill the tree."""
        self._kb = kb
        self._show_count()
        self.read()

    def changed(self, paths: Sequence[str], actor: Actor, shown: str | None) -> None:
        """Mark what a commit changed (but not what the person sees anyway), and read again."""
        machine = "" if actor.writes_human_text else actor_name(actor)
        for path in paths:
            if path.startswith("knowledge/") and not path.endswith("INDEX.md"):
                self._mark_changed(path, machine, is_seen=path == shown and not machine)
        self.read()
        for changes in self.query("#notes-recent").results(recent.RecentChanges):
            changes.read()

    def _mark_changed(self, path: str, machine: str, *, is_seen: bool) -> None:
        old, entry = self._marks.get(path), self.entries.get(path)
        if old is None and entry is not None:
            self._seen[path] = entry.blob
        if not is_seen:
            is_new = entry is None or (old is not None and old.new)
            self._marks[path] = ChangeMark(new=is_new, machine=machine)

    def looked_at(self, path: str) -> None:
        """Take the mark off an entry."""
        if self._marks.pop(path, None) is not None:
            self._show_marks()

    def mark(self, marks: Mapping[str, ChangeMark]) -> None:
        """Mark entries for as long as they are shown, whoever looks at them."""
        self._lasting = marks
        self._show_marks()

    def _show_marks(self) -> None:
        self.knowledge_tree.show_marks({**self._lasting, **self._marks})

    def reveal(self, path: str) -> None:
        """Put the cursor on an entry, now or as soon as the tree knows it.

        A filter that hides the entry ends.
        """
        entry = self.entries.get(path)
        if entry is None:
            self._to_reveal = path
            return
        if self.knowledge_tree.filtering and not self.knowledge_tree.shows(path):
            self._end_filter()
        self.knowledge_tree.reveal(path, entry.category)

    @latest("tree")
    async def read(self) -> None:
        """Read what there is; several commits in a row cost one reading.

        A note that has just come, as today's does with what is stated first, is scrolled to while
        nobody moves in the tree.
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
        # The next search by name should not have to wait for this.
        await asyncio.to_thread(names_of, kb)

    async def _show(self, kb: KnowledgeBase, *, whole: bool) -> None:
        """Show the entries that are there now, with what changed since they were looked at."""
        self.entries, root = await asyncio.to_thread(_listed, kb, whole=whole)
        self._marks = {
            path: mark
            for path, mark in self._marks.items()
            if path in self.entries and self.entries[path].blob != self._seen.get(path)
        }
        self._show_count()
        self._show_marks()
        self.knowledge_tree.show_tree(root)
        self.is_filled = True
        self._show_recent()
        if self._field is not None:
            await self._search(self._field.value)
        path, self._to_reveal = self._to_reveal, ""
        if path in self.entries:
            self.reveal(path)

    def _show_count(self) -> None:
        count = f"{sum(entry.is_entry for entry in self.entries.values()):,}"
        self.label_with(Content.assemble("Notes ", (count, _QUIET)))

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
        """Open the filter line, or go back to it; it has the focus when this returns."""
        if self._field is None:
            self._field = Input(placeholder="filter", id="notes-filter", select_on_focus=False)
            await self.mount(self._field, before="#notes-tree")
        if text:
            self._field.value = text
            self._field.cursor_position = len(text)
        go_to(self._field)

    def _end_filter(self) -> None:
        self._searches += 1
        if self._field is not None:
            self._field.remove()
            self._field = None
        self.knowledge_tree.clear_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the filter mean something only while it has the focus."""
        if action in {"end_filter", "move"}:
            return self.filter_has_focus
        return super().check_action(action, parameters)

    def action_end_filter(self) -> None:
        self._end_filter()
        go_to(self.knowledge_tree)

    def action_move(self, by: int) -> None:
        """Move in the tree without leaving the line."""
        self.knowledge_tree.cursor += by

    @property
    def filter_has_focus(self) -> bool:
        """True while the person types into the filter."""
        return self._field is not None and self._field.has_focus

    @on(Input.Changed)
    @latest("filter")
    async def _filter_changed(self, event: Input.Changed) -> None:
        """Search for what is typed; what was typed before is forgotten at once."""
        await self._search(event.value)

    async def _search(self, text: str) -> None:
        self._searches += 1
        number = self._searches
        if not text.strip():
            self._searched = text
            if self.knowledge_tree.filtering:
                self.knowledge_tree.clear_filter()
            return
        if self._kb is None:
            return
        root, best = await asyncio.to_thread(
            _matching_tree, self._kb, text, lambda: number != self._searches
        )
        if number == self._searches:
            self._searched = text
            self.knowledge_tree.show_matches(text, root, best)

    @on(Input.Submitted)
    @latest("open")
    async def _filter_entered(self, event: Input.Submitted) -> None:
        """Open the best match, or search the text of all entries where no name matches."""
        text = event.value
        while self._searched != text and self._field is not None and self._field.value == text:
            # Enter came faster than the matches, or the tree was read again meanwhile.
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


def _listed(kb: KnowledgeBase, *, whole: bool) -> tuple[dict[str, EntryInfo], Folder]:
    """All entries and pages by path and as a tree; not `whole`: as their folders list them."""
    library = kb.library
    infos = [*library.infos(), *pages_of(kb, in_tree=True)] if whole else [*library.listing()]
    tree = build_tree(infos, library.left_out(), library.texts() if whole else {})
    return {info.path: info for info in infos}, tree


def _matching_tree(
    kb: KnowledgeBase, text: str, stale: Callable[[], bool]
) -> tuple[Folder, str | None]:
    """The tree of what matches, and the path of the best match."""
    matches = names_of(kb).search(text, stale=stale)
    best = matches[0].entry.path if matches else None
    return build_tree(match.entry for match in matches), best
