"""The line at the top of every screen: which notes these are, where one is, who answers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from kbtui.text import clean_line
from kbtui.tui.widgets.line_view import steady

_INTO = Content(" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ")


class _HasFolder(Protocol):
    def folder(self) -> Path: ...


class TitleRow(Static):
    """At the left the program, the folder of the notes and the screen; at the right a remark.

    Args:
        place: What the screen shows, as people call it; empty on the main one.
    """

    DEFAULT_CSS = """
    TitleRow { dock: top; height: 1; padding: 0 2; color: $text-muted; }
    .-short TitleRow { display: none; }
    """
    place: reactive[Content | str] = reactive("")
    remark: reactive[Content] = reactive(Content())

    def __init__(self, place: Content | str = "") -> None:
        super().__init__(markup=False)
        self.set_reactive(TitleRow.place, place)

    def render(self) -> Content:
        """Both, the remark only as far as there is room for it."""
        width = self.content_size.width
        folder = cast("_HasFolder", self.app).folder()
        parts = [shortened(folder)] if folder != Path() else []
        if self.place:
            parts.append(self.place if isinstance(self.place, Content) else Content(self.place))
        left = Content.assemble(("kbtui", "bold $primary"), "  ", _INTO.join(parts))
        left = left.truncate(max(1, width), ellipsis=True)
        gap = width - left.cell_length - self.remark.cell_length
        return left if gap < 2 else left + Content(" " * gap) + self.remark


def shortened(folder: Path) -> Content:
    """A folder as people write it, from their home on."""
    return Content(steady(clean_line(str(folder).replace(str(Path.home()), "~", 1))))
