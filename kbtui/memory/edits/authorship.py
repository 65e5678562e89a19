"""Who wrote each line of a file, so that no machine changes what a person wrote (decision 7).

What isn't recorded yet is the user's. A line keeps its author wherever it is moved to, and when an
undo or a restore brings it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.change import Actor
    from kbtui.history.history import History


class Authorship:
    """Knows the authors of lines."""

    def __init__(self, history: History) -> None:
        self._history = history

    def authors(self, path: str, text: str) -> Sequence[Actor]:
        """Who wrote each line of a text that stands in a file now.

        Args:
            path: The file.
            text: What it says, recorded or not; only a line feed ends a line.
        """
        return [origin.actor for origin in self._history.blame(path, text=text)]
