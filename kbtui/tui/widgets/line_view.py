"""A virtualized scrolling text view: only visible lines are drawn."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.color import Color
from textual.content import Content, Span
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from kbtui.tui.widgets.kinds import KIND_STYLE, kind_colour

READABLE = 100
"""The widest lines of running text, in cells."""
_MUTED_ALPHA = 0.6
FLASH_SECONDS = 1.6
"""How long revealed lines stay highlighted."""


_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_AMBIGUOUS_WIDTH = re.compile(
    f"\u200d[{_EMOJI}]|[\ufe0e\ufe0f\u20e3]|(?<=[{_EMOJI}])[\U0001f3fb-\U0001f3ff]"
)


def strip_ambiguous(text: str) -> str:
    """Remove the joined parts of emoji, on whose width terminals disagree.

    A family keeps its first member, a hand loses its skin tone. Some terminals draw such a sequence
    as one emoji and others as several, which would shift the frame to the right of it.
    """
    return text if text.isascii() else _AMBIGUOUS_WIDTH.sub("", text)


if TYPE_CHECKING:
    _WidgetBase = Widget
else:
    _WidgetBase = object  # a mixin: Textual takes styles and keys from the first widget base


class Looks(_WidgetBase):
    """A mixin with named styles for the parts of a widget, used by spans and fills.

    They replace component classes, each of which costs the stylesheet a pass over all rules, at
    start-up and whenever the focus moves.
    """

    LOOKS: ClassVar[Mapping[str, str]] = {}
    FEW_COLORS: ClassVar[Mapping[str, str]] = {}
    """Overrides for terminals with 16 colours or none."""

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        name = component_classes[0] if component_classes else ""
        looks = self.LOOKS
        if name in self.FEW_COLORS and self.app.has_class("-few-colors"):
            looks = self.FEW_COLORS
        if name not in looks:
            return super().get_visual_style(*component_classes, partial=partial)
        style = Style.parse(looks[name])
        if style.foreground is not None and style.foreground.auto:
            # Textual's own themes mute text by `$text-muted`, whose percentage `Style.parse` loses.
            ground = self.visual_style.background or Color(0, 0, 0)
            style = replace(style, foreground=ground.get_contrast_text(_MUTED_ALPHA))
        return style if partial else self.visual_style + style


def style_parser(widget: Widget, *, colors: bool = True) -> Callable[[str | Style], Style]:
    """Return a parser of span styles for `widget`, in which ``.name`` is one of its `Looks`.

    Without `colors` it keeps only attributes, such as bold and underline, and the colours of the
    signs of kinds, if there are enough colours for these to be seen on any ground.
    """
    few = widget.app.has_class("-few-colors")

    def parse(name: str | Style) -> Style:
        if isinstance(name, Style):
            style = name
        elif name.startswith(KIND_STYLE):
            kind = name.removeprefix(KIND_STYLE)
            style = Style.parse(kind_colour(widget.app.current_theme, kind))
            if not few:
                return style
        elif name.startswith("."):
            style = widget.get_visual_style(name[1:], partial=True)
        else:
            style = Style.parse(name)
        return style if colors else replace(style, foreground=None, background=None)

    return parse


def resolve_styles(widget: Widget, content: Content) -> Content:
    """Resolve a text's styles against `widget`, for border titles, which know no `Looks`."""
    parse = style_parser(widget)
    spans = [Span(start, end, parse(style)) for start, end, style in content.spans]
    return Content(content.plain, spans, strip_control_codes=False)


def to_strip(
    content: Content, width: int, base: Style, parse: Callable[[str | Style], Style]
) -> Strip:
    """Render one line, cropped or padded to `width` cells; it must contain no tabs."""
    segments = [
        Segment(strip_ambiguous(text), style.rich_style)
        for text, style in content.render(base, "", parse)
    ]
    return Strip(segments).adjust_cell_length(width, base.rich_style)


class Line:
    """One line of the screen.

    `source` is the line of the file that it comes from (1-based, or 0). `fill` names the style of
    `Looks` for the background of the whole width. `joined` marks a continuation of the line above,
    so that copying joins them with a space instead of a newline.

    A long text has tens of thousands of lines, so each is stored compactly, as text and plain
    tuples that the garbage collector needn't visit; a `Content` exists only while it is drawn.
    """

    __slots__ = ("_spans", "fill", "joined", "source", "text")

    def __init__(
        self,
        content: Content,
        source: int = 0,
        fill: str = "",
        joined: bool = False,  # noqa: FBT002 - reads well as the last of the four
    ) -> None:
        self.text = content.plain
        self._spans = tuple((start, end, style) for start, end, style in content.spans)
        self.source = source
        self.fill = fill
        self.joined = joined

    @property
    def content(self) -> Content:
        """The styled text."""
        spans = [Span(*span) for span in self._spans]
        return Content(self.text, spans, strip_control_codes=False)

    def __repr__(self) -> str:
        return f"Line({self.text!r}, {self.source}, {self.fill!r}, joined={self.joined})"


