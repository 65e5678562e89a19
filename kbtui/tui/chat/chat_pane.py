"""The chat pane: the conversation above, the prompt below."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.worker import Worker, WorkerState

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.actions.registry import Command, bindings, parse_command, slash_commands
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.chat.host import ChatHost
from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.messages import LONG_SECONDS, go_to, tell
from kbtui.tui.notes.notes_pane import NotesPane
from kbtui.tui.terminal.background import Debounce, latest, run_latest
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.terminal.state import (
    DRAFT_LONGEST_SECONDS,
    OUTSIDE_PREFIX,
    Drafts,
    state_folder,
    workspace_state,
)
from kbtui.tui.widgets.popup import Popup
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.offline.orders import Order
    from kbtui.programs import Edited
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.chat import start
    from kbtui.tui.chat.commands import (
        chat_commands as commands,
        fetching,
        importing,
        item_actions,
        memory_commands,
        orders,
    )
    from kbtui.tui.chat.conversation import items
    from kbtui.tui.chat.host import CommandFunction
    from kbtui.tui.chat.start import StartPanel
    from kbtui.tui.terminal import outside
    from kbtui.tui.terminal.outside import TextCopy
else:
    commands, fetching, importing, item_actions, items, memory_commands, orders, start, outside = (
        lazy_modules(
            "chat.commands.chat_commands",
            "chat.commands.fetching",
            "chat.commands.importing",
            "chat.commands.item_actions",
            "chat.conversation.items",
            "chat.commands.memory_commands",
            "chat.commands.orders",
            "chat.start",
            "terminal.outside",
        )
    )

_DRAFT_AFTER_SECONDS = 1.0
"""Seconds without a change after which the draft is saved."""
_SECOND_ESC_SECONDS = 5.0
"""The time in which a second Esc confirms the first."""
_START_OPTIONS = frozenset("12345")


def _saved_outside(root: Path, keep: Callable[[str], object]) -> str:
    """Return what editors saved that outlived the app; loads nothing if there is no file."""
    folders = (state_folder(), workspace_state(root))
    files = [file for folder in folders for file in folder.glob(f"{OUTSIDE_PREFIX}*.md")]
    return outside.take_saved_later(files, keep) if files else ""


class ChatPane(ChatHost):
    """The chat pane, which handles the requests of its parts and of commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("chat"),
        Binding("pageup", "scroll_chat(-1)", show=False),
        Binding("pagedown", "scroll_chat(1)", show=False),
    ]

    class StatusChanged(Message):
        """The session, model or cost may have changed."""

    @dataclass
    class CommandWanted(Message):
        """A slash command was entered that the chat doesn't handle itself."""

        action: Action
        argument: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.popup = self.prompt.popup
        self._drafts: Drafts | None = None
        self._draft_debounce = Debounce(
            self, self._write_draft, pause=_DRAFT_AFTER_SECONDS, longest=DRAFT_LONGEST_SECONDS
        )
        self.start: StartPanel | None = None
        self._escaped_at = 0.0
        self._queued_commands: list[tuple[CommandFunction, Command, str]] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="chat-said"):
            yield self.transcript
        yield self.popup
        yield self.prompt

    def on_mount(self) -> None:
        """Focus the prompt, so that typing works from the first frame on."""
        self.label_with("New conversation")
        go_to(self.prompt)

    @property
    def has_early_commands(self) -> bool:
        """Whether commands are queued until the workspace is open."""
        return bool(self._queued_commands)

    def forget_early_commands(self) -> None:
        """Discard the commands queued until the workspace is open."""
        self._queued_commands.clear()

    # Notifications from the app

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Restore the draft, and run queued messages and commands, once the workspace is open."""
        self.kb = kb
        self.prompt.kb = kb
        self.prompt.history_of_input.attach(kb.workspace.root)
        self._restore_draft(kb.workspace.root)
        self.conversation.knowledge_ready(kb)
        self.run(self._show_start(kb), "begin")
        self.run(fetching.offer_model(self, kb), "languages")
        queued, self._queued_commands = self._queued_commands, []
        for each in queued:
            self._start_command(*each)

    def time_passed(self) -> None:
        """Say anew how long ago the conversations of the greeting were."""
        if self.kb is not None and self.start is None and not self.transcript.items:
            self._greet_again(self.kb)

    @latest("greet")
    async def _greet_again(self, kb: KnowledgeBase) -> None:
        if self.model is not None:
            self.transcript.greet(await asyncio.to_thread(start.greeting, kb, self.model.reason))

    async def _show_start(self, kb: KnowledgeBase) -> None:
        """Show the start panel in an empty workspace, else a greeting; read the model status."""
        is_first = await asyncio.to_thread(start.is_first, kb)
        if is_first and not self.conversation.busy and self.conversation.session is None:
            self.start = start.StartPanel(kb, self._choose_option)
            self.transcript.greet(())
            await self.query_one("#chat-said").mount(self.start, before=self.transcript)
        status = await commands.read_model(self, kb)
        if not is_first:
            self.transcript.greet(await asyncio.to_thread(start.greeting, kb, status.reason))

    def _remove_start_panel(self) -> None:
        """Remove the start panel for good, at the first message."""
        if self.start is None or self.kb is None:
            return
        self.start.remove()
        self.start = None
        self.run_worker(partial(start.remember_start, self.kb), thread=True, group="start")

    def knowledge_changed(self) -> None:
        """Refresh the start panel, as a changed entry may complete one of its options."""
        if self.start is not None:
            self.start.look()

    def insert_reference(self, path: str) -> None:
        """Insert ``@entry`` into the prompt and focus it."""
        self.prompt.insert_reference(clean_line(short_name(path)))
        go_to(self.prompt)

    def go_to_message(self, session: str, message: int) -> None:
        """Open a session and select one of its messages."""
        if self.kb is not None:
            self.run(commands.go_to_message(self, self.kb, session, message))

    def leave(self) -> None:
        """Stop background jobs and close the session, as the app is closing."""
        for job in self.jobs:
            job.stop()
        if self._conversation is not None:
            self._conversation.leave()

    # The draft: unsent text is restored after a restart, however the app ended

    def _restore_draft(self, root: Path) -> None:
        """Restore the saved draft, or add it to the input history if the prompt isn't empty."""
        self._drafts = drafts = Drafts(root)
        draft = drafts.load()
        if saved := _saved_outside(root, lambda text: drafts.keep(f"{draft}\n\n{text}")):
            draft = "\n\n".join(filter(None, (draft, saved)))
        if draft and not self.prompt.text:
            self.prompt.replace_text(draft)
        elif draft:
            self.prompt.history_of_input.add(draft)
        self._draft_debounce.request()  # what was typed before there was a place for it

    def save_draft(self, named: Path | None = None) -> None:
        """Save the prompt's text and the queue; `named` is the workspace if it isn't open yet."""
        text = self._unsent
        self._draft_debounce.cancel()
        if self._drafts is not None:
            self._drafts.save(text)
        elif text.strip():
            from kbtui.workspace.opening import find_workspace

            with contextlib.suppress(KbtuiError):
                Drafts(find_workspace(named, patience=1.0)).save(text)

    @property
    def _unsent(self) -> str:
        waiting = self._conversation.waiting if self._conversation is not None else []
        text = self.prompt.full_text
        return "\n\n".join([*waiting, text] if text.strip() else waiting)

    @on(Prompt.Changed)
    def _save_draft_soon(self) -> None:
        """Save the draft soon, typing or not: a killed process gets no chance to."""
        self._draft_debounce.request()

    def _write_draft(self) -> None:
        if (drafts := self._drafts) is not None:
            run_latest(self, "draft", asyncio.to_thread, drafts.keep, self._unsent)

    # Services for commands

    def changed(self) -> None:
        self.post_message(self.StatusChanged())
        self._save_draft_soon()  # queued messages may have been sent
        if self.start is not None:
            self.start.display = self.conversation.session is None
            self.start.look()

    def carry_out(self, order: Order) -> None:
        if self.kb is not None:
            self.run(orders.carry_out(self, self.kb, order), "order")

    def shown_entry(self) -> str | None:
        panes = self.screen.query(NotesPane)
        path = panes.first().current_path if panes else None
        return path if path is not None and path.startswith("knowledge/") else None

    # Sending

    @on(Prompt.Pasted)
    def _pasted(self, event: Prompt.Pasted) -> None:
        """Offer to import a file that was dropped on the terminal."""
        path = importing.dropped_path(event.text)
        if path is not None:
            self.run(self._offer_import(path, event.text), "offer")

    async def _offer_import(self, path: Path, pasted: str) -> None:
        if await asyncio.to_thread(importing.is_there, path) and self.prompt.full_text == pasted:
            self.prompt.replace_text(f"/import {path}")
            self.say("Enter shows what is in it before anything is imported.")

    @on(Prompt.Sent)
    def _sent(self, event: Prompt.Sent) -> None:
        self.send(event.text)

    def send(self, text: str) -> None:
        """Send a message or run a command."""
        if not text.strip():
            return
        self.popup.hide()
        if self.start is not None and text.strip() in _START_OPTIONS:
            self._choose_option(int(text) - 1)
            return
        self.prompt.history_of_input.add(text)
        try:
            command = parse_command(text)
        except KbtuiError as error:
            self.tell(items.failure(error))
            if not self.prompt.text:
                self.prompt.replace_text(text)  # for correction
            return
        if command is None:
            self._remove_start_panel()
            self.conversation.send(text.strip())
        else:
            self.run_command(command)

    def _choose_option(self, option: int) -> None:
        if self.kb is not None:
            self.run(start.take(self, self.kb, option))

    def run_command(self, command: Command) -> None:
        """Run a slash command; one that lacks a required argument is put into the prompt."""
        action = command.action
        match action.context:
            case "chat":
                self._start_command(commands.COMMANDS[action.slash], command, "command")
            case "memory":
                self._start_command(memory_commands.COMMANDS[action.slash], command, "memory")
            case "transcript":
                item_actions.run_on_last_answer(self, action.slash)
            case "prompt":
                self.edit_outside()
            case _:
                self.post_message(self.CommandWanted(action, command.argument))

    def _start_command(self, function: CommandFunction, command: Command, group: str) -> None:
        if self.kb is None:
            self._queued_commands.append((function, command, group))
            name = command.action.slash
            self.say(f"The workspace is still being opened; {name} is done as soon as it is.")
        elif command.action.usage.startswith("<") and not command.argument:
            self.prompt.replace_text(f"{command.action.slash} ")
            go_to(self.prompt)
        else:
            self.run(function(self, self.kb, command.argument), group)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show an internal error of a turn without ending the app."""
        if event.worker.group == "turn":
            event.stop()
            if event.state is WorkerState.SUCCESS and self.kb is not None:
                self.run(commands.read_figures(self, self.kb), "figures")
            if event.state is WorkerState.ERROR and event.worker.error is not None:
                self.conversation.failed(event.worker.error)

    # Stopping

    def step_back(self) -> None:
        """Handle Esc: close the popup, else stop the answer, else focus the prompt.

        In the prompt, the first Esc offers to stop a background job and the second one stops it.
        """
        if self.prompt.give_up_popup() or self.stop():
            return
        if self.prompt.has_focus:
            self._stop_jobs()
        go_to(self.prompt)

    def _stop_jobs(self) -> None:
        """Stop a background job at the second request; the first one announces that."""
        running = [each for each in self.jobs if each.running]
        if not running:
            return  # a job that starts now hasn't been announced yet
        is_second = monotonic() - self._escaped_at < _SECOND_ESC_SECONDS
        self._escaped_at = 0.0 if is_second else monotonic()
        for job in running:
            if is_second:
                job.stop()
            name = job.name
            self.say(
                f"{name} stops at its next step."
                if is_second
                else f"Esc again stops the {name.lower()}."
            )

    def stop(self) -> bool:
        """Stop the answer and return queued messages to the prompt; False if there is none."""
        if not self.conversation.busy:
            return False
        if waiting := self.conversation.stop():
            self.give_back(*waiting)
        return True

    def give_back(self, *texts: str) -> None:
        """Put texts that weren't sent, or couldn't be stored, into the prompt again."""
        typed = [self.prompt.full_text] if self.prompt.text else []
        self.prompt.replace_text("\n\n".join([*texts, *typed]))

    # Requests of the prompt and popup

    @on(Popup.Picked)
    def _picked(self) -> None:
        self.prompt.accept()
        go_to(self.prompt)

    @on(Prompt.EditorWanted)
    def edit_outside(self) -> None:
        """Edit the message in $EDITOR; only what it saved without an error replaces the text."""
        kb = self.kb
        folder = workspace_state(kb.workspace.root) if kb is not None else state_folder()
        run_latest(self, "outside", self._edit_outside, folder)

    async def _edit_outside(self, folder: Path) -> None:
        try:
            copy = outside.TextCopy(folder, self.prompt.full_text)
            try:
                edited = outside.edit_file(self.app, copy.file)
            except BaseException:
                copy.drop()
                raise
        except KbtuiError as error:
            self.tell(items.failure(error))
            return
        saved = copy.read()
        if edited.failure:
            # Whoever undoes what the editor did, by habit, gets this text and not less of it.
            self.prompt.replace_text(self.prompt.full_text)
            hint = "Your text is as it was."
            if edited.changed:
                self.prompt.history_of_input.add(saved)
                hint += " What the editor left is the last input: ↑ shows it, ↓ goes back to yours."
            self.tell(items.failure(KbtuiError(edited.failure, hint)))
        elif edited.changed:
            self.prompt.replace_text(saved)
        else:
            await self._take_what_is_saved(copy, edited)
        copy.drop()

    async def _take_what_is_saved(self, copy: TextCopy, edited: Edited) -> None:
        """Take what is saved in an editor's window while the prompt still has the text for it."""
        if edited.at_once:
            said = f"{edited.at_once} What you save there comes here all the same."
            tell(self, said, "warning", seconds=LONG_SECONDS)
        else:
            self.say("Nothing was changed.")
        while True:
            saved = await copy.wait_until_saved()
            if self.prompt.full_text.rstrip("\n") == copy.text.rstrip("\n"):
                self.prompt.replace_text(saved)
                self.say("What you saved in the editor is here.")
            else:
                self.prompt.history_of_input.add(saved)
                self.say("What you saved in the editor is the last input: ↑ shows it.")
            copy.taken(saved)

    def action_scroll_chat(self, pages: int) -> None:
        """Scroll the conversation while the prompt has the focus."""
        page = self.transcript.action_page_up if pages < 0 else self.transcript.action_page_down
        page()

    @on(Prompt.TakeBack)
    def _take_back(self) -> None:
        """Return the message queued last to the prompt, else show earlier input."""
        text = self.conversation.take_back()
        if text is not None:
            self.prompt.replace_text(text)
        else:
            self.prompt.show_earlier()

    # Requests of the conversation

    @on(Transcript.Act)
    def _act(self, event: Transcript.Act) -> None:
        item_actions.ACTIONS[event.verb](self, event.item)

    @on(Transcript.Resume)
    def _resume(self, event: Transcript.Resume) -> None:
        self.run_command(Command(slash_commands()["/resume"], event.session))

    @on(Transcript.AnswerLinkClicked)
    def _follow_link(self, event: Transcript.AnswerLinkClicked) -> None:
        self.run(item_actions.follow_link(self, event.link), "link")
