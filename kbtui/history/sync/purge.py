"""Purge: a leaked secret out of the whole history.

Each step leaves a sound history, so a purge that was killed is simply run again: new objects are
written beside the old ones, files and branch go over to them as in any change, and only then
everything that isn't reachable any more is thrown away.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError
from kbtui.history.objects.branch import NAME, PROPOSALS
from kbtui.history.objects.commit import Actor, Origin, encode_commit, read_commit, write_message
from kbtui.history.objects.identity import author_of
from kbtui.history.objects.lineage import everything, newer
from kbtui.history.objects.pack_folder import INCOMING
from kbtui.history.objects.packing import pack_of
from kbtui.history.objects.rewriting import Rewriting
from kbtui.history.objects.trees import git_object
from kbtui.history.sync.purged import PurgedCommits
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from kbtui.history.door import Door
    from kbtui.history.objects.repository import Repository
    from kbtui.workspace.secret import Secret

SUBJECT = "A secret was removed from the whole history"
_KEPT = {"HEAD", "config", "packed-refs"}
_REASON = (
    "Every version of every file was written anew without it. Other machines that had the history"
    " from before can't sync with this one; they start from a new workspace."
)


@dataclass(frozen=True, slots=True)
class HistoryPurge:
    """What a purge of the history did.

    Attributes:
        commits: How many commits were written anew.
        objects: How many objects held the secret.
        epoch: How many purges the history has seen; None where it didn't hold the secret.
    """

    commits: int = 0
    objects: int = 0
    epoch: int | None = None


class Purge:
    """Purges one workspace's history; the caller holds the door open."""

    def __init__(
        self,
        root: Path,
        repository: Repository,
        door: Door,
        clock: Callable[[], datetime],
    ) -> None:
        self._root = root
        self._repository = repository
        self._door = door
        self._clock = clock

    def find(self, secret: Secret) -> list[str]:
        """The ids of all objects that hold it, reachable or not."""
        return [
            identifier
            for identifier in self._repository.all_objects()
            if secret.is_in(self._repository.read_object(identifier)[1])
        ]

    def run(self, secret: Secret, tell: Callable[[str], None]) -> HistoryPurge:
        """Remove it.

        Raises:
            ConflictError: Somebody edited a file meanwhile; run it again.
            StorageError: The file system refused; run it again.
        """
        tell("Looking through the history")
        found = self.find(secret)
        head = self._repository.head()
        if not found:
            return HistoryPurge()
        commits, epoch = 0, None
        if head is not None:
            tell("Writing the history anew")
            commits, epoch = self._rewrite(secret, head)
        tell("Throwing away what was")
        self._drop_unreachable()
        return HistoryPurge(commits, len(found), epoch)

    def _rewrite(self, secret: Secret, head: str) -> tuple[int, int | None]:
        rewriting = Rewriting(self._repository, secret)
        with storage_errors("Can't write the history anew"):
            for portion in rewriting.run():
                self._repository.store(portion)
            self._go_over(rewriting.commits)
        if head not in rewriting.commits:
            return 0, None
        history = newer(self._repository, head)
        epoch = 1 + max((read_commit(*each).origin.epoch or 0 for each in history), default=0)
        last = rewriting.commits[head]
        tree = self._repository.read_commit(last).tree
        message = write_message(SUBJECT, _REASON, Actor.YOU, Origin(epoch=epoch))
        data = encode_commit(tree, last, author_of(Actor.YOU), self._clock(), message)
        end = git_object(b"commit", data)
        self._repository.store([end])
        PurgedCommits(self._root).add(rewriting.commits)
        self._door.forward(head, end.id, actor=Actor.YOU)
        return len(rewriting.commits), epoch

    def _go_over(self, commits: Mapping[str, str]) -> None:
        """Let each proposal point to what its commit was written anew as."""
        refs = self._repository.proposals
        for name, commit in refs.all().items():
            if commit in commits:
                refs.put(name, commits[commit])

    def _drop_unreachable(self) -> None:
        """Keep what the branch and the proposals need, in one pack, and nothing else."""
        repository = self._repository
        head = repository.head()
        if head is None:
            raise ConflictError("The history has no commit.", "Nothing was thrown away.")
        self._drop_names(head)
        with storage_errors("Can't throw the old history away"):
            count, records = pack_of(repository, everything(repository))
            pack = repository.write_pack(count, records)
            repository.keep_only(pack)

    def _drop_names(self, head: str) -> None:
        """Whatever else a git program may have left that names old commits."""
        folder = self._repository.folder
        proposals = self._repository.proposals.all()
        with storage_errors("Can't clear the history's folder"):
            for name, commit in proposals.items():
                self._repository.proposals.put(name, commit)  # git may have packed it
            self._repository.branch.name_alone(head)
            for name in ("logs", "worktrees", "rr-cache"):
                shutil.rmtree(folder / name, ignore_errors=True)
            for file in folder.iterdir():
                if file.is_file() and file.name not in _KEPT:
                    file.unlink()
                elif file.is_dir() and file.name.startswith(INCOMING):
                    shutil.rmtree(file, ignore_errors=True)
            kept = {folder / NAME, *(folder / PROPOSALS / name for name in proposals)}
            for file in (folder / "refs").rglob("*"):
                if file.is_file() and file not in kept:
                    file.unlink()