class LineView(Looks, ScrollView, can_focus=True):
    """A view of `Line`s that are wrapped to its width; text can be selected with the mouse."""

    ALLOW_SELECT = True
    widest: ClassVar[int | None] = None
    """The maximum width of a text line in cells, or None for no limit."""
    LOOKS: ClassVar[Mapping[str, str]] = {"lines--flash": "on $warning-muted"}
    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        background: transparent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "leaf", "Page down", show=False),
        Binding("g", "scroll_home", "Top", show=False),
        Binding("G", "scroll_end", "End", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Line] = ()
        self._sources: list[int] = []
        self._strips: LRUCache[int, Strip] = LRUCache(2048)
        self.flashed = range(0)
        """The currently highlighted lines."""
        self._flash_timer: Timer | None = None
        self._gutter: Callable[[int], Content] | None = None
        self.gutter_width = 0
        """The width of the gutter left of each line, in cells."""

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def text_width(self) -> int:
        """The cells available to a line, less the gutter, a space and the scrollbar."""
        taken = self.styles.scrollbar_size_vertical + 1 + self.gutter_width
        room = max(1, self.content_region.width - taken)
        return room if self.widest is None else min(room, self.widest)

    def set_gutter(self, width: int, content: Callable[[int], Content] | None) -> None:
        """Set the gutter at the left of each line; `content` returns it for a line's index.

        If the width changes, the caller has to wrap the lines again.
        """
        self.gutter_width = width
        self._gutter = content
        self._redraw()

    def action_leaf(self) -> None:
        self.action_page_down()

    # Content

    def show_lines(self, lines: Sequence[Line], *, top: int | None = None) -> None:
        """Replace the lines; `top` is the line to scroll to, None keeps the position."""
        self.lines = lines
        self._sources = self._monotone_sources(lines, 0)
        self.flashed = range(0)
        self._redraw()
        self.virtual_size = Size(self.text_width, len(lines))
        if top is not None:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def add_lines(self, lines: Sequence[Line]) -> None:
        """Append lines."""
        self.lines = [*self.lines, *lines]
        self._sources += self._monotone_sources(lines, self._sources[-1] if self._sources else 0)
        self.virtual_size = Size(self.text_width, len(self.lines))
        self.refresh()

    @staticmethod
    def _monotone_sources(lines: Sequence[Line], highest: int) -> list[int]:
        sources = []
        for line in lines:
            highest = max(highest, line.source)
            sources.append(highest)
        return sources

    def lines_of_source(self, first: int, last: int | None = None) -> range:
        """Return the indices of the view's lines that show lines `first` to `last` of the file."""
        if not self._sources:
            return range(0)
        # `first` belongs to the last block that starts at or before it.
        at = bisect_right(self._sources, first) - 1
        start = bisect_left(self._sources, self._sources[max(0, at)])
        end = bisect_right(self._sources, max(last or first, self._sources[start]))
        while end > start + 1 and not self.lines[end - 1].text.strip():
            end -= 1
        return range(start, max(end, start + 1))

    @property
    def top_source(self) -> int:
        """The line of the file that is at the top of the view."""
        if not self._sources:
            return 1
        return self._sources[min(len(self._sources) - 1, round(self.scroll_y))]

    def reveal_source(self, first: int, last: int | None = None) -> None:
        """Scroll to lines of the file and highlight them briefly."""
        self.flash(self.lines_of_source(first, last))

    keep_flash = False
    """Whether highlighted lines stay highlighted instead of fading."""

    def flash(self, lines: range) -> None:
        """Scroll lines into view and highlight them."""
        if not lines:
            return
        above = max(0, self.size.height // 4)
        self.scroll_to(y=max(0, lines.start - above), animate=False, force=True, immediate=True)
        self.flashed = lines
        self._redraw()
        if self._flash_timer is not None:
            self._flash_timer.stop()
        if not self.keep_flash:
            self._flash_timer = self.set_timer(FLASH_SECONDS, self._end_flash)

    def _end_flash(self) -> None:
        self.flashed = range(0)
        self._redraw()

    # Selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, with the lines of wrapped paragraphs joined."""
        pieces: list[str] = []
        for y, line in enumerate(self.lines):
            span = selection.get_span(y)
            if span is None:
                continue
            start, end = span
            part = line.text[start:] if end == -1 else line.text[start:end]
            if pieces:
                pieces.append(" " if line.joined else "\n")
            pieces.append(part.strip() if line.joined else part.rstrip())
        return "".join(pieces), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        super().selection_updated(selection)
        self._redraw()

    # Drawing

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def _redraw(self) -> None:
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        top = round(self.scroll_y)
        index = top + y
        if not 0 <= index < len(self.lines):
            return Strip.blank(self.size.width, self.visual_style.rich_style)
        strip = self._strips.get(index)
        if strip is None:
            strip = self._strips[index] = self._draw(index)
        return strip

    def content_at(self, index: int) -> Content:
        """Return the styled text of a line; a hook for subclasses."""
        return self.lines[index].content

    def _draw(self, index: int) -> Strip:
        content = self.content_at(index)
        base = self._ground(index)
        selection = self.text_selection
        span = selection.get_span(index) if selection is not None else None
        if span is not None:
            end = len(content) if span[1] == -1 else span[1]
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, span[0], end)
        parse = style_parser(self)
        width = max(1, self.size.width - self.gutter_width)
        text = to_strip(content, width, base, parse).apply_offsets(0, index)
        if self._gutter is None:
            return text
        gutter = to_strip(self._gutter(index), self.gutter_width, self.visual_style, parse)
        return Strip.join([gutter, text])

    def _ground(self, index: int) -> Style:
        fill = "lines--flash" if index in self.flashed else self.lines[index].fill
        return self.get_visual_style(fill) if fill else self.visual_style
