"""The items of a conversation, one below the other as lines."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from textual.content import Content

from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.tui.chat.items import Item

_BLANK = Line(Content())


class Flow:
    """Keeps the lines of all items, and which lines are whose, as items come and change.

    Attributes:
        items: Top to bottom.
        lines: What they look like at `width`, with the blank lines between them.
        width: The cells of a line; 0 before the first layout.
    """

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


def prepare(items: Iterable[Item], width: int) -> None:
    """Lay items out ahead, so that showing them costs nothing; for threads."""
    for item in items:
        item.lines(width)
