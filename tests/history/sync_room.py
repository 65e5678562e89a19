"""Machines that sync through one bare repository, and what a sync must never lose."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from kbtui.history.sync.remote import SyncWatcher, parse_address
from kbtui.history.sync.sync import SyncReport, SyncRules
from kbtui.workspace.opening import create_workspace
from tests.faults.world import check_with_git
from tests.history.conftest import Notes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.history.merging.tree_merge import Clash


class Machine(Notes):
    """One workspace, its remote, and what was put before its user."""

    def __init__(self, folder: Path, remote: Path | str) -> None:
        super().__init__(create_workspace(folder))
        self.remote = str(remote)
        self.clashes: list[Clash] = []

    def sync(self, watcher: SyncWatcher | None = None, *, replace: bool = False) -> SyncReport:
        def keep(clashes: Sequence[Clash]) -> None:
            self.clashes += clashes

        return self.history.sync(
            parse_address(self.remote),
            watcher,
            SyncRules(on_clashes=keep),
            replace_theirs=replace,
        )

    def files(self) -> dict[str, str]:
        """Every recorded file, as it stands on the disk."""
        assert self.history.adopt(settle=0) is None
        return {path: self.text(path) for path in self.history.tree("HEAD")}


def plumb(repository: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Make objects with a real git, which writes whatever one asks for."""
    run = subprocess.run(
        ["git", "--git-dir", repository, *arguments], check=True, input=stdin, capture_output=True
    )
    return run.stdout.decode().strip()


def fsck(repository: Path) -> None:
    assert check_with_git(repository) == []
