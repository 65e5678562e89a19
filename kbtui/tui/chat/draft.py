"""What isn't sent yet: it comes back after a restart, however the app ended."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.tui.terminal.state import Drafts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kbtui.tui.chat.prompt import Prompt


class Unsent:
    """Keeps the text of the prompt, and the messages that wait before it.

    Args:
        prompt: Where it is written.
        queued: Gives the messages that wait.
    """

    def __init__(self, prompt: Prompt, queued: Callable[[], Sequence[str]]) -> None:
        self._prompt = prompt
        self._queued = queued
        self._drafts: Drafts | None = None

    def restore(self, root: Path) -> None:
        """Bring back what was kept for a workspace; where something is written, into history."""
        self._drafts = Drafts(root)
        draft = self._drafts.load()
        if draft and not self._prompt.text:
            self._prompt.replace_text(draft)
        elif draft:
            self._prompt.history_of_input.add(draft)

    def save(self, named: Path | None = None) -> None:
        """Keep it; called on every way out.

        Args:
            named: The workspace that was asked for, in case it isn't open yet.
        """
        text = "\n\n".join([*self._queued(), self._prompt.full_text]).rstrip()
        if self._drafts is not None:
            self._drafts.save(text)
        elif text.strip():
            from kbtui.workspace.layout import find_workspace

            with contextlib.suppress(KbtuiError):
                Drafts(find_workspace(named)).add(text)
