"""The status line: key hints, background work, and the inbox count."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style

from kbtui.errors import KbtuiError
from kbtui.text import clean_line, shorten
from kbtui.tui.messages import InboxChanged, tell, tell_error
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.kinds import HOT
from kbtui.tui.widgets.progress import Pace, bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import WorkerEvent
    from kbtui.search.results import IndexStatus
    from kbtui.tui.inbox.inbox_watch import InboxWatch

INDEXING = {
    "opening": "opening the index",
    "syncing": "indexing",
    "preparing": "preparing the search model",
    "embedding": "reading for meaning",
}
"""The texts for the search index's states, used if it has no message of its own."""
_MAX_TEXT = 28


class StatusLine(Hints):
    """The hints of the main screen, with background work and the inbox count."""

    index: reactive[str] = reactive("opening")
    working: reactive[bool] = reactive(True)
    memory: reactive[str] = reactive("")
    """The background work on memory, or ""."""
    inbox: reactive[int] = reactive(0)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._stop_listening: Callable[[], None] | None = None
        self._background: BackgroundWatch | None = None
        self._inbox: InboxWatch | None = None
        self._pace: Pace | None = None  # of reading files

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Subscribe to the search index, the background work and the inbox."""
        from kbtui.tui.inbox.inbox_watch import InboxWatch

        self._background = BackgroundWatch(self, kb)
        self._inbox = InboxWatch(self, kb)
        self._stop_listening = kb.search.subscribe(self._index_changed)
        self._show_index(kb.search.status())

    def knowledge_changed(self) -> None:
        """Recheck the inbox: a change of notes may have made a proposal obsolete."""
        if self._inbox is not None:
            self._inbox.files_changed()

    @on(InboxChanged)
    def _inbox_changed(self, event: InboxChanged) -> None:
        self.inbox = event.count

    def _index_changed(self, status: IndexStatus) -> None:
        """Show the status; called in the index's threads, perhaps during shutdown."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self._show_index, status)

    def on_unmount(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
        if self._background is not None:
            self._background.stop()
        if self._inbox is not None:
            self._inbox.stop()

    def _show_index(self, status: IndexStatus) -> None:
        self.working = status.state in INDEXING
        self._pace = self._pace if status.reading[1] else None
        if status.state == "embedding" and status.left > 0:
            done = status.embedded / (status.embedded + status.left)
            left = clean_line(status.message).partition(", ")[2]  # the time left, if known
            self.index = f"{INDEXING[status.state]} {bar(done)} {left}".rstrip()
        elif self.working and status.reading[1]:
            self._pace = self._pace or Pace()
            self.index = f"reading files {self._pace.text(*status.reading)}"
        elif self.working:
            text = clean_line(status.message)
            text = text[:1].lower() + text[1:]
            self.index = text if 0 < len(text) <= _MAX_TEXT else INDEXING[status.state]
        else:
            self.index = "by words, not meaning" if status.state == "lexical-only" else ""

    def render(self) -> Content:
        busy = self.working or bool(self.memory)
        state = [Content.styled(self.memory or self.index, "$warning" if busy else "$text-muted")]
        if self.inbox:
            badge = Content.styled(f" F6 {self.inbox} waiting ", HOT)
            state.append(badge.stylize(Style.from_meta({"key": "f6"})))
        self.set_reactive(Hints.state, tuple(state))
        return super().render()


_ASK_RETRY_SECONDS = 1.0


class BackgroundWatch:
    """A listener that shows the memory worker's events in the status line."""

    def __init__(self, line: StatusLine, kb: KnowledgeBase) -> None:
        self._widget = line
        self._worker = kb.memory.worker
        self._sessions = kb.sessions
        self._titles: dict[str, str] = {}
        self.stop = self._worker.subscribe(self._on_event)

    def _on_event(self, event: WorkerEvent) -> None:
        """Forward an event; called in the worker's thread, perhaps during shutdown."""
        if event.kind == "started" and event.session is not None:
            self._titles = {each.id: each.title for each in self._sessions.list()}
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self._show_event, event)

    def _show_event(self, event: WorkerEvent) -> None:
        if event.kind in ("started", "progress"):
            title = self._titles.get(event.session or "")
            text = f"{event.text}: {shorten(title, _MAX_TEXT)}" if title else event.text
            progress = bar(event.page / event.pages) if event.pages > 1 else ""
            self._widget.memory = f"{progress} {clean_line(text)}".lstrip()
        elif event.kind == "finished":
            self._widget.memory = ""
        elif event.kind == "notice":
            tell(self._widget, event.text)
        else:
            self._ask(event)

    def _ask(self, event: WorkerEvent) -> None:
        """Ask whether a paid model that was found, not chosen, may be used in the background.

        The question isn't urgent, so it waits until the user isn't typing or in a dialog.
        """
        from kbtui.tui.widgets.dialogs import UnaskedDialog, is_disturbing

        if is_disturbing(self._widget.app):
            self._widget.set_timer(_ASK_RETRY_SECONDS, partial(self._ask, event))
            return
        cap = self._worker.status().cap_usd
        text = (
            f"{clean_line(event.model)} costs money. May it condense conversations in the "
            f"background, for at most ${cap:.2f} a day? Without it they wait."
        )

        def answered(key: str | None) -> None:
            if key is not None:
                agree = partial(self._agree, event.model, yes=key == "y")
                self._widget.run_worker(agree, thread=True, group="consent")

        dialog = UnaskedDialog("Memory", text, {"y": "yes", "n": "no"})
        self._widget.app.push_screen(dialog, answered)

    def _agree(self, model: str, *, yes: bool) -> None:
        """Record the answer; call in a thread."""
        try:
            self._worker.agree(model, yes=yes)
        except KbtuiError as error:
            tell_error(self._widget, error)
