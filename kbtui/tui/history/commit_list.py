"""The list of commits; thousands of them are read in parts and only those in sight are drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.history.objects.commit import Actor, Commit
from kbtui.text import clean_line
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from kbtui.history.looking.reading import HistoryReader

_FIRST_COMMITS = 200
_MORE_COMMITS = 1_000
_READING = "Reading the history …"


class CommitList(RowList):
    """Commits, newest first: when, who, what; those of `path`, or all, beginning at one.

    The cursor stays on the commit where it belongs.
    """

    CLICK_SELECTS: ClassVar[bool] = False

    class Empty(Message):
        """There is no commit, or none that fits the filter."""

    def __init__(
        self,
        history: HistoryReader,
        path: str | None,
        at: str | None,
        *,
        classes: str | None = None,
    ) -> None:
        self.commits: list[Commit] = []
        self._history = history
        self._path = path
        self._at = at
        self._going_to: str | None = None
        self._filter = ""
        self._nothing = _READING
        self._actor_width = 0
        super().__init__(classes=classes)

    @property
    def commit(self) -> Commit | None:
        """The commit under the cursor."""
        return self.commits[self.cursor] if self.cursor < len(self.commits) else None

    # Reading

    def read(self, text: str = "") -> None:
        """Read those that fit a filter; what was being read before is left."""
        self._filter = text
        run_latest(self, "log", self._read, text)

    def read_again(self) -> None:
        """Read what was committed meanwhile; the cursor stays, or is on the newest as before."""
        here = self.commit.id if self.commit is not None and self.cursor else None
        self._at = self._going_to or here
        self.read(self._filter)

    def go_to(self, commit: Commit) -> None:
        """Read anew and select a commit, also if something else is committed before it is there."""
        self._at = self._going_to = commit.id
        self.read()

    def on_row_list_highlighted(self) -> None:
        """Arrive at the commit that was to be gone to."""
        if self.commit is not None and self.commit.id == self._going_to:
            self._going_to = None

    async def _read(self, text: str) -> None:
        self._nothing = _READING
        nothing = "No change matches." if text.strip() else "No changes yet."
        commits: Iterator[Commit] = iter(())
        part: list[Commit] = []
        try:
            commits = await asyncio.to_thread(matching_commits, self._history, text, self._path)
            part = await asyncio.to_thread(_take, commits, _FIRST_COMMITS)
        except KbtuiError as error:
            nothing = str(error)
        self._nothing = nothing
        self.commits = []
        self._add(part)
        places = (index for index, commit in enumerate(part) if commit.id == self._at)
        self.rows_changed(next(places, 0))
        if not part:
            self.post_message(self.Empty())
        await self._read_on(commits, full=len(part) == _FIRST_COMMITS)

    async def _read_on(self, commits: Iterator[Commit], *, full: bool) -> None:
        """Read the older ones; what can't be read ends the list."""
        while full:
            try:
                part = await asyncio.to_thread(_take, commits, _MORE_COMMITS)
            except KbtuiError:
                return
            self._add(part)
            self._resize_canvas()
            full = len(part) == _MORE_COMMITS

    def _add(self, part: Sequence[Commit]) -> None:
        self.commits.extend(part)
        widest = max((len(commit.who) for commit in part), default=0)
        if widest > self._actor_width:
            self._actor_width = widest
            self._strips.clear()

    # Drawing

    @property
    def row_count(self) -> int:
        """How many commits are read so far."""
        return len(self.commits)

    def empty_text(self) -> Content:
        """Why there is nothing."""
        return Content.styled(f" {self._nothing}", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one commit."""
        commit = self.commits[index]
        style = ".rows--second" if commit.actor is Actor.YOU else ".rows--accent"
        line = Content.assemble(
            (f" {when(commit.time):>12}  ", ".rows--muted"),
            (f"{commit.who:<{self._actor_width}} ", style),
            clean_line(commit.subject),
        )
        return [line.truncate(width, ellipsis=True)]


def when(time: datetime, now: datetime | None = None) -> str:
    """A time as short as it stays clear: the hour today, the day this year, else the date."""
    local = time.astimezone()
    today = (now or datetime.now().astimezone()).astimezone()
    if local.date() == today.date():
        return f"{local:%H:%M}"
    if local.year == today.year:
        return f"{local.day} {local:%b %H:%M}"
    return f"{local:%Y-%m-%d}"


def matching_commits(
    history: HistoryReader, text: str, path: str | None = None
) -> Iterator[Commit]:
    """The commits of `path` that fit a filter, newest first, read as they are taken.

    An actor's name as a word of its own means the actor; all other words are searched for.
    """
    actors = {str(actor): actor for actor in Actor}
    words = text.casefold().split()
    actor = next((actors[word.lstrip("@")] for word in words if word.lstrip("@") in actors), None)
    wanted = [word for word in words if actor is None or word.lstrip("@") != str(actor)]
    found = history.log(path, actor=actor)
    return (commit for commit in found if _matches(commit, wanted)) if wanted else found


def _matches(commit: Commit, words: Sequence[str]) -> bool:
    paths = " ".join(change.path for change in commit.paths)
    text = f"{commit.subject} {commit.body} {paths} {commit.id}".casefold()
    return all(word in text for word in words)


def _take(commits: Iterator[Commit], count: int) -> list[Commit]:
    return [*islice(commits, count)]
