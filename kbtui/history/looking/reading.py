"""Looking at a history: commits, trees, files, differences. Nothing here writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.looking.diff import FileDiff, diff_file, find_renames
from kbtui.history.looking.log_table import LogFilter
from kbtui.history.looking.revisions import resolve
from kbtui.history.undo.undo import read_version
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from kbtui.history.looking.log import CommitLog
    from kbtui.history.objects.commit import Actor, Commit
    from kbtui.history.objects.repository import Repository


class HistoryReader:
    """The commits of one repository.

    Args:
        repository: The objects and the branch.
        log: Its commits.
    """

    def __init__(self, repository: Repository, log: CommitLog) -> None:
        self._repository = repository
        self._log = log

    def head(self) -> str | None:
        """The id of the newest commit, None before the first."""
        return self._repository.head()

    def resolve(self, rev: str) -> str:
        """The full id of the commit that `rev` names: see `revisions.resolve`."""
        return resolve(self._repository, self._log, rev)

    def commit(self, rev: str) -> Commit:
        """One commit with its paths."""
        return self._log.commit(self.resolve(rev))

    def log(
        self,
        path: str | None = None,
        *,
        actor: Actor | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        turn: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Commit]:
        """Yield commits newest first.

        Args:
            path: Only those that touched this file (followed through renames) or folder.
            actor: Only this actor's.
            text: Only those whose subject or reason holds this, in any case.
            since: Not before this time.
            until: Not after this time.
            turn: Only those of one turn.
            limit: At most so many.
        """
        wanted = LogFilter(actor, text, since, until, turn)
        return self._log.commits(files.checked_path(path) if path else None, wanted, limit)

    def tree(self, rev: str) -> dict[str, str]:
        """Every path of a commit with its blob id."""
        return self._repository.files(self.resolve(rev))

    def read(self, path: str, at: str) -> bytes:
        """Read a file as it was in a commit.

        Raises:
            NotFoundError: There was no such file, or there is no such commit.
        """
        return read_version(self._repository, self.resolve(at), files.checked_path(path))

    def read_blob(self, blob: str) -> bytes:
        """Read what `tree` names.

        Raises:
            NotFoundError: It isn't there, or is damaged.
        """
        return self._repository.read_blob(blob)

    def diff(
        self, a: str | None, b: str | None = None, paths: Sequence[str] = ()
    ) -> tuple[FileDiff, ...]:
        """Compare two points.

        Args:
            a: A revision; None is the empty tree.
            b: A revision; None is the files as they are now.
            paths: Only these files, or what lies below these folders.
        """
        old = self.tree(a) if a is not None else {}
        new = self.tree(b) if b is not None else self._working_tree()
        return self._compare(old, new, [files.checked_path(path) for path in paths])

    def changes_of(self, rev: str) -> tuple[FileDiff, ...]:
        """What one commit changed."""
        commit = self.resolve(rev)
        parents = self._repository.read_commit(commit).parents
        old: dict[str, str] = {}
        new: dict[str, str] = {}
        for path, was, now in self._repository.compare(parents[0] if parents else None, commit):
            old |= {path: was} if was else {}
            new |= {path: now} if now else {}
        return self._compare(old, new, [])

    def _working_tree(self) -> dict[str, str]:
        raise UsageError("There are no files beside this history.", "Compare two of its commits.")

    def _compare(
        self, old: Mapping[str, str], new: Mapping[str, str], paths: list[str]
    ) -> tuple[FileDiff, ...]:
        below = tuple(f"{path}/" for path in paths)
        differing = sorted(
            path
            for path in old.keys() | new.keys()
            if old.get(path) != new.get(path)
            and (not paths or path in paths or path.startswith(below))
        )
        before = {path: self._content(path, old[path]) for path in differing if path in old}
        after = {path: self._content(path, new[path]) for path in differing if path in new}
        renames = find_renames(
            {path: data for path, data in after.items() if path not in before},
            {path: data for path, data in before.items() if path not in after},
        )
        vanished = set(renames.values())
        return tuple(
            diff_file(path, before.get(renames.get(path, path)), after.get(path), renames.get(path))
            for path in differing
            if path not in vanished
        )

    def _content(self, path: str, blob: str) -> bytes:  # noqa: ARG002 - a workspace needs it
        """The bytes of a blob."""
        return self._repository.read_blob(blob)
