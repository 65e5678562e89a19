"""The list of commits by days; thousands are read in parts, and only those in sight are drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice
from typing import ClassVar

from textual.content import Content
from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Commit, is_derived
from kbtui.history.history import HistoryReader
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import is_upkeep, sentence, summarize
from kbtui.presentation.notes import Names
from kbtui.presentation.times import day_heading
from kbtui.text import shorten
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.kinds import pieces_drawn
from kbtui.tui.widgets.row_list import RowList

_FIRST_COMMITS = 200
_MORE_COMMITS = 1_000
_ACTOR_CHARACTERS = 14
_READING = "Reading the history …"
_NOTHING_YET = "Nothing was written yet. What is, stands here, and can be taken back."
_AIRY_ROWS = 30
"""Rows of the screen from which on there is a blank one above each day."""
_IN_VIEW_SECONDS = 0.1
_BAR_CELLS = 6
_MANY_FILES = 50
"""Files of a commit that aren't compared for the bar of its size."""


class CommitList(RowList[Commit | date | None]):
    """Commits, newest first, below their days: when, who, what; those of `path`, or all.

    The cursor stays on the commit where it belongs, and is never on a day.
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
        names: Callable[[], Names] = Names,
        classes: str | None = None,
    ) -> None:
        """Begin at the commit `at`; `names` reads how notes are called, in a thread."""
        self.commits: list[Commit] = []
        self.items: list[Commit | date | None] = []
        self._sizes: dict[str, tuple[int, int]] = {}
        self._undone: set[str] = set()
        self._names = Names()
        self._read_names = names
        self._history = history
        self._path = path
        self._at = at
        self._going_to: str | None = None
        self.day: date | None = None
        self._filter = ""
        self.empty = _READING
        self._actor_width = 0
        super().__init__(classes=classes)

    @property
    def commit(self) -> Commit | None:
        """The commit under the cursor."""
        return self.item if isinstance(self.item, Commit) else None

    def rests_on(self, index: int) -> bool:
        """Days are passed by."""
        return isinstance(self.items[index], Commit)

    # Reading

    def read(self, text: str = "") -> None:
        """Read those of `day`, or all, that fit a filter; what was being read before is left."""
        self._filter = text
        self._read(text)

    def read_again(self) -> None:
        """Read what was committed meanwhile; the cursor stays, or is on the newest as before."""
        here = self.commit.id if self.commit is not None and self.cursor > 1 else None
        self._at = self._going_to or here
        self.read(self._filter)

    def go_to(self, commit: Commit) -> None:
        """Read again and select a commit, even if another is made before it is there."""
        self._at = self._going_to = commit.id
        self.read()

    def on_row_list_highlighted(self) -> None:
        """Arrive at the commit that was to be gone to."""
        if self.commit is not None and self.commit.id == self._going_to:
            self._going_to = None

    @latest("log")
    async def _read(self, text: str) -> None:
        self.empty = _READING
        nothing = "No change matches." if text.strip() or self.day else _NOTHING_YET
        commits: Iterator[Commit] = iter(())
        part: list[Commit] = []
        self._names = await asyncio.to_thread(self._read_names)
        try:
            commits = matching_commits(self._history, text, self._path, self._names, self.day)
            part = await asyncio.to_thread(_take, commits, _FIRST_COMMITS)
        except KbtuiError as error:
            nothing = str(error)
        self.empty = nothing
        self.commits, self.items, self._undone = [], [], set()
        self._add(part)
        places = (index for index, row in enumerate(self.items) if _is(row, self._at))
        self.rows_changed(next(places, 1))
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
        for commit in part:
            day = commit.time.astimezone().date()
            last = self.commits[-1].time.astimezone().date() if self.commits else None
            if day != last:
                airy = bool(self.items) and self.app.size.height >= _AIRY_ROWS
                self.items += [None, day] if airy else [day]
            self.items.append(commit)
            self.commits.append(commit)
            self._undone.update((commit.origin.undoes or "").split())
        widest = max((len(committer(commit)) for commit in part), default=0)
        if widest > self._actor_width:
            self._actor_width = min(widest, _ACTOR_CHARACTERS)
            self._strips.clear()

    # Drawing

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw a day, or one commit: the hour, who, what."""
        row = self.items[index]
        if row is None:
            return []
        if not isinstance(row, Commit):
            return [Content.styled(f" {day_heading(row)}", ".rows--strong")]
        did = summarize(row, self._names, self._path)
        who = shorten(committer(row), _ACTOR_CHARACTERS)
        style = ".rows--second" if row.actor is Actor.YOU else ".rows--accent"
        said = Content.assemble(*pieces_drawn(did.pieces))
        if row.id in self._undone:
            said = said.stylize(".rows--gone")
        line = Content.assemble(
            (f"  {row.time.astimezone():%H:%M}  ", ".rows--muted"),
            (f"{who:<{self._actor_width}}  ", style),
            said,
        )
        bar = _bar(*self._sizes.get(row.id, (0, 0)))
        room = width - _BAR_CELLS - 2
        gap = Content(" " * (1 + _BAR_CELLS - bar.cell_length))
        return [line.truncate(room, ellipsis=True, pad=True) + gap + bar]

    # Sizes: of what is in view, as far as it is known by now

    def rows_changed(self, cursor: int | None = None) -> None:
        """Draw again, and find out how large the changes in view are."""
        super().rows_changed(cursor)
        self._measure()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Other changes are in view."""
        super().watch_scroll_y(old_value, new_value)
        self._measure()

    @latest("sizes")
    async def _measure(self) -> None:
        await asyncio.sleep(_IN_VIEW_SECONDS)
        top = round(self.scroll_y)
        for index, row in enumerate(self.items[top : top + self.size.height], top):
            if isinstance(row, Commit) and row.id not in self._sizes:
                self._sizes[row.id] = await asyncio.to_thread(_size, self._history, row)
                self.row_changed(index)


def _size(history: HistoryReader, commit: Commit) -> tuple[int, int]:
    """How many lines a commit added and removed; of one with very many files, how many files."""
    paths = [change.path for change in commit.paths if not is_derived(change.path)]
    if len(paths) > _MANY_FILES:
        return len(paths), 0
    try:
        diffs = history.diff(commit.parent, commit.id, paths)
    except KbtuiError:
        return 0, 0
    kinds = [line.kind for diff in diffs for hunk in diff.hunks for line in hunk.lines]
    return kinds.count("+"), kinds.count("-")


def _bar(added: int, removed: int) -> Content:
    """The size of a change as a short bar: a cell more for twice as much."""
    lines = added + removed
    cells = min(_BAR_CELLS, lines.bit_length())
    good = round(cells * added / lines) if lines else 0
    good = min(max(good, added > 0), cells - (removed > 0)) if cells > 1 else good
    return Content.assemble(("▪" * good, ".rows--good"), ("▪" * (cells - good), ".rows--bad"))


def _is(row: Commit | date | None, commit: str | None) -> bool:
    return isinstance(row, Commit) and row.id == commit


def matching_commits(
    history: HistoryReader,
    text: str,
    path: str | None = None,
    names: Names | None = None,
    day: date | None = None,
) -> Iterator[Commit]:
    """The commits of `path` and `day` that fit a filter, newest first, read as they are taken.

    An actor's name as a word of its own means the actor; all other words are searched for. What
    kbtui keeps by itself is no row of its own, except of `path`.
    """
    actor, words = _asked_for(text)
    known, since, until = names or Names(), None, None
    if day is not None:
        since, until = (datetime.combine(day, at).astimezone() for at in (time.min, time.max))
    for commit in history.log(path, actor=actor, since=since, until=until):
        if (path is not None or not is_upkeep(commit)) and _matches(commit, words, known):
            yield commit


def _asked_for(text: str) -> tuple[Actor | None, list[str]]:
    """The actor that a filter names, and its other words."""
    actors = {str(actor): actor for actor in Actor}
    words = text.casefold().split()
    name = next((name for word in words if (name := word.lstrip("@")) in actors), "")
    return actors.get(name), [word for word in words if not name or word.lstrip("@") != name]


def _matches(commit: Commit, words: Sequence[str], names: Names) -> bool:
    if not words:
        return True
    paths = " ".join(change.path for change in commit.paths)
    said = sentence(commit, names)
    text = f"{said} {commit.subject} {commit.body} {paths} {commit.id}".casefold()
    return all(word in text for word in words)


def _take(commits: Iterator[Commit], count: int) -> list[Commit]:
    return [*islice(commits, count)]
