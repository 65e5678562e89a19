"""Undoing in the app: where a line was changed again, the person decides, then it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.errors import UndoConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.dom import DOMNode

    from kbtui.history.merging.conflict import Conflict, Resolution
    from kbtui.history.objects.commit import Commit


async def undo_settled(
    node: DOMNode, undo: Callable[[Mapping[Conflict, Resolution]], Commit]
) -> Commit | None:
    """Undo something; conflicts are shown until all are decided.

    Args:
        node: Whose app is asked.
        undo: Undoes it with the decisions made so far.

    Returns:
        The commit; None where the person left it, and then nothing was changed.

    Raises:
        KbtuiError: It can't be undone for another reason.
    """
    decisions: dict[Conflict, Resolution] = {}
    while True:
        try:
            return await asyncio.to_thread(undo, decisions)
        except UndoConflictError as error:
            from kbtui.tui.history.undo_conflict import UndoConflictScreen

            answer = await node.app.push_screen_wait(UndoConflictScreen(error))
            if answer is None:
                return None
            decisions |= answer
