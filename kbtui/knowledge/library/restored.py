"""A companion that lets the links of restored text follow what was renamed since.

A note that an undo or a restore brings back names others as they were called when it was gone. A
rename would have led those links along, had the note been there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UnreadableError
from kbtui.history.change import Change
from kbtui.knowledge.entries.entry import Entry, is_entry, is_indexed, parse_entry

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.knowledge.library.overlay import Overlay


class RestoredLinks:
    """A companion that updates the links in what a change brings back."""

    def __init__(self, history: History, overlay: Callable[[], Overlay]) -> None:
        self._history = history
        self._overlay = overlay

    def companion(self, change: Change) -> None:
        """Update the links in a change that is about to be applied."""
        if change.restores is None:
            return
        back = [path for path, data in change.edits.items() if data is not None and b"[" in data]
        back = [path for path in back if is_indexed(path)]
        moved = self._renamed_since(change.restores, change.origin.undoes or "") if back else {}
        if not moved:
            return
        overlay = self._overlay()
        overlay.apply(change.edits)
        former = self._former(moved, change.restores)
        for path in back:
            with suppress(UnreadableError):
                change.replace(path, overlay.followed(path, change.before(path), moved, former))

    def _renamed_since(self, commit: str, undone: str) -> dict[str, str]:
        """Return the present path of each entry that was renamed after a commit, by the old one."""
        moved: dict[str, str] = {}
        for later in self._history.log():  # newest first
            if later.id == commit:
                break
            if later.id in undone:
                continue
            for each in later.paths:
                if each.kind == "renamed" and each.old_path and is_entry(each.path):
                    moved[each.old_path] = moved.pop(each.path, each.path)
        return moved

    def _former(self, moved: Mapping[str, str], commit: str) -> list[Entry]:
        """Return the renamed entries as they were before; those made since aren't among them."""
        found = []
        for path in moved:
            with suppress(NotFoundError):
                found.append(parse_entry(path, self._history.read(path, commit)))
        return found
