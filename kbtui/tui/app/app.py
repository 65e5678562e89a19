"""The app: what a person sees of a workspace, and what each key does that works everywhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from functools import partial, wraps
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segments
from rich.text import Text
from textual import on, work
from textual.app import ScreenStackError
from textual.command import CommandPalette
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.widgets import Input, TextArea
from textual.worker import Worker, WorkerState

from kbtui.errors import KbtuiError
from kbtui.tui.actions.registry import Command, bindings, key_name, teach_alt_enter
from kbtui.tui.app.main import MainScreen
from kbtui.tui.app.theme_manager import ThemeManager
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.messages import (
    KnowledgeChanged,
    OpenHistory,
    OpenInbox,
    OpenPast,
    OpenSearch,
    OpenSwitcher,
)
from kbtui.tui.terminal.background import call_after, latest, run_latest
from kbtui.tui.terminal.first_keys import hand_over
from kbtui.tui.terminal.later import later
from kbtui.tui.terminal.process import (
    DiskWatch,
    SignalWatch,
    collect_rarely,
    collect_when_idle,
    copy,
    freeze_objects,
    release_closed_widgets,
    shorten_switch_interval,
)
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.hints import whole_parts
from kbtui.tui.widgets.kinds import PALETTE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import RenderableType
    from textual import events
    from textual.binding import Binding
    from textual.command import Provider
    from textual.screen import Screen

    from kbtui.history.change import Changed
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.app import help as help_, settings_screen, tasks, theme_screen, workspaces
    from kbtui.tui.chat.commands import reports
    from kbtui.tui.history import history, time_travel
    from kbtui.tui.widgets import dialogs
    from kbtui.tui.widgets.divided import Direction
else:
    help_, settings_screen, tasks, theme_screen, workspaces = later(
        "app.help", "app.settings_screen", "app.tasks", "app.theme_screen", "app.workspaces"
    )
    dialogs, history, reports, time_travel = later(
        "widgets.dialogs", "history.history", "chat.commands.reports", "history.time_travel"
    )

log = logging.getLogger(__name__)
_QUIT_SECONDS = 1.0
_TOLD_SECONDS = 8.0
_COLLECT_AFTER_SECONDS = 1.0
_NO_SCREEN_YET = (NoMatches, ScreenStackError, KeyError, IndexError)
_LEADS_AWAY = {
    "chat",
    "notes",
    "history",
    "open",
    "inbox",
    "search",
    "zoom",
    "palette",
    "workspaces",
}


def run_app(workspace: Path | None = None) -> int:
    """Show the app until the person leaves; returns the exit code.

    Args:
        workspace: The folder that was named; None looks around and makes the default one.
    """
    collect_rarely()
    shorten_switch_interval()
    teach_alt_enter()
    release_closed_widgets()
    while True:
        app = KbtuiApp(workspace)
        disk = DiskWatch(app.folder, app.notice)
        app.at_exit = disk.leaving
        try:
            app.run()
        finally:
            disk.leaving()
            app.close_knowledge()
            disk.stop()
        if app.next_workspace is None:
            return app.return_code or 0
        workspace = app.next_workspace


def _open(workspace: Path | None) -> KnowledgeBase:
    from kbtui.knowledge_base import KnowledgeBase

    return KnowledgeBase.open(workspace, create=workspace is None, starts=True)


def _palette_provider() -> type[Provider]:
    return help_.ActionProvider


def _when_open(
    work: Callable[[KbtuiApp, KnowledgeBase], object],
) -> Callable[[KbtuiApp], None]:
    """Do it with the workspace, as soon as that is open."""

    @wraps(work)
    def do(app: KbtuiApp) -> None:
        if app.kb is None:
            app.main.do_when_open(partial(do, app))
        else:
            work(app, app.kb)

    return do


class Palette(CommandPalette):
    """Textual's, in the frame of our dialogs."""

    def on_resize(self, event: events.Resize) -> None:
        box = self.query_one(Vertical)
        box.border_title = "Commands"
        room = event.size.width * 19 // 20 - 6
        box.border_subtitle = whole_parts("↑↓ choose · Enter does it · Esc leaves", room)


