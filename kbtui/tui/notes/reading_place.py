"""The place beside the tree: empty, an entry that is read, or one that is edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.tui.messages import go_to
from kbtui.tui.notes.entry_view import EntryView

if TYPE_CHECKING:
    from textual.widget import Widget

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.notes.entry_editor import EntryEditor


class ReadingPlace:
    """Puts reader and editor where they belong; each is made when it is first needed.

    Attributes:
        view: The reader, once there was something to read.
        editor: The editor, while it is open.
    """

    def __init__(self, pane: Widget) -> None:
        self._pane = pane
        self.view: EntryView | None = None
        self.editor: EntryEditor | None = None

    @property
    def path(self) -> str | None:
        """The file that is shown, if one is."""
        document = self.view.document if self.view is not None else None
        return document.path if document is not None else None

    @property
    def coming(self) -> str | None:
        """The file that will be shown in a moment, if one will."""
        return self.view.coming if self.view is not None else None

    @property
    def _room(self) -> Widget:
        return self._pane.query_one("#notes-split")

    async def show(self, kb: KnowledgeBase, path: str, line: int | None) -> EntryView:
        """Show a file in the reader, which is made for the first one."""
        if self.view is None:
            self.view = EntryView(kb, id="notes-entry")
            self._pane.add_class("-reading")
            await self._room.mount(self.view)
        self.view.open(path, line)
        return self.view

    def file_changed(self) -> None:
        """The file that is shown has another text now."""
        if self.editor is not None:
            self.editor.file_changed()
        elif self.view is not None:
            self.view.reload()

    def file_gone(self, path: str) -> bool:
        """A file was deleted: show what was read before it; False where there was nothing."""
        if self.path != path or self.view is None or self.view.leave(path):
            return True
        self.view.remove()
        self.view = None
        self._pane.remove_class("-reading")
        return False

    async def open_editor(self, editor: EntryEditor) -> None:
        """Put an editor in the place of tree and reader."""
        self.editor = editor
        self._pane.add_class("-editing")
        await self._room.mount(editor)
        go_to(editor.text_area)

    async def close_editor(self) -> None:
        """Give its place back to tree and reader."""
        editor, self.editor = self.editor, None
        if editor is not None:
            await editor.remove()
        self._pane.remove_class("-editing")

    async def leave_editor(self) -> bool:
        """Close the editor unless its text is to be kept in it; whether it is closed now."""
        if self.editor is not None:
            if not await self.editor.leave():
                return False
            await self.close_editor()
        return True

    def read_on(self) -> None:
        """Show the entry as it is now, and go to it."""
        if self.view is not None:
            self.view.reload()
            go_to(self.view.body)
