"""Items of a conversation as lines: laid out as they come and change, followed at the end.

However long a conversation is, only the lines on the screen are drawn, and a streaming answer
lays out only its unfinished end.
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
"""The least seconds between two drawings while somebody types: what they write comes first."""
_TYPING_SECONDS = 0.4
"""Seconds after a key for which somebody types."""
_LONGEST_PAUSE_SECONDS = 0.3
_HEAVY_CHARACTERS = 6_000
_BLANK = Line(Content())


class Flow:
    """Keeps the lines of all items at `width`, and which are whose, as items come and change."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.lines: list[Line] = []
        self.width = 0
        self._tops: list[int] = []  # where each item begins, with the blank lines before it
        self._starts: list[int] = []  # and without

    def lay_out(self, at: int, width: int) -> int:
        """Lay out the items from one on; returns the first line that may look different."""
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
            first += 1  # of a streaming answer, what is settled keeps its lines
        return first

    def _gap(self, at: int) -> int:
        return self.items[at].gap_after(self.items[at - 1]) if at else 0

    def index(self, item: Item) -> int:
        """The place of an item, -1 if it isn't there; the last ones are found fastest."""
        at = len(self.items) - 1
        while at >= 0 and self.items[at] is not item:
            at -= 1
        return at

    def item_at(self, line: int) -> Item | None:
        """The item that a line belongs to, or the one above a blank line."""
        at = bisect_right(self._starts, line) - 1
        return self.items[at] if 0 <= at < len(self.items) else None

    def span(self, item: Item) -> range:
        """The lines of an item."""
        at = self.index(item)
        if not 0 <= at < len(self._starts):
            return range(0)
        end = self._tops[at + 1] if at + 1 < len(self._tops) else len(self.lines)
        return range(self._starts[at], end)


