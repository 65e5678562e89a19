"""The notes as they were: everything that reads works, nothing that writes does."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from kbtui.tui.actions.registry import actions, bindings
from kbtui.tui.messages import OpenSearch, tell
from kbtui.tui.notes.notes_actions import NotesActions
from kbtui.tui.notes.notes_pane import NotesPane

if TYPE_CHECKING:
    from textual.binding import BindingType

_READING = frozenset(
    {"down", "up", "left", "right", "open", "filter", "backlinks", "back", "forward", "history",
     "tags"}
)  # fmt: skip
_TAKEN = {key for binding in bindings("past") for key in binding.key.split(",")}
# They say why nothing happens, but aren't offered.
_SILENT = [
    replace(binding, show=False)
    for binding in bindings("notes")
    if binding.action not in _READING and binding.key not in _TAKEN
]


class PastActions(NotesActions):
    """What remains of the actions of the notes."""

    def offer_to_make(self, target: str) -> None:
        """A link led nowhere then."""
        del target
        tell(self._pane, "That entry wasn't there then.")


class PastPane(NotesPane):
    """Shows a `PastKnowledge`."""

    BINDINGS: ClassVar[list[BindingType]] = [*_SILENT, *bindings("past")]

    class Wanted(Message):
        """Something is to be done with the past: ``now``, ``restore`` or ``compare``."""

        def __init__(self, what: str, path: str | None) -> None:
            super().__init__()
            self.what = what
            self.path = path

    @cached_property
    def actions(self) -> NotesActions:
        """What can be done with entries that can't be changed."""
        return PastActions(self)

    def refuse(self) -> None:
        """Say why nothing happens."""
        tell(
            self,
            "This is how it was: nothing can be changed here. R restores the entry, T leads back"
            " to now.",
            "warning",
        )

    def action_now(self) -> None:
        """Return to now."""
        self.post_message(self.Wanted("now", None))

    def action_restore(self) -> None:
        """Make the entry what it was."""
        self.post_message(self.Wanted("restore", self.target()))

    def action_compare(self) -> None:
        """Show what has changed in the entry since."""
        self.post_message(self.Wanted("compare", self.target()))

    def action_search(self) -> None:
        """Search what was there then."""
        self.post_message(OpenSearch())


for _action in actions("notes"):
    if _action.method not in _READING:
        setattr(PastPane, f"action_{_action.method}", PastPane.refuse)
