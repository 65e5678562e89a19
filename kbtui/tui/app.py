"""The app: what a person sees of a workspace."""

from __future__ import annotations

import contextlib
import logging
import threading
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segments
from rich.text import Text
from textual import on, work
from textual.app import App
from textual.command import CommandPalette
from textual.worker import Worker, WorkerState

from kbtui.errors import KbtuiError
from kbtui.tui.actions import bindings
from kbtui.tui.collector import collect_rarely, spare_what_stays
from kbtui.tui.crash import report_crash
from kbtui.tui.keys import teach_alt_enter
from kbtui.tui.looks import Looks
from kbtui.tui.messages import (
    KnowledgeChanged,
    KnowledgeReady,
    OpenHistory,
    OpenSearch,
    OpenSwitcher,
)
from kbtui.tui.screens.main import MainScreen
from kbtui.tui.signals import SignalWatch
from kbtui.tui.widgets.chat_pane import ChatPane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rich.console import RenderableType
    from textual.binding import BindingType
    from textual.command import Provider
    from textual.screen import Screen

    from kbtui.history.change import Changed
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.actions import Action

log = logging.getLogger(__name__)
_QUIT_WITHIN = 1.0
_TOLD_FOR = 8.0


def run_app(workspace: Path | None = None) -> int:
    """Show the app until the person leaves; returns the exit code.

    Args:
        workspace: The folder that was named; None looks around and makes the default one.
    """
    collect_rarely()
    teach_alt_enter()
    app = KbtuiApp(workspace)
    try:
        app.run()
    finally:
        app.close_knowledge()
    return app.return_code or 0


def _open(workspace: Path | None) -> KnowledgeBase:
    from kbtui.knowledge_base import KnowledgeBase

    kb = KnowledgeBase.open(workspace, create=workspace is None)
    kb.load()
    return kb


def _palette_provider() -> type[Provider]:
    from kbtui.tui.palette import ActionProvider

    return ActionProvider


