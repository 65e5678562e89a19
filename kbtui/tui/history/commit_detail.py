"""One commit: its message, and its differences."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.terminal.background import run_latest

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from kbtui.history.looking.diff import FileDiff
    from kbtui.history.looking.reading import HistoryReader
    from kbtui.history.objects.commit import Commit
    from kbtui.tui.history.commit_diffs import ShownPlace

_SELECTED_SECONDS = 0.04
"""Seconds that a commit stays selected until it is read: a cursor may only run over it."""
_QUIET_SECONDS = 0.15
_CONTEXT_LINES = 3
_MAX_CONTEXT_LINES = 99
_FINE_STEP_LINES = 5


class CommitDetail(Vertical):
    """Shows the commit that was asked for last.

    Args:
        history: Where it is read.
        path: The file that comes first; None where no one is asked for.

    Attributes:
        diff: The difference.
    """

    DEFAULT_CSS = """
    CommitDetail {
        #history-what { height: auto; max-height: 6; padding: 0 1; }
        #history-diff { height: 1fr; }
    }
    """

    def __init__(
        self,
        history: HistoryReader,
        path: str | None,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.diff = DiffView(id="history-diff")
        self._history = history
        self._path = path
        self._around = _CONTEXT_LINES
        self._shown: tuple[Commit, tuple[FileDiff, ...]] | None = None

    def compose(self) -> ComposeResult:
        """The message above the difference."""
        yield Static(id="history-what")
        yield self.diff

    def show(self, commit: Commit) -> None:
        """Show a commit, unless another one is asked for at once."""
        run_latest(self, "diff", self._show, commit)

    def show_nothing(self) -> None:
        """There is no commit to show."""
        self._shown = None
        self.query_one("#history-what", Static).update(Content())
        self.diff.show_text("")

    def change_context(self, commit: Commit, by: int) -> None:
        """Show more unchanged lines around each changed place of a commit, or fewer."""
        step = by * (1 if self._around + min(by, 0) < _FINE_STEP_LINES else _FINE_STEP_LINES)
        self._around = max(0, min(_MAX_CONTEXT_LINES, self._around + step))
        run_latest(self, "diff", self._read, commit, keep=True)

    def place_in(self, commit: Commit) -> ShownPlace | None:
        """The changed place that the person is at; None until that of this commit is shown."""
        from kbtui.tui.history.commit_diffs import ShownPlace

        at = self.diff.hunk
        if self._shown is None or at is None:
            return None
        shown, diffs = self._shown
        fits = shown.id == commit.id and self.diff.drawn is diffs
        return ShownPlace(shown, diffs, at) if fits else None

    async def _show(self, commit: Commit) -> None:
        from kbtui.tui.notes.why import description

        await asyncio.sleep(_SELECTED_SECONDS)
        self.query_one("#history-what", Static).update(description(commit))
        await self._read(commit)

    async def _read(self, commit: Commit, *, keep: bool = False) -> None:
        """Read what it changed; with `keep` it is drawn where the person stands."""
        from kbtui.tui.history.commit_diffs import hidden_files

        reading = asyncio.create_task(asyncio.to_thread(self._read_diffs, commit))
        done, _ = await asyncio.wait({reading}, timeout=_QUIET_SECONDS)
        if not done and not keep:
            self.diff.show_text("Reading the change …")
        try:
            diffs = await reading
        except KbtuiError as error:
            self.diff.show_text(clean_line(str(error)))
            return
        self._shown = commit, diffs
        hidden = hidden_files(commit)
        note = f"… and {hidden:,} more files" if hidden else ""
        self.diff.show(diffs, keep=keep, note=note)

    def _read_diffs(self, commit: Commit) -> tuple[FileDiff, ...]:
        from kbtui.tui.history.commit_diffs import diffs_of

        return diffs_of(self._history, commit, self._path, self._around)
