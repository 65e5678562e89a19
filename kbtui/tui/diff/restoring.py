"""Restoring one file or everything to an earlier state, after a look at what would change."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.dom import DOMNode

from kbtui.history.change import Commit
from kbtui.history.history import History
from kbtui.presentation.notes import Names, name_of
from kbtui.presentation.times import format_day
from kbtui.tui.diff.confirm import Question, confirm, make_change
from kbtui.tui.messages import tell
from kbtui.tui.widgets.kinds import draw_sentence


def when_text(commit: Commit) -> str:
    """Return when a commit was made, worded for a sentence."""
    local = commit.time.astimezone()
    return f"on {format_day(local.date())} at {local:%H:%M}"


async def restore_file(node: DOMNode, history: History, path: str, commit: Commit) -> Commit | None:
    """Restore a file to its state after a commit, or before it if the commit deleted the file.

    Args:
        node: A node of the app that asks for confirmation.
        history: The history that contains `commit`.
        path: The workspace path of the file.
        commit: The commit to restore from.

    Returns:
        The new commit; None if there was nothing to do or the person declined.

    Raises:
        KbtuiError: The file can't be restored.
    """
    deleted = any(change.path == path and change.kind == "deleted" for change in commit.paths)
    at = commit.parent if deleted and commit.parent is not None else commit.id
    preview = await asyncio.to_thread(history.restore_preview, path, at)
    name, when = name_of(path), when_text(commit)
    if not preview:
        tell(node, f"{name} is as it was then already.")
        return None
    text = f"It becomes what it was {when}. That is a change of its own."
    if await confirm(node, f"Restore {name}?", text, {"enter": "restores it"}, preview) is None:
        return None
    done = await asyncio.to_thread(history.restore, path, at)
    if done is not None:
        tell(node, f"{name} is as it was {when}.")
    return done


async def restore_before(node: DOMNode, history: History, commit: Commit) -> Commit | None:
    """Restore everything durable to its state before a commit; otherwise like `restore_file`."""
    text = (
        f"{draw_sentence(commit, Names()).plain} ({when_text(commit)})\n"
        "{files} would become what they were before it; later changes go too. What was edited by "
        "hand is recorded first, and this can be undone."
    )
    unchanged = "Everything is as it was before that already."
    question = Question(
        "Back to before this change", text, "goes back", unasked=-1, nothing=unchanged
    )
    restore = partial(history.restore_before, commit.id)
    done = await make_change(node, history, restore, question)
    if done is not None:
        tell(node, f"Everything is as it was before {when_text(commit).removeprefix('on ')}.")
    return done
