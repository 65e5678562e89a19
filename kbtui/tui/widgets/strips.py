"""From styled text to lines on the screen, for the widgets that draw line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip
from textual.style import Style

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.content import Content
    from textual.widget import Widget


def style_parser(widget: Widget) -> Callable[[str | Style], Style]:
    """How the spans of `widget` are read: ``.name`` is one of its component classes."""

    def parse(name: str | Style) -> Style:
        if isinstance(name, Style):
            return name
        if name.startswith("."):
            return widget.get_visual_style(name[1:], partial=True)
        return Style.parse(name)

    return parse


def to_strip(
    content: Content, width: int, base: Style, parse: Callable[[str | Style], Style]
) -> Strip:
    """Draw one line, cut or filled up to exactly `width` cells; tabs must be expanded before."""
    segments = [Segment(text, style.rich_style) for text, style in content.render(base, "", parse)]
    return Strip(segments).adjust_cell_length(width, base.rich_style)
