"""A scrolling view of conversation items, laid out incrementally as they come and change.

However long a conversation is, only visible lines are rendered, and a streaming answer lays out
only its unfinished end.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from kbtui.tui.terminal.background import call_after
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.line_view import READABLE, Line, LineView

if TYPE_CHECKING:
    from kbtui.tui.chat.conversation.items import Item

GUTTER = 2
_MARGIN = 1
_FRAME_SECONDS = 1 / 25
_TYPING_FRAME_SECONDS = 1 / 8
"""The minimum interval of redraws while the person types: their input takes priority."""
_TYPING_SECONDS = 0.4
"""How long after a key the person counts as typing."""
_MAX_PAUSE_SECONDS = 0.3
_LARGE_CHARACTERS = 6_000
_BLANK = Line(Content())


class Flow:
    """The lines of all items at `width`, and their ranges."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.lines: list[Line] = []
        self.width = 0
        self._tops: list[int] = []  # the start of each item, including the blank lines before it
        self._starts: list[int] = []  # and without them

    def lay_out(self, at: int, width: int) -> int:
        """Lay out the items from index `at` on; return the first line that may have changed."""
        if width != self.width:
            at, self.width = 0, width
        first = self._tops[at] if at < len(self._tops) else len(self.lines)
        lines = self.lines[:first]
        del self._starts[at:], self._tops[at:]
        for index in range(at, len(self.items)):
            self._tops.append(len(lines))
            lines += [_BLANK] * self._gap(index)
            self._starts.append(len(lines))
            lines += self.items[index].lines(width)
        former, self.lines = self.lines, lines
        while first < min(len(former), len(lines)) and former[first] is lines[first]:
            first += 1  # the settled part of a streaming answer keeps its lines
        return first

    def _gap(self, at: int) -> int:
        return self.items[at].gap_after(self.items[at - 1]) if at else 0

    def index(self, item: Item) -> int:
        """Return the index of an item or -1, searching from the end."""
        at = len(self.items) - 1
        while at >= 0 and self.items[at] is not item:
            at -= 1
        return at

    def item_at(self, line: int) -> Item | None:
        """Return the item at a line; a blank line belongs to the item above."""
        at = bisect_right(self._starts, line) - 1
        return self.items[at] if 0 <= at < len(self.items) else None

    def span(self, item: Item) -> range:
        """Return the range of an item's lines."""
        at = self.index(item)
        if not 0 <= at < len(self._starts):
            return range(0)
        end = self._tops[at + 1] if at + 1 < len(self._tops) else len(self.lines)
        return range(self._starts[at], end)


