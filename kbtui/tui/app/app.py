"""The app: opening a workspace, the global actions, and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from functools import partial, wraps
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segments
from rich.text import Text
from textual import on, work
from textual._compositor import CompositorUpdate
from textual.app import ScreenStackError
from textual.command import CommandPalette
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.widget import MountError
from textual.widgets import Input, TextArea
from textual.worker import Worker, WorkerFailed, WorkerState

from kbtui.clock import DayWatch
from kbtui.errors import KbtuiError
from kbtui.tui.actions.registry import Command, bindings, key_name
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
    OpenTasks,
    TimePassed,
)
from kbtui.tui.terminal import modes
from kbtui.tui.terminal.background import call_after, latest, run_latest
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.terminal.process import (
    DiskWatch,
    SignalWatch,
    collect_rarely,
    collect_when_idle,
    freeze_objects,
    release_closed_widgets,
    shorten_switch_interval,
)
from kbtui.tui.terminal.restless import Restless
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.hints import last_parts
from kbtui.tui.widgets.kinds import PALETTE, locale_has_signs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import RenderableType
    from textual import events
    from textual.binding import Binding
    from textual.command import Provider
    from textual.driver import Driver
    from textual.screen import Screen

    from kbtui.history.change import Changed
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.settings import Settings
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.app import (
        background_work,
        help as help_,
        settings_screen,
        theme_screen,
        workspaces,
    )
    from kbtui.tui.chat import start
    from kbtui.tui.chat.commands import reports
    from kbtui.tui.history import history, time_travel
    from kbtui.tui.terminal import outside
    from kbtui.tui.terminal.driver import TerminalFailed, TerminalNotice
    from kbtui.tui.terminal.frame import Frame
    from kbtui.tui.widgets import dialogs
    from kbtui.tui.widgets.divided import Direction
else:
    background_work, help_, settings_screen, theme_screen, workspaces = lazy_modules(
        "app.background_work",
        "app.help",
        "app.settings_screen",
        "app.theme_screen",
        "app.workspaces",
    )
    dialogs, history, outside, reports, start, time_travel = lazy_modules(
        "widgets.dialogs",
        "history.history",
        "terminal.outside",
        "chat.commands.reports",
        "chat.start",
        "history.time_travel",
    )

log = logging.getLogger(__name__)
_QUIT_SECONDS = 1.0
_LAST_WORDS_SECONDS = 1.0
_TOAST_SECONDS = 8.0
_COPIED_SECONDS = 4.0
_MINUTE_SECONDS = 60.0
_FIRST_COLLECTION_SECONDS = 1.0
_NO_SCREEN_YET = (NoMatches, ScreenStackError, KeyError, IndexError)
_NAVIGATION = {
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
    """Run the app until the user quits, and return the exit code.

    Args:
        workspace: The folder to open; None finds one, or creates the default workspace.
    """
    collect_rarely()
    shorten_switch_interval()
    release_closed_widgets()
    while True:
        app = KbtuiApp(workspace)
        disk = DiskWatch(app.folder, app.notice)
        app.at_exit = disk.leaving
        try:
            app.run()
        except BaseException:
            with contextlib.suppress(Exception):
                app.keep_draft()
            raise
        finally:
            modes.turn_off()
            if app.last_words:
                modes.say(app.last_words, _LAST_WORDS_SECONDS)
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


def _needs_workspace(
    work: Callable[[KbtuiApp, KnowledgeBase], object],
) -> Callable[[KbtuiApp], None]:
    """Defer a command until the workspace is open, and pass it the knowledge base."""

    @wraps(work)
    def run(app: KbtuiApp) -> None:
        if app.kb is None:
            app.main.do_when_open(partial(run, app))
        else:
            work(app, app.kb)

    return run


class Palette(CommandPalette):
    """Textual's command palette with our dialog's border."""

    def on_resize(self, event: events.Resize) -> None:
        box = self.query_one(Vertical)
        box.border_title = "Commands"
        room = event.size.width * 19 // 20 - 6
        box.border_subtitle = last_parts("↑↓ choose · Enter does it · Esc leaves", room)


class KbtuiApp(KeysInOrder):
    """The Textual app: owns the knowledge base and the global actions.

    Attributes:
        kb: The open knowledge base, or None until it is open (soon after the first frame).
        next_workspace: The workspace to switch to on exit; None to quit.
        at_exit: Called when the app starts to exit.
        last_words: What is said when it has ended, unless the terminal is held up.
    """

    TITLE = "kbtui"
    CSS_PATH = "kbtui.tcss"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as in App
        (0, "-narrow"),
        (100, "-wide"),
        (160, "-columns"),
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
        self.last_words = ""
        self._workspace = workspace
        self._opener = opener
        self._services_lock = threading.Lock()
        self._is_closing = False
        self._is_loaded = False
        self._signals: SignalWatch | None = None
        self._interrupted_at = 0.0
        self.themes = ThemeManager(self, self.tell)
        self._restless = Restless(self)
        self._days = DayWatch()

    @property
    def main(self) -> MainScreen:
        """The main screen, even if other screens cover it."""
        screen = self.screen_stack[0]
        if not isinstance(screen, MainScreen):
            raise TypeError(screen)
        return screen

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys that the user has remapped, by action id."""
        return self._keymap

    def get_driver_class(self) -> type[Driver]:
        """Return our driver where Textual's is the one for Linux and macOS, which ours extends."""
        found = super().get_driver_class()
        if found.__name__ != "LinuxDriver":
            return found
        from kbtui.tui.terminal.driver import TerminalDriver

        return TerminalDriver

    def get_default_screen(self) -> Screen[None]:
        """Create the main screen, with the terminal size's breakpoint classes from the start."""
        screen = MainScreen(id="main")
        columns, rows = self.size
        for room, points in (
            (columns, self.HORIZONTAL_BREAKPOINTS),
            (rows, self.VERTICAL_BREAKPOINTS),
        ):
            screen.add_class([name for least, name in points if room >= least][-1])
        screen.fit(rows)
        return screen

    # Opening

    def on_mount(self) -> None:
        """Listen for signals; open the knowledge base once the first frame is out."""
        self._signals = SignalWatch(self.keep_draft, self._end_by_signal)
        # After `fg` everything has to be redrawn: the terminal has kept nothing.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.set_class(self._has_few_colors, "-few-colors")
        call_after(self, _FIRST_COLLECTION_SECONDS, self._collect)
        self.call_after_refresh(self._open_knowledge)
        self._wait_a_minute()

    def _wait_a_minute(self) -> None:
        """Wait for the next full minute, so that day and minutes change when clocks do."""
        call_after(self, _MINUTE_SECONDS - time() % _MINUTE_SECONDS, self._minute_passed)

    def _minute_passed(self) -> None:
        """Tell all screens; a machine that slept has missed minutes, but no change of day."""
        self.main.post_message(TimePassed(new_day=self._days.changed()))
        self._wait_a_minute()

    @property
    def _has_few_colors(self) -> bool:
        few = self.no_color or self.console.color_system == "standard"
        return few and not self.is_headless

    def _collect(self) -> None:
        call_after(self, collect_when_idle(self.typed_at), self._collect)

    @work(thread=True, exit_on_error=False, group="workspace")
    def _open_knowledge(self) -> None:
        kb = self._opener(self._workspace)
        PALETTE.few_colors = self._has_few_colors
        PALETTE.letters = (
            kb.settings.ui.plain or self._has_few_colors or not locale_has_signs(os.environ)
        )
        kb.subscribe(self._knowledge_changed)
        kb.on_notice = self.notice
        self.call_from_thread(self.main.notes.knowledge_ready, kb)
        kb.load()
        # Import what will be needed soon here, off the event loop.
        from kbtui.tui.chat import commands  # noqa: F401
        from kbtui.tui.markdown import layout  # noqa: F401
        from kbtui.tui.notes import entry_actions, entry_view  # noqa: F401
        from kbtui.workspace.opening import pop_first_note

        self.call_from_thread(self._opened, kb)
        if (first := pop_first_note(kb.workspace)) is not None:
            self.call_from_thread(self.main.notes.show_first, first)
        elif not start.is_first(kb):
            self.call_from_thread(self.main.notes.show_today)
        if self._workspace is None and (vault := workspaces.vault_notice(kb.workspace.root)):
            self.notice(vault)
        self._follow_settings(kb.settings)
        with self._services_lock:
            if self._is_closing:
                return
            kb.newer.subscribe(self._newer_lines_found)
            kb.start()
        kb.models.warm_up()
        freeze_objects()

    def _follow_settings(self, settings: Settings) -> None:
        """Apply the settings of screen and keys; called in a thread."""
        from kbtui.tui.terminal.driver import TerminalDriver

        ui = settings.ui
        if isinstance(self._driver, TerminalDriver):
            self._driver.wait_after_escape(ui.escape_ms)
            self._driver.use_mouse(wanted=ui.mouse)
        self.themes.load(settings)
        self.call_from_thread(self._restless.follow, blink=ui.blink, animation=ui.animation)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._restless.focused(event.widget)

    def _opened(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.main.knowledge_ready(kb)
        for notice in kb.notices:
            self.tell(notice)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Exit with the error if the workspace can't be opened."""
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
        """Forward a commit; called in the thread that made it, perhaps during shutdown."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self._post_to_main, KnowledgeChanged(changed.paths, changed.actor))

    def _newer_lines_found(self) -> None:
        """Have the note that is open marked anew; called in the thread that reads the lines."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self._mark_newer_lines)

    def _mark_newer_lines(self) -> None:
        self.main.notes.newer_lines_found()

    def _post_to_main(self, message: KnowledgeChanged) -> None:
        self.main.post_message(message)

    def folder(self) -> Path:
        """Return the folder of the open workspace, or the one being opened."""
        return self.kb.workspace.root if self.kb is not None else self._workspace or Path()

    def notice(self, notice: str) -> None:
        """Show a notice; callable from any thread, even during shutdown."""
        with contextlib.suppress(RuntimeError):
            self.call_later(self.tell, notice)

    def on_terminal_notice(self, event: TerminalNotice) -> None:
        """Say what became of input that couldn't be taken as it came."""
        self.tell(event.text)

    def on_terminal_failed(self, event: TerminalFailed) -> None:
        """End the app, which would be deaf or mute."""
        self._handle_exception(event.error)

    def _display(
        self, screen: Screen[object], renderable: RenderableType | CompositorUpdate | None
    ) -> None:
        """Send the terminal what has changed on it."""
        frame: Frame | None = getattr(self._driver, "frame", None)
        if frame is not None and isinstance(renderable, CompositorUpdate):
            renderable = frame.changes(renderable)
        super()._display(screen, renderable)  # type: ignore[arg-type]

    # Leaving

    def exit(
        self,
        result: None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """Exit, saving the draft and stopping background commands and closing the session."""
        self.at_exit()
        if self._signals is not None:
            self._signals.leaving()
        self.keep_draft()
        for pane in self._chat_panes():
            pane.leave()
        super().exit(result, return_code, message)

    def _end_by_signal(self, code: int) -> None:
        from kbtui.logs import start_logging

        number = signal.Signals(code - 128)
        start_logging()
        log.warning("ended by %s", number.name)
        sentence = f"kbtui: Ended by {number.name}. What was saved is safe, and the draft is kept."
        if number is not signal.SIGHUP:  # there the terminal is gone
            self.last_words = sentence
        self.exit(return_code=code)

    def close_knowledge(self) -> None:
        """Close the knowledge base, even while its services are starting."""
        with self._services_lock:
            self._is_closing = True
            if self.kb is not None:
                self.kb.close()

    def _chat_panes(self) -> list[ChatPane]:
        """Return the chat pane, or an empty list before it is mounted and after it is removed."""
        return [pane for screen in self.screen_stack[:1] for pane in screen.query(ChatPane)]

    def keep_draft(self) -> None:
        """Store the prompt's text for the next start."""
        for pane in self._chat_panes():
            pane.save_draft(self._workspace)

    def on_unmount(self) -> None:
        if self._signals is not None:
            self._signals.stop()

    def _handle_exception(self, error: Exception) -> None:
        """Handle a bug; what a screen lacks that is closed while it is being opened is none."""
        cause = error.error if isinstance(error, WorkerFailed) else error
        if self._exit and isinstance(cause, NoMatches | MountError):
            log.warning("while the app is ending: %s", cause)
            return
        super()._handle_exception(error)

    def panic(self, *_renderables: RenderableType) -> None:
        """End as for any other bug, also where an error could show itself, as a style sheet's."""
        self._fatal_error()

    def _fatal_error(self) -> None:
        """Handle a bug: save the draft, log the traceback, print one sentence, return 1.

        The log contains no values of variables, which may be the user's text or an API key.
        """
        from kbtui.logs import log_file, start_logging

        self._return_code = self._return_code or 1
        error = self._exception or RuntimeError("unknown")
        start_logging()
        try:
            self.keep_draft()
        except Exception:
            log.exception("the draft")
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
        """Return a key's name as help and status line write it."""
        return key_name(binding.key)

    # Clipboard

    def copy_to_clipboard(self, text: str) -> None:
        """Copy by all ways that there are, and say what has the text now."""
        self._clipboard = text
        self._copy(text)

    @work(thread=True, group="clipboard", exclusive=True)
    def _copy(self, text: str) -> None:
        said, sequence = outside.copy(text)
        self.call_from_thread(self._send_to_terminal, sequence)
        self.call_from_thread(self.notify, said, markup=False, timeout=_COPIED_SECONDS)

    def _send_to_terminal(self, sequence: str) -> None:
        if sequence and self._driver is not None:
            self._driver.write(sequence)

    def input_arrived(self) -> None:
        """Pause background indexing for a moment."""
        if self.kb is not None:
            self.kb.search.pause.step_aside()

    def ready_for_more(self) -> bool:
        """Return False before a widget has focus, and while an action waits for the workspace."""
        if not self._is_loaded:
            try:
                main = self.main
                self._is_loaded = main.is_loaded
                return main.ready_for_more()
            except _NO_SCREEN_YET:
                return False
        return True

    def stop_waiting(self) -> None:
        """Drop the action that waits for the workspace, and return to the prompt."""
        with contextlib.suppress(*_NO_SCREEN_YET):
            self.main.do_when_open(None)
            self.main.chat.forget_early_commands()
            self.main.show_chat()

    def tell(self, text: str) -> None:
        """Show a warning as a toast."""
        self.notify(text, severity="warning", markup=False, timeout=_TOAST_SECONDS)

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Disable navigation while a modal dialog is open."""
        is_navigation = action in _NAVIGATION
        return not (is_navigation and self.screen.is_modal)

    # Navigation

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
        """Close all screens above the main screen, and return it."""
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
        target = here if isinstance(here, time_travel.TimeTravelScreen) else self._to_main()
        target.post_message(OpenSearch(words))

    def travel(self, moment: str = "") -> None:
        """Browse the workspace as of a date or commit."""
        self._to_main().post_message(OpenPast(moment))

    def browse(self, folder: str = "") -> None:
        """Browse the history of another git repository."""
        main = self._to_main()
        run_latest(main, "browse", history.browse, main, folder)

    @work(exclusive=True, group="workspaces")
    async def action_workspaces(self, folder: str = "") -> None:
        self._to_main()
        here = self.kb.workspace.root if self.kb is not None else None
        chosen = await workspaces.choose(self, here, folder.strip())
        if chosen is None:
            return
        problem = await asyncio.to_thread(workspaces.opening_problem, chosen)
        if problem:
            self.tell(problem)
        else:
            self.next_workspace = chosen
            self.exit()

    def action_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(placeholder="Find a command"))

    # Layout

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

    # Global screens

    def choose_theme(self, name: str = "") -> None:
        """Use the named theme, or show the theme picker."""
        if name in self.available_themes:
            self.themes.choose(name)
            return
        if name:
            self.tell(f"There is no theme `{name}`.")
        self.push_screen(theme_screen.ThemeScreen(self.themes.choices()), self.themes.choose)

    @_needs_workspace
    def show_settings(self, kb: KnowledgeBase) -> None:
        """Show the settings screen."""
        screen = settings_screen.SettingsScreen(kb, self.keymap)
        self.push_screen(screen, self._settings_closed)

    def _settings_closed(self, _result: None) -> None:
        self._reload_settings()

    @work(thread=True, group="settings")
    def _reload_settings(self) -> None:
        from kbtui.settings import load_settings

        try:
            settings = load_settings(self.kb.workspace.root if self.kb is not None else None)
        except KbtuiError as error:
            self.call_from_thread(self.tell, str(error))
        else:
            self._follow_settings(settings)

    @_needs_workspace
    @latest("report")
    async def show_doctor(self, kb: KnowledgeBase) -> None:
        """Show the report of ``kbtui doctor``."""
        text = await asyncio.to_thread(reports.doctor_report, kb)
        self.push_screen(dialogs.PageScreen("Doctor", text))

    @_needs_workspace
    def show_background(self, kb: KnowledgeBase) -> None:
        """Show what runs in the background."""
        self.push_screen(background_work.BackgroundScreen(kb, self.main.chat))

    def show_tasks(self) -> None:
        """Show the open tasks of journal and notes."""
        self._to_main().post_message(OpenTasks())

    # The palette and slash commands

    async def run_action_of(self, action: Action) -> None:
        """Run an action chosen in the palette as if its key had been pressed in its context."""
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
        targets = {"transcript": self.main.chat.transcript, "notes": self.main.notes}
        node = targets.get(action.context, self.main.chat.prompt)
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
    "/background": lambda app, _: app.show_background(),
    "/quit": lambda app, _: app.exit(),
}
"""The handlers of the slash commands of the context ``global``."""
