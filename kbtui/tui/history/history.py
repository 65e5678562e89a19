"""The history screen: every change, and how to undo or restore it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import date
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen

from kbtui.clock import local_day
from kbtui.errors import UsageError
from kbtui.history.change import Commit, is_import
from kbtui.history.history import open_foreign
from kbtui.history.queries.diff import as_patch
from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.knowledge.library.library import Library
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import Names, all_names
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.diff.diff_view import ListAndDiff
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.history.commit_detail import CommitDetail, ShownPlace, hunk_number
from kbtui.tui.history.commit_list import CommitList
from kbtui.tui.history.year import YearView, read_year
from kbtui.tui.messages import KnowledgeChanged, TimePassed, tell
from kbtui.tui.notes.entry_actions import compare
from kbtui.tui.notes.why import WhyScreen
from kbtui.tui.terminal.background import SerialQueue, latest
from kbtui.tui.widgets.dialogs import ask_text, pick
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.kinds import draw_sentence
from kbtui.tui.widgets.row_list import Choice

_YEAR_ROWS = 44
"""The screen height from which the year is always shown above the list."""


def _queued_action(
    work: Callable[[HistoryScreen, Commit], Coroutine[Any, Any, None]],
) -> Callable[[HistoryScreen], None]:
    """Queue an action on the selected commit behind the earlier actions."""

    @wraps(work)
    def do(screen: HistoryScreen) -> None:
        if screen.rows.commit is not None:
            screen.turns.run(work, screen, screen.rows.commit)

    return do


class HistoryScreen(ListAndDiff):
    """The commits of one file or all, with the diff of the selected one beside or below."""

    DEFAULT_CSS = """
    HistoryScreen {
        &.-beside .split-list, &.-beside .split-detail { width: 1fr; }
        &.-low YearView:blur, &.-full YearView { display: none; }
        &.-low #history-what { max-height: 2; }
        &.-low .split-detail, &.-year.-short .split-detail { display: none; }
        &.-beside .split-detail, &.-year.-beside .split-detail { display: block; }
        &.-full .split-detail, &.-year.-full .split-detail { display: block; }
    }
    """
    BINDINGS = bindings("history")
    TITLE_TEXT = "History"
    FILTER_HINT = "words, a path, or who: you, agent, dream …"
    rows: CommitList

    def __init__(
        self,
        kb: KnowledgeBase,
        path: str | None = None,
        commit: str | None = None,
        *,
        name: str = "",
    ) -> None:
        """Show the history of everything or of `path`, with `commit` selected if it exists.

        `name` is the title of another repository than the workspace's.
        """
        super().__init__(kb)
        self.path = path
        self.rows = CommitList(
            kb.history, path, commit, names=self._names, classes="split-list framed"
        )
        self.detail = CommitDetail(
            kb.history, path, names=self._names, classes="split-detail framed"
        )
        self.diff = self.detail.diff
        self._repository_name = name
        self.turns = SerialQueue(self, "do")

    def compose_body(self) -> ComposeResult:
        whose = self._repository_name if self.path is None else self._names()[self.path].title
        self.rows.border_title = Content(f"History {clean_line(whose)}".rstrip())
        yield Divided(self.rows, self.detail, classes="parts")

    def _names(self) -> Names:
        """Return the names of notes and conversations; in another repository they are paths."""
        return all_names(_infos(self.kb.library), self.kb.sessions)

    @property
    def place(self) -> ShownPlace | None:
        """The current place in the diff; None until the diff of the selected commit is shown."""
        commit = self.rows.commit
        return self.detail.place_in(commit) if commit is not None else None

    def on_mount(self) -> None:
        self.rows.focus()
        self.rows.read()

    # The list

    @on(KnowledgeChanged)
    def _knowledge_changed(self) -> None:
        self.rows.read_again()
        if self.query(YearView):
            self._show_year()

    @on(TimePassed)
    def _time_passed(self, event: TimePassed) -> None:
        if event.new_day:
            self._knowledge_changed()

    @on(CommitList.Empty)
    def _empty(self) -> None:
        self.detail.show_nothing()

    def look_at(self) -> None:
        commit = self.rows.commit
        if commit is None:
            return
        self.detail.show(commit)
        for year in self.query(YearView):
            if self.rows.day is None:
                with year.prevent(YearView.DayHighlighted):
                    year.day = commit.time.astimezone().date()

    def action_open(self) -> None:
        if self.rows.commit is not None:
            self.give_room(to_diff=True)

    def action_back(self) -> None:
        in_list = not self.is_filtering and not self.has_class("-full")
        if self.rows.day is not None and in_list:
            self._leave_year()
        else:
            super().action_back()

    def _show_commit(self, commit: Commit) -> None:
        self.query("#filter").remove()
        self._leave_year()
        self.rows.go_to(commit)

    # The year: always shown if there is room; then it follows the cursor of the list

    @property
    def _year_always_shown(self) -> bool:
        return self.size.height >= _YEAR_ROWS and self.has_class("-beside")

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self._year_always_shown and not self.query(YearView):
            self._show_year()

    def action_year(self) -> None:
        if self.rows.day is None:
            self._focus_year()
        else:
            self._leave_year()

    @latest("walk")
    async def _focus_year(self) -> None:
        await self._read_year()
        year = self.query_one(YearView)
        self.give_room(to_diff=False)
        year.focus()
        self._filter_by_day(year.day)

    def _leave_year(self) -> None:
        """Return to the commits of all days, and hide the year if there is little room."""
        self._filter_by_day(None)
        self.rows.focus()
        if not self._year_always_shown:
            self.query(YearView).remove()
            self.remove_class("-year")

    @latest("year")
    async def _show_year(self) -> None:
        await self._read_year()

    async def _read_year(self) -> None:
        today = local_day()
        counts = await asyncio.to_thread(read_year, self.kb.history, self.path, today)
        if self.query(YearView):
            self.query_one(YearView).show(counts, today)
            return
        year = YearView(counts, today, id="history-year")
        year.add_class("framed")
        await self.mount(year, before=".parts")
        self.add_class("-year")

    def _filter_by_day(self, day: date | None) -> None:
        self.rows.day = day
        self.rows.read()

    def on_year_view_day_highlighted(self, event: YearView.DayHighlighted) -> None:
        self._filter_by_day(event.day)

    def on_year_view_day_selected(self) -> None:
        self.rows.focus()

    async def find(self, query: str) -> None:
        self.rows.read(query)

    # The difference

    def action_context(self, by: int) -> None:
        if self.rows.commit is not None:
            self.detail.change_context(self.rows.commit, by)

    @_queued_action
    async def action_compare(self, commit: Commit) -> None:
        history = self.kb.history
        path = await self._choose_path(commit, "Compare which file?")
        if path is not None:
            path = await asyncio.to_thread(history.path_now, commit.id, path)
            await compare(self, history, path, self._names()[path].title, commit)

    def action_copy(self) -> None:
        if self.rows.commit is not None:
            self.app.copy_to_clipboard(self.rows.commit.id)

    @latest("copy")
    async def action_copy_patch(self) -> None:
        if (commit := self.rows.commit) is not None:
            diffs = await asyncio.to_thread(self.kb.history.changes_of, commit.id)
            self.app.copy_to_clipboard(as_patch(diffs))

    def action_why(self) -> None:
        first = self.place.first_line if self.place is not None else None
        if first is not None:
            self.app.push_screen(WhyScreen(self.kb, *first))

    # Undoing

    @_queued_action
    async def action_undo(self, commit: Commit) -> None:
        await self._confirm_and_undo(commit, partial(self.kb.history.undo, commit.id))

    def action_undo_hunk(self) -> None:
        if self.place is not None:
            self.turns.run(self._undo_hunk, self.place)

    async def _undo_hunk(self, place: ShownPlace) -> None:
        history = self.kb.history
        number = await asyncio.to_thread(hunk_number, history, place)
        if number is None:
            tell(self, "Several places are shown as one: { shows less around each.", "warning")
            return
        undo = partial(history.undo, place.commit.id, paths=(place.at.path,), hunk=number)
        await self._confirm_and_undo(place.commit, undo)

    @_queued_action
    async def action_undo_group(self, commit: Commit) -> None:
        turn, batch = commit.origin.turn, commit.origin.batch
        if not turn and not batch:
            tell(self, "This change stands for itself, with no others.")
            return
        history = self.kb.history
        undo = (
            partial(history.undo_turn, turn) if turn else partial(history.undo_batch, batch or "")
        )
        if batch and is_import(batch) and isinstance(self.kb, KnowledgeBase):
            await self._take_import_back(commit, batch, undo)
        else:
            await self._confirm_and_undo(commit, undo)

    async def _take_import_back(
        self, commit: Commit, batch: str, undo: Callable[..., object]
    ) -> None:
        """Undo an import after a question, with its conversations, which aren't in the history."""
        from kbtui.importers.engine import take_back

        description = draw_sentence(commit, self._names()).plain
        what = f"{description}. The conversations that came with it go for good, unless you went on"
        done = await confirm_and_undo(self, self.kb.history, f"{what} with them.", undo, unasked=0)
        if done is not None:
            _, taken = await asyncio.to_thread(take_back, self.kb.services, batch, lambda: done)
            kept = sum(each.outcome == "kept" for each in taken)
            stay = f" Of what you went on with, {kept:,} stay." if kept else ""
            gone = counted(len(taken) - kept, "conversation")
            tell(self, f"Taken back: {description}, {gone}.{stay}")
            self._show_commit(done)

    async def _confirm_and_undo(self, commit: Commit, undo: Callable[..., object]) -> None:
        description = draw_sentence(commit, self._names()).plain
        done = await confirm_and_undo(self, self.kb.history, description, undo)
        if done is not None:
            tell(self, f"Undone: {description}.")
            self._show_commit(done)

    @_queued_action
    async def action_restore(self, commit: Commit) -> None:
        from kbtui.tui.diff.restoring import restore_file

        path = await self._choose_path(commit, "Restore which file?")
        if path is not None:
            done = await restore_file(self, self.kb.history, path, commit)
            if done is not None:
                self._show_commit(done)

    async def _choose_path(self, commit: Commit, question: str) -> str | None:
        paths = [change.path for change in commit.paths]
        if self.path in paths:
            return self.path
        if self.place is not None and self.has_class("-full"):
            return self.place.at.path
        entries = [path for path in paths if not path.endswith("INDEX.md")] or paths
        if len(entries) <= 1:
            return next(iter(entries), None)
        choices = [Choice(path.removeprefix("knowledge/"), "", path) for path in entries]
        return await pick(self, question, choices)

    @_queued_action
    async def action_restore_all(self, commit: Commit) -> None:
        from kbtui.tui.diff.restoring import restore_before

        done = await restore_before(self, self.kb.history, commit)
        if done is not None:
            self._show_commit(done)

    def action_time_travel(self) -> None:
        if self.rows.commit is not None:
            from kbtui.tui.history.time_travel import TimeTravelScreen

            commit = self.rows.commit
            entries = [c.path for c in commit.paths if not c.path.endswith("INDEX.md")]
            path = self.path or next(iter(entries), None)
            self.app.push_screen(TimeTravelScreen(self.kb, commit, path))


