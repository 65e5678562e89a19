"""The map screen: the link graph around a note, with a preview of the selected one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar

from rich.text import Text
from textual import events, getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import OTHER, Named, Names
from kbtui.text import counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.messages import KnowledgeChanged, OpenEntry
from kbtui.tui.notes.documents import load_document
from kbtui.tui.notes.map_layout import (
    EDGES,
    MAX_STEPS,
    Drawing,
    Group,
    Item,
    Mark,
    Neighbourhood,
    Spot,
    lay_out,
    step,
)
from kbtui.tui.notes.preview import Preview
from kbtui.tui.terminal.background import latest
from kbtui.tui.terminal.process import new_file
from kbtui.tui.widgets.dialogs import pick
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.full_screen import FullScreen
from kbtui.tui.widgets.kinds import mark, sign, with_sign
from kbtui.tui.widgets.line_view import Looks, strip_ambiguous, style_parser, to_strip
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import short_name

_MIN_PREVIEW_ROWS = 24
"""Screen height in rows from which a preview fits below the map."""


def read_neighbourhood(kb: KnowledgeBase, path: str, steps: int = 2) -> Neighbourhood:
    """Read the link graph around a note up to `steps` links away; call it in a thread."""
    names = Names(kb.library.infos())

    @cache
    def named(of: str) -> Named:
        name = names[of]
        return replace(name, title=strip_ambiguous(name.title), kind=name.kind or OTHER)

    near = kb.library.neighbours(path)
    targets: dict[str, Sequence[str]] = {}
    last = dict.fromkeys((*near.incoming, *near.outgoing))
    for _ in range(steps - 1):
        targets |= {of: kb.library.targets(of) for of in last}
        beyond = (each for of in last for each in targets[of])
        last = dict.fromkeys(each for each in beyond if each not in {path, *targets})
    return Neighbourhood(
        named(path),
        tuple(map(named, near.incoming)),
        tuple(map(named, near.outgoing)),
        {of: tuple(map(named, there)) for of, there in targets.items()},
    )


class MapView(Looks, ScrollView, can_focus=True, inherit_bindings=False):
    """A widget that draws a map, with a cursor on one of its spots."""

    LOOKS: ClassVar[Mapping[str, str]] = {
        "map--line": "$foreground 40%",
        "map--quiet": "$text-muted",
        "map--middle": "bold $text-secondary on $secondary-muted",
        "map--edge": "$secondary-muted",
        "map--edge-cursor": "$primary",
        "map--cursor": "bold $background on $primary",
    }
    FEW_COLORS: ClassVar[Mapping[str, str]] = {
        "map--middle": "bold underline $text-secondary",
        "map--cursor": "bold $background on $foreground",
    }
    DEFAULT_CSS = """
    MapView { overflow-x: hidden; scrollbar-size-vertical: 1; background: transparent; }
    """
    cursor: reactive[int] = reactive(0, repaint=False)

    class SpotHighlighted(Message):
        """Posted when the cursor moves to another note or group."""

    class SpotSelected(Message):
        """Posted when a spot is double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.around: Neighbourhood | None = None
        self.drawing = Drawing([], [])
        self.unfolded: frozenset[str] = frozenset()
        self.steps = 2
        self._rows: list[list[Spot | Mark]] = []

    @property
    def item(self) -> Item | None:
        spots = self.drawing.spots
        return spots[self.cursor].item if self.cursor < len(spots) else None

    def show(self, around: Neighbourhood, path: str = "") -> None:
        """Show a map, with the cursor on the note `path` if that is shown."""
        middle = self.around.middle.path if self.around is not None else ""
        if middle != around.middle.path:
            self.unfolded = frozenset()
        self.around = around
        self._draw(path)

    def fold(self, group: Group) -> None:
        self.unfolded ^= {group.name}
        self._draw(group.name)

    def point_at(self, note: Named) -> None:
        """Move the cursor to a note, unfolding its group if needed."""
        groups = (spot.item for spot in self.drawing.spots if isinstance(spot.item, Group))
        if not any(_item_key(spot.item) == note.path for spot in self.drawing.spots):
            self.unfolded |= {group.name for group in groups if note in group.members}
        self._draw(note.path)

    def _draw(self, name: str = "") -> None:
        if self.around is None or not self.size.width:
            return
        name = name or (_item_key(self.item) if self.item is not None else "")
        self.drawing = lay_out(
            self.around, self.size.width - 1, self.unfolded, self.steps, self.size.height
        )
        self._rows = self.drawing.rows()
        found = (n for n, spot in enumerate(self.drawing.spots) if _item_key(spot.item) == name)
        self.virtual_size = Size(self.size.width - 1, len(self._rows) + self._top_margin)
        self.refresh()
        self.cursor = next(found, 0)
        self._scroll_to_cursor()

    @property
    def _top_margin(self) -> int:
        """The number of empty rows above a map that doesn't fill the pane."""
        return max(0, (self.size.height - len(self._rows)) * 2 // 5)

    def on_resize(self) -> None:
        self._draw()

    # Moving

    def watch_cursor(self) -> None:
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        if self.drawing.spots:
            y = self.drawing.spots[self.cursor].y + self._top_margin
            self.refresh()
            self.scroll_to_region(
                Region(0, max(0, y - 2), 1, 5), animate=False, force=True, immediate=True
            )
            self.post_message(self.SpotHighlighted())

    def walk(self, dx: int, dy: int) -> None:
        if self.drawing.spots:
            self.cursor = step(self.drawing.spots, self.cursor, dx, dy)

    def on_click(self, event: events.Click) -> None:
        y = event.y + round(self.scroll_y) - self._top_margin
        for number, spot in enumerate(self.drawing.spots):
            if spot.y == y and spot.x <= event.x < spot.x + spot.width:
                self.cursor = number
                if event.chain > 1:
                    self.post_message(self.SpotSelected())

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        at = y + round(self.scroll_y) - self._top_margin
        if not 0 <= at < len(self._rows):
            return Strip.blank(width, self.visual_style.rich_style)
        return self._row(at, width)

    def picture(self) -> str:
        """Render the whole map as SVG, including what is scrolled out of sight."""
        from io import StringIO

        from rich.console import Console
        from textual.filter import ANSIToTruecolor

        width = self.size.width
        console = Console(
            width=width, file=StringIO(), record=True, force_terminal=True, color_system="truecolor"
        )
        ansi = ANSIToTruecolor(self.app.ansi_theme)
        for at in range(len(self._rows)):
            strip = self._row(at, width).apply_filter(ansi, self.background_colors[1])
            console.print(Text.assemble(*((s.text, s.style or "") for s in strip)), end="\n")
        title = self.around.middle.title if self.around is not None else ""
        return console.export_svg(title=f"Map of {title}")

    def _row(self, at: int, width: int) -> Strip:
        line = Content()
        for each in self._rows[at]:
            line += Content(" " * max(0, each.x - line.cell_length))
            line += self._mark(each) if isinstance(each, Mark) else self._spot(each)
        return to_strip(line, width, self.visual_style, style_parser(self))

    def _mark(self, mark: Mark) -> Content:
        if mark.text[0] in EDGES:
            if self.app.has_class("-few-colors"):
                return Content(" " * len(mark.text))
            return Content.styled(mark.text, ".map--edge" if self.cursor else ".map--edge-cursor")
        quiet = any(character.isalpha() for character in mark.text)
        return Content.styled(mark.text, ".map--quiet" if quiet else ".map--line")

    def _spot(self, spot: Spot) -> Content:
        kind = spot.item.kind or OTHER
        pointed = self.drawing.spots[self.cursor] is spot
        title = Content.styled(spot.title, ".map--quiet" if spot.column == 2 else "")
        if spot.column == 0:
            text = Content(f" {mark(kind)} {spot.title} ")
            return text.stylize(".map--cursor" if pointed else ".map--middle")
        if pointed:
            return Content.styled(f"{mark(kind)} {spot.title}", ".map--cursor")
        return sign(kind) + title


def _item_key(item: Item) -> str:
    return item.path if isinstance(item, Named) else item.name


class MapScreen(FullScreen[OpenEntry]):
    """A screen to walk from note to note; returns the entry to open."""

    DEFAULT_CSS = """
    MapScreen {
        #map-pane { height: 1fr; }
        #map-look { height: 9; display: none; }
        &.-look #map-look { display: block; }
        &.-beside #map-pane { width: 3fr; height: 100%; }
        &.-beside #map-look { width: 1fr; height: 100%; }
        MapView, Preview { height: 1fr; }
    }
    """
    TITLE_TEXT = "Map"
    BESIDE_COLUMNS = 110
    map = getters.query_one(MapView)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("map"),
        Binding("pagedown", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, kb: KnowledgeBase, path: str) -> None:
        super().__init__(kb)
        self._trail = [path]

    def compose_body(self) -> ComposeResult:
        with Divided(id="map-split", classes="parts"):
            with Pane(id="map-pane"):
                yield MapView(id="map")
            with Pane(id="map-look"):
                yield Preview(self.kb, id="map-text")

    def on_mount(self) -> None:
        self.map.focus()
        self._show_map(self._trail[0])

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        high = event.size.height >= _MIN_PREVIEW_ROWS
        self.set_class(high or self.has_class("-beside"), "-look")

    @on(KnowledgeChanged)
    def _knowledge_changed(self) -> None:
        self._show_map(self._trail[-1])

    @latest("map")
    async def _show_map(self, path: str, pointed: str = "") -> None:
        around = await asyncio.to_thread(read_neighbourhood, self.kb, path, self.map.steps)
        notes = counted(len(around.notes) + 1, "note")
        place = f"{notes} within {counted(self.map.steps, 'step')}"
        title = Content.assemble("Map of ", with_sign(around.middle))
        self.query_one("#map-pane", Pane).label_with(title, place=place)
        self.map.show(around, pointed)

    # The note under the cursor

    @on(MapView.SpotHighlighted)
    def _update_preview(self) -> None:
        if self.map.item is not None and self.has_class("-look"):
            self._load_preview(self.map.item)

    @latest("look")
    async def _load_preview(self, item: Item) -> None:
        pane, text = self.query_one("#map-look", Pane), self.query_one(Preview)
        if isinstance(item, Group):
            pane.label_with(sign(item.kind) + Content(item.title))
            titles = "\n".join(note.title for note in item.members[:200])
            text.show(SourceText(titles, raw=True))
            return
        document = await asyncio.to_thread(load_document, self.kb, item.path)
        pane.label_with(with_sign(item), place=short_name(item.path))
        await text.show_document(document)

    # Keys

    def action_walk(self, dx: int, dy: int) -> None:
        self.map.walk(dx, dy)

    def action_scroll(self, pages: int) -> None:
        text = self.query_one(Preview)
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)

    @on(MapView.SpotSelected)
    def action_middle(self) -> None:
        item = self.map.item
        if isinstance(item, Group):
            self.map.fold(item)
        elif item is not None and item.path == self._trail[-1]:
            self.action_open()
        elif item is not None:
            self._trail.append(item.path)
            self._show_map(item.path)

    def action_open(self) -> None:
        item = self.map.item
        if isinstance(item, Named):
            self.dismiss(OpenEntry(item.path))

    def action_before(self) -> None:
        if len(self._trail) > 1:
            left = self._trail.pop()
            self._show_map(self._trail[-1], left)

    @latest("find")
    async def action_find(self) -> None:
        around = self.map.around
        if around is None:
            return
        choices = [
            Choice(note.title, "", path, sign(note.kind or OTHER))
            for path, note in around.notes.items()
        ]
        path = await pick(self, "Find in the map", choices)
        if path is not None:
            self.map.point_at(around.notes[path])

    def action_step(self, by: int) -> None:
        if 1 <= self.map.steps + by <= MAX_STEPS:
            self.map.steps += by
            self._show_map(self._trail[-1])

    @latest("save")
    async def action_save(self) -> None:
        if (around := self.map.around) is not None:
            title, picture = f"map of {around.middle.title}", self.map.picture()
            file = await asyncio.to_thread(new_file, title, "svg", picture)
            self.notify(f"Written to {file}", markup=False)
