"""Finding the moment that somebody wants to go back to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.tui.tell import tell_error

if TYPE_CHECKING:
    from textual.screen import Screen

    from kbtui.knowledge_base import KnowledgeBase


async def travel(screen: Screen[None], kb: KnowledgeBase, moment: str) -> None:
    """Show everything as it was at a date, a time or a revision; asks where none is given."""
    from kbtui.tui.history.time_travel import TimeTravelScreen
    from kbtui.tui.widgets.dialogs import TextDialog

    wanted: str | None = moment.strip()
    if not wanted:
        wanted = await screen.app.push_screen_wait(
            TextDialog("Back to when?", "", "A date like 2026-11-21, a time, a commit, HEAD~1.")
        )
    if not wanted:
        return
    try:
        commit = await asyncio.to_thread(kb.history.commit, wanted)
    except KbtuiError as error:
        tell_error(screen, error)
        return
    screen.app.push_screen(TimeTravelScreen(kb, commit))
