"""Themes and keys of the running app: reading them, and changing the theme."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding

from kbtui.errors import KbtuiError
from kbtui.tui.terminal.themes import first_theme, remember_theme
from kbtui.tui.widgets.dialogs import Dialog
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.app import App, ComposeResult
    from textual.binding import BindingType
    from textual.theme import Theme

    from kbtui.settings import Settings
    from kbtui.tui.terminal.themes import LoadedThemes

log = logging.getLogger(__name__)


class ThemeManager:
    """Reads themes and keys, shows a theme, and keeps the one that was chosen.

    Args:
        app: What is shown in them.
        tell: Says what is wrong with a theme or a key.

    Attributes:
        found: All themes that are ours or the person's own, by name; empty until they are read.
    """

    def __init__(self, app: App[None], tell: Callable[[str], None]) -> None:
        self.found: Mapping[str, Theme] = {}
        self._app = app
        self._tell = tell
        theme = first_theme()
        app.register_theme(theme)
        app.theme = theme.name

    def load(self, settings: Settings) -> None:
        """Read themes and keys; runs in the opening thread."""
        from kbtui.settings import config_folder
        from kbtui.tui.actions.registry import checked_keymap
        from kbtui.tui.terminal.themes import bundled_folder, load_themes

        loaded = load_themes([bundled_folder(), config_folder() / "themes"])
        keymap, problems = checked_keymap(settings.ui.keys)
        told = [*loaded.problems, *problems]
        for problem in told:
            log.warning("%s", problem)
        self._app.call_from_thread(self._show, loaded, settings.ui.theme, keymap)
        if told:
            self._app.call_from_thread(self._tell, "\n".join(told))

    def _show(self, loaded: LoadedThemes, name: str, keymap: dict[str, str]) -> None:
        self.found = loaded.themes
        for each in loaded.themes.values():
            self._app.register_theme(each)
        self._app.set_keymap(keymap)
        if name not in self._app.available_themes:
            self._tell(f"There is no theme `{name}`; /theme shows all.")
            return
        self._app.theme = name
        theme = self._app.available_themes[name]
        self._app.run_worker(lambda: remember_theme(theme), thread=True, group="theme")

    def choices(self) -> list[tuple[str, str]]:
        """All themes with a remark each: our defaults, then the others, then Textual's."""
        ours = sorted(self.found.items(), key=lambda each: not each[0].startswith("kbtui-"))
        others = [name for name in self._app.available_themes if name not in self.found]
        return [
            *((name, "dark" if theme.dark else "light") for name, theme in ours),
            *((name, "of Textual") for name in others),
        ]

    def choose(self, name: str | None) -> None:
        """Use a theme from now on, and at the next start."""
        if name is not None:
            self._app.theme = name
            theme = self._app.available_themes[name]
            self._app.run_worker(lambda: self._keep(theme), thread=True, group="theme")

    def _keep(self, theme: Theme) -> None:
        from kbtui.tui.terminal.themes import keep_theme

        try:
            keep_theme(theme)
        except KbtuiError as error:
            self._app.call_from_thread(self._tell, str(error))


class ThemeScreen(Dialog[str]):
    """Moving shows a theme at once; Enter keeps it, Esc goes back to the one before."""

    DEFAULT_CSS = """
    ThemeScreen {
        align: right middle;
        background: transparent;
        & > Vertical { width: 40; max-height: 80%; margin: 0 2; }
        ChoiceList { max-height: 24; margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Keep"),
        Binding("q", "cancel", "Back"),
    ]
    TITLE_TEXT = "Theme"
    HINT = "Enter keeps · Esc back"

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        """Offer themes by name, each with a remark."""
        super().__init__()
        self._names = list(names)
        self._before = ""

    def compose_question(self) -> ComposeResult:
        """The list."""
        yield ChoiceList([Choice(name, remark, name) for name, remark in self._names])

    def on_mount(self) -> None:
        """Start on the theme that is used."""
        self._before = self.app.theme
        names = [name for name, _ in self._names]
        themes = self.query_one(ChoiceList)
        themes.cursor = names.index(self._before) if self._before in names else 0
        themes.focus()

    @on(RowList.Highlighted)
    def _show(self, event: RowList.Highlighted) -> None:
        if self._before:
            self.app.theme = self._names[event.index][0]

    @on(RowList.Selected)
    def action_take(self) -> None:
        """Keep the theme that is shown."""
        self.dismiss(self._names[self.query_one(ChoiceList).cursor][0])

    def action_cancel(self) -> None:
        """Use the theme from before."""
        self.app.theme = self._before
        self.dismiss(None)