class FlowView(LineView):
    """Shows items one below the other; what is much is laid out in a thread."""

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
        """True while the end is in view, so that what comes is scrolled to."""
        self._wanted_width = 0
        self._aside: dict[Item, None] = {}  # what is to be laid out in a thread, in order
        self._working_aside = False

    # Content

    @property
    def items(self) -> list[Item]:
        """All items, top to bottom; changed by the methods below only."""
        return self._flow.items

    def items_gone(self) -> None:
        """Called when items were taken out."""

    @property
    def text_width(self) -> int:
        """The cells of a line, beside the gutter, the margin and the scrollbar."""
        return max(8, super().text_width - GUTTER - _MARGIN)

    def add(self, *items: Item, before: Item | None = None) -> None:
        """Put items at the end, or before another."""
        at = len(self.items) if before is None else self.items.index(before)
        self.items[at:at] = items
        if not self.following:
            self._count_unseen(self._unseen + sum(1 for item in items if not item.dense))
        self._lay_out_from(at)

    def add_after(self, item: Item, items: Sequence[Item]) -> None:
        """Put items behind another, which is laid out again too."""
        at = self.items.index(item)
        self.items[at + 1 : at + 1] = items
        item.changed()
        self._lay_out_from(at)

    def take_out(self, *items: Item) -> None:
        """Take items out."""
        gone = {id(item) for item in items}
        places = [at for at, item in enumerate(self.items) if id(item) in gone]
        if places:
            self._flow.items = [item for item in self.items if id(item) not in gone]
            self.items_gone()
            self._lay_out_from(places[0])

    def show_items(self, items: Sequence[Item]) -> None:
        """Show other items, at their end."""
        self._flow.items = list(items)
        self._follow(follow=True)
        self.items_gone()
        self._lay_out_from(0)

    def prepend(self, items: Sequence[Item]) -> None:
        """Put earlier items before all others, without moving what is read."""
        height, top = len(self.lines), self.scroll_y
        self.items[:0] = items
        self.following = False
        self._lay_out_from(0)
        grown = len(self.lines) - height
        self.scroll_to(y=top + grown, animate=False, force=True, immediate=True)

    def item_changed(self, item: Item) -> None:
        """Lay an item out again with the next frame; any number of calls cost one layout."""
        at = self._flow.index(item)
        if at < 0:
            return
        item.changed()
        self._dirty = at if self._dirty is None else min(at, self._dirty)
        if self._timer is None:
            pause = min(_LONGEST_PAUSE_SECONDS, max(_FRAME_SECONDS, 4 * self._cost))
            self._timer = call_after(self, pause, self._frame)

    def on_mount(self) -> None:
        """While somebody types, draw when their letter is on the screen: see `_make_way`."""
        if isinstance(self.app, KeysInOrder):
            self.app.text_typed.subscribe(self, self._make_way, immediate=True)

    def _make_way(self, field: Widget) -> None:
        """Draw what came when the letter that was just typed has been drawn.

        The next letter is furthest away then, so it rarely meets a drawing that is under way.
        """
        if self._dirty is not None and monotonic() - self._drawn_at >= _TYPING_FRAME_SECONDS:
            field.call_later(self.screen.call_after_refresh, self._flush)

    def _frame(self) -> None:
        """Draw, unless somebody types: then the letters say when."""
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
        """Lay out the items from one on, and draw what came of it."""
        if not self.size.width:
            return  # the first resize comes back here
        if self._dirty is not None:
            at, self._dirty = min(at, self._dirty), None
        width = self._flow.width or self.text_width
        self._hold_heavy(self.items[at:], width)
        first = self._flow.lay_out(at, width)
        self.lines = self._flow.lines
        for index in [key for key in self._strips.keys() if key >= first]:  # noqa: SIM118
            self._strips.discard(index)
        self._take_height(len(self.lines))
        if self.following:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def _hold_heavy(self, items: Iterable[Item], width: int) -> None:
        """Leave to a thread what is much; the former lines are shown meanwhile."""
        heavy = [item for item in items if item.stale and item.weight > _HEAVY_CHARACTERS]
        for item in heavy:
            item.hold(width)
        self._lay_out_aside(heavy)

    def _take_height(self, lines: int) -> None:
        """Be as high as the lines; where more come, only the scrollbar has to know.

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

    def _lay_out_aside(self, items: Iterable[Item]) -> None:
        """Lay out much text in a thread; until that is done, the former lines are shown."""
        self._aside.update(dict.fromkeys(items))
        if self._aside and not self._working_aside:
            self._working_aside = True
            self.run_worker(self._work_aside(), group="layout")

    async def _work_aside(self) -> None:
        """Lay out what is heavy, again as long as more of it comes meanwhile."""
        while self._aside:
            items, width = list(self._aside), self._wanted_width or self.text_width
            self._aside.clear()
            for item in items:
                item.stale = False
                lines = await asyncio.to_thread(item.lay_out, width)
                is_changed = item.stale  # meanwhile, and these lines don't have it yet
                item.adopt(width, lines)
                item.stale = is_changed
            top = self._flow.item_at(round(self.scroll_y))
            below = self.scroll_y - self._flow.span(top).start if top is not None else 0
            if width != self._flow.width:
                self._take_width(width)
            elif any(places := [self._flow.index(item) + 1 for item in items]):
                self._lay_out_from(min(filter(None, places)) - 1)
                if not self.following and top is not None:
                    start = self._flow.span(top).start
                    self.scroll_to(y=start + below, animate=False, force=True, immediate=True)
        self._working_aside = False

    def _take_width(self, width: int) -> None:
        """Show everything at another width, keeping the item at the top."""
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
        """Follow the stream again when the end is reached, and stop when it is left."""
        super().watch_scroll_y(old, new)
        at_end = new >= self.max_scroll_y
        if at_end or new < old:
            self._follow(at_end)

    def _follow(self, follow: bool) -> None:
        self.following = follow
        if follow and self._unseen:
            self._count_unseen(0)

    def _count_unseen(self, count: int) -> None:
        """Say how many items came below while the person was reading above."""
        self._unseen = count
        self.border_subtitle = f"{count} new below ↓" if count else ""

    def to_end(self) -> None:
        """Go to the end and follow what comes."""
        self._follow(follow=True)
        self.scroll_end(animate=False, force=True, immediate=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay out for the new width; what is much is laid out beside the screen."""
        width = self._wanted_width = self.text_width
        if width == self._flow.width:
            if self.following:
                self.to_end()
        elif sum(item.weight for item in self.items) > _HEAVY_CHARACTERS and self._flow.width:
            self._lay_out_aside(self.items)
        else:
            self._take_width(width)
