"""The multi-line text field of the editor and the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from textual.expand_tabs import expand_text_tabs_from_widths
from textual.geometry import Offset
from textual.strip import Strip
from textual.widgets import TextArea

from kbtui.text import longest_line
from kbtui.tui.messages import tell

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text
    from textual import events

MAX_CHARACTERS = 400_000
MAX_LINE = 30_000
"""Characters of a text, and of its longest line, up to which a key takes less than 0.1 s: Textual
wraps a line anew at each key."""
_BLINKS = 20
"""Half seconds without a key after which the cursor stands still, as in GTK's fields: each time it
is shown or hidden, its line is drawn and sent."""
_KEPT_LINES = 100  # more than a screen has rows


def why_too_long(text: str) -> str:
    """Return the reason why a text is too long to be edited here, or an empty string."""
    if len(text) > MAX_CHARACTERS:
        return f"{len(text):,} characters are too many to be edited here."
    longest = longest_line(text)
    if longest > MAX_LINE:
        return f"A line of {longest:,} characters is too long to be edited here."
    return ""


class _WrappedLine(NamedTuple):
    """A line that takes several rows: what it was drawn from, and each row's text and start."""

    text: str
    offsets: list[int]
    look: object
    pieces: list[Text]
    starts: list[int]


class TextField(TextArea):
    """A `TextArea` whose undo works across a change that shows or hides its scrollbar.

    A long line that is wrapped costs no more to draw than several short ones: Textual styles and
    divides all of a line again for each of its rows.
    """

    def __init__(self, text: str = "", **options: Any) -> None:
        self._kept_lines: dict[int, _WrappedLine] = {}
        self._blinks = 0
        super().__init__(text, **options)

    def scroll_cursor_visible(
        self,
        center: bool = False,  # noqa: FBT002 - Textual's
        animate: bool = False,  # noqa: FBT002 - Textual's
    ) -> Offset:
        """Ignore calls made while the cursor is past the end of the text, as during an undo."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)

    def _restart_blink(self) -> None:
        self._blinks = 0
        super()._restart_blink()

    def _toggle_cursor_blink_visible(self) -> None:
        self._blinks += 1
        if self._blinks < _BLINKS:
            super()._toggle_cursor_blink_visible()
        else:
            self._pause_blink(visible=True)

    async def _on_paste(self, event: events.Paste) -> None:
        """Refuse a paste that would leave a text in which a key takes seconds."""
        start, end = sorted(self.selection)
        before, after = self.document[start[0]][: start[1]], self.document[end[0]][end[1] :]
        why_not = why_too_long(f"{before}{event.text}{after}")
        total = len(event.text) + len(self.text) - len(self.selected_text)
        if not why_not and total > MAX_CHARACTERS:
            why_not = f"{total:,} characters are too many to be edited here."
        if why_not:
            event.stop()
            event.prevent_default()
            tell(self, f"{why_not} Nothing was pasted.", "warning")

    # Drawing

    def look_of_line(self, row: int) -> object:  # noqa: ARG002 - for subclasses
        """Return what besides its text decides how `get_line` draws a line."""
        return None

    def notify_style_update(self) -> None:
        """Forget lines in the colours of before."""
        self._kept_lines.clear()
        super().notify_style_update()

    def _render_line(self, y: int) -> Strip:
        places = self.wrapped_document._offset_to_line_info  # noqa: SLF001 - there is no accessor
        top = round(self.scroll_offset.y) + y
        if top >= len(places) or self.show_line_numbers or self.suggestion:
            return super()._render_line(y)
        row, section = places[top]
        if not self.wrapped_document.get_offsets(row):
            return super()._render_line(y)
        line = self._wrapped_line(row)
        start = line.starts[section]
        piece = line.pieces[section].copy()
        piece.end = ""
        if section == len(line.pieces) - 1:
            piece.set_length(len(piece) + 1)  # a space for the cursor
        self._paint(piece, row, start, len(line.text))
        if "\t" in piece.plain:
            before = line.text.count("\t", 0, start)
            widths = self.wrapped_document.get_tab_widths(row)
            piece = expand_text_tabs_from_widths(
                piece, widths[before : before + piece.plain.count("\t")]
            )
        theme = self._theme
        rest = theme.base_style
        if self.selection.end[0] == row and self.highlight_cursor_line:
            rest = theme.cursor_line_style if self._has_cursor else None
        base = self.rich_style if theme.base_style is None else theme.base_style
        strip = Strip(piece.render(self.app.console), cell_length=piece.cell_len)
        width = self.scrollable_content_region.size.width
        return strip.extend_cell_length(width, rest).apply_style(base)

    def _wrapped_line(self, row: int) -> _WrappedLine:
        """Return the rows of a line, drawn anew only if it has changed."""
        text, offsets = self.document.get_line(row), self.wrapped_document.get_offsets(row)
        look = self.look_of_line(row)
        kept = self._kept_lines.get(row)
        if kept is None or (kept.text, kept.offsets, kept.look) != (text, offsets, look):
            pieces = [*self.get_line(row).divide(offsets)]
            kept = _WrappedLine(text, offsets, look, pieces, [0, *offsets])
            if len(self._kept_lines) > _KEPT_LINES:
                self._kept_lines.clear()
            self._kept_lines[row] = kept
        return kept

    def _paint(self, piece: Text, row: int, start: int, length: int) -> None:
        """Paint selection, cursor and brackets into the piece of a line that begins at `start`."""
        theme, chosen = self._theme, self.selection

        def paint(style: Style | None, first: int, end: int) -> None:
            first, end = max(0, first - start), min(len(piece), end - start)
            if style is not None and first < end:
                piece.stylize(style, first, end)

        is_here = chosen.end[0] == row
        if is_here and self._has_cursor and self.highlight_cursor_line:
            paint(theme.cursor_line_style, 0, length + 1)
        top, bottom = sorted(chosen)
        if top != bottom and top[0] <= row <= bottom[0]:
            first = top[1] if row == top[0] else 0
            paint(theme.selection_style, first, bottom[1] if row == bottom[0] else length)
        partner = self._matching_bracket_location
        shows_brackets = self._has_cursor and self.match_cursor_bracket and top == bottom
        cursor = chosen.end[1]
        if is_here and shows_brackets and partner is not None:
            paint(theme.bracket_matching_style, cursor, cursor + 1)
        if is_here and self._draw_cursor:
            paint(theme.cursor_style, cursor, cursor + 1)
        if shows_brackets and partner is not None and partner[0] == row:
            paint(theme.bracket_matching_style, partner[1], partner[1] + 1)
