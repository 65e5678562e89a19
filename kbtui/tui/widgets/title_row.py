"""The top row of every screen: the notes' folder, the screen's name, the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from kbtui.presentation.notes import INTO
from kbtui.text import clean_line
from kbtui.tui.widgets.line_view import strip_ambiguous
from kbtui.tui.widgets.pane import cut_middle

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import Workspace

_PROGRAM = "kbtui  "
_GAP_CELLS = 2


class TitleRow(Static):
    """The program, the folder of the notes and the screen at the left, a remark at the right.

    Args:
        place: The name of the screen; empty for the main one.
        folder: The folder of the notes; None until it is known.
    """

    DEFAULT_CSS = """
    TitleRow { dock: top; height: 1; padding: 0 2; color: $text-muted; }
    """
    folder: reactive[Path | None] = reactive(None)
    remark: reactive[Content] = reactive(Content())

    def __init__(self, place: str = "", folder: Path | None = None) -> None:
        super().__init__(markup=False)
        self.set_reactive(TitleRow.folder, folder)
        self._place = place

    def render(self) -> Content:
        """Return both sides; a folder that doesn't fit loses its middle."""
        width = self.content_size.width
        place = Content(INTO + self._place if self._place else "")
        room = width - len(_PROGRAM) - place.cell_length - self.remark.cell_length - _GAP_CELLS
        folder = (
            cut_middle(folder_text(self.folder), max(0, room)) if self.folder is not None else ""
        )
        left = Content.assemble((_PROGRAM, "bold $primary"), folder, place)
        left = left.truncate(max(1, width), ellipsis=True)
        gap = width - left.cell_length - self.remark.cell_length
        return left if gap < 1 else left + Content(" " * gap) + self.remark


def folder_text(folder: Path) -> str:
    """Return a folder's path as text, with ``~`` for the home directory."""
    return strip_ambiguous(clean_line(str(folder).replace(str(Path.home()), "~", 1)))


def folder_of(kb: KnowledgeBase) -> Path | None:
    """Return the root of the workspace, or None for another repository opened read-only."""
    workspace: Workspace | None = kb.workspace
    return workspace.root if workspace is not None else None
