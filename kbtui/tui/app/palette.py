"""The command palette: every action that can be done here, found by a part of its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from textual.command import DiscoveryHit, Hit, Provider

from kbtui.tui.actions.keys import key_names, keys_of
from kbtui.tui.actions.registry import ACTIONS, CONTEXT_TITLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.command import Hits

    from kbtui.tui.actions.registry import Action
    from kbtui.tui.app.main import MainScreen

_HIDDEN = frozenset({"global.palette", "global.interrupt", "global.escape"})
_PANES = ("global", "chat", "prompt", "transcript", "notes", "memory")


class ActionRunner(Protocol):
    """The app as the palette sees it."""

    @property
    def main(self) -> MainScreen:
        """The main screen, on which more can be done than elsewhere."""

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys that the person has changed, by action id."""

    async def run_action_of(self, action: Action) -> None:
        """Carry an action out."""


class ActionProvider(Provider):
    """Offers the registry's actions, with their keys and slash commands."""

    @property
    def _app(self) -> ActionRunner:
        return cast("ActionRunner", self.app)

    def _possible(self) -> list[Action]:
        """The actions of the screen that the palette was opened over."""
        if self.screen is self._app.main:
            return [a for a in ACTIONS if a.context in _PANES and a.id not in _HIDDEN]
        active = {each.binding.id for each in self.screen.active_bindings.values()}
        return [a for a in ACTIONS if a.id in active and a.id not in _HIDDEN]

    async def discover(self) -> Hits:
        """Everything, in the order of the registry."""
        for action in self._possible():
            yield DiscoveryHit(
                _title(action), partial(self._app.run_action_of, action), help=self._help(action)
            )

    async def search(self, query: str) -> Hits:
        """The actions that the query fits, best first."""
        matcher = self.matcher(query)
        for action in self._possible():
            title = _title(action)
            score = max(matcher.match(title), matcher.match(action.slash or ""))
            if score > 0:
                yield Hit(
                    score,
                    matcher.highlight(title),
                    partial(self._app.run_action_of, action),
                    help=self._help(action),
                )

    def _help(self, action: Action) -> str:
        ways = [key_names(keys_of(action, self._app.keymap)), action.slash or ""]
        return "  ".join(filter(None, (*ways, action.help)))


def _title(action: Action) -> str:
    if action.context in ("global", "chat", "memory"):
        return action.title
    return f"{CONTEXT_TITLES[action.context]}: {action.title}"
