"""Pictures of screens, of fixed notes at a fixed size: what changes in them is looked at.

``pytest tests/tui/test_snapshots.py --snapshot-update`` takes them again; look at them before.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App

from kbtui.tui.app import app as app_module
from kbtui.tui.app.app import KbtuiApp
from kbtui.tui.history.year import YearCounts, YearView
from kbtui.tui.notes.map import MapScreen
from kbtui.tui.search.search import SearchScreen
from kbtui.tui.search.switcher import SwitcherScreen
from kbtui.tui.terminal.themes import DEFAULT_THEME, bundled_folder, parse_theme
from tests.tui.notes_support import NotesApp, arrived, hit, make_kb, opened, ready, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

TODAY = date(2026, 11, 24)
FRONT = "---\ntype: {}\ncreated: 2020-03-01\nupdated: 2020-04-0{}\ntags: [station]\n---\n"
NOTES = {
    "projects/kestrel.md": FRONT.format("project", 1)
    + "# Kestrel\n\nA weather station, built with [[people/mira]].\n\n"
    "## Goal\n\n- [x] a reading every ten minutes\n- [ ] two weeks of fog\n\n"
    "> [!tip] Power\n> See [[decisions/solar]].\n",
    "people/mira.md": FRONT.format("person", 2) + "# Mira Okafor\n\nSolders [[kestrel]].\n",
    "decisions/solar.md": FRONT.format("decision", 3)
    + "# Solar power\n\nA 20 W panel, for [[kestrel]] and [[topics/radio]].\n",
    "topics/radio.md": FRONT.format("topic", 4) + "# LoRa radio\n\n868 MHz, ==SF9==.\n",
}


class Framed(NotesApp):
    """The notes in the frames of the app."""

    CSS_PATH = Path(app_module.__file__).with_name("kbtui.tcss")
    HORIZONTAL_BREAKPOINTS = KbtuiApp.HORIZONTAL_BREAKPOINTS


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NotesApp:
    monkeypatch.setenv("HOME", str(tmp_path))
    return _in_our_colours(Framed(make_kb(tmp_path / "notes", NOTES)))


def _in_our_colours(app: Any) -> Any:
    theme = parse_theme((bundled_folder() / f"{DEFAULT_THEME}.yaml").read_text("utf-8"))
    app.register_theme(theme)
    app.theme = theme.name
    return app


def test_tree_and_note(app: NotesApp, snap_compare: Callable[..., bool]) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await opened(pilot, "knowledge/projects/kestrel.md")

    assert snap_compare(app, terminal_size=(120, 30), run_before=look)


def test_map(app: NotesApp, snap_compare: Callable[..., bool]) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await opened(pilot, "knowledge/projects/kestrel.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: screen.map.around is not None)
        await pilot.press("right")

    assert snap_compare(app, terminal_size=(120, 30), run_before=look)


def test_search(app: NotesApp, snap_compare: Callable[..., bool]) -> None:
    app.kb.search.hits = (
        hit("knowledge/decisions/solar.md", 9, "A 20 W panel, for [[kestrel]]", (7, 12)),
        hit("knowledge/topics/radio.md", 9, "868 MHz; the panel sets the pace.", (13, 18)),
    )

    async def look(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = SearchScreen(app.kb, "panel")
        await app.push_screen(screen)
        await until(pilot, lambda: app.kb.search.asked[-1:] == [("panel", "default", True)])
        await until(pilot, lambda: screen.preview.lines)
        screen.field.cursor_blink = False

    assert snap_compare(app, terminal_size=(120, 30), run_before=look)


def test_open_by_name(app: NotesApp, snap_compare: Callable[..., bool]) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = SwitcherScreen(app.kb, "ra")
        await app.push_screen(screen)
        await until(pilot, lambda: screen.names.items and screen.preview.lines)
        screen.field.cursor_blink = False

    assert snap_compare(app, terminal_size=(120, 24), run_before=look)


def test_year(snap_compare: Callable[..., bool]) -> None:
    class YearApp(App[None]):
        def compose(self) -> Any:
            days = {TODAY - timedelta(days=n * n % 365): n % 9 for n in range(60)}
            yield YearView(YearCounts(Counter(days), Counter()), TODAY)

    assert snap_compare(_in_our_colours(YearApp()), terminal_size=(120, 12))
