"""The widget that shows Markdown, laid out in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
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
from kbtui.tui.terminal.graphics import graphics_of
from kbtui.tui.widgets.line_view import READABLE, Line

_FIRST_CHARACTERS = 20_000
"""Characters of a long text that are shown before the rest is laid out."""
_CONTEXT_LINES = 60
"""Lines of the file that are shown above the revealed one in the first part."""


def _first_part(source: SourceText, line: int | None) -> SourceText:
    """Return a part of a long text that fills the screen: its start, or the part around a line."""
    text, above = source.text, 0
    if line is not None and line > source.first_line + _CONTEXT_LINES:
        above = line - source.first_line - _CONTEXT_LINES
        text = text.split("\n", above)[-1]
        source = source._replace(first_line=source.first_line + above, properties=())
    cut = text.rfind("\n\n", 0, _FIRST_CHARACTERS)
    return source._replace(text=text[: cut if cut > 0 else _FIRST_CHARACTERS], below=())


class _Position(NamedTuple):
    """A reading position in lines of the file: scroll top, cursor, highlighted lines."""

    top: int
    cursor_line: int | None
    flashed: Sequence[int]


class MarkdownView(MarkdownLines):
    """A view of a `SourceText` that can scroll to lines of the file, with clickable links."""

    widest = READABLE

    @dataclass
    class LinkClicked(Message):
        """Posted when a link in the text is clicked."""

        link: LinkRef

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._source = SourceText("")
        self._links: list[LinkRef] = []
        self._layout_width = 0
        self._pending_reveal: tuple[int, int | None] | None = None
        self._pending_top: int | None = None
        self._cursor: int | None = None
        self._origins: Sequence[LineOrigin] | None = None
        self._outdated: frozenset[int] = frozenset()
        self._folds: Mapping[int, Fold] = {}
        self._fold_states: dict[int, bool] = {}
        self._is_preliminary = False

    def show(
        self,
        source: SourceText,
        *,
        reveal: tuple[int, int | None] | None = None,
        top: int | None = 0,
        more: bool = False,
    ) -> None:
        """Lay out and show a text, and scroll to lines of the file (`reveal`) or of the view.

        The last call wins, even if earlier ones finish later. `top` None keeps the reading
        position if possible. With `more`, another call with more data for the same text is about
        to follow, so only a part of a long text is laid out now.
        """
        self._source, self._is_preliminary = source, more
        if reveal is not None or top is not None:
            self._pending_reveal, self._pending_top = reveal, top  # else keep what is pending
        if top is not None:
            self._fold_states = {}
        self._layout_width = 0
        self._start_layout()

    def on_resize(self, _event: events.Resize) -> None:
        if self._layout_width and self.text_width != self._layout_width:
            self._pending_top = None
            self._start_layout()
        elif not self._layout_width and (self._source.text or self._source.below):
            self._start_layout()

    def _start_layout(self) -> None:
        # There is no width before the first layout; `on_resize` calls this again.
        if self.size.width:
            self._run_layout(self._source, self.text_width)

    @latest("layout")
    async def _run_layout(self, source: SourceText, width: int) -> None:
        reveal, top = self._pending_reveal, self._pending_top
        line = reveal[0] if reveal is not None else None
        if len(source.text) > 2 * _FIRST_CHARACTERS and (line is not None or top == 0):
            self._show_rendered(
                await self._render_source(_first_part(source, line), width, line), 0
            )
            if reveal is not None:
                self.reveal_source(*reveal)
            reveal = top = None
            if self._is_preliminary:
                self._pending_reveal = self._pending_top = None
                return
        rendered = await self._render_source(source, width, line)
        position = self._position() if top is None else None
        self._show_rendered(rendered, top)
        self._layout_width = width
        if self.text_width != width:
            # The width changed meanwhile; what is pending stays so.
            self._start_layout()
            return
        self._pending_reveal = self._pending_top = None
        if reveal is not None:
            self.reveal_source(*reveal)
        elif position is not None:
            self._restore_position(position)

    async def _render_source(self, source: SourceText, width: int, line: int | None) -> Rendered:
        """Lay out a text, and open the folds that contain `line`."""
        from kbtui.tui.markdown.layout import render

        if self.app.has_class("-few-colors"):
            plain = {ref: embed._replace(picture=None) for ref, embed in source.embeds.items()}
            source = source._replace(embeds=plain)
        rendered = await asyncio.to_thread(
            render, source, width, self._fold_states, line, graphics_of(self.app)
        )
        self._fold_states |= {
            at: True for at, fold in rendered.folds.items() if line in fold.lines[1:]
        }
        return rendered

    def _show_rendered(self, rendered: Rendered, top: int | None) -> None:
        self._links, self._folds = rendered.links, rendered.folds
        self._cursor = None
        self.show_lines(rendered.lines, top=top)
        self._fill_gutter()

    def _position(self) -> _Position:
        cursor_line = self.pointed_source if self.has_cursor else None
        # What comes above the first line is seen by whoever hasn't scrolled.
        top = self.top_source if round(self.scroll_y) else 0
        return _Position(top, cursor_line, [self.lines[at].source for at in self.flashed])

    def _restore_position(self, position: _Position) -> None:
        lines = self.lines_of_source(position.top)
        if lines and self.top_source != position.top:
            self.scroll_to(y=lines.start, animate=False, force=True, immediate=True)
        self._set_cursor(position.cursor_line)
        if position.flashed:
            self.flashed = self.lines_of_source(min(position.flashed), max(position.flashed))

    # The cursor: the line that keys act on

    @property
    def has_cursor(self) -> bool:
        """Whether the cursor is on a line."""
        return self._cursor is not None

    def reveal_source(self, first: int, last: int | None = None) -> None:
        """Scroll to lines of the file, flash them, and put the cursor on the first."""
        super().reveal_source(first, last)
        self._set_cursor(first)

    def _set_cursor(self, source_line: int | None) -> None:
        lines = self.lines_of_source(source_line) if source_line is not None else range(0)
        if lines:
            self._cursor = lines.start
            self._redraw()

    def move_cursor(self, by: int) -> None:
        """Move the cursor by some lines, scrolling if needed."""
        if not self.lines:
            return
        top, height = round(self.scroll_y), max(1, self.size.height)
        at = self._cursor
        if at is None or not top <= at < top + height:
            at = top - 1 if by > 0 else top + height  # the user scrolled away from the cursor
            at = min(at, len(self.lines))
        self._cursor = at = max(0, min(at + by, len(self.lines) - 1))
        if at < top:
            self.scroll_to(y=at, animate=False, force=True, immediate=True)
        elif at >= top + height:
            self.scroll_to(y=at - height + 1, animate=False, force=True, immediate=True)
        self._redraw()

    @property
    def pointed_source(self) -> int:
        """The line of the file at the cursor, or at the top of the screen if that is elsewhere."""
        top = round(self.scroll_y)
        if self._cursor is not None and top <= self._cursor < top + self.size.height:
            return self.lines[self._cursor].source
        return self.top_source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable `leaf`: the owner of the view binds Space."""
        return False if action == "leaf" else super().check_action(action, parameters)

    def toggle_fold(self) -> bool:
        """Fold or unfold the block at the cursor, and return whether there is one."""
        line = self.pointed_source
        fold = self._folds.get(line)
        if not self.has_cursor or fold is None:
            return False
        self._fold_states[line] = not fold.is_open
        self._pending_top = None
        self._start_layout()
        return True

    def links_here(self) -> list[LinkRef]:
        """Return the distinct links on the cursor's line, or without a cursor on the screen."""
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
        """Redraw: the cursor is only shown in the focused view."""
        super().watch_has_focus(value)
        self._redraw()

    # The gutter of authors

    def show_authors(self, origins: Sequence[LineOrigin] | None) -> None:
        """Show a gutter of who wrote each line of the file; None removes it.

        An empty sequence reserves its width until the origins are known.
        """
        self._origins = origins
        self._change_gutter()

    def mark_outdated(self, lines: Iterable[int]) -> None:
        """Mark lines of the file in the margin: a newer line holds instead of each."""
        self._outdated = frozenset(lines)
        self._change_gutter()

    def _change_gutter(self) -> None:
        before = self.gutter_width
        self._fill_gutter()
        if self.gutter_width != before and self._layout_width:
            self._pending_top = None
            self._start_layout()

    def _fill_gutter(self) -> None:
        if self._origins is not None:
            width = NARROW_WIDTH if self.size.width < NARROW else WIDTH
            self.set_gutter(width, AuthorsGutter(self.lines, self._origins, width))
        elif self._outdated:
            self.set_gutter(NARROW_WIDTH, self._outdated_mark)
        else:
            self.set_gutter(0, None)

    def _outdated_mark(self, index: int) -> Content:
        """Return the mark before a line of the view if it begins an outdated one of the file."""
        source = self.lines[index].source
        is_first = not index or self.lines[index - 1].source != source
        shown = OUTDATED if is_first and source in self._outdated else ""
        return Content.styled(shown, "$text-warning")

    def on_click(self, event: events.Click) -> None:
        """Follow the link under the mouse, or move the cursor there and toggle its fold."""
        number = event.style.meta.get("link")
        if isinstance(number, int) and number < len(self._links):
            event.stop()
            self.post_message(self.LinkClicked(self._links[number]))
        elif (at := round(self.scroll_y) + event.y) < len(self.lines):
            self._cursor = at
            self._redraw()
            self.toggle_fold()


