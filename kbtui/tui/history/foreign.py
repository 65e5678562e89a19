"""Looking at another repository's history: as much of a knowledge base as that takes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from kbtui.errors import UsageError
from kbtui.tui.messages import errors_told

if TYPE_CHECKING:
    from textual.screen import Screen

    from kbtui.history.looking.foreign import ForeignHistory
    from kbtui.knowledge_base import KnowledgeBase


class _NoSearch:
    def search(self, *_args: Any, **_more: Any) -> NoReturn:
        raise UsageError("Another repository's history can't be searched; / filters its tree.")


class _NoProvenance:
    def why(self, *_args: Any, **_more: Any) -> NoReturn:
        raise UsageError(
            "What a line was made of is known of your own notes only.",
            "The commit says who changed it, and when.",
        )


class ForeignKnowledge:
    """As much of a `KnowledgeBase` as history and time travel ask for; it can't be written."""

    workspace = None
    sessions = None
    library = None

    def __init__(self, folder: Path, history: ForeignHistory) -> None:
        self.folder = folder
        self.history = history
        self.search = _NoSearch()
        self.provenance = _NoProvenance()


async def browse(screen: Screen[None], folder: str) -> None:
    """Show the history of a git repository; asks for its folder where none is given."""
    from kbtui.tui.history.history import HistoryScreen
    from kbtui.tui.widgets.dialogs import TextDialog

    wanted: str | None = folder.strip()
    if not wanted:
        wanted = await screen.app.push_screen_wait(
            TextDialog("Which repository?", "", "A folder with a git repository, bare or not.")
        )
    if not wanted:
        return
    with errors_told(screen):
        kb = await asyncio.to_thread(_opened, wanted)
        name = f"{kb.folder.name} (only to look at)"
        # It has all of a knowledge base that looking at a history asks for.
        screen.app.push_screen(HistoryScreen(cast("KnowledgeBase", kb), name=name))


def _opened(folder: str) -> ForeignKnowledge:
    from kbtui.history.looking.foreign import open_foreign

    place = Path(folder).expanduser()
    return ForeignKnowledge(place, open_foreign(place))
