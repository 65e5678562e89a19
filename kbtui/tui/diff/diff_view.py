"""Shows differences; thousands of lines scroll like ten."""

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
from kbtui.tui.widgets.full_screen import ListScreen
from kbtui.tui.widgets.line_view import Line

_DRAWING_SECONDS = 0.25
"""Seconds for which the rest of a difference waits for its beginning to be drawn, at most."""


class DiffView(MarkdownLines):
    """Unified, or side by side where there is room or somebody asks for it.

    As people read it, or as a patch has it: with the signs of the file and the numbers of lines.
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
    """Columns from which on before and after stand beside each other by themselves."""

    class Shown(Message):
        """The differences are laid out and on the screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._diffs: tuple[FileDiff, ...] = ()
        self.drawn: tuple[FileDiff, ...] = ()
        """The differences that are on the screen: `hunk` is one of theirs."""
        self._hunks: list[HunkPlace] = []
        self._hunk = 0
        self._note = ""
        self.names = Names()
        self._laid_out_for = (0, False)
        self._asked: bool | None = None
        self._raw = False

    def show(self, diffs: Sequence[FileDiff], *, keep: bool = False, note: str = "") -> None:
        """Show differences from their beginning, or from where the view stands with `keep`."""
        self._diffs = tuple(diffs)
        self._note = note
        self._lay_out(keep=keep)

    def show_text(self, text: str) -> None:
        """Show one line instead of differences."""
        self._diffs = self.drawn = ()
        self._hunks = []
        self.workers.cancel_node(self)
        self.show_lines([Line(Content.styled(f" {text}", ".md--muted"))], top=0)

    @property
    def side_by_side(self) -> bool:
        """True if before and after stand beside each other."""
        return self.text_width >= self.SIDE_BY_SIDE_COLUMNS if self._asked is None else self._asked

    def toggle_side_by_side(self) -> None:
        """Change the way of showing, for as long as the view lives."""
        self._asked = not self.side_by_side
        self._lay_out(keep=True)

    def toggle_raw(self) -> None:
        """Show it as the files have it, or as people read it again."""
        self._raw = not self._raw
        self._lay_out(keep=True)

    def _lay_out(self, *, keep: bool) -> None:
        if self.size.width:
            self._laid_out(keep=keep)

    @latest("layout")
    async def _laid_out(self, *, keep: bool) -> None:
        """Show what is laid out as it comes; all of it at once where the position is kept."""
        diffs, width, beside = self._diffs, self.text_width, self.side_by_side
        parts = lay_out_parts(
            diffs,
            width,
            side_by_side=beside,
            raw=self._raw,
            note=self._note,
            names=self.names,
            at_once=keep,
        )
        part = await asyncio.to_thread(next, parts)
        self.drawn = diffs
        self._laid_out_for = (width, beside)
        self._hunks = part.hunks
        self._hunk = min(self._hunk, max(0, len(self._hunks) - 1)) if keep else 0
        self.show_lines(part.lines, top=None if keep else 0)
        await self._drawn_now()
        while (more := await asyncio.to_thread(next, parts, None)) is not None:
            self._hunks += more.hunks
            self.add_lines(more.lines)
        self.post_message(self.Shown())

    async def _drawn_now(self) -> None:
        """Wait until what is shown is on the screen: a thread at work would hold that up."""
        drawn = asyncio.Event()
        self.call_after_refresh(drawn.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drawn.wait(), _DRAWING_SECONDS)

    def on_resize(self, _event: events.Resize) -> None:
        if self._diffs and self._laid_out_for != (self.text_width, self.side_by_side):
            self._lay_out(keep=True)

    # Hunks

    @property
    def hunk(self) -> HunkPlace | None:
        """The changed place that the person is at."""
        return self._hunks[self._hunk] if self._hunks else None

    def go_to_hunk(self, by: int) -> None:
        """Go to the changed place below (1) or above (-1), and point at it."""
        if not self._hunks:
            return
        places = [hunk.line for hunk in self._hunks]
        top = round(self.scroll_y)
        here = places[self._hunk]
        if not top <= here < top + self.size.height:
            # The person scrolled away: count from what is on the screen.
            here = top
        wanted = bisect_right(places, here) if by > 0 else bisect_left(places, here) - 1
        self._hunk = max(0, min(len(places) - 1, wanted))
        self.flash(range(places[self._hunk], places[self._hunk] + 1))


class ListAndDiff(ListScreen):
    """Moves in both; the class ``-full`` gives the difference the whole screen.

    A subclass composes ``parts`` of a list (``split-list``) and of what holds the
    difference (``split-detail``), both ``framed`` with their names in the border.
    """

    DEFAULT_CSS = """
    ListAndDiff {
        .split-list, .split-detail { height: 1fr; }
        &.-beside .split-list { width: 2fr; height: 100%; }
        &.-beside .split-detail { width: 3fr; height: 100%; }
        &.-full .split-list { display: none; }
        &.-full .split-detail { width: 1fr; height: 100%; }
    }
    """

    diff: DiffView

    def give_room(self, *, to_diff: bool) -> None:
        """Give the difference the whole screen, or share it with the list again."""
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
        if self.has_class("-full"):
            self.give_room(to_diff=False)
        else:
            super().action_back()