WIDTH = 7
OUTDATED = "\N{NORTH EAST ARROW}"
"""The mark of a line of which a newer one is known."""
NARROW_WIDTH = 2
"""Width of the gutter without the age, in views narrower than `NARROW`."""
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
    """A gutter of the author and age of each line; consecutive lines of one commit show it once.

    `origins` has the origin of each line of the file; ages are relative to `now`.
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
        """Return the gutter of one line of the view."""
        origin = self._origin_at(index)
        if origin is None:
            return Content()
        letter = (origin.origin.author or origin.actor.letter)[0]
        style = f"$text-{origin.actor.colour}"
        before = self._origin_at(index - 1) if index else None
        if before is not None and before.commit == origin.commit:
            return Content.styled("│", f"{style} dim")
        if self._width < WIDTH:
            return Content.styled(letter, style)
        return Content.assemble((letter, style), (f" {age(origin.time, self._now)}", "$text-muted"))

    def _origin_at(self, index: int) -> LineOrigin | None:
        number = self._lines[index].source - 1
        return self._origins[number] if 0 <= number < len(self._origins) else None


def age(time: datetime | None, now: datetime) -> str:
    """Format an age in at most four cells; ``new`` if the time isn't recorded yet."""
    if time is None:
        return "new"
    passed = now - time
    count, unit = next(
        ((passed // length, unit) for length, unit in _UNITS if passed >= length), (0, "")
    )
    return f"{min(count, 99)}{unit}" if unit else "now"
