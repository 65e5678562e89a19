"""All changes: what they did, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container
from textual.content import Content
from textual.widgets import Footer, Static

from kbtui.text import clean_line
from kbtui.tui.history.commit_detail import CommitDetail
from kbtui.tui.history.commit_list import CommitList
from kbtui.tui.history.history_log import HistoryLog
from kbtui.tui.messages import KnowledgeChanged
from kbtui.tui.screens.history_filter_input import HistoryFilterInput
from kbtui.tui.screens.history_keys import HistoryKeys
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.widgets import Input

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase

_BESIDE_FROM = 120


class HistoryScreen(HistoryKeys):
    """Commits in a list, the selected one as a difference beside or below it."""

    DEFAULT_CSS = """
    HistoryScreen {
        #history-title { height: 1; padding: 0 1; color: $text-muted; background: $boost; }
        #history-filter { height: 1; border: none; padding: 0 1; background: $boost; }
        #history-body { height: 1fr; layout: vertical; }
        #history-list { height: 2fr; }
        #history-detail { height: 3fr; border-top: solid $foreground 20%; }
        &.-beside #history-body { layout: horizontal; }
        &.-beside #history-list { width: 2fr; height: 100%; }
        &.-beside #history-detail {
            width: 3fr; height: 100%; border-top: none; border-left: solid $foreground 20%;
        }
        &.-full #history-list { display: none; }
        &.-full #history-detail { width: 1fr; height: 100%; border: none; }
    }
    """

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
        super().__init__(kb, path)
        self._whose = name
        commits = CommitList(id="history-list")
        self._reading = HistoryLog(commits, kb.history, path, commit)
        self._parts = commits, CommitDetail(kb.history, path, id="history-detail")

    def compose(self) -> ComposeResult:
        """Title, list, details."""
        yield Static(Content(self._title()), id="history-title")
        yield Container(*self._parts, id="history-body")
        yield Footer()

    def _title(self) -> str:
        if self.path is None:
            return f"HISTORY  {clean_line(self._whose)}".rstrip()
        return f"HISTORY  {clean_line(self.path.removeprefix('knowledge/').removesuffix('.md'))}"

    def on_mount(self) -> None:
        """Read the log."""
        self.list.focus()
        self._reading.read()

    def on_resize(self, event: events.Resize) -> None:
        """Put list and difference beside each other where there is room."""
        self.set_class(event.size.width >= _BESIDE_FROM, "-beside")

    # The list

    @on(KnowledgeChanged)
    def _knowledge_changed(self, event: KnowledgeChanged) -> None:
        """Show what was committed meanwhile."""
        event.stop()
        fields = self.query("#history-filter")
        self._reading.read_again(fields.first(HistoryFilterInput).value if fields else "")

    @on(HistoryLog.Empty)
    def _empty(self, event: HistoryLog.Empty) -> None:
        event.stop()
        self.detail.show_nothing()

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        commit = self.list.commit
        if commit is not None:
            self._reading.selected(commit)
            self.detail.show(commit)

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected) -> None:
        event.stop()
        self.action_open()

    def show_commit(self, commit: Commit) -> None:
        """Read the log anew, with a commit selected."""
        self._reading.go_to(commit)

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
        self._reading.read(text)

    def end_filter(self, field: Input) -> None:
        """Show all commits again."""
        field.remove()
        self.list.focus()
        self._reading.read()
