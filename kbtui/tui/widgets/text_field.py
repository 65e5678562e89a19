"""The multi-line text field of the editor and the prompt."""

from __future__ import annotations

from textual.geometry import Offset
from textual.widgets import TextArea


class TextField(TextArea):
    """A `TextArea` whose undo works across a change that shows or hides its scrollbar."""

    def scroll_cursor_visible(
        self,
        center: bool = False,  # noqa: FBT002 - Textual's
        animate: bool = False,  # noqa: FBT002 - Textual's
    ) -> Offset:
        """Ignore calls made while the cursor is past the end of the text, as during an undo."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)
