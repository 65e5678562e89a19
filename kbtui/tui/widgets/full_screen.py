"""The base class of full screens: a title row, a body, and key hints."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.terminal.layout import TellsSizes
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.title_row import TitleRow, folder_of

Result = TypeVar("Result")


class FullScreen(TellsSizes, Screen[Result], Generic[Result]):
    """A screen between a title row and key hints, with a body that the subclass composes.

    A container of the class ``parts`` in the body holds two parts, side by side if the screen is
    wide enough for the class ``-beside``. With few rows the screen has the class ``-short``, with
    very few ``-low``.
    """

    DEFAULT_CSS = """
    FullScreen {
        overflow: hidden;
        .parts { height: 1fr; layout: vertical; }
        &.-beside .parts { layout: horizontal; }
    }
    """
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-short"), (30, "-tall")]  # noqa: RUF012 - as in Screen
    TITLE_TEXT = ""
    BESIDE_COLUMNS: ClassVar[int] = 120

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__()
        self.kb = kb

    def compose(self) -> ComposeResult:
        yield TitleRow(self.TITLE_TEXT, folder_of(self.kb))
        yield from self.compose_body()
        yield Hints()

    def compose_body(self) -> ComposeResult:
        return ()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= self.BESIDE_COLUMNS, "-beside")

    def action_back(self) -> None:
        self.dismiss(None)
