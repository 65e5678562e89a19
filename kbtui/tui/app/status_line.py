"""The line at the bottom: which keys do what here, and what goes on in the background."""

from __future__ import annotations

import contextlib
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style

from kbtui.errors import KbtuiError
from kbtui.text import clean_line, shorten
from kbtui.tui.messages import InboxChanged, tell, tell_error
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.hints import Hints
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
"""The names of what the search index does, where it says no more itself."""
_SHORT = 28


class StatusLine(Hints):
    """The hints of the main screen, with what goes on in the background."""

    index: reactive[str] = reactive("opening")
    working: reactive[bool] = reactive(True)
    memory: reactive[str] = reactive("")
    """What is being done in the background, if anything is."""
    inbox: reactive[int] = reactive(0)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._stop_listening: Callable[[], None] | None = None
        self._background: BackgroundWatch | None = None
        self._inbox: InboxWatch | None = None
        self._pace: Pace | None = None  # of the files that are being read

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Follow the state of the search index, the background work, and the inbox."""
        from kbtui.tui.inbox.inbox_watch import InboxWatch

        self._background = BackgroundWatch(self, kb)
        self._inbox = InboxWatch(self, kb)
        self._stop_listening = kb.search.subscribe(self._index_changed)
        self._show_index(kb.search.status())

    def knowledge_changed(self) -> None:
        """Notes were changed: what waits in the inbox may stand there by now."""
        if self._inbox is not None:
            self._inbox.files_changed()

    @on(InboxChanged)
    def _inbox_changed(self, event: InboxChanged) -> None:
        self.inbox = event.count

    def _index_changed(self, status: IndexStatus) -> None:
        """Called in the index's own threads, perhaps while the app is closing."""
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
            left = clean_line(status.message).partition(", ")[2]  # how long, where it is known
            self.index = f"{INDEXING[status.state]} {bar(done)} {left}".rstrip()
        elif self.working and status.reading[1]:
            self._pace = self._pace or Pace()
            self.index = f"reading files {self._pace.said(*status.reading)}"
        elif self.working:
            said = clean_line(status.message)
            said = said[:1].lower() + said[1:]
            self.index = said if 0 < len(said) <= _SHORT else INDEXING[status.state]
        else:
            self.index = "by words, not meaning" if status.state == "lexical-only" else ""

    def render(self) -> Content:
        """The hints beside what goes on."""
        busy = self.working or bool(self.memory)
        state = [Content.styled(self.memory or self.index, "$warning" if busy else "$text-muted")]
        if self.inbox:
            waits = Content.assemble(("F6", "bold $primary"), (f" {self.inbox} waiting", "$accent"))
            state.append(waits.stylize(Style.from_meta({"key": "f6"})))
        self.set_reactive(Hints.state, tuple(state))
        return super().render()


_ASK_AGAIN_SECONDS = 1.0


class BackgroundWatch:
    """Follows the worker for the line that says what it is at."""

    def __init__(self, line: StatusLine, kb: KnowledgeBase) -> None:
        self._widget = line
        self._worker = kb.memory.worker
        self._sessions = kb.sessions
        self._titles: dict[str, str] = {}
        self.stop = self._worker.subscribe(self._happened)

    def _happened(self, event: WorkerEvent) -> None:
        """Called in the worker's thread, perhaps while the app is closing."""
        if event.kind == "started" and event.session is not None:
            self._titles = {each.id: each.title for each in self._sessions.list()}
        with contextlib.suppress(RuntimeError):
            self._widget.call_later(self._take, event)

    def _take(self, event: WorkerEvent) -> None:
        if event.kind in ("started", "progress"):
            title = self._titles.get(event.session or "")
            text = f"{event.text}: {shorten(title, _SHORT)}" if title else event.text
            how_far = bar(event.page / event.pages) if event.pages > 1 else ""
            self._widget.memory = f"{how_far} {clean_line(text)}".lstrip()
        elif event.kind == "finished":
            self._widget.memory = ""
        elif event.kind == "notice":
            tell(self._widget, event.text)
        else:
            self._ask(event)

    def _ask(self, event: WorkerEvent) -> None:
        """A paid model was found, not chosen: may it be used while nobody looks?

        Nobody waits for that question, so it comes when nothing is being written or asked.
        """
        from kbtui.tui.widgets.dialogs import UnaskedDialog

        if self._is_disturbing():
            self._widget.set_timer(_ASK_AGAIN_SECONDS, partial(self._ask, event))
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

    def _is_disturbing(self) -> bool:
        """True while somebody writes, or is asked something else."""
        from kbtui.tui.widgets.dialogs import QUIET_SECONDS

        app = self._widget.app
        writes = isinstance(app, KeysInOrder) and monotonic() - app.typed_at < QUIET_SECONDS
        return writes or app.screen.is_modal

    def _agree(self, model: str, *, yes: bool) -> None:
        """Called in a thread."""
        try:
            self._worker.agree(model, yes=yes)
        except KbtuiError as error:
            tell_error(self._widget, error)
