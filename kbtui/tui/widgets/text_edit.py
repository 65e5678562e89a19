"""Writing a few lines of text over what is on the screen."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import TextArea

from kbtui.text import clean_line


class TextEditScreen(ModalScreen[str | None]):
    """Answers with the text as it was written; None for giving up."""

    DEFAULT_CSS = """
    TextEditScreen {
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 90%; max-width: 110; height: 14; max-height: 90%; background: $surface;
            border: round $primary 60%; border-title-color: $text-primary;
            border-subtitle-color: $text-muted;
        }
        TextArea { height: 1fr; border: none; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "Take it", show=False, priority=True),
        Binding("escape", "leave", "Leave", show=False, priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> list[Vertical]:
        """A box to write in."""
        box = Vertical(TextArea(self._text, soft_wrap=True))
        box.border_title = Content(clean_line(self._title))
        box.border_subtitle = Content("Ctrl+S takes it · Esc leaves")
        return [box]

    def on_mount(self) -> None:
        """Write on at the end."""
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def action_take(self) -> None:
        """Answer with what is written."""
        self.dismiss(self.query_one(TextArea).text)

    def action_leave(self) -> None:
        """Leave it as it was."""
        self.dismiss(None)
