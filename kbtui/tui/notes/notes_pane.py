"""The pane of the notes: filter and tree above, the entry that is read or edited below."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from textual import events, on
from textual.containers import Vertical
from textual.content import Content

from kbtui.tui.messages import OpenEntry, go_to
from kbtui.tui.notes.entry_view import EntryView
from kbtui.tui.notes.tree_panel import TreePanel
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.notes_keys import NotesKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from kbtui.history.change import Actor
    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.notes_actions import NotesActions

_SIDE_BY_SIDE = 130
"""Columns from which on the tree stands beside the entry."""


class NotesPane(NotesKeys):
    """Browse, read, edit. Public: see `open_entry`, `knowledge_ready` and `knowledge_changed`."""

    DEFAULT_CSS = """
    NotesPane {
        layout: vertical;
        #notes-title { height: 1; padding: 0 1; color: $text-muted; text-style: bold; }
        #notes-filter { height: 1; border: none; padding: 0 1; background: $boost; }
        #notes-tree { height: 1fr; }
        #notes-list { height: 1fr; }
        #notes-entry {
            height: 2fr; border-top: solid $foreground 20%;
            border-title-color: $text-muted; border-title-style: none;
            border-subtitle-color: $text-muted;
        }
        #notes-entry:focus-within { border-title-color: $text-primary; }
        &.-beside #notes-split { layout: horizontal; }
        &.-beside.-reading #notes-list { width: 44; }
        &.-beside #notes-entry {
            width: 1fr; height: 1fr; border-top: none; border-left: solid $foreground 20%;
        }
        #notes-split { height: 1fr; }
        &.-editing #notes-list { display: none; }
        &.-editing #notes-entry { display: none; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._pending: tuple[str, int | None, bool] | None = None

    def compose(self) -> ComposeResult:
        """The tree; what is read and edited comes when it is needed."""
        with Vertical(id="notes-split"):
            yield TreePanel(id="notes-list")

    # What the rest of the app uses

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Begin: the knowledge base is open."""
        self.kb = kb
        self.panel.start(kb)
        if self._pending is not None:
            path, line, edit = self._pending
            self._pending = None
            self.open_entry(path, line, edit=edit)

    def knowledge_changed(self, paths: Sequence[str], commit: str, actor: Actor) -> None:
        """Mark what a commit changed, and show it anew."""
        del commit
        shown = self.current_path
        self.panel.changed(paths, actor, shown)
        if shown in paths or self.place.coming in paths:
            self.place.file_changed()

    def open_entry(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        """Show a file of the workspace, at a line, perhaps in the editor.

        Of a conversation (``sessions/…``), `line` is the id of a message.
        """
        if self.kb is None:
            self._pending = (path, line, edit)
            return
        run_latest(self, "open", self._open, path, line, edit=edit)

    def refresh_all(self) -> None:
        """Read tree and shown file again."""
        self.panel.read()
        self.place.file_changed()

    def moved(self, old: str, new: str) -> None:
        """An entry has another path now: go on showing it."""
        if self.view is not None:
            self.view.follow(old, new)
        self.panel.reveal(new)

    def gone(self, path: str) -> None:
        """An entry was deleted: show what was read before it, or the tree alone."""
        if not self.place.file_gone(path):
            go_to(self.knowledge_tree)

    def focus_tree(self) -> None:
        """Go to the tree, or to the editor where one is open."""
        editor = self.editor
        go_to(editor.text_area if editor is not None else self.knowledge_tree)

    @property
    def entries(self) -> dict[str, EntryInfo]:
        """All entries by path, as the tree shows them."""
        return self.panel.entries

    @cached_property
    def actions(self) -> NotesActions:
        """What changes entries; made when first needed."""
        from kbtui.tui.notes.notes_actions import NotesActions

        return NotesActions(self)

    async def start_filter(self, text: str = "") -> None:
        """Filter the tree, perhaps by something already."""
        await self.panel.start_filter(text)

    @on(TreePanel.Chosen)
    def _open_chosen(self, event: TreePanel.Chosen) -> None:
        event.stop()
        self.open_entry(event.path)

    # Reading

    async def _open(self, path: str, line: int | None, *, edit: bool = False) -> None:
        if not await self.place.leave_editor():
            return
        view = await self.show(path, line)
        if "actions" in self.__dict__:
            self.actions.forget_deletion()
        if edit:
            await self.actions.edit(path, line)
        elif view is not None:
            go_to(view.body)

    async def show(self, path: str, line: int | None = None) -> EntryView | None:
        """Show a file in the reader, and where it is in the tree."""
        if self.kb is None:
            return None
        view = await self.place.show(self.kb, path, line)
        self.panel.reveal(path)
        return view

    @on(EntryView.Opened)
    def _opened(self, event: EntryView.Opened) -> None:
        event.stop()
        path = event.document.path
        view = self.view
        if view is not None:
            view.border_title = Content(_shown_name(path))
        self.panel.looked_at(path)

    async def on_entry_editor_closed(self, event: EntryEditor.Closed) -> None:
        """Read on where the editor was."""
        event.stop()
        await self.place.close_editor()
        self.place.read_on()

    @on(EntryView.WebLink)
    def _web_link(self, event: EntryView.WebLink) -> None:
        event.stop()
        self.actions.ask_about_url(event.url)

    @on(EntryView.MissingLink)
    def _missing_link(self, event: EntryView.MissingLink) -> None:
        event.stop()
        self.actions.offer_to_make(event.target)

    @on(OpenEntry)
    def _open_inside(self, event: OpenEntry) -> None:
        event.stop()
        self.open_entry(event.path, event.line, edit=event.edit)

    def on_resize(self, event: events.Resize) -> None:
        """Put tree and entry beside each other where there is room."""
        self.set_class(event.size.width >= _SIDE_BY_SIDE, "-beside")


def _shown_name(path: str) -> str:
    from kbtui.text import clean_line

    return clean_line(path.removeprefix("knowledge/").removesuffix(".md"))
