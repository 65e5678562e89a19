"""Themes and keys of the running app: reading them, and changing the theme."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.tui.actions.registry import checked_keymap
from kbtui.tui.terminal.themes import (
    bundled_folder,
    first_theme,
    keep_theme,
    load_themes,
    remember_theme,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.app import App
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
        self._begin_with(first_theme())

    def _begin_with(self, theme: Theme) -> None:
        """Have a theme from the first frame on, without reading the stylesheet for another before.

        What is left out is how colours by number look, which is as Textual begins in dark ones.
        """
        app = self._app
        app.register_theme(theme)
        if not theme.dark:
            app.theme = theme.name
            return
        app.set_reactive(type(app).theme, theme.name)
        app.add_class(f"-theme-{theme.name}", "-dark-mode")
        app.stylesheet.set_variables(app.get_css_variables())

    def load(self, settings: Settings) -> None:
        """Read themes and keys; runs in the opening thread."""
        from kbtui.settings import config_folder

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
        try:
            keep_theme(theme)
        except KbtuiError as error:
            self._app.call_from_thread(self._tell, str(error))
