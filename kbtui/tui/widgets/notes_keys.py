"""What each key of the notes pane does."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical

from kbtui.tui.actions.registry import bindings
from kbtui.tui.messages import AskAbout, OpenHistory, go_to, tell
from kbtui.tui.notes.reading_place import ReadingPlace
from kbtui.tui.notes.tree_panel import TreePanel
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.markdown.markdown_view import MarkdownView
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.entry_view import EntryView
    from kbtui.tui.notes.knowledge_tree import KnowledgeTree
    from kbtui.tui.notes.notes_actions import NotesActions


class NotesKeys(Vertical):
    """The parts of the notes pane, and the actions of the registry that are about them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("notes")]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.kb: KnowledgeBase | None = None
        self.place = ReadingPlace(self)

    # Parts

    @property
    def panel(self) -> TreePanel:
        """The tree with its title and filter."""
        return self.query_one("#notes-list", TreePanel)

    @property
    def knowledge_tree(self) -> KnowledgeTree:
        """The tree."""
        return self.panel.knowledge_tree

    @property
    def view(self) -> EntryView | None:
        """The entry that is read, once there was one."""
        return self.place.view

    @property
    def editor(self) -> EntryEditor | None:
        """The editor, while it is open."""
        return self.place.editor

    @property
    def current_path(self) -> str | None:
        """The file that is shown, if one is."""
        return self.place.path

    @property
    def actions(self) -> NotesActions:
        """What changes entries."""
        raise NotImplementedError

    # What keys are about

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The bare letters mean nothing while somebody writes, so they aren't shown then."""
        if self.editor is not None or self.panel.filter_has_focus:
            return False
        return super().check_action(action, parameters)

    def target(self) -> str | None:
        """What an action is about: the entry under the cursor, or the one that is read."""
        if self.knowledge_tree.has_focus or self.view is None:
            return self.knowledge_tree.entry.path if self.knowledge_tree.entry is not None else None
        return self.current_path

    def _pointed_list(self) -> RowList | MarkdownView:
        focused = self.screen.focused
        if isinstance(focused, RowList) and self in focused.ancestors:
            return focused
        return (
            self.knowledge_tree
            if self.view is None or not self.view.body.has_focus
            else self.view.body
        )

    # Moving

    def action_down(self) -> None:
        """Move down in the tree or in the entry."""
        widget = self._pointed_list()
        if isinstance(widget, RowList):
            widget.action_cursor_down()
        else:
            widget.move_cursor(1)

    def action_up(self) -> None:
        """Move up in the tree or in the entry."""
        widget = self._pointed_list()
        if isinstance(widget, RowList):
            widget.action_cursor_up()
        else:
            widget.move_cursor(-1)

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

    # Doing

    async def action_filter(self) -> None:
        """Filter the tree."""
        await self.panel.start_filter()

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

    def action_why(self) -> None:
        """Show where the line under the cursor comes from."""
        if self.view is not None:
            self.view.ask_why()
        else:
            tell(self, "Open an entry first: then w says where a line of it comes from.")

    def action_authors(self) -> None:
        """Say beside each line of the entry who wrote it."""
        if self.view is not None:
            self.view.toggle_authors()
        else:
            tell(self, "Open an entry first: then W says who wrote each line of it.")

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
