"""The bottom row of every screen: hints for the keys of the focused pane, and a status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.widgets import Static

from kbtui.tui.actions.registry import ACTIONS, key_name
from kbtui.tui.widgets.kinds import HOT

if TYPE_CHECKING:
    from textual import events
    from textual.binding import ActiveBinding

MAX_HINTS = 7
_GAP = Content("   ")
_HELP_ACTION = "global.help"
_HOT_ACTIONS = frozenset(action.id for action in ACTIONS if action.hot)


def last_parts(text: str, room: int) -> str:
    """Return the last parts of ``one · two`` that fit into `room` cells, at least one."""
    while cell_len(text) > room and " · " in text:
        text = text.partition(" · ")[2]
    return text


class Hints(Static):
    """Up to seven unabridged key hints: the pane's, then global ones; `F1 keys` at the right."""

    DEFAULT_CSS = """
    Hints { dock: bottom; height: 1; padding: 0 1; color: $text-muted; }
    """

    state: reactive[tuple[Content, ...]] = reactive(())
    """Status texts at the right; the first is dropped first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def render(self) -> Content:
        """Return as many hints as fit beside the state, which makes room for the first hint."""
        width = self.content_size.width
        pane, everywhere, keys_hint = self._hints()
        hints, right, left = [*pane, *everywhere], keys_hint, Content()
        for at in range(len(self.state) + 1):
            right = _GAP.join([part for part in (*self.state[at:], keys_hint) if part])
            left = self._fit(hints, width - right.cell_length - len(_GAP))
            # The last status text takes precedence over a second hint, the others don't.
            if left and (at + 1 >= len(self.state) or left.cell_length > hints[0].cell_length):
                break
        gap = width - left.cell_length - right.cell_length
        return (left + Content(" " * max(0, gap)) + right).truncate(max(1, width))

    @staticmethod
    def _fit(hints: list[Content], room: int) -> Content:
        line = Content()
        for hint in hints[:MAX_HINTS]:
            longer = _GAP.join([line, hint]) if line else hint
            if longer.cell_length > room:
                break
            line = longer
        return line

    def _hints(self) -> tuple[list[Content], list[Content], Content]:
        """Return the pane's hints, the global ones, and the one for the key help."""
        pane, everywhere, keys_hint, seen = [], [], Content(), set()
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if not binding.show or binding.id in seen:
                continue
            seen.add(binding.id)
            if binding.id == _HELP_ACTION:
                keys_hint = self._hint(key, "keys")
            elif (binding.id or "").startswith("global."):
                everywhere.append(self._binding_hint(key, active))
            else:
                pane.append(self._binding_hint(key, active))
        return pane, everywhere, keys_hint

    def _binding_hint(self, key: str, active: ActiveBinding) -> Content:
        name = active.binding.description
        is_hot = active.binding.id in _HOT_ACTIONS and active.enabled
        return self._hint(key, name[:1].lower() + name[1:], is_hot=is_hot)

    @staticmethod
    def _hint(key: str, label: str, *, is_hot: bool = False) -> Content:
        text = (key_name(key), "bold $primary"), (f" {label}", "$text-muted")
        if is_hot:
            text = (f" {key_name(key)} {label} ", HOT), ("", "")
        return Content.assemble(*text).stylize(Style.from_meta({"key": key}))

    def on_click(self, event: events.Click) -> None:
        key = event.style.meta.get("key")
        if isinstance(key, str):
            self.app.simulate_key(key)
