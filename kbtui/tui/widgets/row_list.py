"""A virtualized list: only visible rows are drawn, so 10,000 of them cost as much as ten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kbtui.text import clean_line
from kbtui.tui.widgets.hints import last_parts
from kbtui.tui.widgets.line_view import Looks, style_parser, to_strip

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")
_CENTER_FROM_ROWS = 8
"""The height from which the text of an empty list is centred."""


class RowList(Looks, ScrollView, Generic[ItemT], can_focus=True):
    """A list of rows of equal height with a cursor.

    Each row shows one of the `items`. A subclass renders it in `render_row`, and calls
    `rows_changed` after changing the items in place.
    """

    ROW_HEIGHT: int = 1
    """The height of a row in lines."""
    CLICK_SELECTS: ClassVar[bool] = True
    """Whether one click selects; otherwise it moves the cursor, and a double click selects."""

    LOOKS: ClassVar[Mapping[str, str]] = {
        "rows--cursor": "bold on $primary 22%",
        "rows--cursor-blurred": "on $block-cursor-blurred-background",
        "rows--hover": "on $block-hover-background",
        "rows--strong": "bold",
        "rows--muted": "$text-muted",
        "rows--accent": "$text-accent",
        "rows--second": "$text-secondary",
        "rows--good": "$text-success",
        "rows--bad": "$text-error",
        "rows--match": "bold $text-warning",
        "rows--gone": "strike $text-muted",
    }
    FEW_COLORS: ClassVar[Mapping[str, str]] = {
        "rows--cursor": "bold $background on $foreground",
        "rows--cursor-blurred": "underline",
    }
    DEFAULT_CSS = """
    RowList {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        background: transparent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
    ]

    items: Sequence[ItemT] = ()
    """The items of the rows; replaced by `show`."""
    empty = "Nothing matches."
    """The text of an empty list."""
    cursor: reactive[int] = reactive(0, repaint=False)
    """The index of the current row; 0 in an empty list."""

    @dataclass
    class Highlighted(Message):
        """Posted when the cursor moves to another row or the row under it changes."""

        rows: RowList[Any]
        index: int

        @property
        def control(self) -> RowList[Any]:
            """The list, for selectors of ``@on``."""
            return self.rows

    class Selected(Highlighted):
        """Posted when a row is selected with Enter or the mouse."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._strips: LRUCache[tuple[int, int, str], list[Strip]] = LRUCache(512)
        self._hover = -1

    # For subclasses

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.items)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Return the lines of a row, at most `ROW_HEIGHT`; spans may use ``.rows--…`` styles."""
        del index, width
        return ()

    def empty_text(self) -> Content:
        """Return the text of an empty list."""
        return Content.styled(self.empty, ".rows--muted")

    # Content

    def show(self, items: Sequence[ItemT], cursor: int | None = None) -> None:
        """Replace the items; `cursor` is the new index of the current row."""
        self.items = items
        self.rows_changed(cursor)

    @property
    def item(self) -> ItemT | None:
        """The item under the cursor, or None in an empty list."""
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    def rows_changed(self, cursor: int | None = None) -> None:
        """Redraw after the items changed; `cursor` is the new index of the current row."""
        self._strips.clear()
        self._resize_canvas()
        target = self.cursor if cursor is None else cursor
        moved = self.validate_cursor(target) != self.cursor
        self.cursor = target
        if not moved:
            self.scroll_to_cursor()
            self._post_highlighted()
        self.refresh()

    def row_changed(self, index: int) -> None:
        """Redraw one row."""
        for key in [key for key in self._strips.keys() if key[0] == index]:  # noqa: SIM118
            self._strips.discard(key)
        self.refresh_lines(index * self.ROW_HEIGHT, self.ROW_HEIGHT)

    # Cursor

    def can_stop_on(self, index: int) -> bool:
        """Return whether the cursor may stop on a row; it skips the others."""
        del index
        return True

    def validate_cursor(self, cursor: int) -> int:
        """Clamp the cursor, and move it in its direction past rows that it skips."""
        cursor = max(0, min(cursor, self.row_count - 1))
        if not self.row_count or self.can_stop_on(cursor):
            return cursor
        onward, back = range(cursor, self.row_count), range(cursor, -1, -1)
        orders = (onward, back) if cursor >= self.cursor else (back, onward)
        return next((at for order in orders for at in order if self.can_stop_on(at)), cursor)

    def watch_cursor(self, old: int, new: int) -> None:
        for index in (old, new):
            self.refresh_lines(index * self.ROW_HEIGHT, self.ROW_HEIGHT)
        self.scroll_to_cursor()
        self._post_highlighted()

    def _post_highlighted(self) -> None:
        if self.row_count:
            self.post_message(self.Highlighted(self, self.cursor))

    def scroll_to_cursor(self) -> None:
        """Scroll just far enough to show the cursor's row."""
        self.scroll_to_row(self.cursor)

    def scroll_to_row(self, index: int) -> None:
        """Scroll just far enough to show a row."""
        if self.is_mounted and self.size.height:
            self.scroll_to_region(
                Region(0, index * self.ROW_HEIGHT, 1, self.ROW_HEIGHT),
                animate=False,
                force=True,
                immediate=True,
            )

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(1, self.size.height // self.ROW_HEIGHT - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = self.row_count - 1

    def action_select(self) -> None:
        if self.row_count:
            self.post_message(self.Selected(self, self.cursor))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; select the row if one click is enough, or on a double click."""
        index = self._row_at(event)
        if index < 0:
            return
        event.stop()
        self.cursor = index
        if self.CLICK_SELECTS or event.chain > 1:
            self.action_select()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._set_hover(self._row_at(event))

    def on_leave(self) -> None:
        self._set_hover(-1)

    def _row_at(self, event: events.MouseEvent) -> int:
        """Return the row under the mouse, or -1 if there is none, as on the list's frame."""
        at = event.get_content_offset(self)
        index = -1 if at is None else (at.y + round(self.scroll_y)) // self.ROW_HEIGHT
        return index if index < self.row_count else -1

    def _set_hover(self, index: int) -> None:
        if index != self._hover:
            for changed in (self._hover, index):
                self.refresh_lines(changed * self.ROW_HEIGHT, self.ROW_HEIGHT)
            self._hover = index

    # Drawing

    def on_resize(self) -> None:
        self._strips.clear()
        self._resize_canvas()
        self.scroll_to_cursor()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Redraw the rows: the cursor looks different without focus."""
        super().watch_has_focus(_has_focus)
        self._strips.clear()

    def _resize_canvas(self) -> None:
        width = self.scrollable_content_region.width
        lines = self.row_count * self.ROW_HEIGHT
        self.virtual_size = Size(width, lines or len(self._empty_lines(width)))

    def _empty_lines(self, width: int) -> list[Content]:
        return self.empty_text().wrap(max(1, width - 1))

    def _row_state(self, index: int) -> str:
        if index == self.cursor:
            return "rows--cursor" if self.has_focus else "rows--cursor-blurred"
        return "rows--hover" if index == self._hover else ""

    def _row_strips(self, index: int, width: int) -> list[Strip]:
        state = self._row_state(index)
        key = (index, width, state)
        strips = self._strips.get(key)
        if strips is None:
            base = self.get_visual_style(state) if state else self.visual_style
            # Other colours would be hard to read on the cursor's.
            parse = style_parser(self, colors=state != "rows--cursor")
            lines = list(self.render_row(index, width))[: self.ROW_HEIGHT]
            lines += [Content()] * (self.ROW_HEIGHT - len(lines))
            strips = [to_strip(line, width, base, parse) for line in lines]
            self._strips[key] = strips
        return strips

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index, line = divmod(y + round(self.scroll_y), self.ROW_HEIGHT)
        if 0 <= index < self.row_count:
            return self._row_strips(index, width)[line]
        centered = self.size.height >= _CENTER_FROM_ROWS
        lines = [] if self.row_count else self._empty_lines(width)
        if 0 <= (at := y - 2 * centered) < len(lines):
            text = lines[at].pad_left(1 + max(0, width - 1 - lines[at].cell_length) // 2 * centered)
            return to_strip(text, width, self.visual_style, style_parser(self))
        return Strip.blank(width, self.visual_style.rich_style)


def justified_row(left: Content, right: Content, width: int) -> Content:
    """Lay out a row with `left` and `right` aligned text; `right` shrinks first, to a third."""
    right = right.truncate(_right_room(left, width), ellipsis=True)
    left = left.truncate(max(4, width - right.cell_length - 3 * bool(right)), ellipsis=True)
    gap = max(0, width - left.cell_length - right.cell_length - 1)
    return left + Content(" " * gap) + right if right else left


def _right_room(left: Content, width: int) -> int:
    return max(0, width // 3, width - left.cell_length - 3)


class Choice(NamedTuple, Generic[ValueT]):
    """An option: the label shown, a detail at its right, its value, and a sign before it."""

    label: str
    detail: str
    value: ValueT
    sign: Content = Content()


class ChoiceList(RowList[Choice[Any]]):
    """A list of `Choice`s."""

    def __init__(
        self,
        choices: Sequence[Choice[Any]] = (),
        *,
        id: str | None = None,
    ) -> None:
        self.items = choices
        super().__init__(id=id)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        choice = self.items[index]
        label = Content.assemble(" ", choice.sign, clean_line(choice.label))
        detail = last_parts(clean_line(choice.detail), _right_room(label, width))
        return [justified_row(label, Content.styled(detail, ".rows--muted"), width)]
