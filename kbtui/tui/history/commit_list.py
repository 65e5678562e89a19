"""The list of commits by day; thousands are read in batches and only the visible ones rendered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice
from typing import ClassVar, NamedTuple

from textual.content import Content
from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Commit, is_derived
from kbtui.history.history import HistoryReader
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import is_upkeep, sentence, summarize
from kbtui.presentation.notes import Names
from kbtui.presentation.times import day_heading
from kbtui.text import has_words, shorten
from kbtui.tui.notes.said import draw_said, is_of_journal, said_with
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.kinds import draw_pieces
from kbtui.tui.widgets.row_list import RowList

_FIRST_BATCH = 200
_NEXT_BATCH = 1_000
_ACTOR_CHARACTERS = 14
_LOADING_TEXT = "Reading the history …"
_EMPTY_TEXT = "Nothing was written yet. What is, stands here, and can be taken back."
_SPACIOUS_ROWS = 30
"""The screen height from which a blank row separates the days."""
_DEBOUNCE_SECONDS = 0.1
_BAR_CELLS = 6
_MAX_COMPARED_FILES = 50
"""The number of files above which a commit's size bar counts files instead of lines."""


class CommitList(RowList[Commit | date | None]):
    """All commits or those of `path`, newest first, grouped by day: when, who, what.

    Reading again keeps the cursor on its commit. Headings of days can't be selected.
    """

    CLICK_SELECTS: ClassVar[bool] = False

    class Empty(Message):
        """There are no commits, or none that match the filter."""

    def __init__(
        self,
        history: HistoryReader,
        path: str | None,
        at: str | None,
        *,
        names: Callable[[], Names] = Names,
        classes: str | None = None,
    ) -> None:
        """Start with the cursor on the commit with id `at`; `names` is called in a thread."""
        self.commits: list[Commit] = []
        self.items: list[Commit | date | None] = []
        self._sizes: dict[str, _Size] = {}
        self._undone_ids: set[str] = set()
        self._names = Names()
        self._read_names = names
        self._history = history
        self._path = path
        self._initial_id = at
        self._target_id: str | None = None
        self.day: date | None = None
        self._filter = ""
        self.empty = _LOADING_TEXT
        self._actor_width = 0
        super().__init__(classes=classes)

    @property
    def commit(self) -> Commit | None:
        """The commit under the cursor."""
        return self.item if isinstance(self.item, Commit) else None

    def can_stop_on(self, index: int) -> bool:
        return isinstance(self.items[index], Commit)

    # Reading

    def read(self, text: str = "") -> None:
        """Read the commits of `day`, or all, that match a filter, cancelling any earlier read."""
        self._filter = text
        self._read(text)

    def read_again(self) -> None:
        """Read new commits. The cursor stays on its commit, or on the newest if it was there."""
        here = self.commit.id if self.commit is not None and self.cursor > 1 else None
        self._initial_id = self._target_id or here
        self.read(self._filter)

    def go_to(self, commit: Commit) -> None:
        """Read again and select a commit, even if another one is made before it is listed."""
        self._initial_id = self._target_id = commit.id
        self.read()

    def on_row_list_highlighted(self) -> None:
        """Forget the target of `go_to` once the cursor is there."""
        if self.commit is not None and self.commit.id == self._target_id:
            self._target_id = None

    @latest("log")
    async def _read(self, text: str) -> None:
        self.empty = _LOADING_TEXT
        empty_text = "No change matches." if text.strip() or self.day else _EMPTY_TEXT
        commits: Iterator[Commit] = iter(())
        batch: list[Commit] = []
        self._names = await asyncio.to_thread(self._read_names)
        try:
            commits = matching_commits(self._history, text, self._path, self._names, self.day)
            batch = await asyncio.to_thread(_take, commits, _FIRST_BATCH)
        except KbtuiError as error:
            empty_text = str(error)
        self.empty = empty_text
        self.commits, self.items, self._undone_ids = [], [], set()
        self._add(batch)
        places = (
            index for index, row in enumerate(self.items) if _is_commit(row, self._initial_id)
        )
        self.rows_changed(next(places, 1))
        if not batch:
            self.post_message(self.Empty())
        await self._read_rest(commits, full=len(batch) == _FIRST_BATCH)

    async def _read_rest(self, commits: Iterator[Commit], *, full: bool) -> None:
        """Read the older commits; an error ends the list."""
        while full:
            try:
                batch = await asyncio.to_thread(_take, commits, _NEXT_BATCH)
            except KbtuiError:
                return
            self._add(batch)
            self._resize_canvas()
            full = len(batch) == _NEXT_BATCH

    def _add(self, batch: Sequence[Commit]) -> None:
        for commit in batch:
            day = commit.time.astimezone().date()
            last = self.commits[-1].time.astimezone().date() if self.commits else None
            if day != last:
                spacious = bool(self.items) and self.app.size.height >= _SPACIOUS_ROWS
                self.items += [None, day] if spacious else [day]
            self.items.append(commit)
            self.commits.append(commit)
            self._undone_ids.update((commit.origin.undoes or "").split())
        widest = max((len(committer(commit)) for commit in batch), default=0)
        if widest > self._actor_width:
            self._actor_width = min(widest, _ACTOR_CHARACTERS)
            self._strips.clear()

    # Drawing

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Render the heading of a day, or one commit: the time, who, what."""
        row = self.items[index]
        if row is None:
            return []
        if not isinstance(row, Commit):
            return [Content.styled(f" {day_heading(row)}", ".rows--strong")]
        summary = summarize(row, self._names, self._path)
        who = shorten(committer(row), _ACTOR_CHARACTERS)
        style = ".rows--second" if row.actor is Actor.YOU else ".rows--accent"
        size = self._sizes.get(row.id, _Size())
        description = Content.assemble(*draw_pieces(summary.pieces))
        if size.said:
            description = draw_said(size.said)
        if row.id in self._undone_ids:
            description = description.stylize(".rows--gone")
        line = Content.assemble(
            (f"  {row.time.astimezone():%H:%M}  ", ".rows--muted"),
            (f"{who:<{self._actor_width}}  ", style),
            description,
        )
        bar = _bar(size.added, size.removed)
        room = width - _BAR_CELLS - 2
        gap = Content(" " * (1 + _BAR_CELLS - bar.cell_length))
        return [line.truncate(room, ellipsis=True, pad=True) + gap + bar]

    # Size bars, computed lazily for the commits in view

    def rows_changed(self, cursor: int | None = None) -> None:
        super().rows_changed(cursor)
        self._load_sizes()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._load_sizes()

    @latest("sizes")
    async def _load_sizes(self) -> None:
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        top = round(self.scroll_y)
        for index, row in enumerate(self.items[top : top + self.size.height], top):
            if isinstance(row, Commit) and row.id not in self._sizes:
                self._sizes[row.id] = await asyncio.to_thread(_change_size, self._history, row)
                self.row_changed(index)


class _Size(NamedTuple):
    """How many lines a commit added and removed, and what it added to the journal, if only that."""

    added: int = 0
    removed: int = 0
    said: str = ""


def _change_size(history: HistoryReader, commit: Commit) -> _Size:
    """Compare the files of a commit; very many are only counted."""
    paths = [change.path for change in commit.paths if not is_derived(change.path)]
    if len(paths) > _MAX_COMPARED_FILES:
        return _Size(len(paths))
    try:
        diffs = history.diff(commit.parent, commit.id, paths)
    except KbtuiError:
        return _Size()
    kinds = [line.kind for diff in diffs for hunk in diff.hunks for line in hunk.lines]
    said = said_with(diffs) if is_of_journal(commit) else ""
    return _Size(kinds.count("+"), kinds.count("-"), said)


def _bar(added: int, removed: int) -> Content:
    """Render the size of a change as a short bar, on a logarithmic scale."""
    lines = added + removed
    cells = min(_BAR_CELLS, lines.bit_length())
    good = round(cells * added / lines) if lines else 0
    good = min(max(good, added > 0), cells - (removed > 0)) if cells > 1 else good
    return Content.assemble(("▪" * good, ".rows--good"), ("▪" * (cells - good), ".rows--bad"))


def _is_commit(row: Commit | date | None, commit: str | None) -> bool:
    return isinstance(row, Commit) and row.id == commit


def matching_commits(
    history: HistoryReader,
    text: str,
    path: str | None = None,
    names: Names | None = None,
    day: date | None = None,
) -> Iterator[Commit]:
    """Yield the commits of `path` and `day` that match a filter lazily, newest first.

    A word of the filter that is an actor's name selects that actor; a commit must contain all other
    words. Upkeep by kbtui itself is left out, unless `path` is given.
    """
    actor, words = _parse_filter(text)
    known, since, until = names or Names(), None, None
    if day is not None:
        since, until = (datetime.combine(day, at).astimezone() for at in (time.min, time.max))
    for commit in history.log(path, actor=actor, since=since, until=until):
        if (path is not None or not is_upkeep(commit)) and _matches(commit, words, known):
            yield commit


def _parse_filter(text: str) -> tuple[Actor | None, str]:
    """Return the actor that a filter names, and its other words."""
    actors = {str(actor): actor for actor in Actor}
    words = text.casefold().split()
    name = next((name for word in words if (name := word.lstrip("@")) in actors), "")
    others = (word for word in words if not name or word.lstrip("@") != name)
    return actors.get(name), " ".join(others)


def _matches(commit: Commit, words: str, names: Names) -> bool:
    if not words:
        return True
    paths = " ".join(change.path for change in commit.paths)
    description = sentence(commit, names)
    text = f"{description} {commit.subject} {commit.body} {paths} {commit.id}"
    return has_words(text, words)


def _take(commits: Iterator[Commit], count: int) -> list[Commit]:
    return [*islice(commits, count)]
