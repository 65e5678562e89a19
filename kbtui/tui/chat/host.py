"""The chat pane as its smaller parts see it, and what may run beside it: a sync, an import."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Protocol, TypeVar

from kbtui.errors import UsageError
from kbtui.text import clean_line

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.models.roles import ModelStatus
    from kbtui.tui.actions.registry import Command
    from kbtui.tui.chat.conversation import Conversation
    from kbtui.tui.chat.items import Item
    from kbtui.tui.chat.prompt import Prompt
    from kbtui.tui.chat.transcript import Transcript
    from kbtui.tui.messages import Severity


T = TypeVar("T")


class ChatHost(Protocol):
    """Where commands and the actions on items are carried out, on a `kb` once it is open.

    `model` is the one that answers, as it was seen last, with a `context_window` of so many tokens;
    0 where it isn't known. `spent_today` is what models have cost today, in US dollars.
    """

    kb: KnowledgeBase | None
    model: ModelStatus | None
    context_window: int
    spent_today: float
    prompt: Prompt
    transcript: Transcript
    syncing: Errand
    importing: Errand

    @property
    def app(self) -> App[object]:
        """The app, for dialogs and the clipboard."""

    @property
    def conversation(self) -> Conversation:
        """The session, the queue and the turn at work."""

    def tell(self, *items: Item) -> None:
        """Put something that kbtui says itself into the conversation."""

    def say(self, text: str, severity: Severity = "information") -> None:
        """Say something in passing, as a toast."""

    def run(self, work: Coroutine[None, None, None], group: str = "command") -> None:
        """Do something beside the screen; what goes wrong is said in the conversation."""

    def run_command(self, command: Command) -> None:
        """Carry out a slash command."""

    def post_message(self, message: Message) -> bool:
        """Ask the main screen for something."""

    def changed(self) -> None:
        """Session, model or cost may be different now: the header is drawn again."""

    def focus_prompt(self) -> None:
        """Go to the prompt."""

    def clear_prompt(self) -> bool:
        """Empty the prompt, keeping its text in the history; False if it is empty."""

    def shown_entry(self) -> str | None:
        """The path of the entry that is open beside the conversation, if one is."""


STOP = "stop"


class Errand:
    """Runs one long thing at a time beside the conversation; `text` is the step it is at, or empty.

    `show` is told each step, empty at the end; in the thread that does it, too.
    """

    def __init__(self, name: str, show: Callable[[str], None]) -> None:
        self.name = name
        self._show = show
        self._stopped: threading.Event | None = None
        self.text = ""

    async def run(self, work: Callable[[Callable[[str], None], Callable[[], bool]], T]) -> T:
        """Do it in a thread; `work` gets what it tells each step, and what says it is stopped.

        Raises:
            UsageError: One is under way.
            KbtuiError: It didn't work; nothing is lost.
        """
        if self._stopped is not None:
            name = self.name.lower()
            raise UsageError(f"One {name} is running already.", f"/{name} {STOP} ends it.")
        stopped = self._stopped = threading.Event()
        try:
            return await asyncio.to_thread(work, self._tell, stopped.is_set)
        finally:
            stopped.set()  # who gives up waiting for the thread stops it, too
            self._stopped = None
            self._tell("")

    @property
    def running(self) -> bool:
        """True while one is under way."""
        return self._stopped is not None

    def stop(self) -> None:
        """End the one that is under way, at its next step; nothing is lost."""
        if self._stopped is not None:
            self._stopped.set()

    def _tell(self, text: str) -> None:
        self.text = clean_line(text)
        self._show(self.text)


if TYPE_CHECKING:
    CommandFunction = Callable[[ChatHost, KnowledgeBase, str], Coroutine[None, None, None]]
    ItemFunction = Callable[[ChatHost, Item], None]