def _refuse_why(*_args: object) -> NoReturn:
    raise UsageError(
        "What a line was made of is known of your own notes only.",
        "The commit says who changed it, and when.",
    )


def _refuse_search(*_args: object, **_kwargs: object) -> NoReturn:
    raise UsageError("Another repository's history can't be searched; / filters its tree.")


def _infos(library: Library | None) -> Iterable[EntryInfo]:
    return library.infos() if library is not None else ()


async def browse(screen: Screen[None], folder: str) -> None:
    """Show the history of a git repository, asking for its folder if none is given."""
    wanted: str | None = folder.strip()
    if not wanted:
        about = "A folder with a git repository, bare or not."
        wanted = await ask_text(screen, "Which repository?", about=about)
    if not wanted:
        return
    kb = await asyncio.to_thread(_read_only_kb, wanted)
    name = f"{Path(wanted).name} (only to look at)"
    screen.app.push_screen(HistoryScreen(kb, name=name))


def _read_only_kb(folder: str) -> KnowledgeBase:
    """Return a read-only stand-in for `KnowledgeBase`, for browsing another git repository."""
    kb = SimpleNamespace(
        workspace=None,
        sessions=None,
        library=None,
        history=open_foreign(Path(folder).expanduser()),
        search=SimpleNamespace(search=_refuse_search),
        provenance=SimpleNamespace(why=_refuse_why),
    )
    return cast("KnowledgeBase", kb)
