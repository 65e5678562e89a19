"""The list of background work: its progress, and a way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.results import IndexStatus
from kbtui.search.search_index import Pause
from kbtui.text import clean_line
from kbtui.tui.app.status_line import INDEXING
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.widgets.dialogs import ListDialog
from kbtui.tui.widgets.row_list import Choice, ChoiceList

_REFRESH_SECONDS = 0.5


class Job(NamedTuple):
    """A job in the background: its name, its progress, and a callback to stop it, if possible.

    `does` is the label of the key that stops it.
    """

    name: str
    text: str
    stop: Callable[[], object] | None = None
    does: str = "stops it"


def index_activity(status: IndexStatus) -> str:
    """Return the search index's current work and time left, or "" if it is idle."""
    if status.state not in INDEXING:
        return ""
    return clean_line(status.message) or INDEXING[status.state]


def running_jobs(kb: KnowledgeBase, chat: ChatPane) -> list[Job]:
    """Return all running and queued jobs."""
    return [*_answers(chat), *_errands(chat), *_memory(kb), *_search(kb)]


def _answers(chat: ChatPane) -> Iterator[Job]:
    if chat.conversation.busy:
        waiting = chat.conversation.queued
        text = f"an answer is coming, {waiting} more wait" if waiting else "an answer is coming"
        yield Job("Chat", text, chat.stop)


def _errands(chat: ChatPane) -> Iterator[Job]:
    for errand in chat.jobs:
        if errand.running:
            yield Job(errand.name, errand.text or "at work", errand.stop)


def _memory(kb: KnowledgeBase) -> Iterator[Job]:
    worker = kb.memory.worker
    status = worker.status()
    if status.state == "working":
        yield Job("Memory", clean_line(status.text), worker.cancel)
    if status.waiting:
        count = len(status.waiting)
        what = "1 conversation is" if count == 1 else f"{count} conversations are"
        yield Job("Memory", f"{what} condensed later")


def _search(kb: KnowledgeBase) -> Iterator[Job]:
    status, pause = kb.search.status(), kb.search.pause
    text = index_activity(status)
    if text and status.state != "embedding":
        yield Job("Search", text)
    elif pause.stopped:
        yield Job("Search", f"{text}, paused", partial(_toggle, pause), "goes on")
    elif text:
        yield Job("Search", text, partial(_toggle, pause), "pauses it")


def _toggle(pause: Pause) -> None:
    pause.stopped = not pause.stopped


class BackgroundScreen(ListDialog[None]):
    """A live list of what runs in the background; x stops the one under the cursor."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    BackgroundScreen {
        ChoiceList { min-height: 1; margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "stop", "Stop"),
    ]
    TITLE_TEXT = "In the background"
    HINT = "x stop · Esc close"

    def __init__(self, kb: KnowledgeBase, chat: ChatPane) -> None:
        super().__init__()
        self._kb = kb
        self._chat = chat
        self._shown: list[Job] = []

    def compose_question(self) -> ComposeResult:
        jobs = ChoiceList()
        jobs.empty = "Nothing runs in the background."
        yield jobs

    def on_mount(self) -> None:
        self._refresh_jobs()
        self.set_interval(_REFRESH_SECONDS, self._refresh_jobs)

    def _refresh_jobs(self) -> None:
        found = running_jobs(self._kb, self._chat)
        if [job[:2] for job in found] == [job[:2] for job in self._shown]:
            return
        self._shown = found
        choices = [
            Choice(f"{job.name}: {job.text}", f"x {job.does}" if job.stop else "", job)
            for job in found
        ]
        self.choices.show(choices, min(self.choices.cursor, max(0, len(found) - 1)))

    def action_take(self) -> None:
        """Do nothing: a job can't be chosen."""

    def action_stop(self) -> None:
        choice = self.choices.item
        if choice is None:
            return
        if choice.value.stop is None:
            self.notify("This goes on by itself, also after a restart.", markup=False)
            return
        choice.value.stop()
        self._refresh_jobs()
