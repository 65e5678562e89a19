"""The app: what a person sees of a workspace."""

from __future__ import annotations

import contextlib
import sys
import threading
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segments
from rich.text import Text
from textual import on, work
from textual.worker import Worker, WorkerState

from kbtui.errors import KbtuiError
from kbtui.tui.actions.keys import key_name, teach_alt_enter
from kbtui.tui.app.app_keys import AppKeys
from kbtui.tui.app.main import MainScreen
from kbtui.tui.app.theme_manager import Looks
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.collector import collect_rarely, spare_what_stays
from kbtui.tui.crash import report_crash
from kbtui.tui.messages import KnowledgeChanged, KnowledgeReady
from kbtui.tui.terminal.signals import SignalWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import RenderableType
    from textual.binding import Binding
    from textual.command import Provider
    from textual.screen import Screen

    from kbtui.history.change import Changed
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.actions.registry import Action


_SWITCH_SECONDS = 0.001
"""How long a thread may keep the others waiting; with Python's 5 ms, a key that passes the reader,
the event loop and the writer waits three times behind whatever indexes or streams meanwhile."""


def run_app(workspace: Path | None = None) -> int:
    """Show the app until the person leaves; returns the exit code.

    Args:
        workspace: The folder that was named; None looks around and makes the default one.
    """
    collect_rarely()
    sys.setswitchinterval(_SWITCH_SECONDS)
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
    from kbtui.tui.app.palette import ActionProvider

    return ActionProvider


class KbtuiApp(AppKeys):
    """Holds the knowledge base and what works everywhere; everything else is in screens.

    Attributes:
        kb: The open knowledge base, or None until it is open (soon after the first frame).
    """

    TITLE = "kbtui"
    CSS_PATH = "kbtui.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette_provider}
    ENABLE_COMMAND_PALETTE = False

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
        self._services = threading.Lock()
        self._ending = False
        self._signals: SignalWatch | None = None
        self.looks = Looks(self)

    def get_default_screen(self) -> Screen[None]:
        """The main screen is below all others."""
        return MainScreen(id="main")

    # Opening

    def on_mount(self) -> None:
        """Listen for signals; open the knowledge base once the first frame is out."""
        self._signals = SignalWatch(self._save_draft, self._told_to_end)
        self.app_resume_signal.subscribe(self, self._back_in_front)
        self.call_after_refresh(self._open_knowledge)

    def _back_in_front(self, _app: object) -> None:
        """Draw everything after `fg`: the terminal has kept nothing of it."""
        self.refresh(layout=True)

    @work(thread=True, exit_on_error=False, group="workspace")
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
            self.tell(notice)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A workspace that can't be opened ends the app with the reason."""
        error = event.worker.error
        if (
            event.worker.group != "workspace"
            or event.state is not WorkerState.ERROR
            or error is None
        ):
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

    def get_key_display(self, binding: Binding) -> str:
        """Write keys alike in every footer, and as help and status line do."""
        return key_name(binding.key)

    # The clipboard

    def copy_to_clipboard(self, text: str) -> None:
        """Copy by the first way that works, and say which."""
        self._clipboard = text
        self._copy(text)

    @work(thread=True, group="clipboard", exclusive=True)
    def _copy(self, text: str) -> None:
        from kbtui.tui.terminal.clipboard import copy

        copied = copy(text)
        if copied is None:
            self.call_from_thread(self.tell, "Could not copy: no way to a clipboard works here.")
            return
        if copied.osc52:
            self.call_from_thread(super().copy_to_clipboard, text)
        said = f"Copied {len(text):,} characters {copied.way}"
        self.call_from_thread(self.notify, said, markup=False, timeout=3)

    # What the palette and slash commands ask for

    async def run_action_of(self, action: Action) -> None:
        """Do what the palette offers, as if its key had been pressed in its place."""
        if action.context == "global":
            await self.run_action(action.method, self)
        elif action.slash and action.context != "transcript":
            from kbtui.tui.actions.slash import Command

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
