"""The field for several lines that the editor and the prompt are made of."""

from __future__ import annotations

from textual.geometry import Offset
from textual.widgets import TextArea


class TextField(TextArea):
    """A `TextArea` that can take back a change with which its scrollbar came or went."""

    def scroll_cursor_visible(
        self,
        center: bool = False,  # noqa: FBT002 - Textual's
        animate: bool = False,  # noqa: FBT002 - Textual's
    ) -> Offset:
        """Wait for the cursor to move: Textual asks while it is behind the end of the text."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)
