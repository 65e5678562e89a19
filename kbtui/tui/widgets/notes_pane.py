"""The pane of the notes: filter and tree above, the entry that is read or edited below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.containers import Vertical
from textual.content import Content

from kbtui.tui.actions import bindings
from kbtui.tui.background import run_latest
from kbtui.tui.focus import go_to
from kbtui.tui.messages import AskAbout, OpenEntry, OpenHistory
from kbtui.tui.widgets.entry_view import EntryView
from kbtui.tui.widgets.row_list import RowList
from kbtui.tui.widgets.tree_panel import TreePanel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widget import Widget

    from kbtui.history.change import Actor
    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.widgets.entry_editor import EntryEditor
    from kbtui.tui.widgets.knowledge_tree import KnowledgeTree
    from kbtui.tui.widgets.notes_actions import NotesActions

_SIDE_BY_SIDE = 130
"""Columns from which on the tree stands beside the entry."""


class NotesPane(Vertical):
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
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("notes")]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.kb: KnowledgeBase | None = None
        self._pending: tuple[str, int | None, bool] | None = None
        self._actions: NotesActions | None = None
        self._view: EntryView | None = None
        self._editor: EntryEditor | None = None

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
        if shown in paths:
            self._shown_file_changed()

    def open_entry(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        """Show a file of the workspace, at a line, perhaps in the editor.

        Of a conversation (``sessions/…``), `line` is the id of a message.
        """
        if self.kb is None:
            self._pending = (path, line, edit)
            return
        run_latest(self, "open", self._open, path, line, edit=edit)

    @property
    def current_path(self) -> str | None:
        """The file that is shown, if one is."""
        view = self.view
        return view.document.path if view is not None and view.document is not None else None

    def refresh_all(self) -> None:
        """Read tree and shown file again."""
        self.panel.read()
        self._shown_file_changed()

    def moved(self, old: str, new: str) -> None:
        """An entry has another path now: go on showing it."""
        if self.view is not None:
            self.view.follow(old, new)
        self.panel.reveal(new)

    def gone(self, path: str) -> None:
        """An entry was deleted: show what was read before it, or the tree alone."""
        if self.current_path == path and self.view is not None and not self.view.leave(path):
            self._close_reader()

    def _close_reader(self) -> None:
        if self._view is not None:
            self._view.remove()
            self._view = None
        self.remove_class("-reading")
        go_to(self.knowledge_tree)

    def focus_tree(self) -> None:
        """Go to the tree, or to the editor where one is open."""
        editor = self.editor
        go_to(editor.text_area if editor is not None else self.knowledge_tree)

    # Parts

    @property
    def knowledge_tree(self) -> KnowledgeTree:
        """The tree."""
        return self.panel.knowledge_tree

    @property
    def panel(self) -> TreePanel:
        """The tree with its title and filter."""
        return self.query_one("#notes-list", TreePanel)

    @property
    def view(self) -> EntryView | None:
        """The entry that is read, once there was one."""
        return self._view

    @property
    def editor(self) -> EntryEditor | None:
        """The editor, while it is open."""
        return self._editor

    @property
    def entries(self) -> dict[str, EntryInfo]:
        """All entries by path, as the tree shows them."""
        return self.panel.entries

    @property
    def actions(self) -> NotesActions:
        """What changes entries; made when first needed."""
        if self._actions is None:
            from kbtui.tui.widgets.notes_actions import NotesActions

            self._actions = NotesActions(self)
        return self._actions

    def start_filter(self, text: str = "") -> None:
        """Filter the tree, perhaps by something already."""
        self.panel.start_filter(text)

    @on(TreePanel.Chosen)
    def _open_chosen(self, event: TreePanel.Chosen) -> None:
        event.stop()
        self.open_entry(event.path)

    # Reading

    async def _open(self, path: str, line: int | None, *, edit: bool = False) -> None:
        if self.editor is not None and not await self._leave_editor():
            return
        view = await self.show(path, line)
        if self._actions is not None:
            self._actions.forget_deletion()
        if edit:
            await self.actions.edit(path, line)
        elif view is not None:
            go_to(view.body)

    async def show(self, path: str, line: int | None = None) -> EntryView | None:
        """Show a file in the reader, which is made for the first one."""
        view = self.view
        if view is None and self.kb is not None:
            view = self._view = EntryView(self.kb, id="notes-entry")
            self.add_class("-reading")
            await self.query_one("#notes-split").mount(view)
        if view is not None:
            view.open(path, line)
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

    def _shown_file_changed(self) -> None:
        editor = self.editor
        if editor is not None:
            editor.file_changed()
        elif self.view is not None:
            self.view.reload()

    async def _leave_editor(self) -> bool:
        if self._editor is None or not await self._editor.leave():
            return False
        await self._close_editor()
        return True

    async def open_editor(self, editor: EntryEditor) -> None:
        """Put an editor in the place of tree and reader."""
        self._editor = editor
        self.add_class("-editing")
        await self.query_one("#notes-split").mount(editor)

    async def _close_editor(self) -> None:
        editor, self._editor = self._editor, None
        if editor is not None:
            await editor.remove()
        self.remove_class("-editing")

    async def on_entry_editor_closed(self, event: EntryEditor.Closed) -> None:
        """Read on where the editor was."""
        event.stop()
        await self._close_editor()
        if self.view is not None:
            self.view.reload()
            go_to(self.view.body)

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

    # Actions (their keys and names are in the registry)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The bare letters mean nothing while somebody writes, so they aren't shown then."""
        if self._editor is not None or self.panel.filter_has_focus:
            return False
        return super().check_action(action, parameters)

    def target(self) -> str | None:
        """What an action is about: the entry under the cursor, or the one that is read."""
        if self.knowledge_tree.has_focus or self.view is None:
            return self.knowledge_tree.entry.path if self.knowledge_tree.entry is not None else None
        return self.current_path

    def _pointed_list(self) -> Widget:
        focused = self.screen.focused
        if isinstance(focused, RowList) and self in focused.ancestors:
            return focused
        return (
            self.knowledge_tree
            if self.view is None or not self.view.body.has_focus
            else self.view.body
        )

    def action_down(self) -> None:
        """Move down in the tree, scroll down in the entry."""
        widget = self._pointed_list()
        if isinstance(widget, RowList):
            widget.action_cursor_down()
        else:
            widget.scroll_relative(y=1, animate=False)

    def action_up(self) -> None:
        """Move up in the tree, scroll up in the entry."""
        widget = self._pointed_list()
        if isinstance(widget, RowList):
            widget.action_cursor_up()
        else:
            widget.scroll_relative(y=-1, animate=False)

    def action_left(self) -> None:
        """Fold, go up, or leave the entry for the tree."""
        if self._pointed_list() is self.knowledge_tree:
            self.knowledge_tree.action_fold()
        else:
            go_to(self.knowledge_tree)

    def action_right(self) -> None:
        """Unfold, or go into the entry."""
        if self._pointed_list() is self.knowledge_tree:
            self.knowledge_tree.action_unfold()

    def action_open(self) -> None:
        """Open what the cursor is on; in the entry, its links."""
        widget = self._pointed_list()
        if isinstance(widget, RowList):
            widget.action_select()
        else:
            self.action_backlinks()

    def action_filter(self) -> None:
        """Filter the tree."""
        self.start_filter()

    def action_backlinks(self) -> None:
        """Unfold where the entry leads and what leads to it."""
        if self.view is not None and self.view.document is not None:
            self.view.toggle_links()

    def action_back(self) -> None:
        """Return to the entry before."""
        if self.view is not None and not self.view.go_back():
            go_to(self.knowledge_tree)

    def action_forward(self) -> None:
        """Go on to the entry that Back left."""
        if self.view is not None:
            self.view.go_forward()

    def action_ask(self) -> None:
        """Put a reference to the entry into the prompt."""
        path = self.target()
        if path is not None:
            self.post_message(AskAbout(path))

    def action_history(self) -> None:
        """Show every change of the entry."""
        path = self.target()
        if path is not None:
            self.post_message(OpenHistory(path))

    def action_new(self) -> None:
        """Make an entry."""
        self.actions.new()

    async def action_edit(self) -> None:
        """Edit the entry here."""
        path = self.target()
        if path is not None:
            await self.actions.edit(path)

    def action_edit_outside(self) -> None:
        """Edit the entry in $EDITOR."""
        self.actions.edit_outside()

    def action_rename(self) -> None:
        """Rename the entry."""
        self.actions.rename()

    def action_move(self) -> None:
        """Move the entry to another category."""
        self.actions.move()

    def action_delete(self) -> None:
        """Delete the entry."""
        self.actions.delete()

    def action_undo(self) -> None:
        """Undo the last change of the entry."""
        self.actions.undo()

    def action_tags(self) -> None:
        """Choose a tag to filter by."""
        self.actions.tags()


def _shown_name(path: str) -> str:
    from kbtui.text import clean_line

    return clean_line(path.removeprefix("knowledge/").removesuffix(".md"))
