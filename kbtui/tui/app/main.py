"""The main screen: header, chat and notes side by side, hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Static

from kbtui.text import clean_line
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.messages import (
    AskAbout,
    InboxChanged,
    KnowledgeChanged,
    KnowledgeReady,
    Notify,
    OpenEntry,
    OpenHistory,
    OpenInbox,
    OpenMessage,
    OpenPast,
    OpenSearch,
    OpenSwitcher,
)
from kbtui.tui.notes.notes_pane import NotesPane

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.message import Message
    from textual.widget import Widget

    from kbtui.knowledge_base import KnowledgeBase


_CENT = 0.01
NARROW = 100
"""Columns under which one pane is shown at a time."""


class HeaderLine(Static):
    """Title on the left, the model's state on the right; the title gives way."""

    session_title: reactive[str] = reactive("")
    model: reactive[str] = reactive("")
    context_share: reactive[float | None] = reactive[float | None](None)
    cost: reactive[float | None] = reactive[float | None](None)

    def render(self) -> Content:
        """Both sides, fitted into the width."""
        width = self.content_size.width
        state = self._state()
        name = Content.styled("kbtui", "bold $primary")
        title = clean_line(self.session_title)
        left = name + Content.styled(f" · {title}" if title else "", "$foreground")
        room = width - state.cell_length - 2
        if room < name.cell_length:
            return left.truncate(max(1, width), ellipsis=True)
        return left.truncate(room, ellipsis=True, pad=True) + "  " + state

    def _state(self) -> Content:
        parts = [clean_line(self.model)] if self.model else []
        if self.context_share is not None:
            parts.append(f"ctx {self.context_share:.0%}")
        if self.cost is not None:
            parts.append("<$0.01" if 0 < self.cost < _CENT else f"${self.cost:.2f}")
        return Content.styled(" │ ".join(parts), "$text-muted")