class KbtuiApp(KeysInOrder):
    """Holds the knowledge base and what works everywhere; everything else is in screens.

    Attributes:
        kb: The open knowledge base, or None until it is open (soon after the first frame).
        next_workspace: Where to go on after this one; None: the person leaves.
        at_exit: Called when the app begins to leave.
    """

    TITLE = "kbtui"
    CSS_PATH = "kbtui.tcss"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as in App
        (0, "-narrow"),
        (100, "-wide"),
        (180, "-columns"),
    ]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette_provider}
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-tall")]  # noqa: RUF012 - as in App
    BINDINGS = bindings("global")

    def __init__(
        self,
        workspace: Path | None = None,
        *,
        opener: Callable[[Path | None], KnowledgeBase] = _open,
    ) -> None:
        super().__init__()
        self.kb: KnowledgeBase | None = None
        self.next_workspace: Path | None = None
        self.at_exit: Callable[[], None] = lambda: None
        self._workspace = workspace
        self._opener = opener
        self._services = threading.Lock()
        self._ending = False
        self._all_there = False
        self._signals: SignalWatch | None = None
        self._interrupted_at = 0.0
        self.themes = ThemeManager(self, self.tell)

    @property
    def main(self) -> MainScreen:
        """The main screen, whether or not another one is in front of it."""
        screen = self.screen_stack[0]
        if not isinstance(screen, MainScreen):
            raise TypeError(screen)
        return screen

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys that the person has changed, by action id."""
        return self._keymap

    def get_default_screen(self) -> Screen[None]:
        """The main screen is below all others; it is laid out for its size from the first on."""
        screen = MainScreen(id="main")
        columns, rows = self.size
        for room, points in (
            (columns, self.HORIZONTAL_BREAKPOINTS),
            (rows, self.VERTICAL_BREAKPOINTS),
        ):
            screen.add_class([name for least, name in points if room >= least][-1])
        return screen

    # Opening

    def on_mount(self) -> None:
        """Listen for signals; open the knowledge base once the first frame is out."""
        hand_over(self._driver)
        self._signals = SignalWatch(self._save_draft, lambda code: self.exit(return_code=code))
        # After `fg` all is drawn: the terminal has kept nothing of it.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.set_class(self._has_few_colors, "-few-colors")
        call_after(self, _COLLECT_AFTER_SECONDS, self._collect)
        self.call_after_refresh(self._open_knowledge)

    @property
    def _has_few_colors(self) -> bool:
        few = self.no_color or self.console.color_system == "standard"
        return few and not self.is_headless

    def _collect(self) -> None:
        """Free what is gone, again and again."""
        call_after(self, collect_when_idle(self.typed_at), self._collect)

    @work(thread=True, exit_on_error=False, group="workspace")
    def _open_knowledge(self) -> None:
        kb = self._opener(self._workspace)
        PALETTE.letters = kb.settings.ui.plain or self._has_few_colors
        kb.subscribe(self._knowledge_changed)
        kb.on_notice = self.notice
        self.call_from_thread(self.main.notes.knowledge_ready, kb)
        kb.load()
        # What is soon needed is imported here, where nobody waits for it.
        from kbtui.tui.chat import commands  # noqa: F401
        from kbtui.tui.markdown import layout  # noqa: F401
        from kbtui.tui.notes import entry_actions, entry_view  # noqa: F401
        from kbtui.workspace.opening import pop_first_note

        self.call_from_thread(self._opened, kb)
        if (first := pop_first_note(kb.workspace)) is not None:
            self.call_from_thread(self.main.notes.show_first, first)
        if self._workspace is None and (vault := workspaces.passed_over(kb.workspace.root)):
            self.notice(vault)
        self.themes.load(kb.settings)
        with self._services:
            if self._ending:
                return
            kb.start()
        kb.models.warm_up()
        freeze_objects()

    def _opened(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.main.knowledge_ready(kb)
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
            self.call_later(self._pass_on, KnowledgeChanged(changed.paths, changed.actor))

    def _pass_on(self, message: KnowledgeChanged) -> None:
        self.main.post_message(message)

    def folder(self) -> Path:
        """Where the notes are, or are looked for."""
        return self.kb.workspace.root if self.kb is not None else self._workspace or Path()

    def notice(self, notice: str) -> None:
        """Say what a person should know, from whichever thread, perhaps while closing."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self.tell, notice)

    # Leaving

    def exit(
        self,
        result: None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """Leave; the draft is kept, and memory is made of the conversation."""
        self.at_exit()
        self._save_draft()
        for pane in self._chats():
            pane.leave()
        super().exit(result, return_code, message)

    def close_knowledge(self) -> None:
        """Stop the services, even those that are only just starting."""
        with self._services:
            self._ending = True
            if self.kb is not None:
                self.kb.close()

    def _chats(self) -> list[ChatPane]:
        """The pane of the chat, where it is there already and still."""
        return [pane for screen in self.screen_stack[:1] for pane in screen.query(ChatPane)]

    def _save_draft(self) -> None:
        for pane in self._chats():
            pane.save_draft(self._workspace)

    def on_unmount(self) -> None:
        if self._signals is not None:
            self._signals.stop()

    def _fatal_error(self) -> None:
        """A defect: keep the draft, log where it happened, say one sentence.

        The log holds no values of variables: they may be what somebody wrote, or a key.
        """
        from kbtui.logs import log_file, start_logging

        self._save_draft()
        error = self._exception or RuntimeError("unknown")
        start_logging()
        log.critical("internal error", exc_info=error)
        sentence = (
            f"kbtui stopped because of an error of its own ({type(error).__name__}). "
            f"What was saved is safe, and the draft is kept. Details: {log_file()}"
        )
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
        copied = copy(text)
        if copied is None:
            self.call_from_thread(self.tell, "Could not copy: no way to a clipboard works here.")
            return
        if copied.osc52:
            self.call_from_thread(super().copy_to_clipboard, text)
        said = f"Copied {len(text):,} characters {copied.way}"
        self.call_from_thread(self.notify, said, markup=False, timeout=3)

    def input_arrived(self) -> None:
        """Let what reads all entries step aside."""
        if self.kb is not None:
            self.kb.search.pause.step_aside()

    def ready_for_more(self) -> bool:
        """False before anything takes keys, and while what they led to waits for the workspace."""
        if not self._all_there:
            try:
                main = self.main
                self._all_there = main.all_there
                return main.ready_for_more()
            except _NO_SCREEN_YET:
                return False
        return True

    def give_up(self) -> None:
        """Do nothing of what waits for the workspace, and go back to the prompt."""
        with contextlib.suppress(*_NO_SCREEN_YET):
            self.main.do_when_open(None)
            self.main.chat.forget_early_commands()
            self.main.show_chat()

    def tell(self, text: str) -> None:
        """Say something that should be seen, for a while."""
        self.notify(text, severity="warning", markup=False, timeout=_TOLD_SECONDS)

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Keys that lead elsewhere wait while a dialog asks something."""
        leads_away = action in _LEADS_AWAY
        return not (leads_away and self.screen.is_modal)

    # Showing

    def action_help(self, word: str = "") -> None:
        if isinstance(self.screen, help_.HelpScreen):
            self.pop_screen()
        else:
            self.push_screen(help_.HelpScreen(word, self.keymap))

    def action_keys_here(self) -> None:
        active = (each.binding.id or "" for each in self.screen.active_bindings.values())
        here = {name.partition(".")[0] for name in active} - {"global", ""}
        self.push_screen(help_.HelpScreen("", self.keymap, here) if here else help_.HelpScreen())

    def _to_main(self) -> MainScreen:
        """Close what is in front of the main screen."""
        self._pop_to_screen(self.main)
        return self.main

    def action_chat(self) -> None:
        self._to_main().show_chat()

    def action_notes(self) -> None:
        self._to_main().show_notes()

    def action_history(self) -> None:
        self._to_main().post_message(OpenHistory())

    def action_open(self, name: str = "") -> None:
        self._to_main().post_message(OpenSwitcher(name))

    def action_inbox(self) -> None:
        self._to_main().post_message(OpenInbox())

    def action_search(self, words: str = "") -> None:
        here = self.screen
        place = here if isinstance(here, time_travel.TimeTravelScreen) else self._to_main()
        place.post_message(OpenSearch(words))

    def travel(self, moment: str = "") -> None:
        """Look at everything as it was at a date or a change."""
        self._to_main().post_message(OpenPast(moment))

    def browse(self, folder: str = "") -> None:
        """Look at the history of another git repository."""
        main = self._to_main()
        run_latest(main, "browse", history.browse, main, folder)

    @work(exclusive=True, group="workspaces")
    async def action_workspaces(self, folder: str = "") -> None:
        self._to_main()
        here = self.kb.workspace.root if self.kb is not None else None
        chosen = await workspaces.choose(self, here, folder.strip())
        if chosen is None:
            return
        problem = await asyncio.to_thread(workspaces.openable, chosen)
        if problem:
            self.tell(problem)
        else:
            self.next_workspace = chosen
            self.exit()

    def action_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(placeholder="Find a command"))

    # Moving

    def action_zoom(self) -> None:
        self.main.zoom()

    def action_border(self, direction: Direction) -> None:
        around = self.focused.ancestors if self.focused is not None else []
        inner = [each for each in around if isinstance(each, Divided)]
        others = [each for each in self.screen.query(Divided) if each not in inner]
        any(each.move(direction) for each in [*inner, *others])

    # Leaving

    def action_escape(self) -> None:
        if self.screen is self.main:
            self.main.chat.step_back()
        else:
            self.pop_screen()

    def action_interrupt(self) -> None:
        field = self.focused if isinstance(self.focused, Input | TextArea) else None
        selected = (field.selected_text if field else "") or self.screen.get_selected_text()
        again = monotonic() - self._interrupted_at < _QUIT_SECONDS
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
                self.notify("Ctrl+C again quits.", timeout=_QUIT_SECONDS)

    # Asking

    def choose_theme(self, name: str = "") -> None:
        """Choose the colours."""
        if name in self.available_themes:
            self.themes.choose(name)
            return
        if name:
            self.tell(f"There is no theme `{name}`.")
        self.push_screen(theme_screen.ThemeScreen(self.themes.choices()), self.themes.choose)

    @_when_open
    def show_settings(self, kb: KnowledgeBase) -> None:
        """Show and change every setting."""
        screen = settings_screen.SettingsScreen(kb, self.keymap)
        self.push_screen(screen, self._settings_closed)

    def _settings_closed(self, _result: None) -> None:
        self._take_settings()

    @work(thread=True, group="settings")
    def _take_settings(self) -> None:
        """Theme and keys hold at once."""
        from kbtui.settings import load_settings

        try:
            settings = load_settings(self.kb.workspace.root if self.kb is not None else None)
        except KbtuiError as error:
            self.call_from_thread(self.tell, str(error))
        else:
            self.themes.load(settings)

    @_when_open
    @latest("report")
    async def show_doctor(self, kb: KnowledgeBase) -> None:
        """Check everything."""
        text = await asyncio.to_thread(reports.doctor_report, kb)
        self.push_screen(dialogs.PageScreen("Doctor", text))

    @_when_open
    def show_tasks(self, kb: KnowledgeBase) -> None:
        """Show what runs in the background."""
        self.push_screen(tasks.TasksScreen(kb, self.main.chat))

    # The palette and slash commands

    async def run_action_of(self, action: Action) -> None:
        """Do what the palette offers, as if its key had been pressed in its place."""
        if action.slash in COMMANDS:
            COMMANDS[action.slash](self, "")
        elif action.context == "global":
            await self.run_action(action.call, self)
        elif action.slash and action.context != "transcript":
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
        await self.run_action(action.call, node)

    @on(ChatPane.CommandWanted)
    def _run_command(self, event: ChatPane.CommandWanted) -> None:
        COMMANDS[event.action.slash](self, event.argument)


COMMANDS: Mapping[str, Callable[[KbtuiApp, str], object]] = {
    "/help": KbtuiApp.action_help,
    "/open": KbtuiApp.action_open,
    "/inbox": lambda app, _: app.action_inbox(),
    "/search": KbtuiApp.action_search,
    "/at": KbtuiApp.travel,
    "/browse": KbtuiApp.browse,
    "/workspaces": KbtuiApp.action_workspaces,
    "/theme": KbtuiApp.choose_theme,
    "/keys": lambda app, _: app.action_help(),
    "/config": lambda app, _: app.show_settings(),
    "/doctor": lambda app, _: app.show_doctor(),
    "/tasks": lambda app, _: app.show_tasks(),
    "/quit": lambda app, _: app.exit(),
}
"""The function of each command of the context ``global``."""
