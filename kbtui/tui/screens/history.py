"""All changes: what they did, and the way back."""

from __future__ import annotations

import asyncio
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.actions import bindings
from kbtui.tui.background import run_latest
from kbtui.tui.messages import KnowledgeChanged
from kbtui.tui.screens.history_filter_input import HistoryFilterInput
from kbtui.tui.widgets.commit_list import CommitList
from kbtui.tui.widgets.diff_view import DiffView
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widgets import Input

    from kbtui.history.commit import Commit
    from kbtui.history.diff import FileDiff
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.commit_diffs import ShownPlace
    from kbtui.tui.history_filter import HistoryFilter
    from kbtui.tui.screens.history_deeds import HistoryDeeds

_FIRST = 200
_MORE = 1_000
_DIFF_AFTER = 0.04
_PATIENCE = 0.15
_BESIDE_FROM = 120
_CONTEXT = 3
_MAX_CONTEXT = 99


class HistoryScreen(Screen[None]):
    """Commits in a list, the selected one as a difference beside or below it."""

    DEFAULT_CSS = """
    HistoryScreen {
        #history-title { height: 1; padding: 0 1; color: $text-muted; background: $boost; }
        #history-filter { height: 1; border: none; padding: 0 1; background: $boost; }
        #history-body { height: 1fr; layout: vertical; }
        #history-list { height: 2fr; }
        #history-detail { height: 3fr; border-top: solid $foreground 20%; }
        #history-what { height: auto; max-height: 6; padding: 0 1; }
        #history-diff { height: 1fr; }
        &.-beside #history-body { layout: horizontal; }
        &.-beside #history-list { width: 2fr; height: 100%; }
        &.-beside #history-detail {
            width: 3fr; height: 100%; border-top: none; border-left: solid $foreground 20%;
        }
        &.-full #history-list { display: none; }
        &.-full #history-detail { width: 1fr; height: 100%; border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("history")]

    def __init__(
        self,
        kb: KnowledgeBase,
        path: str | None = None,
        commit: str | None = None,
        *,
        name: str = "",
    ) -> None:
        """Show the history of everything or of `path`, with `commit` selected if it is there.

        `name` says whose it is, where that isn't the workspace.
        """
        super().__init__()
        self._kb = kb
        self._path = path
        self._whose = name
        self._at = commit
        self._going_to: str | None = None
        self._around = _CONTEXT
        self._shown: tuple[Commit, tuple[FileDiff, ...]] | None = None

    def compose(self) -> ComposeResult:
        """Title, list, details."""
        yield Static(Content(self._title()), id="history-title")
        with Container(id="history-body"):
            yield CommitList(id="history-list")
            with Vertical(id="history-detail"):
                yield Static(id="history-what")
                yield DiffView(id="history-diff")
        yield Footer()

    def _title(self) -> str:
        if self._path is None:
            return f"HISTORY  {clean_line(self._whose)}".rstrip()
        return f"HISTORY  {clean_line(self._path.removeprefix('knowledge/').removesuffix('.md'))}"

    def on_mount(self) -> None:
        """Read the log."""
        self.list.focus()
        self._read()

    def on_resize(self, event: events.Resize) -> None:
        """Put list and difference beside each other where there is room."""
        self.set_class(event.size.width >= _BESIDE_FROM, "-beside")

    @property
    def list(self) -> CommitList:
        """The commits."""
        return self.query_one("#history-list", CommitList)

    @property
    def diff(self) -> DiffView:
        """The difference."""
        return self.query_one("#history-diff", DiffView)

    # Reading

    @on(KnowledgeChanged)
    def _knowledge_changed(self, event: KnowledgeChanged) -> None:
        """Show what was committed meanwhile; the cursor stays where it is, or on the newest."""
        event.stop()
        commit = self.list.commit
        here = commit.id if commit is not None and self.list.cursor else None
        self._at = self._going_to or here
        fields = self.query("#history-filter")
        self._read(fields.first(HistoryFilterInput).value if fields else "")

    def _read(self, text: str = "") -> None:
        from kbtui.tui.history_filter import parse_filter

        wanted = parse_filter(text, self._path)
        run_latest(self, "log", self._read_all, wanted)

    async def _read_all(self, wanted: HistoryFilter) -> None:
        self.list.nothing = "Reading the history …"
        commits: Iterator[Commit] = iter(())
        size = _FIRST
        first = True
        while True:
            try:
                if first:
                    commits = await asyncio.to_thread(wanted.commits, self._kb.history)
                part = await asyncio.to_thread(_take, commits, size)
            except KbtuiError as error:
                self.list.nothing = str(error)
                part = []
            if first:
                self.list.nothing = "No change matches." if wanted.text else "No changes yet."
                self.list.show_commits(part, at=self._at)
                first = False
                if not part:
                    self._show_nothing()
            else:
                self.list.add_commits(part)
            if len(part) < size:
                break
            size = _MORE

    def _show_nothing(self) -> None:
        self._shown = None
        self.query_one("#history-what", Static).update(Content())
        self.diff.show_text("")

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        commit = self.list.commit
        if commit is not None:
            if commit.id == self._going_to:
                self._going_to = None
            run_latest(self, "diff", self._show, commit)

    async def _show(self, commit: Commit, *, keep: bool = False) -> None:
        from kbtui.tui.commit_diffs import hidden_files
        from kbtui.tui.commit_text import description

        if not keep:
            await asyncio.sleep(_DIFF_AFTER)
            self.query_one("#history-what", Static).update(description(commit))
        reading = asyncio.create_task(asyncio.to_thread(self._read_diffs, commit))
        done, _ = await asyncio.wait({reading}, timeout=_PATIENCE)
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
        from kbtui.tui.commit_diffs import diffs_of

        return diffs_of(self._kb.history, commit, self._path, self._around)

    # Filter

    def action_filter(self) -> None:
        """Type what to look for."""
        found = self.query("#history-filter")
        field = found.first(HistoryFilterInput) if found else None
        if field is None:
            field = HistoryFilterInput(id="history-filter")
            self.mount(field, after="#history-title")
        field.focus()

    def filter_by(self, text: str) -> None:
        """Show only commits that match."""
        self._read(text)

    def end_filter(self, field: Input) -> None:
        """Show all commits again."""
        field.remove()
        self.list.focus()
        self._read()

    # Moving

    def action_down(self) -> None:
        """Next change, or the next line of the difference that has the screen."""
        if self.has_class("-full"):
            self.diff.scroll_relative(y=1, animate=False)
        else:
            self.list.action_cursor_down()

    def action_up(self) -> None:
        """Previous change, or line."""
        if self.has_class("-full"):
            self.diff.scroll_relative(y=-1, animate=False)
        else:
            self.list.action_cursor_up()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Give the difference the whole screen."""
        if self.list.commit is not None:
            self.add_class("-full")
            self.diff.focus()

    def action_back(self) -> None:
        """Return to the list, or close the history."""
        if self.has_class("-full"):
            self.remove_class("-full")
            self.list.focus()
        else:
            self.dismiss(None)

    def action_next_hunk(self) -> None:
        """Go to the next changed place."""
        self.diff.go_to_hunk(1)

    def action_previous_hunk(self) -> None:
        """Go to the changed place before."""
        self.diff.go_to_hunk(-1)

    def action_less_context(self) -> None:
        """Show fewer unchanged lines."""
        self._change_context(-1)

    def action_more_context(self) -> None:
        """Show more unchanged lines."""
        self._change_context(1)

    def _change_context(self, by: int) -> None:
        step = by * (1 if self._around + min(by, 0) < 5 else 5)  # noqa: PLR2004
        self._around = max(0, min(_MAX_CONTEXT, self._around + step))
        commit = self.list.commit
        if commit is not None:
            run_latest(self, "diff", self._show, commit, keep=True)

    def action_side_by_side(self) -> None:
        """Show before and after beside each other, or one below the other."""
        self.diff.toggle_side_by_side()

    # Doing

    @property
    def kb(self) -> KnowledgeBase:
        """Whose history it is."""
        return self._kb

    @property
    def path(self) -> str | None:
        """The file whose history it is; None for all of it."""
        return self._path

    @property
    def place(self) -> ShownPlace | None:
        """The changed place that the person is at; None until the selected commit's are shown."""
        from kbtui.tui.commit_diffs import ShownPlace

        selected, at = self.list.commit, self.diff.hunk
        if self._shown is None or selected is None or at is None:
            return None
        commit, diffs = self._shown
        fits = commit.id == selected.id and self.diff.drawn is diffs
        return ShownPlace(commit, diffs, at) if fits else None

    @cached_property
    def deeds(self) -> HistoryDeeds:
        """What is done with commits; made when first needed."""
        from kbtui.tui.screens.history_deeds import HistoryDeeds

        return HistoryDeeds(self)

    def show_commit(self, commit: Commit) -> None:
        """Read the log anew, with a commit selected."""
        self._at = self._going_to = commit.id
        self._read()

    def action_copy(self) -> None:
        """Copy the commit's id."""
        self.deeds.copy_id()

    def action_copy_patch(self) -> None:
        """Copy what the commit changed, as a patch."""
        self.deeds.copy_patch()

    def action_undo(self) -> None:
        """Undo exactly this change."""
        self.deeds.undo()

    def action_undo_hunk(self) -> None:
        """Undo only the changed place that is shown."""
        self.deeds.undo_hunk()

    def action_undo_group(self) -> None:
        """Undo the whole turn or batch that the change belongs to."""
        self.deeds.undo_group()

    def action_why(self) -> None:
        """Show what the changed place was made from."""
        self.deeds.why()

    def action_restore(self) -> None:
        """Bring a file back to how it was after this change."""
        self.deeds.restore()

    def action_restore_all(self) -> None:
        """Bring everything back to how it was before this change."""
        self.deeds.restore_all()

    def action_time_travel(self) -> None:
        """Look at everything as it was after this change."""
        self.deeds.time_travel()


def _take(commits: Iterator[Commit], count: int) -> list[Commit]:
    return [*islice(commits, count)]
