"""A page to read: a report, with one way out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class PageScreen(ModalScreen[None]):
    """Shows a text in a box; j and k scroll, y copies it, q or Esc closes."""

    DEFAULT_CSS = """
    PageScreen {
        align: center middle;
        background: $background 60%;
        & > VerticalScroll {
            width: 100; max-width: 95%; height: auto; max-height: 90%;
            background: $surface; border: round $primary 60%; padding: 0 1;
            border-title-color: $primary; border-subtitle-color: $text-muted;
            scrollbar-size-vertical: 1;
        }
        Static { height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "close", "Close"),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title = title
        self.text = text

    def compose(self) -> ComposeResult:
        """The box."""
        with VerticalScroll() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("j k scroll · y copy · Esc close")
            yield Static(self.text)

    def action_scroll(self, lines: int) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_copy(self) -> None:
        """Copy the text."""
        self.app.copy_to_clipboard(self.text.plain)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()
