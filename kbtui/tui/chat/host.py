"""The chat pane as its smaller parts see it, so that they needn't know the pane itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from textual.app import App
    from textual.message import Message

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.models.roles import ModelStatus
    from kbtui.tui.chat.conversation import Conversation
    from kbtui.tui.chat.items import Item
    from kbtui.tui.chat.prompt import Prompt
    from kbtui.tui.chat.syncing import Syncing
    from kbtui.tui.chat.transcript import Transcript
    from kbtui.tui.messages import Severity


class ChatHost(Protocol):
    """Where commands and the actions on items are carried out.

    Attributes:
        kb: The open knowledge base, or None until it is open.
        model: The model that answers, as it was seen last; None before the first look.
        context_window: Its size in tokens; 0 where it isn't known.
        syncing: The sync that may be under way.
    """

    kb: KnowledgeBase | None
    model: ModelStatus | None
    context_window: int
    prompt: Prompt
    transcript: Transcript
    syncing: Syncing

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

    def post_message(self, message: Message) -> bool:
        """Ask the main screen for something."""

    def changed(self) -> None:
        """Session, model or cost may be different now: the header is drawn anew."""

    def focus_prompt(self) -> None:
        """Go to the prompt."""

    def clear_prompt(self) -> bool:
        """Empty the prompt, keeping its text in the history; False if it is empty."""

    def shown_entry(self) -> str | None:
        """The path of the entry that is open beside the conversation, if one is."""


if TYPE_CHECKING:
    CommandFunction = Callable[[ChatHost, KnowledgeBase, str], Coroutine[None, None, None]]
    ItemFunction = Callable[[ChatHost, Item], None]
