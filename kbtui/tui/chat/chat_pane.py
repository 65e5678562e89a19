"""The pane of the chat: the conversation above, the prompt below."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from kbtui.errors import KbtuiError
from kbtui.tui.actions.registry import bindings
from kbtui.tui.chat.completion_popup import Offers
from kbtui.tui.chat.draft import Unsent
from kbtui.tui.chat.popup import Popup
from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.chat.prompt_keys import PromptKeys
from kbtui.tui.chat.transcript import Transcript
from kbtui.tui.messages import OpenEntry, OpenInbox, go_to

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.actions.slash import Command
    from kbtui.tui.chat.commands import ChatCommands
    from kbtui.tui.chat.conversation import Conversation
    from kbtui.tui.chat.item_actions import Deeds
    from kbtui.tui.chat.items import Item
    from kbtui.tui.chat.memory_commands import MemoryCommands

_TICK = 0.2


class ChatPane(Vertical):
    """Public: `knowledge_ready`, `insert_reference`, `focus_prompt`, `send`, `run_command`."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("chat")]

    class Changed(Message):
        """Session, model, or what it has cost may be different now."""

    class QuitWanted(Message):
        """The person wants to leave."""

    class EditorWanted(Message):
        """The prompt's text is to be edited outside."""

    class CommandWanted(Message):
        """A slash command that isn't the chat's own is to be carried out."""

        def __init__(self, action: Action, argument: str) -> None:
            super().__init__()
            self.action = action
            self.argument = argument

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.kb: KnowledgeBase | None = None
        self.transcript = Transcript(id="transcript")
        self.prompt = Prompt(id="prompt")
        self.popup = Popup(id="popup")
        self.prompt.popup_is_open = lambda: self.popup.display
        self.offers = Offers(self.prompt, self.popup)
        self._prompt_keys = PromptKeys(self)
        self._unsent = Unsent(self.prompt, self._queued)

    def compose(self) -> ComposeResult:
        """Title, conversation, popup, prompt."""
        yield Static(Content("CHAT"), id="chat-title")
        yield self.transcript
        yield self.popup
        yield self.prompt

    def on_mount(self) -> None:
        """Typing works from the first frame on."""
        go_to(self.prompt)

    # Made when first needed: the first frame is out sooner without what they import.

    @cached_property
    def conversation(self) -> Conversation:
        """The session, the queue and the turn at work."""
        from kbtui.tui.chat.conversation import Conversation

        conversation = Conversation(self.transcript, self._run_turn, self._conversation_changed)
        self.set_interval(_TICK, conversation.tick)
        return conversation

    @cached_property
    def commands(self) -> ChatCommands:
        """The commands of the chat."""
        from kbtui.tui.chat.commands import ChatCommands

        return ChatCommands(self)

    @cached_property
    def memory_commands(self) -> MemoryCommands:
        """The commands of memory."""
        from kbtui.tui.chat.memory_commands import MemoryCommands

        return MemoryCommands(self)

    @cached_property
    def _deeds(self) -> Deeds:
        from kbtui.tui.chat.item_actions import Deeds

        return Deeds(self)

    # What the rest of the app uses

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """The knowledge base is open: restore the draft, send what waits."""
        self.kb = kb
        self.offers.completer.knowledge_ready(kb)
        self.prompt.history_of_input.attach(kb.workspace.root)
        self._unsent.restore(kb.workspace.root)
        self.conversation.knowledge_ready(kb)
        self.commands.start()

    def knowledge_changed(self) -> None:
        """Entries changed: complete from the new ones."""
        self.offers.completer.forget()

    def focus_prompt(self) -> None:
        """Go to the prompt."""
        go_to(self.prompt)

    def insert_reference(self, path: str) -> None:
        """Put ``@entry`` into the prompt and go there."""
        from kbtui.tui.chat.items import shown

        self.prompt.insert_reference(shown(path))
        go_to(self.prompt)

    def save_draft(self, named: Path | None = None) -> None:
        """Keep what isn't sent; `named` is the workspace, in case it isn't open yet."""
        self._unsent.save(named)

    def _queued(self) -> list[str]:
        return self.conversation.unsent if "conversation" in self.__dict__ else []

    def leave(self) -> None:
        """The app ends: so does a sync, and the session, which may have to be condensed."""
        if "memory_commands" in self.__dict__:
            self.memory_commands.syncing.stop()
        if "conversation" in self.__dict__:
            self.conversation.leave()

    def shown_entry(self) -> str | None:
        """The entry that is open beside the conversation, if one is."""
        from kbtui.tui.notes.notes_pane import NotesPane

        panes = self.screen.query(NotesPane)
        path = panes.first().current_path if panes else None
        return path if path is not None and path.startswith("knowledge/") else None

    def tell(self, *items: Item) -> None:
        """Put something that kbtui says itself into the conversation."""
        self.transcript.add(*items)
        self.transcript.to_end()

    # Sending

    @on(Prompt.Sent)
    def _sent(self, event: Prompt.Sent) -> None:
        event.stop()
        self.send(event.text)

    def send(self, text: str) -> None:
        """Send a message, or carry out a command."""
        if not text.strip():
            return
        from kbtui.tui.actions import slash
        from kbtui.tui.chat.items import failure

        self.popup.hide()
        self.prompt.history_of_input.add(text)
        try:
            command = slash.parse(text)
        except KbtuiError as error:
            self.tell(failure(error))
            if not self.prompt.text:
                self.prompt.replace_text(text)  # to be corrected
            return
        if command is None:
            self.conversation.send(text.strip())
        else:
            self.run_command(command)

    def run_command(self, command: Command) -> None:
        """Carry out a slash command."""
        action, argument = command.action, command.argument
        if action.context == "chat":
            self.commands.run(action, argument)
        elif action.context == "memory":
            self.memory_commands.run(action, argument)
        elif action.context == "transcript":
            self._deeds.on_last(action.method)
        elif action.context == "prompt":
            self.post_message(self.EditorWanted())
        else:
            self.post_message(self.CommandWanted(action, argument))

    def _run_turn(self, turn: Coroutine[None, None, None]) -> Worker[None]:
        return self.run_worker(turn, group="turn", exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A turn that ends by a defect is told, and doesn't end the app."""
        if event.worker.group == "turn":
            event.stop()
            if event.state is WorkerState.ERROR and event.worker.error is not None:
                self.conversation.failed(event.worker.error)

    def _conversation_changed(self) -> None:
        self.post_message(self.Changed())

    # Stopping

    def step_back(self) -> None:
        """Esc: close the popup, else stop the answer, else go to the prompt."""
        if not self.offers.give_up() and not self.stop():
            go_to(self.prompt)

    def stop(self) -> bool:
        """Stop the answer; what was queued goes back into the prompt. False if none is coming."""
        if not self.conversation.busy:
            return False
        waiting = self.conversation.stop()
        if waiting:
            unsent = [*waiting, *([self.prompt.full_text] if self.prompt.text else [])]
            self.prompt.replace_text("\n\n".join(unsent))
        return True

    def clear_prompt(self) -> bool:
        """Ctrl+C: empty the prompt, keeping the text in the history. False if it is empty."""
        if not self.prompt.text:
            return False
        self.prompt.history_of_input.add(self.prompt.full_text)
        self.prompt.clear_text()
        self.popup.hide()
        return True

    # What prompt and popup ask for

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        if self.offers.typed(event.token):
            self.run_worker(self.offers.entries(event.token), group="entries", exclusive=True)

    @on(Popup.Picked)
    def _picked(self) -> None:
        self.offers.accept()
        go_to(self.prompt)

    @on(Prompt.Key)
    def _key(self, event: Prompt.Key) -> None:
        event.stop()
        self._prompt_keys.do(event.what)

    # The conversation

    @on(Transcript.Act)
    def _act(self, event: Transcript.Act) -> None:
        event.stop()
        self._deeds.do(event.verb, event.item)

    @on(Transcript.Open)
    def _open(self, event: Transcript.Open) -> None:
        event.stop()
        target = event.target
        proposed = OpenInbox(target.proposal) if target.proposal else None
        self.post_message(proposed or OpenEntry(target.path, target.line))

    @on(Transcript.Link)
    def _follow_link(self, event: Transcript.Link) -> None:
        event.stop()
        self._deeds.follow_link(event.link)

    @on(Transcript.Follow)
    def _follow(self, event: Transcript.Follow) -> None:
        event.stop()
        self.transcript.border_subtitle = f"{event.unseen} new below ↓" if event.unseen else ""
