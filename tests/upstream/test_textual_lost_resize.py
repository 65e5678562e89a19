"""Textual: after a scroll, what is shown again hears no `Resize`.

A scroll lays out what is visible only and makes the compositor's map stale. When it is made again
it holds what was shown meanwhile: the layout that follows takes those widgets for known, gives them
their size, and sends them no event. When the second case fails, `kbtui/tui/terminal/layout.py` can go.
"""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from kbtui.tui.terminal.layout import TellsSizes
from tests.tui import at_rest


class _Listener(Static):
    resizes = 0

    def on_resize(self) -> None:
        self.resizes += 1


class _PlainScreen(Screen[None]):
    """As Textual lays it out."""


class _TellingScreen(TellsSizes, Screen[None]):
    """As kbtui's screens are laid out."""


class _ScrolledApp(App[None]):
    def __init__(self, screen: type[Screen[None]]) -> None:
        super().__init__()
        self._screen_class = screen

    def get_default_screen(self) -> Screen[None]:
        return self._screen_class(id="_default")

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static("line\n" * 100)
        yield _Listener("below")


@pytest.mark.parametrize(
    ("screen", "scrolls", "resizes"),
    [(_PlainScreen, False, 1), (_PlainScreen, True, 0), (_TellingScreen, True, 1)],
)
async def test_what_is_shown_again_after_a_scroll_hears_no_resize(
    screen: type[Screen[None]],
    scrolls: bool,
    resizes: int,
) -> None:
    app = _ScrolledApp(screen)
    async with app.run_test(size=(40, 12)):
        widget = app.query_one(_Listener)
        widget.display = False
        await at_rest.rest(app)
        widget.resizes = 0
        if scrolls:
            app.query_one(VerticalScroll).scroll_to(y=5, animate=False)
            await at_rest.rest(app)
        widget.display = True
        await at_rest.rest(app)
        assert widget.size.width == 40
        assert widget.resizes == resizes
