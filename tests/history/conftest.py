"""A workspace with a history, and a real git to check it with."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.workspace import files
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.history.objects.commit import Commit
    from kbtui.workspace.layout import Workspace


class Notes:
    """What the tests do with one workspace, in few words."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.minutes = 0
        self.history = self.reopened()

    def reopened(self) -> History:
        """The history as a restarted program sees it."""
        history = History(self.workspace, Scanner(self.workspace), self.clock)
        history.open()
        return history

    def clock(self) -> datetime:
        """A minute passes whenever somebody looks."""
        self.minutes += 1
        return datetime(2026, 11, 21, 12, tzinfo=UTC) + timedelta(minutes=self.minutes)

    def write(
        self, path: str, text: str | None, actor: Actor = Actor.YOU, **origin: object
    ) -> Commit:
        """Write (or with None delete) one file through the door."""
        with self.history.change(actor, "a reason", Origin(**origin)) as change:  # type: ignore[arg-type]
            if text is None:
                change.delete(path)
            else:
                change.write(path, text)
        assert change.result is not None
        return change.result

    def put(self, path: str, text: str | None) -> None:
        """Write or remove a file as another program would."""
        file = self.workspace.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_text(text, newline="")

    def text(self, path: str) -> str:
        return files.read_bytes(self.workspace.root, path).decode()

    def exists(self, path: str) -> bool:
        return files.exists(self.workspace.root, path)

    def git(self, *arguments: str) -> str:
        """Ask a real git."""
        run = subprocess.run(
            ["git", "--git-dir", self.workspace.repository, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def check(self) -> None:
        """Real git finds nothing wrong, and the files say what the newest commit says."""
        assert self.git("fsck", "--full", "--strict", "--no-dangling") == ""
        assert self.history.adopt(settle=0) is None


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


@pytest.fixture
def notes(workspace: Workspace) -> Notes:
    return Notes(workspace)


@pytest.fixture
def companion(notes: Notes) -> Callable[..., None]:
    return notes.history.add_companion
