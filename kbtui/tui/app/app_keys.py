"""What each key does that works everywhere."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.command import CommandPalette

from kbtui.tui.actions.registry import bindings
from kbtui.tui.app.main import MainScreen
from kbtui.tui.messages import (
    OpenHistory,
    OpenInbox,
    OpenPast,
    OpenSearch,
    OpenSwitcher,
)
from kbtui.tui.terminal.type_ahead import KeysInOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.app.theme_manager import Looks

_QUIT_WITHIN = 1.0
_TOLD_FOR = 8.0
_NOT_OPEN = "The workspace is still being opened; try again in a moment."
_LEADS_AWAY = {"chat", "notes", "history", "open", "inbox", "search", "zoom", "palette"}


class AppKeys(KeysInOrder):
    """The actions of the context ``global``, for an app whose first screen is the main one."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("global")]
    kb: KnowledgeBase | None
    looks: Looks

    def __init__(self) -> None:
        super().__init__()
        self._interrupted_at = 0.0

    def somebody_types(self) -> None:
        """Let what reads all entries step aside."""
        if self.kb is not None:
            self.kb.search.pause.step_aside()

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

    def tell(self, text: str) -> None:
        """Say something that should be seen, for a while."""
        self.notify(text, severity="warning", markup=False, timeout=_TOLD_FOR)

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
        """Show every key and command."""
        from kbtui.tui.app.help import HelpScreen

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

    def action_inbox(self) -> None:
        """Show what waits for a decision."""
        self._to_main().post_message(OpenInbox())

    def action_search(self, words: str = "") -> None:
        """Search; back in time what was there then."""
        from kbtui.tui.history.time_travel import TimeTravelScreen

        here = self.screen
        place = here if isinstance(here, TimeTravelScreen) else self._to_main()
        place.post_message(OpenSearch(words))

    def action_at(self, moment: str = "") -> None:
        """Look at everything as it was at a date or a change."""
        self._to_main().post_message(OpenPast(moment))

    def action_browse(self, folder: str = "") -> None:
        """Look at the history of another git repository."""
        from kbtui.tui.history.foreign import browse
        from kbtui.tui.terminal.background import run_latest

        main = self._to_main()
        run_latest(main, "browse", browse, main, folder)

    def action_palette(self) -> None:
        """Find a command by typing."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Find a command"))

    # Moving

    def action_zoom(self) -> None:
        """Give the focused pane all the room, and back."""
        self.main.zoom()

    def action_next_pane(self) -> None:
        """Move the focus on."""
        self.screen.focus_next()

    def action_previous_pane(self) -> None:
        """Move the focus back."""
        self.screen.focus_previous()

    # Leaving

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

    # Asking

    def action_theme(self, name: str = "") -> None:
        """Choose the colours."""
        if name in self.available_themes:
            self.looks.choose(name)
            return
        if name:
            self.tell(f"There is no theme `{name}`.")
        from kbtui.tui.app.theme_picker import ThemeScreen

        self.push_screen(ThemeScreen(self.looks.choices()), self.looks.choose)

    def action_config(self) -> None:
        """Show the settings."""
        self._show_report("Settings", "settings_report")

    def action_doctor(self) -> None:
        """Check everything."""
        self._show_report("Doctor", "doctor_report")

    def action_tasks(self) -> None:
        """Show what runs in the background."""
        if self.kb is None:
            self.tell(_NOT_OPEN)
            return
        from kbtui.tui.app.tasks_screen import TasksScreen

        self.push_screen(TasksScreen(self.kb, self.main.chat))

    @work(group="report")
    async def _show_report(self, title: str, name: str) -> None:
        import asyncio

        from kbtui.tui.chat import reports
        from kbtui.tui.widgets.page import PageScreen

        if self.kb is None:
            self.tell(_NOT_OPEN)
            return
        text = await asyncio.to_thread(getattr(reports, name), self.kb)
        self.push_screen(PageScreen(title, text))

    async def action_quit(self) -> None:
        """Leave."""
        self.exit()
