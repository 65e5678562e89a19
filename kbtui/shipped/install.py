"""The documents shipped with kbtui: its skill, kept up to date, and the entries of the example.

The skill is installed once per workspace. What the user edits, deletes or undoes stays that way:
only a file that is still as installed is ever replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

from kbtui.history.change import SHIPPED, Actor
from kbtui.workspace import files

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from kbtui.history.change import Commit
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

SKILLS = ("knowledge-base",)


def shipped_skill(name: str) -> str:
    """Return the text of a skill as shipped with this version."""
    folder = resources.files(__package__).joinpath("skills", name, "SKILL.md")
    return folder.read_text("utf-8")


def install_skills(workspace: Workspace, history: History) -> Commit | None:
    """Install shipped skills that never were installed, and update unedited ones."""
    shipped = {f"skills/{name}/SKILL.md": shipped_skill(name).encode() for name in SKILLS}
    there = {path: files.read_if_there(workspace, path) for path in shipped}
    due = [path for path in shipped if _is_due(history, path, there[path], shipped[path])]
    if not due:
        return None
    with history.change(Actor.IMPORT, SHIPPED) as change:
        for path in due:
            change.write(path, shipped[path], expecting=files.blob_of(there[path]))
    return change.result


def _is_due(history: History, path: str, data: bytes | None, shipped: bytes) -> bool:
    """Return whether a file never existed, or is unchanged from an older version."""
    if data == shipped:
        return False
    last = next(iter(history.log(path, limit=1)), None)
    if last is None:
        return data is None
    ours = last.actor is Actor.IMPORT and last.body == SHIPPED
    return ours and data is not None and data == history.read(path, last.id)


def example_entries() -> dict[str, str]:
    """Return the texts of the example's entries by path."""
    folder = resources.files(__package__) / "example"
    return {path: data.decode() for path, data in sorted(_entries(folder, ""))}


def _entries(folder: Traversable, below: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _entries(item, f"{below}{item.name}/")
        elif item.name.endswith(".md"):
            yield f"knowledge/{below}{item.name}", item.read_bytes()
