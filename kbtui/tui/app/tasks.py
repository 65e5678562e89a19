"""The task list: background work, its progress, and a way to stop it."""

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


class Task(NamedTuple):
    """A background task: its name, its progress, and a callback to stop it, if possible.

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


def running_tasks(kb: KnowledgeBase, chat: ChatPane) -> list[Task]:
    """Return all running and queued tasks."""
    return [*_answers(chat), *_errands(chat), *_memory(kb), *_search(kb)]


def _answers(chat: ChatPane) -> Iterator[Task]:
    if chat.conversation.busy:
        waiting = chat.conversation.queued
        text = f"an answer is coming, {waiting} more wait" if waiting else "an answer is coming"
        yield Task("Chat", text, chat.stop)


def _errands(chat: ChatPane) -> Iterator[Task]:
    for errand in (chat.syncing, chat.importing):
        if errand.running:
            yield Task(errand.name, errand.text or "at work", errand.stop)


def _memory(kb: KnowledgeBase) -> Iterator[Task]:
    worker = kb.memory.worker
    status = worker.status()
    if status.state == "working":
        yield Task("Memory", clean_line(status.text), worker.cancel)
    if status.waiting:
        count = len(status.waiting)
        what = "1 conversation is" if count == 1 else f"{count} conversations are"
        yield Task("Memory", f"{what} condensed later")


def _search(kb: KnowledgeBase) -> Iterator[Task]:
    status, pause = kb.search.status(), kb.search.pause
    text = index_activity(status)
    if text and status.state != "embedding":
        yield Task("Search", text)
    elif pause.stopped:
        yield Task("Search", f"{text}, paused", partial(_toggle, pause), "goes on")
    elif text:
        yield Task("Search", text, partial(_toggle, pause), "pauses it")


def _toggle(pause: Pause) -> None:
    pause.stopped = not pause.stopped


class TasksScreen(ListDialog[None]):
    """A live list of background tasks; x stops the one under the cursor."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    TasksScreen {
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
        self._shown: list[Task] = []

    def compose_question(self) -> ComposeResult:
        tasks = ChoiceList()
        tasks.empty = "Nothing runs in the background."
        yield tasks

    def on_mount(self) -> None:
        self._refresh_tasks()
        self.set_interval(_REFRESH_SECONDS, self._refresh_tasks)

    def _refresh_tasks(self) -> None:
        found = running_tasks(self._kb, self._chat)
        if [task[:2] for task in found] == [task[:2] for task in self._shown]:
            return
        self._shown = found
        choices = [
            Choice(f"{task.name}: {task.text}", f"x {task.does}" if task.stop else "", task)
            for task in found
        ]
        self.choices.show(choices, min(self.choices.cursor, max(0, len(found) - 1)))

    def action_take(self) -> None:
        """Do nothing: a task can't be chosen."""

    def action_stop(self) -> None:
        choice = self.choices.item
        if choice is None:
            return
        if choice.value.stop is None:
            self.notify("This goes on by itself, also after a restart.", markup=False)
            return
        choice.value.stop()
        self._refresh_tasks()
