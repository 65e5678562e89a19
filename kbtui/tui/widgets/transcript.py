"""The conversation as it is read: one scrolling view of items, drawn line by line.

However long a conversation is, only the lines on the screen are drawn, and a streaming answer
lays out only its unfinished end.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.style import Style

from kbtui.tui.actions import bindings
from kbtui.tui.chat.flow import Flow
from kbtui.tui.chat.styles import STYLES
from kbtui.tui.widgets.line_view import LineView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.binding import BindingType
    from textual.timer import Timer

    from kbtui.tui.chat.items import Item, Target
    from kbtui.tui.markdown.inline import LinkRef

_GUTTER = 2
_MARGIN = 1
_FRAME = 1 / 25
_LONGEST_PAUSE = 0.3
_HEAVY = 6_000
WELCOME = (
    "Tell me what is worth keeping, or ask what you once knew.",
    "",
    "/  commands     @  entries     F1  help     /resume  goes on",
)


class Transcript(LineView, can_focus=True):
    """Shows items; one of them is selected while it has the focus, and keys act on that."""

    BINDING_GROUP_TITLE = "Conversation"
    HELP = "j and k select a message; what is below acts on it."
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("transcript")]

    class Act(Message):
        """Something is to be done with an item: `verb` is the name of an action's method."""

        def __init__(self, verb: str, item: Item) -> None:
            super().__init__()
            self.verb = verb
            self.item = item

    class Open(Message):
        """Lines of a file are to be shown."""

        def __init__(self, target: Target) -> None:
            super().__init__()
            self.target = target

    class Link(Message):
        """A link in an answer was clicked."""

        def __init__(self, link: LinkRef) -> None:
            super().__init__()
            self.link = link

    class Follow(Message):
        """How many items came below while the person was reading above."""

        def __init__(self, unseen: int) -> None:
            super().__init__()
            self.unseen = unseen

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._flow = Flow()
        self._cursor: Item | None = None
        self._dirty: int | None = None
        self._timer: Timer | None = None
        self._cost = 0.0
        self._unseen = 0
        self._following = True
        self._wanted_width = 0
        self._aside: dict[Item, None] = {}  # what is to be laid out in a thread, in order
        self._working_aside = False

    # Content

    @property
    def items(self) -> list[Item]:
        """All items, top to bottom; changed by the methods below only."""
        return self._flow.items

    @property
    def text_width(self) -> int:
        """The cells of a line, beside the gutter, the margin and the scrollbar."""
        return max(8, super().text_width - _GUTTER - _MARGIN)

    @property
    def following(self) -> bool:
        """Whether the end is in view, so that what comes is scrolled to."""
        return self._following

    def add(self, *items: Item, before: Item | None = None) -> None:
        """Put items at the end, or before another."""
        at = len(self.items) if before is None else self.items.index(before)
        self.items[at:at] = items
        if not self._following:
            self._unseen += sum(1 for item in items if not item.dense)
            self.post_message(self.Follow(self._unseen))
        self._lay_out_from(at)

    def add_after(self, item: Item, items: Sequence[Item]) -> None:
        """Put items behind another, which is laid out anew too."""
        at = self.items.index(item)
        self.items[at + 1 : at + 1] = items
        item.changed()
        self._lay_out_from(at)

    def take_out(self, *items: Item) -> None:
        """Take items out."""
        gone = {id(item) for item in items}
        places = [at for at, item in enumerate(self.items) if id(item) in gone]
        if places:
            if self._cursor is not None and id(self._cursor) in gone:
                self._cursor = None
            self._flow.items = [item for item in self.items if id(item) not in gone]
            self._lay_out_from(places[0])

    def show_items(self, items: Sequence[Item]) -> None:
        """Show other items, at their end."""
        self._flow.items = list(items)
        self._cursor, self._following, self._unseen = None, True, 0
        self.post_message(self.Follow(0))
        self._lay_out_from(0)

    def prepend(self, items: Sequence[Item]) -> None:
        """Put earlier items before all others, without moving what is read."""
        height, top = len(self.lines), self.scroll_y
        self.items[:0] = items
        self._following = False
        self._lay_out_from(0)
        grown = len(self.lines) - height
        self.scroll_to(y=top + grown, animate=False, force=True, immediate=True)

    def item_changed(self, item: Item) -> None:
        """Lay an item out anew with the next frame; any number of calls cost one layout."""
        at = self._flow.index(item)
        if at < 0:
            return
        item.changed()
        self._dirty = at if self._dirty is None else min(at, self._dirty)
        if self._timer is None:
            pause = min(_LONGEST_PAUSE, max(_FRAME, 4 * self._cost))
            self._timer = self.set_timer(pause, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._dirty is None:
            return
        started = monotonic()
        changed = [item for item in self.items[self._dirty :] if item.stale]
        heavy = [item for item in changed if item.weight > _HEAVY]
        for item in heavy:
            item.hold(self._flow.width)
        self._lay_out_aside(heavy)
        self._lay_out_from(self._dirty)
        self._cost = monotonic() - started

    def _lay_out_from(self, at: int) -> None:
        """Lay out the items from one on, and draw what came of it."""
        if not self.size.width:
            return  # the first resize comes back here
        at, self._dirty = (at if self._dirty is None else min(at, self._dirty)), None
        first = self._flow.lay_out(at, self._flow.width or self.text_width)
        self.lines = self._flow.lines
        for index in [key for key in self._strips.keys() if key >= first]:  # noqa: SIM118
            self._strips.discard(index)
        self._take_height(len(self.lines))
        if self._following:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def _take_height(self, lines: int) -> None:
        """Be as high as the lines; where more come, only the scrollbar has to know.

        Otherwise every line of a stream would lay out the whole screen, which takes 15 ms.
        """
        size, room = Size(self.size.width, lines), self.container_size.height
        grows = size.width == self.virtual_size.width and lines >= self.virtual_size.height
        if grows and (lines > room) == self.show_vertical_scrollbar:
            self.set_reactive(Transcript.virtual_size, size)
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
            items, width = list(self._aside), self._wanted_width
            self._aside.clear()
            for item in items:
                item.adopt(width, await asyncio.to_thread(item.lay_out, width))
            if width != self._flow.width:
                self._take_width(width)
            elif any(places := [self._flow.index(item) + 1 for item in items]):
                self._lay_out_from(min(filter(None, places)) - 1)
        self._working_aside = False

    def _take_width(self, width: int) -> None:
        """Show everything at another width, keeping the item at the top."""
        top = self._flow.item_at(round(self.scroll_y))
        self._flow.width = width
        self._strips.clear()
        self._flow.lay_out(0, width)
        self._lay_out_from(len(self.items))
        if not self._following and top is not None:
            start = self._flow.span(top).start
            self.scroll_to(y=start, animate=False, force=True, immediate=True)

    # Scrolling

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Follow the stream again when the end is reached, and stop when it is left."""
        super().watch_scroll_y(old, new)
        at_end = new >= self.max_scroll_y
        if at_end or new < old:
            self._follow(at_end)

    def _follow(self, follow: bool) -> None:  # noqa: FBT001
        self._following = follow
        if follow and self._unseen:
            self._unseen = 0
            self.post_message(self.Follow(0))

    def to_end(self) -> None:
        """Go to the end and follow what comes."""
        self._follow(follow=True)
        self.scroll_end(animate=False, force=True, immediate=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay out for the new width; what is much is laid out beside the screen."""
        width = self._wanted_width = self.text_width
        if width == self._flow.width:
            if self._following:
                self.to_end()
        elif sum(item.weight for item in self.items) > _HEAVY and self._flow.width:
            self._lay_out_aside(self.items)
        else:
            self._take_width(width)

    # The selected item

    @property
    def cursor(self) -> Item | None:
        """The item that keys act on."""
        return self._cursor

    def select(self, item: Item | None) -> None:
        """Select an item and bring it into view."""
        self._cursor = item
        self.refresh()
        lines = self._flow.span(item) if item is not None else range(0)
        if not lines:
            return
        top, height = self.scroll_y, self.size.height
        if lines.start < top or len(lines) >= height:
            self.scroll_to(y=max(0, lines.start - 1), animate=False, force=True, immediate=True)
        elif lines.stop > top + height:
            self.scroll_to(y=lines.stop - height, animate=False, force=True, immediate=True)

    def on_focus(self) -> None:
        """Something is selected as long as keys come here."""
        if self._cursor is None and self.items:
            self.select(self.items[-1])
        self.refresh()

    def on_blur(self) -> None:
        """The bar beside the selected item goes."""
        self.refresh()

    def _move(self, step: int) -> None:
        if not self.items:
            return
        at = self.items.index(self._cursor) if self._cursor in self.items else len(self.items)
        self.select(self.items[max(0, min(at + step, len(self.items) - 1))])

    # Actions

    def action_next(self) -> None:
        """Select the next item; behind the last one, go to the very end."""
        if self.items and self._cursor is self.items[-1]:
            self.to_end()
        else:
            self._move(1)

    def action_previous(self) -> None:
        """Select the item before."""
        self._move(-1)

    def action_first(self) -> None:
        """Select the first item."""
        self._move(-len(self.items))
        self.scroll_home(animate=False, force=True, immediate=True)

    def action_last(self) -> None:
        """Select the last item and follow the stream."""
        self._move(len(self.items))
        self.to_end()

    def action_expand(self) -> None:
        """Show or hide details, or follow where the item leads."""
        self._act("expand")

    def action_copy(self) -> None:
        """Copy the item's Markdown."""
        self._act("copy")

    def action_copy_code(self) -> None:
        """Copy its code blocks."""
        self._act("copy_code")

    def action_edit(self) -> None:
        """Take it back into the prompt."""
        self._act("edit")

    def action_retry(self) -> None:
        """Ask for another answer."""
        self._act("retry")

    def action_save(self) -> None:
        """Keep it as an entry."""
        self._act("save")

    def action_undo(self) -> None:
        """Take back what its turn changed."""
        self._act("undo")

    def action_open(self) -> None:
        """Open the line that it cites, or the entry that it changed."""
        target = None if self._cursor is None else self._target_of(self._cursor)
        if target is not None:
            self.post_message(self.Open(target))

    def _target_of(self, item: Item) -> Target | None:
        """Where an item leads; an answer leads where its first citation does."""
        if item.target is not None or item.dense:
            return item.target
        below = self.items[self.items.index(item) + 1 :][:1]
        return below[0].target if below and below[0].dense else None

    def _act(self, verb: str) -> None:
        if self._cursor is not None:
            self.post_message(self.Act(verb, self._cursor))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; follow a link, open or close a card."""
        item = self._flow.item_at(event.y + round(self.scroll_y))
        if item is None:
            return
        self.select(item)
        number, link_number = (event.style.meta.get(name) for name in ("target", "link"))
        target = item.linked(number) if isinstance(number, int) else None
        link = item.link(link_number) if isinstance(link_number, int) else None
        if link is not None:
            self.post_message(self.Link(link))
        elif target is not None:
            self.post_message(self.Open(target))
        elif item.click == "open":
            self.action_open()
        elif item.click:
            self._act(item.click)

    # Drawing

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        """The looks of a part, from a table in place of component classes."""
        text = STYLES.get(component_classes[0]) if component_classes else None
        if text is None:
            return super().get_visual_style(*component_classes, partial=partial)
        style = Style.parse(text)
        return style if partial else self.visual_style + style

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen: the bar of the selected item, then the text."""
        if not self.items:
            return self._welcome_line(y)
        index = y + round(self.scroll_y)
        body = super().render_line(y)
        marked = self._cursor if self.has_focus else None
        bar = "▌ " if marked is not None and index in self._flow.span(marked) else "  "
        style = self.get_visual_style("chat--cursor").rich_style
        return Strip.join([Strip([Segment(bar, style)], _GUTTER), body]).crop(0, self.size.width)

    def _welcome_line(self, y: int) -> Strip:
        """An empty conversation says what it is for, at the foot of the pane."""
        width = self.size.width
        at = y - (self.size.height - len(WELCOME) - 1)
        text = WELCOME[at] if 0 <= at < len(WELCOME) else ""
        style = self.get_visual_style("chat--muted").rich_style
        return Strip([Segment(f"   {text}"[:width].ljust(width), style)], width)
