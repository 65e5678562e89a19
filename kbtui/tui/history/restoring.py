"""Bringing files back to how they were: the difference is shown first, then it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.text import clean_line, counted
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.messages import tell
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from kbtui.history.history import History
    from kbtui.history.objects.commit import Commit


def when_text(commit: Commit) -> str:
    """When a commit was made, to be read in a sentence."""
    return f"on {commit.time.astimezone():%Y-%m-%d at %H:%M}"


async def restore_file(node: DOMNode, history: History, path: str, commit: Commit) -> Commit | None:
    """Make a file what it was after a commit; where that deleted it, what it was before.

    Args:
        node: Whose app asks.
        history: The history that holds `commit`.
        path: The file, in the workspace.
        commit: The moment.

    Returns:
        The new commit; None where nothing had to be done, or the person left it.

    Raises:
        KbtuiError: It can't be restored.
    """
    deleted = any(change.path == path and change.kind == "deleted" for change in commit.paths)
    at = commit.parent if deleted and commit.parent is not None else commit.id
    preview = await asyncio.to_thread(history.restore_preview, path, at)
    name, when = clean_line(short_name(path)), when_text(commit)
    if not preview:
        tell(node, f"{name} is as it was then already.")
        return None
    text = f"It becomes what it was {when}. That is a change of its own."
    screen = ConfirmScreen(f"Restore {name}?", text, {"enter": "restores it"}, preview)
    if await node.app.push_screen_wait(screen) is None:
        return None
    done = await asyncio.to_thread(history.restore, path, at)
    if done is not None:
        tell(node, f"{name} is as it was {when}.")
    return done


async def restore_before(node: DOMNode, history: History, commit: Commit) -> Commit | None:
    """Bring everything durable back to how it was before a commit; as `restore_file` else."""
    preview = await asyncio.to_thread(history.restore_before_preview, commit.id)
    if not preview:
        tell(node, "Everything is as it was before that already.")
        return None
    text = (
        f"{clean_line(commit.subject)} ({when_text(commit)})\n"
        f"{counted(len(preview), 'file')} would become what they were before it; later changes go "
        "too. What was edited by hand is recorded first, and this can be undone."
    )
    screen = ConfirmScreen("Back to before this change?", text, {"enter": "goes back"}, preview)
    if await node.app.push_screen_wait(screen) is None:
        return None
    done = await asyncio.to_thread(history.restore_before, commit.id)
    if done is not None:
        tell(node, f"Back to before {commit.id[:10]}: {clean_line(done.subject)}")
    return done
