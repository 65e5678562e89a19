"""Loading and applying the themes and key bindings of the running app."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.tui.actions.registry import check_keymap
from kbtui.tui.terminal.themes import (
    bundled_folder,
    cache_theme,
    load_themes,
    save_theme,
    startup_theme,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.app import App
    from textual.theme import Theme

    from kbtui.settings import Settings
    from kbtui.tui.terminal.themes import LoadedThemes

log = logging.getLogger(__name__)


class ThemeManager:
    """A loader of themes and key bindings that applies a theme and saves the user's choice.

    Args:
        app: The app to apply them to.
        tell: Shows the user a problem with a theme or a key.

    Attributes:
        found: The bundled and the user's themes by name; empty until they are loaded.
    """

    def __init__(self, app: App[None], tell: Callable[[str], None]) -> None:
        self.found: Mapping[str, Theme] = {}
        self._app = app
        self._tell = tell
        self._apply_first(startup_theme())

    def _apply_first(self, theme: Theme) -> None:
        """Apply a theme before the first frame, without parsing the stylesheet for another first.

        A dark theme skips Textual's watcher, and with it the ANSI colours, whose default is dark.
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
        """Load themes and keys and apply them; call in a thread."""
        loaded = _load_all()
        keymap, problems = check_keymap(settings.ui.keys)
        all_problems = [*loaded.problems, *problems]
        for problem in all_problems:
            log.warning("%s", problem)
        self._app.call_from_thread(self._apply, loaded, settings.ui.theme, keymap)
        if all_problems:
            self._app.call_from_thread(self._tell, "\n".join(all_problems))

    def _apply(self, loaded: LoadedThemes, name: str, keymap: dict[str, str]) -> None:
        self._register(loaded)
        self._app.set_keymap(keymap)
        if name not in self._app.available_themes:
            self._tell(f"There is no theme `{name}`; /theme shows all.")
            return
        self._app.theme = name
        theme = self._app.available_themes[name]
        self._app.run_worker(lambda: cache_theme(theme), thread=True, group="theme")

    def _register(self, loaded: LoadedThemes) -> None:
        self.found = loaded.themes
        for each in loaded.themes.values():
            self._app.register_theme(each)

    def choices(self) -> list[tuple[str, str]]:
        """Return (name, remark) of all themes: our defaults, other files, then Textual's."""
        if not self.found:  # the workspace is still being opened
            self._register(_load_all())
        ours = sorted(self.found.items(), key=lambda each: not each[0].startswith("kbtui-"))
        others = [name for name in self._app.available_themes if name not in self.found]
        return [
            *((name, "dark" if theme.dark else "light") for name, theme in ours),
            *((name, "of Textual") for name in others),
        ]

    def choose(self, name: str | None) -> None:
        """Apply a theme and save it as the user's choice."""
        if name is not None:
            self._app.theme = name
            theme = self._app.available_themes[name]
            self._app.run_worker(lambda: self._save(theme), thread=True, group="theme")

    def _save(self, theme: Theme) -> None:
        try:
            save_theme(theme)
        except KbtuiError as error:
            self._app.call_from_thread(self._tell, str(error))


def _load_all() -> LoadedThemes:
    from kbtui.settings import config_folder

    return load_themes([bundled_folder(), config_folder() / "themes"])
