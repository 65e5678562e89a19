"""The main screen: chat and notes side by side, and the status line."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import getters, on
from textual.content import Content
from textual.screen import Screen

from kbtui.text import clean_line, usd
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.messages import (
    AskAbout,
    InboxChanged,
    KnowledgeChanged,
    OpenEntry,
    OpenHistory,
    OpenInbox,
    OpenMessage,
    OpenPast,
    OpenSearch,
    OpenSwitcher,
    OpenTasks,
    OpenToday,
    TimePassed,
    Working,
)
from kbtui.tui.notes.notes_pane import NotesPane
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.terminal.layout import TellsSizes
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.history import history, time_travel
    from kbtui.tui.inbox import inbox
    from kbtui.tui.notes import tasks
    from kbtui.tui.search import search, switcher
else:
    history, inbox, search, switcher, tasks, time_travel = lazy_modules(
        "history.history",
        "inbox.inbox",
        "search.search",
        "search.switcher",
        "notes.tasks",
        "history.time_travel",
    )

_FRAMED_ROWS = 9
"""Rows from which panes and the prompt have frames."""
_SLOW_OPEN_SECONDS = 1.0
_STILL_OPENING = "The workspace is still being opened. What you type waits for it; Esc gives it up."


class MainScreen(TellsSizes, Screen[None]):
    """The screen that composes the panes and routes messages between them."""

    AUTO_FOCUS = "#prompt"
    BLANK = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._deferred: Callable[[], object] | None = None

    def compose(self) -> ComposeResult:
        with Divided(id="panes"):
            yield ChatPane(id="chat")
            yield NotesPane(id="notes")
        yield TitleRow()
        yield StatusLine(id="status")

    def fit(self, rows: int) -> None:
        """Do without frames where they would take the room of the text."""
        self.set_class(rows < _FRAMED_ROWS, "-tiny")

    def on_resize(self, event: events.Resize) -> None:
        self.fit(event.size.height)

    chat = getters.query_one("#chat", ChatPane)

    notes = getters.query_one("#notes", NotesPane)

    # The knowledge base

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Give chat and status line the opened knowledge base; the notes have it already."""
        self.chat.knowledge_ready(kb)
        self.query_one(StatusLine).knowledge_ready(kb)
        self.query_one(TitleRow).folder = kb.workspace.root
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            deferred()

    def do_when_open(self, deferred: Callable[[], object] | None) -> None:
        """Run `deferred` once the workspace is open, replacing any action deferred earlier."""
        self._deferred = deferred
        if deferred is not None:
            self.set_timer(_SLOW_OPEN_SECONDS, self._notify_still_opening)

    def _notify_still_opening(self) -> None:
        if self._deferred is not None:
            self.app.notify(_STILL_OPENING, markup=False)

    @property
    def is_loaded(self) -> bool:
        """Whether no further input can have to wait for the workspace."""
        return self.chat.kb is not None and self._deferred is None and self.notes.is_filled

    def ready_for_more(self) -> bool:
        """Return False while an action waits for the workspace, or the tree for its notes."""
        if self.chat.kb is None:
            is_waiting = self._deferred is not None or self.chat.has_early_commands
            if is_waiting or self.app.focused is None:
                return False
        in_notes = self.app.screen is self and self.notes.has_focus_within
        return not in_notes or self.notes.is_filled

    @on(KnowledgeChanged)
    def _knowledge_changed(self, event: KnowledgeChanged) -> None:
        self.chat.knowledge_changed()
        self.notes.knowledge_changed(event.paths, event.actor)
        self.query_one(StatusLine).knowledge_changed()
        for screen in self.app.screen_stack[1:]:
            screen.post_message(KnowledgeChanged(event.paths, event.actor))

    @on(TimePassed)
    def _time_passed(self, event: TimePassed) -> None:
        self.chat.time_passed()
        if event.new_day:
            self.notes.day_changed()
        for screen in self.app.screen_stack[1:]:
            screen.post_message(TimePassed(event.new_day))

    @on(ChatPane.StatusChanged)
    def _label_chat(self) -> None:
        session = self.chat.conversation.session
        title = clean_line(session.title) if session is not None else ""
        self.chat.label_with(title or "New conversation")
        self.query_one(TitleRow).remark = Content(" · ").join([*self._model_status()])

    def _model_status(self) -> Iterator[Content]:
        """Yield the model and where it runs, its context usage, and today's cost."""
        status, spent = self.chat.model, self.chat.conversation.spent
        if status is None:
            return
        if status.offline:
            yield Content("no model" if status.chosen else "no model yet")
            return
        where = ("on this machine", "$text-success") if status.is_local else f"at {status.place}"
        yield Content.assemble(clean_line(status.name).rpartition("/")[2], " ", where)
        if spent.last_prompt and self.chat.context_window:
            yield Content(f"{spent.last_prompt / self.chat.context_window:.0%}")
        cost = max(self.chat.spent_today, spent.cost_usd)
        if cost:
            yield Content(f"{usd(cost)} today")

    # Panes

    def show_chat(self) -> None:
        """Show the chat and focus the prompt."""
        self._show("chat")
        self.chat.focus_prompt()

    def show_notes(self) -> None:
        """Show the notes and focus the tree; where no note is open, beside the page of today."""
        self._show("notes")
        self.notes.show_today()
        self.notes.focus_tree()

    def zoom(self) -> None:
        """Toggle whether the focused pane fills the screen."""
        self.toggle_class("-zoomed")
        self._follow_focus(self.focused)

    def _show(self, pane: str) -> None:
        self.set_class(pane == "notes", "-notes-in-front")

    def _follow_focus(self, widget: Widget | None) -> None:
        if widget is not None:
            self._show("notes" if self.notes in widget.ancestors_with_self else "chat")

    def on_descendant_focus(self) -> None:
        """Bring the focused pane to the front, where only one fits."""
        self._follow_focus(self.focused)

    # Requests of the panes

    @on(OpenEntry)
    def _open_entry(self, event: OpenEntry) -> None:
        self._show("notes")
        self.notes.open_entry(event.path, event.line, edit=event.edit)

    @on(OpenToday)
    def _open_today(self) -> None:
        self._show("notes")
        self.notes.show_today(moves_focus=True)

    @on(OpenMessage)
    def _open_message(self, event: OpenMessage) -> None:
        self._show("chat")
        self.chat.go_to_message(event.session, event.message)

    @on(AskAbout)
    def _ask_about(self, event: AskAbout) -> None:
        self._show("chat")
        self.chat.insert_reference(event.path)

    @on(OpenHistory)
    @on(OpenInbox)
    @on(OpenPast)
    @on(OpenSearch)
    @on(OpenSwitcher)
    @on(OpenTasks)
    def _open_screen(
        self,
        event: OpenHistory | OpenInbox | OpenPast | OpenSearch | OpenSwitcher | OpenTasks,
    ) -> None:
        """Show another screen, deferred until the workspace is open."""
        kb = self.chat.kb
        if kb is None:
            self.do_when_open(partial(self.post_message, event))
            return
        match event:
            case OpenHistory(path, commit, other_kb):
                self.app.push_screen(history.HistoryScreen(other_kb or kb, path, commit))
            case OpenInbox(proposal):
                self.app.push_screen(inbox.InboxScreen(kb, proposal))
            case OpenPast(moment):
                run_latest(self, "travel", time_travel.travel, self, kb, moment)
            case OpenSearch(query):
                self.app.push_screen(search.SearchScreen(kb, query))
            case OpenSwitcher(query):
                self.app.push_screen(switcher.SwitcherScreen(kb, query))
            case OpenTasks():
                self.app.push_screen(tasks.TasksScreen(kb))

    @on(InboxChanged)
    def _inbox_changed(self, event: InboxChanged) -> None:
        for screen in self.app.screen_stack[1:]:
            screen.post_message(InboxChanged(event.count))

    @on(Working)
    def _show_work(self, event: Working) -> None:
        self.query_one(StatusLine).memory = event.text
