"""The interface of the chat for its commands, and its background jobs."""

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
from kbtui.tui.terminal.restless import is_still
from kbtui.tui.widgets.pane import Pane

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.models.roles import ModelStatus
    from kbtui.offline.orders import Order
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
    """The pane in which commands and actions on items run, on `kb` once it is open.

    `model` is the last known status of the answering model, with a `context_window` in tokens, or 0
    if unknown. `spent_today` is the cost of models today, in US dollars.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kb: KnowledgeBase | None = None
        self.model: ModelStatus | None = None
        self.context_window = 0
        self.spent_today = 0.0
        self.transcript = Transcript(id="transcript")
        self.prompt = Prompt(id="prompt")
        self.syncing = Job("Sync", self._show_step)
        self.importing = Job("Import", self._show_step)
        self.fetching = Job("Fetch", self._show_step)
        self._conversation: Conversation | None = None

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The background jobs that can be stopped."""
        return self.syncing, self.importing, self.fetching

    @property
    def conversation(self) -> Conversation:
        """The session, the queue and the running turn.

        Created on first use: its imports would delay the first frame.
        """
        if self._conversation is None:
            self._conversation = conversation.Conversation(
                self.transcript,
                lambda turn: self.run_worker(turn, group="turn", exit_on_error=False),
                self.changed,
                lambda text: self.post_message(Working(text)),
                self.give_back,
                self.carry_out,
            )
            self.set_interval(_TICK_SECONDS, self._tick)
        return self._conversation

    def _tick(self) -> None:
        if not is_still(self):
            self.conversation.tick()

    @abstractmethod
    def run_command(self, command: Command) -> None:
        """Run a slash command."""

    @abstractmethod
    def changed(self) -> None:
        """Redraw the header, as the session, model or cost may have changed."""

    @abstractmethod
    def give_back(self, *texts: str) -> None:
        """Put texts that weren't sent, or couldn't be stored, into the prompt again."""

    @abstractmethod
    def carry_out(self, order: Order) -> None:
        """Ask whether to do what a message ordered, and do it."""

    @abstractmethod
    def shown_entry(self) -> str | None:
        """Return the path of the entry open beside the conversation, if any."""

    def tell(self, *items: Item) -> None:
        """Append notices of kbtui itself to the transcript."""
        self.transcript.add(*items)
        self.transcript.to_end()

    def say(self, text: str, severity: Severity = "information") -> None:
        """Show a toast."""
        tell(self, text, severity)

    def run(self, work: Coroutine[None, None, None], group: str = "command") -> None:
        """Run a coroutine in a worker; errors are shown in the transcript."""
        self.run_worker(self._guarded(work), group=group)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except KbtuiError as error:
            self.tell(items.failure(error))

    def focus_prompt(self) -> None:
        go_to(self.prompt)

    def clear_prompt(self) -> bool:
        """Clear the prompt, adding its text to the input history; False if it is empty."""
        if not self.prompt.text:
            return False
        self.prompt.history_of_input.add(self.prompt.full_text)
        self.prompt.clear_text()
        self.prompt.popup.hide()
        return True

    def _show_step(self, text: str) -> None:
        """Show the step of a background job, from its thread; the app may already be closing."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self.post_message, Working(text))


CommandFunction = Callable[[ChatHost, "KnowledgeBase", str], Coroutine[None, None, None]]
ItemFunction = Callable[[ChatHost, "Item"], None]
STOP = "stop"


class Job:
    """A background job with at most one run at a time; `text` is its current step, or empty.

    `show` is called with each step, from the job's thread too, and with an empty one at the end.
    """

    def __init__(self, name: str, show: Callable[[str], None]) -> None:
        self.name = name
        self._show = show
        self._stopped: threading.Event | None = None
        self.text = ""

    async def run(self, work: Callable[[Callable[[str], None], Callable[[], bool]], T]) -> T:
        """Run `work` in a thread; it gets a callback for steps and one that says if it is stopped.

        Raises:
            UsageError: The job is already running.
            KbtuiError: The work failed; nothing is lost.
        """
        if self._stopped is not None:
            name = self.name.lower()
            raise UsageError(f"One {name} is running already.", f"/{name} {STOP} ends it.")
        stopped = self._stopped = threading.Event()
        try:
            return await asyncio.to_thread(work, self._set_step, stopped.is_set)
        finally:
            stopped.set()  # if this coroutine is cancelled, the thread stops too
            self._stopped = None
            self._set_step("")

    @property
    def running(self) -> bool:
        """Whether the job is running."""
        return self._stopped is not None

    def stop(self) -> None:
        """Stop the job at its next step; nothing is lost."""
        if self._stopped is not None:
            self._stopped.set()

    def _set_step(self, text: str) -> None:
        self.text = clean_line(text)
        self._show(self.text)