class KbtuiApp(App[None]):
    """Holds the knowledge base and what works everywhere; everything else is in screens.

    Attributes:
        kb: The open knowledge base, or None until it is open (soon after the first frame).
    """

    TITLE = "kbtui"
    CSS_PATH = "kbtui.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette_provider}
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("global")]

    def __init__(
        self,
        workspace: Path | None = None,
        *,
        opener: Callable[[Path | None], KnowledgeBase] = _open,
    ) -> None:
        super().__init__()
        self.kb: KnowledgeBase | None = None
        self._workspace = workspace
        self._opener = opener
        self._interrupted_at = 0.0
        self._services = threading.Lock()
        self._ending = False
        self._signals: SignalWatch | None = None
        self.looks = Looks(self)

    def get_default_screen(self) -> Screen[None]:
        """The main screen is below all others."""
        return MainScreen(id="main")

    @property
    def main(self) -> MainScreen:
        """The main screen, whether or not another one is in front of it."""
        screen = self.screen_stack[0]
        if not isinstance(screen, MainScreen):
            raise TypeError(screen)
        return screen

    # Opening

    def on_mount(self) -> None:
        """Listen for signals; open the knowledge base once the first frame is out."""
        self._signals = SignalWatch(self._save_draft, self._told_to_end)
        self.call_after_refresh(self._open_knowledge)

    @work(thread=True, exit_on_error=False, group="open")
    def _open_knowledge(self) -> None:
        kb = self._opener(self._workspace)
        kb.subscribe(self._knowledge_changed)
        self.call_from_thread(self._opened, kb)
        self.looks.load(kb.settings)
        from kbtui.tui.markdown import layout  # noqa: F401 - slow to import, soon needed

        with self._services:
            if self._ending:
                return
            kb.start()
        kb.models.warm_up()
        spare_what_stays()

    def _opened(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.main.post_message(KnowledgeReady(kb))
        for notice in kb.notices:
            self.notify(notice, severity="warning", markup=False, timeout=_TOLD_FOR)

    def tell(self, text: str) -> None:
        """Say something that should be seen, for a while."""
        self.notify(text, severity="warning", markup=False, timeout=_TOLD_FOR)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A workspace that can't be opened ends the app with the reason."""
        error = event.worker.error
        if event.worker.group != "open" or event.state is not WorkerState.ERROR or error is None:
            return
        if isinstance(error, KbtuiError):
            self.exit(return_code=error.exit_code, message=Text(f"kbtui: {error}"))
        elif isinstance(error, Exception):
            self._handle_exception(error)

    def _knowledge_changed(self, changed: Changed) -> None:
        """Called after each commit, in whichever thread made it, perhaps while closing."""
        with contextlib.suppress(RuntimeError):
            self.call_later(
                lambda: self.main.post_message(
                    KnowledgeChanged(changed.paths, changed.commit, changed.actor)
                )
            )

    # Leaving

    def exit(
        self,
        result: None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """Leave; the draft is kept, and memory is made of the conversation."""
        self._save_draft()
        self._leave_session()
        super().exit(result, return_code, message)

    def close_knowledge(self) -> None:
        """Stop the services, even those that are only just starting."""
        with self._services:
            self._ending = True
            if self.kb is not None:
                self.kb.close()

    def _leave_session(self) -> None:
        for screen in self.screen_stack[:1]:
            for pane in screen.query(ChatPane):
                pane.leave()

    def _save_draft(self) -> None:
        for screen in self.screen_stack[:1]:
            for pane in screen.query(ChatPane):
                pane.save_draft(self._workspace)

    def _told_to_end(self, code: int) -> None:
        self.exit(return_code=code)

    def on_unmount(self) -> None:
        """Give the signals back."""
        if self._signals is not None:
            self._signals.stop()

    def _fatal_error(self) -> None:
        """A defect: keep the draft, write the report, say one sentence (no values, no trace)."""
        error = self._exception
        self._save_draft()
        sentence = report_crash(error if error is not None else RuntimeError("unknown"))
        self._exit_renderables.append(
            Segments(self.console.render(Text(sentence), self.console.options))
        )
        self._close_messages_no_wait()

    # The clipboard

    def copy_to_clipboard(self, text: str) -> None:
        """Copy by the first way that works, and say which."""
        self._clipboard = text
        self._copy(text)

    @work(thread=True, group="clipboard", exclusive=True)
    def _copy(self, text: str) -> None:
        from kbtui.tui.clipboard import copy

        copied = copy(text)
        if copied is None:
            self.call_from_thread(self.tell, "Could not copy: no way to a clipboard works here.")
            return
        if copied.osc52:
            self.call_from_thread(super().copy_to_clipboard, text)
        said = f"Copied {len(text):,} characters {copied.way}"
        self.call_from_thread(self.notify, said, markup=False, timeout=3)

    # Actions of the context "global"

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Keys that lead elsewhere wait while a dialog asks something."""
        leads_away = action in {"chat", "notes", "history", "open", "search", "zoom", "palette"}
        return not (leads_away and self.screen.is_modal)

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys that the person has changed, by action id."""
        return self._keymap

    async def run_action_of(self, action: Action) -> None:
        """Do what the palette offers, as if its key had been pressed in its place."""
        if action.context == "global":
            await self.run_action(action.method, self)
        elif action.slash and action.context != "transcript":
            from kbtui.tui.slash import Command

            self.main.chat.run_command(Command(action, ""))
        else:
            await self._run_bound(action)

    async def _run_bound(self, action: Action) -> None:
        for active in self.screen.active_bindings.values():
            if active.binding.id == action.id:
                await self.run_action(active.binding.action, active.node)
                return
        place = {"transcript": self.main.chat.transcript, "notes": self.main.notes}
        node = place.get(action.context, self.main.chat.prompt)
        if node is self.main.chat.transcript:
            node.focus()
        await self.run_action(action.method, node)

    @on(ChatPane.CommandWanted)
    async def _run_command(self, event: ChatPane.CommandWanted) -> None:
        """Carry out a global action as its slash command says."""
        run = getattr(self, f"action_{event.action.method}")
        result = run(event.argument) if event.action.usage else run()
        if isawaitable(result):
            await result

    def action_help(self, word: str = "") -> None:
        """Show every key and command."""
        from kbtui.tui.screens.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        else:
            self.push_screen(HelpScreen(word, self.keymap))

    def action_keys(self) -> None:
        """Show every key."""
        self.action_help()

    def _to_main(self) -> MainScreen:
        """Close what is in front of the main screen."""
        self._pop_to_screen(self.main)
        return self.main

    def action_chat(self) -> None:
        """Go to the prompt."""
        self._to_main().show_chat()

    def action_notes(self) -> None:
        """Go to the notes."""
        self._to_main().show_notes()

    def action_history(self) -> None:
        """Show the history."""
        self._to_main().post_message(OpenHistory())

    def action_open(self, name: str = "") -> None:
        """Open an entry by its name."""
        self._to_main().post_message(OpenSwitcher(name))

    def action_search(self, words: str = "") -> None:
        """Search."""
        self._to_main().post_message(OpenSearch(words))

    def action_palette(self) -> None:
        """Find a command by typing."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Find a command"))

    def action_zoom(self) -> None:
        """Give the focused pane all the room, and back."""
        self.main.zoom()

    def action_next_pane(self) -> None:
        """Move the focus on."""
        self.screen.focus_next()

    def action_previous_pane(self) -> None:
        """Move the focus back."""
        self.screen.focus_previous()

    def action_escape(self) -> None:
        """Close what is open, stop what runs, or go to the prompt."""
        if self.screen is self.main:
            self.main.chat.step_back()
        else:
            self.pop_screen()

    def action_interrupt(self) -> None:
        """Copy what is selected, else stop, else clear; quit when pressed twice."""
        selected = getattr(self.focused, "selected_text", "") or self.screen.get_selected_text()
        again = monotonic() - self._interrupted_at < _QUIT_WITHIN
        chat = self.main.chat
        if selected:
            self.copy_to_clipboard(selected)
        elif again:
            self.exit()
        elif self.screen is not self.main:
            self.screen.dismiss() if self.screen.is_modal else self.pop_screen()
        elif not chat.stop():
            self._interrupted_at = monotonic()
            if not chat.clear_prompt():
                self.notify("Ctrl+C again quits.", timeout=_QUIT_WITHIN)

    def action_suspend(self) -> None:
        """Go into the background."""
        self.action_suspend_process()

    def action_theme(self, name: str = "") -> None:
        """Choose the colours."""
        if name in self.available_themes:
            self.looks.choose(name)
            return
        if name:
            self.tell(f"There is no theme `{name}`.")
        from kbtui.tui.screens.theme import ThemeScreen

        self.push_screen(ThemeScreen(self.looks.choices()), self.looks.choose)

    def action_config(self) -> None:
        """Show the settings."""
        self._show_report("Settings", "settings_report")

    def action_doctor(self) -> None:
        """Check everything."""
        self._show_report("Doctor", "doctor_report")

    @work(group="report")
    async def _show_report(self, title: str, name: str) -> None:
        import asyncio

        from kbtui.tui.screens import reports
        from kbtui.tui.screens.page import PageScreen

        if self.kb is None:
            self.tell("The workspace is still being opened; try again in a moment.")
            return
        text = await asyncio.to_thread(getattr(reports, name), self.kb)
        self.push_screen(PageScreen(title, text))

    async def action_quit(self) -> None:
        """Leave."""
        self.exit()
