"""The line at the bottom of every screen: what the keys do in the pane where one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.widgets import Static

from kbtui.tui.actions.registry import key_name

if TYPE_CHECKING:
    from textual import events
    from textual.binding import ActiveBinding

MOST_HINTS = 7
_GAP = Content("   ")
_KEYS = "global.help"


def whole_parts(text: str, room: int) -> str:
    """The last of some remarks, ``one · two``, as many as fit; a single one is left as it is."""
    while cell_len(text) > room and " · " in text:
        text = text.partition(" · ")[2]
    return text


class Hints(Static):
    """At most seven hints, whole or not at all, the pane's own first; at the right `F1 keys`.

    What works everywhere fills the places that the pane leaves.
    """

    DEFAULT_CSS = """
    Hints { dock: bottom; height: 1; padding: 0 1; color: $text-muted; }
    """

    state: reactive[tuple[Content, ...]] = reactive(())
    """What is said beside the keys, at the right; the first gives way first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def render(self) -> Content:
        """As many hints as fit beside the state, which gives way to the first of them."""
        width = self.content_size.width
        pane, everywhere, last = self._hints()
        hints, right, left = [*pane, *everywhere], last, Content()
        for at in range(len(self.state) + 1):
            right = _GAP.join([part for part in (*self.state[at:], last) if part])
            left = self._fitting(hints, width - right.cell_length - len(_GAP))
            # The last of the state is worth more than a second hint, the others less.
            if left and (at + 1 >= len(self.state) or left.cell_length > hints[0].cell_length):
                break
        gap = width - left.cell_length - right.cell_length
        return (left + Content(" " * max(0, gap)) + right).truncate(max(1, width))

    @staticmethod
    def _fitting(hints: list[Content], room: int) -> Content:
        line = Content()
        for hint in hints[:MOST_HINTS]:
            longer = _GAP.join([line, hint]) if line else hint
            if longer.cell_length > room:
                break
            line = longer
        return line

    def _hints(self) -> tuple[list[Content], list[Content], Content]:
        """The hints of the pane, those that hold everywhere, and the one for all keys."""
        pane, everywhere, last, seen = [], [], Content(), set()
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if not binding.show or binding.id in seen:
                continue
            seen.add(binding.id)
            if binding.id == _KEYS:
                last = self._hint(key, "keys")
            elif (binding.id or "").startswith("global."):
                everywhere.append(self._named(key, active))
            else:
                pane.append(self._named(key, active))
        return pane, everywhere, last

    def _named(self, key: str, active: ActiveBinding) -> Content:
        name = active.binding.description
        return self._hint(key, name[:1].lower() + name[1:])

    @staticmethod
    def _hint(key: str, does: str) -> Content:
        text = (key_name(key), "bold $primary"), (f" {does}", "$text-muted")
        return Content.assemble(*text).stylize(Style.from_meta({"key": key}))

    def on_click(self, event: events.Click) -> None:
        """Do what the hint under the mouse says."""
        key = event.style.meta.get("key")
        if isinstance(key, str):
            self.app.simulate_key(key)
