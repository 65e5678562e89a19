"""Today's note: the file that flushed notes go into as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor
from kbtui.workspace import files

if TYPE_CHECKING:
    from datetime import date

    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.workspace.layout import Workspace


def todays_note(workspace: Workspace, history: History, library: Library, day: date) -> str:
    """The path of a day's note, which is begun where there is none.

    In a vault whose owner keeps such notes it is the owner's.

    Raises:
        StorageError: it can't be written.
    """
    own = library.daily_note(day)
    path, text = own or (f"memory/{day.isoformat()}.md", f"# {day.isoformat()}\n\n")
    try:
        files.read_bytes(workspace, path)
    except NotFoundError:
        with history.change(Actor.YOU, "Begun with /today.") as change:
            change.write(path, text, expecting=None)
    return path
