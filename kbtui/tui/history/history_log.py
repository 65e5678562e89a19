"""Reading the commits into their list, a part at a time."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.tui.terminal.background import run_latest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.looking.reading import HistoryReader
    from kbtui.history.objects.commit import Commit
    from kbtui.tui.history.commit_list import CommitList
    from kbtui.tui.history.history_filter import HistoryFilter

_FIRST = 200
_MORE = 1_000


class HistoryLog:
    """Fills a list, and keeps its cursor on the commit where it belongs.

    Args:
        commits: The list; it is sent `Empty`, which bubbles.
        history: Where they are read.
        path: Whose commits; None for all.
        at: The one to begin at.
    """

    class Empty(Message):
        """There is no commit, or none that fits the filter."""

    def __init__(
        self, commits: CommitList, history: HistoryReader, path: str | None, at: str | None
    ) -> None:
        self._list = commits
        self._history = history
        self._path = path
        self._at = at
        self._going_to: str | None = None

    def read(self, text: str = "") -> None:
        """Read those that fit a filter; what was being read before is left."""
        from kbtui.tui.history.history_filter import parse_filter

        run_latest(self._list, "log", self._read, parse_filter(text, self._path))

    def read_again(self, text: str) -> None:
        """Read what was committed meanwhile; the cursor stays, or is on the newest as before."""
        commit = self._list.commit
        here = commit.id if commit is not None and self._list.cursor else None
        self._at = self._going_to or here
        self.read(text)

    def go_to(self, commit: Commit) -> None:
        """Read anew and select a commit, also if something else is committed before it is there."""
        self._at = self._going_to = commit.id
        self.read()

    def selected(self, commit: Commit) -> None:
        """The cursor is on a commit."""
        if commit.id == self._going_to:
            self._going_to = None

    async def _read(self, wanted: HistoryFilter) -> None:
        self._list.nothing = "Reading the history …"
        nothing = "No change matches." if wanted.text else "No changes yet."
        commits: Iterator[Commit] = iter(())
        part: list[Commit] = []
        try:
            commits = await asyncio.to_thread(wanted.commits, self._history)
            part = await asyncio.to_thread(_take, commits, _FIRST)
        except KbtuiError as error:
            nothing = str(error)
        self._list.nothing = nothing
        self._list.show_commits(part, at=self._at)
        if not part:
            self._list.post_message(self.Empty())
        await self._read_on(commits, full=len(part) == _FIRST)

    async def _read_on(self, commits: Iterator[Commit], *, full: bool) -> None:
        """Read the older ones; what can't be read ends the list."""
        while full:
            try:
                part = await asyncio.to_thread(_take, commits, _MORE)
            except KbtuiError as error:
                self._list.nothing = str(error)
                return
            self._list.add_commits(part)
            full = len(part) == _MORE


def _take(commits: Iterator[Commit], count: int) -> list[Commit]:
    return [*islice(commits, count)]
