"""The how-to documents that come with kbtui, put into a workspace once and kept up to date.

What the user edits, deletes or undoes stays that way: only a file that is still as it was
installed is ever replaced.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor
from kbtui.workspace import files

if TYPE_CHECKING:
    from kbtui.history.change import Change, Commit
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

SKILLS = ("knowledge-base",)
REASON = "The how-to documents that come with kbtui."


def shipped_skill(name: str) -> str:
    """The text of a skill as this version ships it."""
    folder = resources.files("kbtui.knowledge").joinpath("skills", name, "SKILL.md")
    return folder.read_text("utf-8")


def install_skills(workspace: Workspace, history: History) -> Commit | None:
    """Install the shipped skills where they never were, and update those nobody has edited.

    Returns:
        The commit; None when nothing had to be done.
    """
    due = {path: text for path, text in _shipped().items() if _is_due(workspace, history, path)}
    if not due:
        return None
    with history.change(Actor.IMPORT, REASON) as change:
        _stage(change, workspace, due)
    return change.result


def _shipped() -> dict[str, str]:
    return {f"skills/{name}/SKILL.md": shipped_skill(name) for name in SKILLS}


def _is_due(workspace: Workspace, history: History, path: str) -> bool:
    """True if the file is missing and always was, or is what an older version installed."""
    try:
        data = files.read_bytes(workspace.root, path)
    except NotFoundError:
        data = None
    if data == shipped_skill(path.split("/")[1]).encode():
        return False
    last = next(iter(history.log(path, limit=1)), None)
    if last is None:
        return data is None
    ours = last.actor is Actor.IMPORT and last.body == REASON
    return ours and data is not None and data == history.read(path, last.id)


def _stage(change: Change, workspace: Workspace, due: dict[str, str]) -> None:
    for path, text in due.items():
        there = files.exists(workspace.root, path)
        blob = files.blob_id(files.read_bytes(workspace.root, path)) if there else None
        change.write(path, text, expecting=blob)
