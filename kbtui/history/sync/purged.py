"""Which commits a purge has replaced: a remote that is still there holds nothing that we lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.history.objects.commit import read_commit
from kbtui.workspace import files
from kbtui.workspace.layout import MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kbtui.history.objects.repository import Repository

_NAME = f"{MACHINE}/purged"


class PurgedTipError(Exception):
    """The other side still has commits that a purge has replaced here."""

    def __init__(self, tip: str) -> None:
        super().__init__(tip)
        self.tip = tip


class PurgedCommits:
    """The ids of commits that were rewritten, one a line; ids tell nothing of a secret."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def known(self) -> frozenset[str]:
        """The commits that purges have replaced here."""
        return frozenset(self._read())

    def add(self, commits: Iterable[str]) -> None:
        """Remember commits."""
        known = dict.fromkeys([*self._read(), *commits])
        text = "".join(f"{commit}\n" for commit in known)
        files.write_machine_file(self._root, _NAME, text.encode())

    def are_in(self, repository: Repository) -> bool:
        """Whether our own history holds such commits still: a purge was cut off.

        What was recorded since may lie above them; below the end of a purge that was finished
        there are none.
        """
        known = self.known()
        waiting = [head] if known and (head := repository.head()) else []
        seen: set[str] = set()
        while waiting:
            identifier = waiting.pop()
            if identifier in known:
                return True
            seen.add(identifier)
            commit = repository.read_commit(identifier)
            if read_commit(identifier, commit).origin.epoch is None:
                waiting += [each for each in commit.parents if each not in seen]
        return False

    def _read(self) -> list[str]:
        try:
            return (self._root / _NAME).read_text("ascii", "replace").split()
        except OSError:
            return []
