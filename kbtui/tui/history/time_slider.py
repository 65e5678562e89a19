"""A timeline of all changes, the newest at the right, with the current position marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from kbtui.history.change import Commit
from kbtui.history.history import HistoryReader
from kbtui.presentation.commit_summary import is_upkeep
from kbtui.presentation.times import format_day

_NOW_LABEL = " now"


def read_commits(history: HistoryReader, here: Commit) -> list[Commit]:
    """Read all changes except upkeep, oldest first, always including `here`; run in a thread."""
    found = [each for each in history.log() if not is_upkeep(each) or each.id == here.id]
    if all(each.id != here.id for each in found):
        found.append(here)
        found.sort(key=lambda each: each.time, reverse=True)
    return found[::-1]


def day_of(commit: Commit) -> date:
    """Return the day of a change in local time."""
    return commit.time.astimezone().date()


def another_day(commits: Sequence[Commit], at: int, direction: int) -> int:
    """Return the index of the last change of the nearest other day in a direction (1 or -1)."""
    here = day_of(commits[at])
    beyond = range(at, len(commits) if direction > 0 else -1, direction)
    day = next((day_of(commits[n]) for n in beyond if day_of(commits[n]) != here), None)
    if day is None:
        return beyond[-1]  # no other day: the first or last change
    return next(n for n in reversed(range(len(commits))) if day_of(commits[n]) == day)


class TimeSlider(Widget, can_focus=True):
    """The timeline; the arrow keys step from change to change while it has the focus."""

    DEFAULT_CSS = """
    TimeSlider {
        height: 1; padding: 0 1; color: $text-muted;
        &:focus { background: $boost; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", "Change before", show=False),
        Binding("right,l", "step(1)", "Next change", show=False),
        Binding("home", "step(-1000000)", "First change", show=False),
        Binding("end", "step(1000000)", "Last change", show=False),
    ]
    at: reactive[int] = reactive(0, init=False)
    """The index of the change after which the notes are shown."""

    @dataclass
    class Stepped(Message):
        """The position moved to another change."""

        commit: Commit

    def __init__(self, commit: Commit, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.commits: Sequence[Commit] = (commit,)

    def show(self, commits: Sequence[Commit]) -> None:
        """Show all changes, keeping the position."""
        here = self.commits[self.at].id
        self.commits = commits
        self.set_reactive(
            TimeSlider.at, next((n for n, each in enumerate(commits) if each.id == here), 0)
        )
        self.refresh()

    def validate_at(self, at: int) -> int:
        return max(0, min(len(self.commits) - 1, at))

    def watch_at(self, at: int) -> None:
        self.post_message(self.Stepped(self.commits[at]))

    def action_step(self, by: int) -> None:
        self.at += by

    def step_days(self, direction: int) -> None:
        """Go to the last change of the next (1) or previous (-1) day that has changes."""
        self.at = another_day(self.commits, self.at, direction)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        lead, room = len(self._start_label), self._track_width
        if at is not None and 0 <= at.x - lead < room:
            self.at = round((at.x - lead) * (len(self.commits) - 1) / max(1, room - 1))

    # Drawing

    @property
    def _start_label(self) -> str:
        return f"{format_day(day_of(self.commits[0]))} "

    @property
    def _track_width(self) -> int:
        return max(1, self.content_size.width - len(self._start_label) - len(_NOW_LABEL))

    def render(self) -> Content:
        room, last = self._track_width, max(1, len(self.commits) - 1)
        cells = ["─"] * room
        for number in range(len(self.commits)):
            cells[number * (room - 1) // last] = "•"
        here = self.at * (room - 1) // last
        return Content.assemble(
            self._start_label,
            "".join(cells[:here]),
            ("●", "bold $text-warning"),
            "".join(cells[here + 1 :]),
            _NOW_LABEL,
        )
