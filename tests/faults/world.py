"""A small workspace for fault tests, what is done to it, and what must hold afterwards."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.workspace import files
from kbtui.workspace.opening import create_workspace, open_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from pathlib import Path

A, B = "knowledge/topics/a.md", "knowledge/people/b.md"
MADE, GONE = "knowledge/facts/new/made.md", "knowledge/facts/gone.md"
PATHS = (A, B, MADE, GONE)
MINE = "# Mine\n\n- Favorite color: blue\n- kept as it is\n"
NOTE = "---\ntype: topic\n---\n# Docker\n\nMy own words.\n"
REPOSITORY = ".kbtui/history.git"
_LITTER = (
    "kbtui-writes-*",
    "*.tmp",
    "*.lock",
    "tmp_obj*",
    "intent.json*",
    "incoming-*",
    ".kbtui-*",
    "*.bad-*",
)
State = dict[str, "bytes | None"]


@dataclass
class Place:
    """A workspace, for sync another one and a folder between, in one folder."""

    folder: Path

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    @property
    def other(self) -> Path:
        return self.folder / "other"

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    @property
    def repository(self) -> Path:
        return self.notes / REPOSITORY


def text_of(path: str, number: int) -> bytes:
    """The content of a file after change `number`: whole only with its first and last line."""
    filling = "".join(f"line {line}\n" for line in range(300))
    return f"begin {path} {number}\n{filling}end {number}\n".encode()


def state_after(number: int) -> State:
    """What the four files hold after change `number`."""
    made = text_of(MADE, number) if number % 2 else None
    gone = None if number % 2 else text_of(GONE, number)
    return {A: text_of(A, number), B: text_of(B, number), MADE: made, GONE: gone}


def open_history(root: Path) -> History:
    """Start the program, as far as history is concerned."""
    workspace = open_workspace(root)
    history = History(workspace, Scanner(workspace))
    history.open()
    return history


def make_world(root: Path) -> Path:
    """Make a workspace after change 0."""
    create_workspace(root)
    apply(open_history(root), 0)
    return root


def copy_world(template: Path, root: Path) -> Path:
    """Copy a workspace, which is faster than making it."""
    shutil.copytree(template, root, symlinks=True)
    return root


def apply(history: History, number: int) -> None:
    """Make change `number`: a machine edits two files, makes one and deletes one."""
    with history.change(Actor.AGENT, f"change {number}") as change:
        for path, data in state_after(number).items():
            if data is None:
                change.delete(path)
            else:
                change.write(path, data)


def look(root: Path) -> State:
    """What the four files hold now."""
    return {
        path: files.read_bytes(root, path) if files.exists(root, path) else None for path in PATHS
    }


@dataclass
class Report:
    """What was found after a restart: the number of the last change, and what is wrong."""

    number: int | None
    wrong: list[str]


def restart(root: Path, possible: range, *, fsck: bool = True) -> Report:
    """Start again after a fault and look for anything that must not be.

    Args:
        root: The workspace.
        possible: The numbers of the changes that may be the last one.
        fsck: Let a real git check the repository as well.
    """
    wrong: list[str] = []
    try:
        history = open_history(root)
    except KbtuiError as error:
        return Report(None, [f"the program doesn't start: {error}"])
    found = look(root)
    number = next((n for n in possible if state_after(n) == found), None)
    if number is None:
        shown = {p: (d or b"-").split(b"\n")[0] for p, d in found.items()}
        wrong.append(f"the files are a mixture: {shown}")
    try:
        adopted = history.adopt(settle=0)
        if adopted is not None:
            wrong.append(f"recorded as the user's: {adopted.subject}")
        wrong += _compare_with_head(history, found)
    except KbtuiError as error:
        wrong.append(f"the history can't be read: {error}")
    if fsck:
        wrong += check_with_git(root / REPOSITORY)
    wrong += [f"left over: {path}" for path in litter(root / "knowledge")]
    return Report(number, wrong)


def _compare_with_head(history: History, found: State) -> list[str]:
    recorded = history.tree("HEAD")
    return [
        f"{path} differs from HEAD"
        for path, data in found.items()
        if recorded.get(path) != (None if data is None else files.blob_id(data))
    ]


def check_with_git(*repositories: Path) -> list[str]:
    """What a real git finds wrong with repositories."""
    wrong = []
    for repository in repositories:
        run = subprocess.run(
            ["git", "--git-dir", repository, "fsck", "--full", "--strict", "--no-dangling"],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode or run.stdout:
            wrong.append(f"git fsck of {repository.name}: {run.stdout}{run.stderr}")
    return wrong


def litter(*roots: Path) -> list[str]:
    """What a dead process left lying about in some folders; what is only locked stays there."""
    return [
        f"{root.name}/{found.relative_to(root)}"
        for root in roots
        for pattern in _LITTER
        for found in root.rglob(pattern)
        if found.name not in {"lock", "memory.lock"}
    ]
