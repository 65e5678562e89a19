"""Today's note: the file that flushed notes go into as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor
from kbtui.workspace import files

if TYPE_CHECKING:
    from datetime import date

    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace


def todays_note(workspace: Workspace, history: History, day: date) -> str:
    """The path of a day's note, which is begun where there is none.

    Raises:
        StorageError: it can't be written.
    """
    path = f"memory/{day.isoformat()}.md"
    try:
        files.read_bytes(workspace, path)
    except NotFoundError:
        with history.change(Actor.YOU, "Begun with /today.") as change:
            change.write(path, f"# {day.isoformat()}\n\n", expecting=None)
    return path