class FlowView(LineView):
    """A view of items one below another; large ones are laid out in a thread."""

    widest = READABLE

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._flow = Flow()
        self._dirty: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._cost = 0.0
        self._drawn_at = 0.0
        self._unseen = 0
        self.following = True
        """Whether the end is in view, so that new lines are scrolled to."""
        self._wanted_width = 0
        self._deferred: dict[Item, None] = {}  # an ordered set: the items to lay out in a thread
        self._deferred_running = False

    # Content

    @property
    def items(self) -> list[Item]:
        """All items, top to bottom; modified only by the methods below."""
        return self._flow.items

    def items_gone(self) -> None:
        """Handle the removal of items."""

    @property
    def text_width(self) -> int:
        """The width of a line in cells, without the gutter, the margin and the scrollbar."""
        return max(8, super().text_width - GUTTER - _MARGIN)

    def add(self, *items: Item, before: Item | None = None) -> None:
        """Append items, or insert them before another."""
        at = len(self.items) if before is None else self.items.index(before)
        self.items[at:at] = items
        if not self.following:
            self._count_unseen(self._unseen + sum(1 for item in items if not item.dense))
        self._lay_out_from(at)

    def add_after(self, item: Item, items: Sequence[Item]) -> None:
        """Insert items after another, which is laid out again too."""
        at = self.items.index(item)
        self.items[at + 1 : at + 1] = items
        item.changed()
        self._lay_out_from(at)

    def take_out(self, *items: Item) -> None:
        """Remove items."""
        removed = {id(item) for item in items}
        places = [at for at, item in enumerate(self.items) if id(item) in removed]
        if places:
            self._flow.items = [item for item in self.items if id(item) not in removed]
            self.items_gone()
            self._lay_out_from(places[0])

    def show_items(self, items: Sequence[Item]) -> None:
        """Replace all items, and scroll to the end."""
        self._flow.items = list(items)
        self._follow(follow=True)
        self.items_gone()
        self._lay_out_from(0)

    def prepend(self, items: Sequence[Item]) -> None:
        """Insert items at the top, without moving the visible ones."""
        height, top = len(self.lines), self.scroll_y
        self.items[:0] = items
        self.following = False
        self._lay_out_from(0)
        grown = len(self.lines) - height
        self.scroll_to(y=top + grown, animate=False, force=True, immediate=True)

    def item_changed(self, item: Item) -> None:
        """Schedule a layout of an item with the next frame; several calls cost one layout."""
        at = self._flow.index(item)
        if at < 0:
            return
        item.changed()
        self._dirty = at if self._dirty is None else min(at, self._dirty)
        if self._timer is None:
            pause = min(_MAX_PAUSE_SECONDS, max(_FRAME_SECONDS, 4 * self._cost))
            self._timer = call_after(self, pause, self._frame)

    def on_mount(self) -> None:
        if isinstance(self.app, KeysInOrder):
            self.app.text_typed.subscribe(self, self._draw_after_key, immediate=True)

    def _draw_after_key(self, field: Widget) -> None:
        """Redraw right after the letter just typed was drawn.

        The next letter is furthest away then, so it rarely has to wait for a redraw.
        """
        if self._dirty is not None and monotonic() - self._drawn_at >= _TYPING_FRAME_SECONDS:
            field.call_later(self.screen.call_after_refresh, self._flush)

    def _frame(self) -> None:
        """Redraw, unless the person is typing: then `_draw_after_key` does it."""
        self._timer = None
        if (left := self._typed_at() + _TYPING_SECONDS - monotonic()) > 0:
            self._timer = call_after(self, left, self._frame)
        else:
            self._flush()

    def _typed_at(self) -> float:
        return self.app.typed_at if isinstance(self.app, KeysInOrder) else 0.0

    def _flush(self) -> None:
        if self._dirty is None:
            return
        self._drawn_at = started = monotonic()
        self._lay_out_from(self._dirty)
        self._cost = monotonic() - started

    def _lay_out_from(self, at: int) -> None:
        """Lay out the items from index `at` on, and redraw."""
        if not self.size.width:
            return  # the first resize comes back here
        if self._dirty is not None:
            at, self._dirty = min(at, self._dirty), None
        width = self._flow.width or self.text_width
        self._defer_large(self.items[at:], width)
        first = self._flow.lay_out(at, width)
        self.lines = self._flow.lines
        for index in [key for key in self._strips.keys() if key >= first]:  # noqa: SIM118
            self._strips.discard(index)
        self._set_height(len(self.lines))
        if self.following:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def _defer_large(self, items: Iterable[Item], width: int) -> None:
        """Hand large items to a thread, and show their former lines meanwhile."""
        large = [item for item in items if item.stale and item.weight > _LARGE_CHARACTERS]
        for item in large:
            item.hold(width)
        self._defer_layout(large)

    def _set_height(self, lines: int) -> None:
        """Set the virtual height; if it grows, update only the scrollbar.

        Otherwise every line of a stream would lay out the whole screen, which takes 15 ms.
        """
        size, room = Size(self.size.width, lines), self.container_size.height
        grows = size.width == self.virtual_size.width and lines >= self.virtual_size.height
        if grows and (lines > room) == self.show_vertical_scrollbar:
            self.set_reactive(FlowView.virtual_size, size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = lines
        else:
            self.virtual_size = size

    def _defer_layout(self, items: Iterable[Item]) -> None:
        """Lay out items in a thread; until that is done, their former lines are shown."""
        self._deferred.update(dict.fromkeys(items))
        if self._deferred and not self._deferred_running:
            self._deferred_running = True
            self.run_worker(self._lay_out_deferred(), group="layout")

    async def _lay_out_deferred(self) -> None:
        """Lay out the items handed over, including those that arrive meanwhile."""
        while self._deferred:
            items, width = list(self._deferred), self._wanted_width or self.text_width
            self._deferred.clear()
            for item in items:
                item.stale = False
                lines = await asyncio.to_thread(item.lay_out, width)
                is_changed = item.stale  # it changed meanwhile, so these lines are outdated
                item.adopt(width, lines)
                item.stale = is_changed
            top = self._flow.item_at(round(self.scroll_y))
            below = self.scroll_y - self._flow.span(top).start if top is not None else 0
            if width != self._flow.width:
                self._set_width(width)
            elif any(places := [self._flow.index(item) + 1 for item in items]):
                self._lay_out_from(min(filter(None, places)) - 1)
                if not self.following and top is not None:
                    start = self._flow.span(top).start
                    self.scroll_to(y=start + below, animate=False, force=True, immediate=True)
        self._deferred_running = False

    def _set_width(self, width: int) -> None:
        """Lay out everything for another width, keeping the item at the top in place."""
        top = self._flow.item_at(round(self.scroll_y))
        self._flow.width = width
        self._strips.clear()
        self._flow.lay_out(0, width)
        self._lay_out_from(len(self.items))
        if not self.following and top is not None:
            start = self._flow.span(top).start
            self.scroll_to(y=start, animate=False, force=True, immediate=True)

    # Scrolling

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Follow the stream again at the end, and stop following when the person scrolls up."""
        super().watch_scroll_y(old, new)
        at_end = new >= self.max_scroll_y
        if at_end or new < old:
            self._follow(at_end)

    def _follow(self, follow: bool) -> None:
        self.following = follow
        if follow and self._unseen:
            self._count_unseen(0)

    def _count_unseen(self, count: int) -> None:
        """Show how many items arrived below while the person was reading above."""
        self._unseen = count
        self.border_subtitle = f"{count} new below ↓" if count else ""

    def to_end(self) -> None:
        """Scroll to the end and follow new lines."""
        self._follow(follow=True)
        self.scroll_end(animate=False, force=True, immediate=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay out for the new width, in a thread if there is much text."""
        width = self._wanted_width = self.text_width
        if width == self._flow.width:
            if self.following:
                self.to_end()
        elif sum(item.weight for item in self.items) > _LARGE_CHARACTERS and self._flow.width:
            self._defer_layout(self.items)
        else:
            self._set_width(width)
