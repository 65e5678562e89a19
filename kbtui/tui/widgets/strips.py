"""From styled text to lines on the screen, for the widgets that draw line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip
from textual.style import Style

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.content import Content
    from textual.widget import Widget


def style_parser(widget: Widget, *, colors: bool = True) -> Callable[[str | Style], Style]:
    """How the spans of `widget` are read: ``.name`` is one of its component classes.

    Without `colors` only bold, underlined and the like are kept.
    """

    def parse(name: str | Style) -> Style:
        if isinstance(name, Style):
            style = name
        elif name.startswith("."):
            style = widget.get_visual_style(name[1:], partial=True)
        else:
            style = Style.parse(name)
        return style if colors else replace(style, foreground=None, background=None)

    return parse


def to_strip(
    content: Content, width: int, base: Style, parse: Callable[[str | Style], Style]
) -> Strip:
    """Draw one line, cut or filled up to exactly `width` cells; tabs must be expanded before."""
    segments = [Segment(text, style.rich_style) for text, style in content.render(base, "", parse)]
    return Strip(segments).adjust_cell_length(width, base.rich_style)
