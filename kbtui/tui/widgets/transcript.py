"""The conversation as it is read: one scrolling view of items, drawn line by line.

However long a conversation is, only the lines on the screen are drawn, and a streaming answer
lays out only its unfinished end.
"""

from __future__ import annotations

from bisect import bisect_right
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.style import Style

from kbtui.tui.actions import bindings
from kbtui.tui.chat.styles import STYLES
from kbtui.tui.widgets.line_view import Line, LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.binding import BindingType
    from textual.timer import Timer

    from kbtui.tui.chat.items import Item, Target

_GUTTER = 2
_MARGIN = 1
_FRAME = 1 / 25
_LONGEST_PAUSE = 0.3
_BLANK = Line(Content())
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

    class Follow(Message):
        """How many items came below while the person was reading above."""

        def __init__(self, unseen: int) -> None:
            super().__init__()
            self.unseen = unseen

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.items: list[Item] = []
        self._tops: list[int] = []  # where each item begins, with the blank lines before it
        self._starts: list[int] = []  # and without
        self._cursor: Item | None = None
        self._laid_out_for = 0
        self._dirty: int | None = None
        self._timer: Timer | None = None
        self._cost = 0.0
        self._unseen = 0
        self._following = True

    # Content

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
            self.items = [item for item in self.items if id(item) not in gone]
            self._lay_out_from(places[0])

    def show_items(self, items: Sequence[Item]) -> None:
        """Show other items, at their end."""
        self.items = list(items)
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
        item.changed()
        at = len(self.items) - 1
        while at >= 0 and self.items[at] is not item:
            at -= 1
        if at < 0:
            return
        self._dirty = at if self._dirty is None else min(at, self._dirty)
        if self._timer is None:
            pause = min(_LONGEST_PAUSE, max(_FRAME, 4 * self._cost))
            self._timer = self.set_timer(pause, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._dirty is not None:
            started = monotonic()
            self._lay_out_from(self._dirty)
            self._cost = monotonic() - started

    def _lay_out_from(self, at: int) -> None:
        """Lay out the items from one on, and put their lines in place of the former ones."""
        width = self.text_width
        if not self.size.width:
            return  # the first resize comes back here
        at, self._dirty = (at if self._dirty is None else min(at, self._dirty)), None
        if width != self._laid_out_for:
            at, self._laid_out_for = 0, width
        lines = list(self.lines)
        start = self._tops[at] if at < len(self._tops) else len(lines)
        del lines[start:], self._starts[at:], self._tops[at:]
        for index in range(at, len(self.items)):
            self._tops.append(len(lines))
            lines += [_BLANK] * self._gap(index)
            self._starts.append(len(lines))
            lines += self.items[index].lines(width)
        self._put(lines, start)

    def _gap(self, at: int) -> int:
        return self.items[at].gap_after(self.items[at - 1]) if at else 0

    def _put(self, lines: list[Line], start: int) -> None:
        self.lines = lines
        for index in [key for key in self._strips.keys() if key >= start]:  # noqa: SIM118
            self._strips.discard(index)
        self.virtual_size = Size(self.size.width, len(lines))
        if self._following:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

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
        """Lay out for the new width, keeping the item at the top."""
        if self.text_width == self._laid_out_for:
            if self._following:
                self.to_end()
            return
        following, top = self._following, self._item_at(round(self.scroll_y))
        self._lay_out_from(0)
        if following:
            self.to_end()
        elif top is not None:
            self.scroll_to(
                y=self._starts[self.items.index(top)], animate=False, force=True, immediate=True
            )

    # The selected item

    @property
    def cursor(self) -> Item | None:
        """The item that keys act on."""
        return self._cursor

    def select(self, item: Item | None) -> None:
        """Select an item and bring it into view."""
        self._cursor = item
        self._redraw()
        if item is None:
            return
        at = self.items.index(item)
        first = self._starts[at]
        last = first + len(item.lines(self._laid_out_for))
        top, height = self.scroll_y, self.size.height
        if first < top or last - first >= height:
            self.scroll_to(y=max(0, first - 1), animate=False, force=True, immediate=True)
        elif last > top + height:
            self.scroll_to(y=last - height, animate=False, force=True, immediate=True)

    def on_focus(self) -> None:
        """Something is selected as long as keys come here."""
        if self._cursor is None and self.items:
            self.select(self.items[-1])
        self._redraw()

    def on_blur(self) -> None:
        """The bar beside the selected item goes."""
        self._redraw()

    def _item_at(self, line: int) -> Item | None:
        at = bisect_right(self._starts, line) - 1
        return self.items[at] if 0 <= at < len(self.items) else None

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
        item = self._item_at(event.y + round(self.scroll_y))
        if item is None:
            return
        self.select(item)
        number = event.style.meta.get("target")
        target = item.linked(number) if isinstance(number, int) else None
        if target is not None:
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
        bar = "  "
        if self._cursor is not None and self.has_focus and index < len(self.lines):
            at = bisect_right(self._starts, index) - 1
            if at >= 0 and self.items[at] is self._cursor and self._within(at, index):
                bar = "▌ "
        style = self.get_visual_style("chat--cursor").rich_style
        return Strip.join([Strip([Segment(bar, style)], _GUTTER), body]).crop(0, self.size.width)

    def _within(self, at: int, line: int) -> bool:
        return line < self._starts[at] + len(self.items[at].lines(self._laid_out_for))

    def _welcome_line(self, y: int) -> Strip:
        """An empty conversation says what it is for, at the foot of the pane."""
        width = self.size.width
        at = y - (self.size.height - len(WELCOME) - 1)
        text = WELCOME[at] if 0 <= at < len(WELCOME) else ""
        style = self.get_visual_style("chat--muted").rich_style
        return Strip([Segment(f"   {text}"[:width].ljust(width), style)], width)
