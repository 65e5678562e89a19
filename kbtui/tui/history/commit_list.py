"""The list of commits; thousands of them, of which only those on the screen are drawn."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.objects.commit import Commit

_ACTOR_WIDTH = 8
_SHORT_ACTORS = {"consolidator": "consol.", "session-memory": "notes"}


class CommitList(RowList):
    """Commits, newest first: when, who, what."""

    CLICK_SELECTS: ClassVar[bool] = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self.commits: list[Commit] = []
        self.nothing = "Reading the history …"
        super().__init__(id=id)

    def show_commits(self, commits: list[Commit], *, at: str | None = None) -> None:
        """Show commits with the cursor on one of them, or on the first."""
        self.commits = commits
        places = (index for index, c in enumerate(commits) if at is not None and c.id == at)
        self.rows_changed(next(places, 0))

    def add_commits(self, commits: Sequence[Commit]) -> None:
        """Show older commits below."""
        first = not self.commits
        self.commits.extend(commits)
        if first:
            self.rows_changed(0)
        else:
            self._resize_canvas()

    @property
    def commit(self) -> Commit | None:
        """The commit under the cursor."""
        return self.commits[self.cursor] if self.cursor < len(self.commits) else None

    @property
    def row_count(self) -> int:
        """How many commits are read so far."""
        return len(self.commits)

    def empty_text(self) -> Content:
        """Why there is nothing."""
        return Content.styled(f" {self.nothing}", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one commit."""
        commit = self.commits[index]
        actor = str(commit.actor)
        actor = _SHORT_ACTORS.get(actor, actor)[:_ACTOR_WIDTH]
        style = ".rows--second" if actor == "you" else ".rows--accent"
        line = Content.assemble(
            (f" {when(commit.time):>12}  ", ".rows--muted"),
            (f"{actor:<{_ACTOR_WIDTH}} ", style),
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