class MainScreen(Screen[None]):
    """Puts the panes together and carries what they tell each other."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as in Screen
    AUTO_FOCUS = "#prompt"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted: Message | None = None

    def compose(self) -> ComposeResult:
        """Header, the two panes, hints."""
        yield HeaderLine(id="header")
        with Horizontal(id="panes"):
            yield ChatPane(id="chat")
            yield NotesPane(id="notes")
        yield StatusLine(id="status")

    @property
    def chat(self) -> ChatPane:
        """The pane of the chat."""
        return self.query_one("#chat", ChatPane)

    @property
    def notes(self) -> NotesPane:
        """The pane of the notes."""
        return self.query_one("#notes", NotesPane)

    # The knowledge base

    @on(KnowledgeReady)
    def _knowledge_ready(self, event: KnowledgeReady) -> None:
        """Hand the knowledge base to the chat; the notes have had it since there was one."""
        self.chat.knowledge_ready(event.kb)
        self.query_one(StatusLine).knowledge_ready(event.kb)
        if self._wanted is not None:
            self.post_message(self._wanted)

    def _opened(self, wanted: Message) -> KnowledgeBase | None:
        """The knowledge base; until it is open, what was wanted last is done then."""
        self._wanted = wanted if self.chat.kb is None else None
        return self.chat.kb

    @on(KnowledgeChanged)
    def _knowledge_changed(self, event: KnowledgeChanged) -> None:
        """Tell the panes what a commit changed."""
        self.chat.knowledge_changed()
        self.notes.knowledge_changed(event.paths, event.commit, event.actor)
        self.query_one(StatusLine).knowledge_changed()
        for screen in self.app.screen_stack[1:]:
            screen.post_message(KnowledgeChanged(event.paths, event.commit, event.actor))

    @on(ChatPane.Changed)
    def _update_header(self) -> None:
        header = self.query_one(HeaderLine)
        conversation, kb = self.chat.conversation, self.chat.kb
        session, status = conversation.session, self.chat.model
        header.session_title = session.title if session is not None else ""
        if kb is None or status is None:
            return
        place = "" if status.offline else " local" if status.is_local else ""
        header.model = f"{status.name}{place}"
        used, window = conversation.spent.last_prompt, self.chat.context_window
        asked = bool(used and window) and not status.offline
        header.context_share = used / window if asked else None
        priced = conversation.spent.calls > conversation.spent.unpriced
        header.cost = conversation.spent.cost_usd if priced and not status.offline else None

    # Panes

    def show_chat(self) -> None:
        """Go to the prompt."""
        self._show("chat")
        self.chat.focus_prompt()

    def show_notes(self) -> None:
        """Go to the tree."""
        self._show("notes")
        self.notes.focus_tree()

    def zoom(self) -> None:
        """Give the focused pane all the room, or share it again."""
        self.toggle_class("-zoomed")
        self._follow_focus(self.focused)

    def _show(self, pane: str) -> None:
        self.set_class(pane == "notes", "-notes-in-front")

    def _follow_focus(self, widget: Widget | None) -> None:
        if widget is not None:
            self._show("notes" if self.notes in widget.ancestors_with_self else "chat")

    def on_descendant_focus(self) -> None:
        """The pane with the focus is the one in front where there is room for one."""
        self._follow_focus(self.focused)

    # What panes ask for

    @on(OpenEntry)
    def _open_entry_wanted(self, event: OpenEntry) -> None:
        """Show an entry in the notes pane."""
        self._show("notes")
        self.notes.open_entry(event.path, event.line, edit=event.edit)

    @on(OpenMessage)
    def _open_message_wanted(self, event: OpenMessage) -> None:
        """Show what was said."""
        self._show("chat")
        self.chat.go_to_message(event.session, event.message)

    @on(AskAbout)
    def _ask_about_wanted(self, event: AskAbout) -> None:
        """Refer to an entry in the prompt."""
        self._show("chat")
        self.chat.insert_reference(event.path)

    @on(ChatPane.EditorWanted)
    def _edit_outside(self) -> None:
        from kbtui.errors import KbtuiError
        from kbtui.tui.chat.items import failure
        from kbtui.tui.terminal.process import edit_text

        prompt = self.chat.prompt
        try:
            prompt.replace_text(edit_text(self.app, prompt.full_text))
        except KbtuiError as error:
            self.chat.tell(failure(error))

    @on(ChatPane.QuitWanted)
    def _quit(self) -> None:
        self.app.exit()

    @on(OpenHistory)
    def _open_history_wanted(self, event: OpenHistory) -> None:
        """Show the history."""
        kb = self._opened(event)
        if kb is not None:
            from kbtui.tui.history.history import HistoryScreen

            self.app.push_screen(HistoryScreen(event.kb or kb, event.path, event.commit))

    @on(OpenInbox)
    def _open_inbox_wanted(self, event: OpenInbox) -> None:
        """Show the inbox."""
        kb = self._opened(event)
        if kb is not None:
            from kbtui.tui.inbox.inbox import InboxScreen

            self.app.push_screen(InboxScreen(kb, event.proposal))

    @on(InboxChanged)
    def _inbox_changed(self, event: InboxChanged) -> None:
        """Tell the inbox, if it is open."""
        for screen in self.app.screen_stack[1:]:
            screen.post_message(InboxChanged(event.count))

    @on(OpenPast)
    def _open_past_wanted(self, event: OpenPast) -> None:
        """Travel in time."""
        kb = self._opened(event)
        if kb is not None:
            from kbtui.tui.history.time_travel import travel
            from kbtui.tui.terminal.background import run_latest

            run_latest(self, "travel", travel, self, kb, event.moment)

    @on(OpenSearch)
    def _open_search_wanted(self, event: OpenSearch) -> None:
        """Show the search."""
        kb = self._opened(event)
        if kb is not None:
            from kbtui.tui.search.search import SearchScreen

            self.app.push_screen(SearchScreen(kb, event.query))

    @on(OpenSwitcher)
    def _open_switcher_wanted(self, event: OpenSwitcher) -> None:
        """Show the switcher."""
        kb = self._opened(event)
        if kb is not None:
            from kbtui.tui.search.switcher import SwitcherScreen

            self.app.push_screen(SwitcherScreen(kb, event.query))

    @on(ChatPane.Working)
    def _show_work(self, event: ChatPane.Working) -> None:
        self.query_one(StatusLine).show_work(event.text)

    @on(Notify)
    def _notify_wanted(self, event: Notify) -> None:
        """Say something in passing."""
        self.app.notify(event.text, severity=event.severity, markup=False)
