"""What goes on in the background, as the list of tasks shows it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.index.pause import Pause
    from kbtui.search.results import IndexStatus
    from kbtui.tui.chat.chat_pane import ChatPane

INDEXING = {
    "opening": "opening the index",
    "syncing": "indexing",
    "preparing": "preparing the search model",
    "embedding": "embedding",
}
"""What the search index is at, where it says no more itself."""


class Task(NamedTuple):
    """One thing that is being done: where, how far it is, and how to stop it, if it can be.

    `does` says what the key for that does.
    """

    name: str
    text: str
    stop: Callable[[], object] | None = None
    does: str = "stops it"


def index_at_work(status: IndexStatus) -> str:
    """What the search index is at and how long it may take; empty where it rests."""
    if status.state not in INDEXING:
        return ""
    return clean_line(status.message) or INDEXING[status.state]


def running_tasks(kb: KnowledgeBase, chat: ChatPane) -> list[Task]:
    """Everything that is being done now, or waits to be."""
    return [*_answers(chat), *_sync(chat), *_memory(kb), *_search(kb)]


def _answers(chat: ChatPane) -> Iterator[Task]:
    if chat.conversation.busy:
        waiting = chat.conversation.queued
        text = f"an answer is coming, {waiting} more wait" if waiting else "an answer is coming"
        yield Task("Chat", text, chat.stop)


def _sync(chat: ChatPane) -> Iterator[Task]:
    syncing = chat.memory_commands.syncing
    if syncing.running:
        yield Task("Sync", syncing.text or "bringing the machines together", syncing.stop)


def _memory(kb: KnowledgeBase) -> Iterator[Task]:
    keeper = kb.memory.keeper
    status = keeper.status()
    if status.state == "working":
        yield Task("Memory", clean_line(status.text), keeper.cancel)
    if status.waiting:
        count = len(status.waiting)
        what = "1 conversation is" if count == 1 else f"{count} conversations are"
        yield Task("Memory", f"{what} condensed later")


def _search(kb: KnowledgeBase) -> Iterator[Task]:
    status, pause = kb.search.status(), kb.search.pause
    text = index_at_work(status)
    if text and status.state != "embedding":
        yield Task("Search", text)
    elif pause.stopped:
        yield Task("Search", f"{text}, paused", partial(_toggle, pause), "goes on")
    elif text:
        yield Task("Search", text, partial(_toggle, pause), "pauses it")


def _toggle(pause: Pause) -> None:
    pause.stopped = not pause.stopped
