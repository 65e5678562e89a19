"""The widget that shows diffs, and the screen that pairs it with a list."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message

from kbtui.history.queries.diff import FileDiff
from kbtui.presentation.notes import Names
from kbtui.tui.diff.lines import HunkPlace, lay_out_parts
from kbtui.tui.markdown.styles import MarkdownLines
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.finder import Finder
from kbtui.tui.widgets.line_view import Line

_DRAW_TIMEOUT = 0.25
"""Seconds that the layout of further parts waits for the first to be drawn."""


class DiffView(MarkdownLines):
    """A view of diffs: side by side if there is room or the user asks for it, else unified.

    Lines are rendered for reading, or raw: verbatim, with line numbers.
    """

    LOOKS: ClassVar[Mapping[str, str]] = {
        **MarkdownLines.LOOKS,
        "diff--file": "on $surface-lighten-1",
        "diff--name": "bold",
        "diff--hunk": "$text-accent 80%",
        "diff--added": "on $success 12%",
        "diff--removed": "on $error 12%",
        "diff--added-word": "bold on $success 40%",
        "diff--removed-word": "bold on $error 40%",
        "diff--number": "$foreground 35%",
        "diff--plus": "bold $text-success",
        "diff--minus": "bold $text-error",
    }
    SIDE_BY_SIDE_COLUMNS: ClassVar[int] = 120
    """Width in columns from which diffs are side by side by default."""

    class Shown(Message):
        """Posted once the diffs are laid out and shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._diffs: tuple[FileDiff, ...] = ()
        self.drawn: tuple[FileDiff, ...] = ()
        """The diffs on the screen, which `hunk` belongs to."""
        self._hunks: list[HunkPlace] = []
        self._hunk_index = 0
        self._note = ""
        self.names = Names()
        self._layout_key = (0, False)
        self._side_by_side_choice: bool | None = None
        self._raw = False

    def show(self, diffs: Sequence[FileDiff], *, keep: bool = False, note: str = "") -> None:
        """Show diffs from the top, or at the current scroll position with `keep`."""
        self._diffs = tuple(diffs)
        self._note = note
        self._start_layout(keep=keep)

    def show_text(self, text: str) -> None:
        """Show one line of text instead of diffs."""
        self._diffs = self.drawn = ()
        self._hunks = []
        self.workers.cancel_node(self)
        self.show_lines([Line(Content.styled(f" {text}", ".md--muted"))], top=0)

    @property
    def side_by_side(self) -> bool:
        return (
            self.text_width >= self.SIDE_BY_SIDE_COLUMNS
            if self._side_by_side_choice is None
            else self._side_by_side_choice
        )

    def toggle_side_by_side(self) -> None:
        """Switch between unified and side by side for the life of the view."""
        self._side_by_side_choice = not self.side_by_side
        self._start_layout(keep=True)

    def toggle_raw(self) -> None:
        """Switch between raw and rendered lines."""
        self._raw = not self._raw
        self._start_layout(keep=True)

    def _start_layout(self, *, keep: bool) -> None:
        if self.size.width:
            self._run_layout(keep=keep)

    @latest("layout")
    async def _run_layout(self, *, keep: bool) -> None:
        """Show parts as they are laid out, or all at once if the position is kept."""
        diffs, width, side_by_side = self._diffs, self.text_width, self.side_by_side
        parts = lay_out_parts(
            diffs,
            width,
            side_by_side=side_by_side,
            raw=self._raw,
            note=self._note,
            names=self.names,
            at_once=keep,
        )
        part = await asyncio.to_thread(next, parts)
        self.drawn = diffs
        self._layout_key = (width, side_by_side)
        self._hunks = part.hunks
        self._hunk_index = min(self._hunk_index, max(0, len(self._hunks) - 1)) if keep else 0
        self.show_lines(part.lines, top=None if keep else 0)
        await self._wait_until_drawn()
        while (more := await asyncio.to_thread(next, parts, None)) is not None:
            self._hunks += more.hunks
            self.add_lines(more.lines)
        self.post_message(self.Shown())

    async def _wait_until_drawn(self) -> None:
        """Wait for the screen to be drawn, which a busy thread would delay."""
        drawn = asyncio.Event()
        self.call_after_refresh(drawn.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drawn.wait(), _DRAW_TIMEOUT)

    def on_resize(self, _event: events.Resize) -> None:
        if self._diffs and self._layout_key != (self.text_width, self.side_by_side):
            self._start_layout(keep=True)

    # Hunks

    @property
    def hunk(self) -> HunkPlace | None:
        """The current hunk."""
        return self._hunks[self._hunk_index] if self._hunks else None

    def go_to_hunk(self, by: int) -> None:
        """Scroll to the next (1) or previous (-1) hunk and highlight it."""
        if not self._hunks:
            return
        places = [hunk.line for hunk in self._hunks]
        top = round(self.scroll_y)
        here = places[self._hunk_index]
        if not top <= here < top + self.size.height:
            # The user scrolled away: count from what is on the screen.
            here = top
        wanted = bisect_right(places, here) if by > 0 else bisect_left(places, here) - 1
        self._hunk_index = max(0, min(len(places) - 1, wanted))
        self.flash(range(places[self._hunk_index], places[self._hunk_index] + 1))


class ListAndDiff(Finder):
    """A finder whose preview is a diff; the class ``-full`` shows only that."""

    DEFAULT_CSS = """
    ListAndDiff {
        &.-beside .split-list { width: 2fr; }
        &.-beside .split-detail { width: 3fr; }
        &.-full .split-list { display: none; }
        &.-full .split-detail { width: 1fr; height: 100%; }
    }
    """

    diff: DiffView

    def give_room(self, *, to_diff: bool) -> None:
        """Show only the diff, or the list and the diff."""
        self.set_class(to_diff, "-full")
        (self.diff if to_diff else self.rows).focus()

    def action_move(self, by: int) -> None:
        if self.has_class("-full"):
            self.diff.scroll_relative(y=by, animate=False)
        else:
            super().action_move(by)

    def action_hunk(self, by: int) -> None:
        self.diff.go_to_hunk(by)

    def action_side_by_side(self) -> None:
        self.diff.toggle_side_by_side()

    def action_raw(self) -> None:
        self.diff.toggle_raw()

    def action_back(self) -> None:
        if self.has_class("-full") and not self.is_filtering:
            self.give_room(to_diff=False)
            return
        filtering = self.is_filtering
        super().action_back()
        if filtering:
            self.give_room(to_diff=False)
