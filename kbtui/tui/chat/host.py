"""The chat as its commands see it, and what may run beside it: a sync, an import."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

from kbtui.errors import KbtuiError, UsageError
from kbtui.text import clean_line
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.messages import Working, go_to, tell
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.widgets.pane import Pane

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.models.roles import ModelStatus
    from kbtui.tui.actions.registry import Command
    from kbtui.tui.chat.conversation import conversation, items
    from kbtui.tui.chat.conversation.conversation import Conversation
    from kbtui.tui.chat.conversation.items import Item
    from kbtui.tui.messages import Severity
else:
    conversation, items = lazy_modules("chat.conversation.conversation", "chat.conversation.items")

T = TypeVar("T")
_TICK_SECONDS = 0.2


class ChatHost(Pane):
    """Where commands and the actions on items are carried out, on a `kb` once it is open.

    `model` is the one that answers, as it was seen last, with a `context_window` of so many tokens;
    0 where it isn't known. `spent_today` is what models have cost today, in US dollars.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kb: KnowledgeBase | None = None
        self.model: ModelStatus | None = None
        self.context_window = 0
        self.spent_today = 0.0
        self.transcript = Transcript(id="transcript")
        self.prompt = Prompt(id="prompt")
        self.syncing = Errand("Sync", self._show_errand)
        self.importing = Errand("Import", self._show_errand)
        self._conversation: Conversation | None = None

    @property
    def conversation(self) -> Conversation:
        """The session, the queue and the turn at work.

        Made when first needed: the first frame is out sooner without what it imports.
        """
        if self._conversation is None:
            self._conversation = conversation.Conversation(
                self.transcript,
                lambda turn: self.run_worker(turn, group="turn", exit_on_error=False),
                self.changed,
                lambda text: self.post_message(Working(text)),
            )
            self.set_interval(_TICK_SECONDS, self._conversation.tick)
        return self._conversation

    @abstractmethod
    def run_command(self, command: Command) -> None:
        """Carry out a slash command."""

    @abstractmethod
    def changed(self) -> None:
        """Session, model or cost may be different now: the header is drawn again."""

    @abstractmethod
    def shown_entry(self) -> str | None:
        """The path of the entry that is open beside the conversation, if one is."""

    def tell(self, *told: Item) -> None:
        """Put something that kbtui says itself into the conversation."""
        self.transcript.add(*told)
        self.transcript.to_end()

    def say(self, text: str, severity: Severity = "information") -> None:
        """Say something in passing, as a toast."""
        tell(self, text, severity)

    def run(self, work: Coroutine[None, None, None], group: str = "command") -> None:
        """Do something beside the screen; what goes wrong is said in the conversation."""
        self.run_worker(self._guarded(work), group=group)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except KbtuiError as error:
            self.tell(items.failure(error))

    def focus_prompt(self) -> None:
        """Go to the prompt."""
        go_to(self.prompt)

    def clear_prompt(self) -> bool:
        """Ctrl+C: empty the prompt, keeping the text in the history. False if it is empty."""
        if not self.prompt.text:
            return False
        self.prompt.history_of_input.add(self.prompt.full_text)
        self.prompt.clear_text()
        self.prompt.popup.hide()
        return True

    def _show_errand(self, text: str) -> None:
        """Called in the thread of a sync or an import, perhaps while the app is closing."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self.post_message, Working(text))


CommandFunction = Callable[[ChatHost, "KnowledgeBase", str], Coroutine[None, None, None]]
ItemFunction = Callable[[ChatHost, "Item"], None]
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
