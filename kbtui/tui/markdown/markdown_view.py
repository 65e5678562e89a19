"""Rendered Markdown that stays responsive whatever its length: laid out in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.style import Style

from kbtui.history.history import LineOrigin
from kbtui.tui.markdown.layout import Fold, Rendered
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.markdown.styles import MarkdownLines
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.line_view import READABLE, Line

_HEAD = 20_000
"""Characters of a long text that are shown at once, before the rest is ready."""
_LINES_ABOVE = 60
"""Lines of the file that are shown at once above the one that is looked for."""


def _part_of(source: SourceText, line: int | None) -> SourceText:
    """A part of a long text that fills the screen: its beginning, or what is around a line."""
    text, above = source.text, 0
    if line is not None and line > source.first_line + _LINES_ABOVE:
        above = line - source.first_line - _LINES_ABOVE
        text = text.split("\n", above)[-1]
        source = source._replace(first_line=source.first_line + above, properties=())
    cut = text.rfind("\n\n", 0, _HEAD)
    return source._replace(text=text[: cut if cut > 0 else _HEAD], below=())


class _Here(NamedTuple):
    """Where somebody reads, in lines of the file: the uppermost, their own, those highlighted."""

    top: int
    pointed: int | None
    lit: Sequence[int]


class MarkdownView(MarkdownLines):
    """Shows a `SourceText`; lines of the file can be scrolled to, links can be clicked."""

    widest = READABLE

    @dataclass
    class LinkClicked(Message):
        """A link in the text was clicked."""

        link: LinkRef

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._source = SourceText("")
        self._links: list[LinkRef] = []
        self._laid_out_for = 0
        self._wanted: tuple[int, int | None] | None = None
        self._top: int | None = None
        self._cursor: int | None = None
        self._origins: Sequence[LineOrigin] | None = None
        self._folds: Mapping[int, Fold] = {}
        self._folded: dict[int, bool] = {}
        self._more = False

    def show(
        self,
        source: SourceText,
        *,
        reveal: tuple[int, int | None] | None = None,
        top: int | None = 0,
        more: bool = False,
    ) -> None:
        """Lay out and show a text, and scroll to lines of the file (`reveal`) or of the view.

        The last call wins, however long the ones before are still at work. `top` None keeps the
        place in the text, as far as it goes. With `more` the same text is about to be shown with
        more known about it: of a long one only a part is laid out now.
        """
        self._source, self._more = source, more
        if reveal is not None or top is not None:
            self._wanted, self._top = reveal, top  # else what is asked for already is still to be
        if top is not None:
            self._folded = {}
        self._laid_out_for = 0
        self._lay_out()

    def on_resize(self, _event: events.Resize) -> None:
        """Lay the text out for the new width, keeping the place."""
        if self._laid_out_for and self.text_width != self._laid_out_for:
            self._top = None
            self._lay_out()
        elif not self._laid_out_for and (self._source.text or self._source.below):
            self._lay_out()

    def _lay_out(self) -> None:
        # Before the first layout there is no width yet; the resize event comes back here.
        if self.size.width:
            self._laid_out(self._source, self.text_width)

    @latest("layout")
    async def _laid_out(self, source: SourceText, width: int) -> None:
        wanted, top = self._wanted, self._top
        line = wanted[0] if wanted is not None else None
        if len(source.text) > 2 * _HEAD and (line is not None or top == 0):
            self._show_rendered(await self._rendered(_part_of(source, line), width, line), 0)
            if wanted is not None:
                self.reveal_source(*wanted)
            wanted = top = None
            if self._more:
                self._wanted = self._top = None
                return
        rendered = await self._rendered(source, width, line)
        here = self._here() if top is None else None
        self._show_rendered(rendered, top)
        self._laid_out_for = width
        if self.text_width != width:
            # The room changed meanwhile; what was asked for is still to be done.
            self._lay_out()
            return
        self._wanted = self._top = None
        if wanted is not None:
            self.reveal_source(*wanted)
        elif here is not None:
            self._return_to(here)

    async def _rendered(self, source: SourceText, width: int, line: int | None) -> Rendered:
        """Lay out a text, and keep open what a line that is looked for is in."""
        from kbtui.tui.markdown.layout import render

        if self.app.has_class("-few-colors"):
            plain = {ref: embed._replace(picture=None) for ref, embed in source.embeds.items()}
            source = source._replace(embeds=plain)
        rendered = await asyncio.to_thread(render, source, width, self._folded, line)
        self._folded |= {at: True for at, fold in rendered.folds.items() if line in fold.lines[1:]}
        return rendered

    def _show_rendered(self, rendered: Rendered, top: int | None) -> None:
        self._links, self._folds = rendered.links, rendered.folds
        self._cursor = None
        self.show_lines(rendered.lines, top=top)
        if self._origins is not None:
            self._fill_gutter(self._origins)

    def _here(self) -> _Here:
        pointed = self.pointed_source if self.has_cursor else None
        return _Here(self.top_source, pointed, [self.lines[at].source for at in self.flashed])

    def _return_to(self, here: _Here) -> None:
        lines = self.lines_of_source(here.top)
        if lines and self.top_source != here.top:
            self.scroll_to(y=lines.start, animate=False, force=True, immediate=True)
        self._point_at(here.pointed)
        if here.lit:
            self.flashed = self.lines_of_source(min(here.lit), max(here.lit))

    # The line that keys act on

    @property
    def has_cursor(self) -> bool:
        """True once somebody went to a line."""
        return self._cursor is not None

    def reveal_source(self, first: int, last: int | None = None) -> None:
        """Scroll to lines of the file, highlight them for a moment, and point at the first."""
        super().reveal_source(first, last)
        self._point_at(first)

    def _point_at(self, source_line: int | None) -> None:
        lines = self.lines_of_source(source_line) if source_line is not None else range(0)
        if lines:
            self._cursor = lines.start
            self._redraw()

    def move_cursor(self, by: int) -> None:
        """Go to another line; the text scrolls where that isn't on the screen."""
        if not self.lines:
            return
        top, height = round(self.scroll_y), max(1, self.size.height)
        at = self._cursor
        if at is None or not top <= at < top + height:
            at = top - 1 if by > 0 else top + height  # what was scrolled away from is forgotten
            at = min(at, len(self.lines))
        self._cursor = at = max(0, min(at + by, len(self.lines) - 1))
        if at < top:
            self.scroll_to(y=at, animate=False, force=True, immediate=True)
        elif at >= top + height:
            self.scroll_to(y=at - height + 1, animate=False, force=True, immediate=True)
        self._redraw()

    @property
    def pointed_source(self) -> int:
        """The line of the file that the cursor is on, else the uppermost one on the screen."""
        top = round(self.scroll_y)
        if self._cursor is not None and top <= self._cursor < top + self.size.height:
            return self.lines[self._cursor].source
        return self.top_source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whoever shows a note says what Space does."""
        return False if action == "leaf" else super().check_action(action, parameters)

    def turn_fold(self) -> bool:
        """Fold or unfold the heading or callout that the cursor is on; False where is none."""
        line = self.pointed_source
        fold = self._folds.get(line)
        if not self.has_cursor or fold is None:
            return False
        self._folded[line] = not fold.is_open
        self._top = None
        self._lay_out()
        return True

    def links_here(self) -> list[LinkRef]:
        """The links of the line that the cursor is on; without a cursor, all on the screen."""
        top = round(self.scroll_y)
        seen = range(top, min(top + self.size.height, len(self.lines)))
        if self._cursor is not None and self._cursor in seen:
            seen = range(self._cursor, self._cursor + 1)
        styles = (span.style for index in seen for span in self.lines[index].content.spans)
        marks = (style.meta.get("link") for style in styles if isinstance(style, Style))
        found = (self._links[mark] for mark in marks if isinstance(mark, int))
        return list(dict.fromkeys(found))

    def _ground(self, index: int) -> Style:
        if index == self._cursor and self.has_focus and index not in self.flashed:
            return super()._ground(index) + self.get_visual_style("md--cursor", partial=True)
        return super()._ground(index)

    def watch_has_focus(self, value: bool) -> None:
        """The cursor is only shown where keys go."""
        super().watch_has_focus(value)
        self._redraw()

    # Who wrote the lines

    def show_authors(self, origins: Sequence[LineOrigin] | None) -> None:
        """Say at the left who wrote each line of the file: None takes that away again.

        No origins at all keep the room for them until they are known.
        """
        self._origins = origins
        before = self.gutter_width
        if origins is None:
            self.set_gutter(0, None)
        else:
            self._fill_gutter(origins)
        if self.gutter_width != before and self._laid_out_for:
            self._top = None
            self._lay_out()

    def _fill_gutter(self, origins: Sequence[LineOrigin]) -> None:
        width = NARROW_WIDTH if self.size.width < NARROW else WIDTH
        self.set_gutter(width, AuthorsGutter(self.lines, origins, width))

    def on_click(self, event: events.Click) -> None:
        """Follow the link under the mouse, or take the cursor there."""
        number = event.style.meta.get("link")
        if isinstance(number, int) and number < len(self._links):
            event.stop()
            self.post_message(self.LinkClicked(self._links[number]))
        elif (at := round(self.scroll_y) + event.y) < len(self.lines):
            self._cursor = at
            self._redraw()
            self.turn_fold()


WIDTH = 7
NARROW_WIDTH = 2
"""The columns of the gutter where there is little room: without the age."""
NARROW = 44
_UNITS = (
    (timedelta(days=365), "y"),
    (timedelta(days=30), "mo"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "m"),
)


class AuthorsGutter:
    """Draws the gutter of some lines; what one commit wrote in one go is marked once.

    `origins` are where each line of the file comes from; ages are counted from `now`.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        origins: Sequence[LineOrigin],
        width: int,
        now: datetime | None = None,
    ) -> None:
        self._lines = lines
        self._origins = origins
        self._width = width
        self._now = now or datetime.now(UTC)

    def __call__(self, index: int) -> Content:
        """The gutter of one line of the screen."""
        origin = self._origin(index)
        if origin is None:
            return Content()
        letter = (origin.origin.author or origin.actor.letter)[0]
        style = f"$text-{origin.actor.colour}"
        before = self._origin(index - 1) if index else None
        if before is not None and before.commit == origin.commit:
            return Content.styled("│", f"{style} dim")
        if self._width < WIDTH:
            return Content.styled(letter, style)
        return Content.assemble((letter, style), (f" {age(origin.time, self._now)}", "$text-muted"))

    def _origin(self, index: int) -> LineOrigin | None:
        number = self._lines[index].source - 1
        return self._origins[number] if 0 <= number < len(self._origins) else None


def age(time: datetime | None, now: datetime) -> str:
    """How long ago something was, in at most four cells; ``new`` where it isn't recorded yet."""
    if time is None:
        return "new"
    passed = now - time
    count, unit = next(
        ((passed // length, unit) for length, unit in _UNITS if passed >= length), (0, "")
    )
    return f"{min(count, 99)}{unit}" if unit else "now"
