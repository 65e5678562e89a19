"""The log: commits newest first, by path, actor, text, time or turn.

A table of commits and the paths that each touched is kept in the cache and brought up to date
from the repository before it is read; walking ten thousand trees happens once.
"""

from __future__ import annotations

from functools import cached_property, partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeVar

from kbtui.errors import NotFoundError
from kbtui.history.looking import log_table
from kbtui.history.looking.diff import find_renames
from kbtui.history.objects.commit import Commit, PathChange, RawCommit, read_commit
from kbtui.workspace.derived import DerivedDatabase

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from kbtui.history.looking.log_table import LogFilter
    from kbtui.history.objects.commit import RawCommit
    from kbtui.history.objects.repository import Repository


class Sides:
    """Walks the other sides of merges.

    Args:
        repository: Where the commits are.
        is_on_branch: Whether a commit is on the branch, where walking ends.
    """

    def __init__(self, repository: Repository, is_on_branch: Callable[[str], bool]) -> None:
        self._repository = repository
        self._is_on_branch = is_on_branch

    def commits(self, tips: Sequence[str], seen: set[str]) -> Iterator[tuple[str, RawCommit]]:
        """Yield what only the other parents of a merge lead to, newest first.

        Args:
            tips: The other parents.
            seen: Commits to leave out; what is yielded is added.
        """
        waiting: list[tuple[float, int, str, RawCommit]] = []

        def add(identifiers: Sequence[str]) -> None:
            for identifier in identifiers:
                if identifier not in seen and not self._is_on_branch(identifier):
                    seen.add(identifier)
                    raw = self._repository.read_commit(identifier)
                    # Of the same second, what was met first is newer.
                    heappush(waiting, (-raw.time.timestamp(), len(seen), identifier, raw))

        add(tips)
        while waiting:
            _, _, identifier, raw = heappop(waiting)
            yield identifier, raw
            add(raw.parents)

    def way(self, start: str, tips: Sequence[str]) -> list[str] | None:
        """The commits that lead from `start` (left out) to one of `tips`, oldest first.

        None where `start` isn't among what the tips bring in.
        """
        child: dict[str, str | None] = dict.fromkeys(tips)
        for identifier, raw in self.commits(tips, set()):
            if identifier == start:
                break
            for parent in raw.parents:
                child.setdefault(parent, identifier)
        else:
            return None
        way: list[str] = []
        following = child[start]
        while following is not None:
            way.append(following)
            following = child[following]
        return way


_BATCH = 1000
_FIRST_PAGE = 4  # who goes on from what is known needs only the newest
_Result = TypeVar("_Result")


class CommitLog:
    """The log of one repository."""

    def __init__(self, cache: Path, repository: Repository) -> None:
        """Read `repository`; the table is kept in the folder `cache`."""
        self._cache = cache
        self._repository = repository
        self._opened: DerivedDatabase | None = None

    def commits(
        self, path: str | None, wanted: LogFilter, limit: int | None = None
    ) -> Iterator[Commit]:
        """Yield commits newest first; one path is followed back through its renames."""
        if limit is not None and limit <= 0:
            return
        self.update()
        found = self._by_path(path, wanted) if path else self._all(wanted)
        for count, commit in enumerate(found, 1):
            yield commit
            if count == limit:
                return

    def commit(self, identifier: str) -> Commit:
        """One commit by its full id, with the paths that it changed."""
        raw = self._repository.read_commit(identifier)
        return read_commit(identifier, raw, self._paths_of(raw))

    def commits_of(self, kind: Literal["turn", "batch"], name: str) -> list[Commit]:
        """The commits of one turn or one batch, newest first.

        Raises:
            NotFoundError: It made none.
        """
        turn, batch = (name, None) if kind == "turn" else (None, name)
        found = list(self.commits(None, log_table.LogFilter(turn=turn, batch=batch)))
        if not found:
            raise NotFoundError(f"The {kind} {name} changed nothing.", "See `kbtui log`.")
        return found

    def since(self, identifier: str) -> Iterator[Commit]:
        """Yield the commits after one, newest first."""
        for commit in self.commits(None, log_table.LogFilter()):
            if commit.id == identifier:
                return
            yield commit

    def later(self, identifier: str, path: str) -> Iterator[tuple[Commit, PathChange]]:
        """Yield what happened to a path after a commit, oldest first, following renames."""
        self.update()
        after = self._number_of(identifier)
        if after is None:
            after, between = self._way_to_branch(identifier)
            for side in between:
                change = next((c for c in side.paths if path in {c.path, c.old_path}), None)
                if change is not None:
                    yield side, change
                    path = change.path
        while rows := self._query(partial(log_table.later_of_path, path=path, after=after)):
            for number, commit in rows:
                after = number
                change = next(c for c in commit.paths if path in {c.path, c.old_path})
                yield commit, change
                if change.kind == "renamed" and change.path != path:
                    path = change.path
                    break

    def _way_to_branch(self, identifier: str) -> tuple[int, list[Commit]]:
        """How a commit of a merge's other side came to the branch.

        Returns:
            The row before the merge, and the commits of that side since, oldest first.
        """
        for number, merge in self._query(log_table.merges):
            way = self._sides.way(identifier, merge.merged)
            if way is not None:
                return number - 1, [self.commit(each) for each in way]
        raise NotFoundError(
            f"{identifier[:10]} is not part of this history's branch.",
            "Another git has recorded it elsewhere; `kbtui log` shows what can be undone.",
        )

    def versions(self, path: str, upto: str) -> Iterator[tuple[Commit, str]]:
        """Yield the commits up to one that touched a file, newest first, each with its name then.

        A commit that isn't on the branch, as the other side of a merge isn't, is walked back from
        until the branch is met.
        """
        self.update()
        while (number := self._number_of(upto)) is None:
            commit = self.commit(upto)
            if any(path in {change.path, change.old_path} for change in commit.paths):
                yield commit, path
                path = _former_name(commit, path) or path
            if commit.parent is None:
                return
            upto = commit.parent
        yield from self._versions_on_branch(path, number + 1)

    def _versions_on_branch(self, path: str, before: int) -> Iterator[tuple[Commit, str]]:
        limit = _FIRST_PAGE
        while rows := self._query(
            partial(log_table.page_of_path, path=path, before=before, limit=limit)
        ):
            limit = min(limit * 8, log_table.PAGE)
            for number, commit in rows:
                before = number
                yield commit, path
                if old := _former_name(commit, path):
                    path = old
                    break

    def note(self, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]) -> None:
        """Add a commit that was just made, whose paths needn't be looked for."""
        self._database.run(
            partial(log_table.append_next, identifier=identifier, raw=raw, paths=paths), write=True
        )

    def update(self) -> None:
        """Bring the table up to the branch."""
        head = self._repository.head()
        number, newest = self._database.run(log_table.tip)
        if newest == head:
            return
        if head is None:
            self._database.clear()
            return
        missing, base = self._missing(head, is_empty=number == 0)
        tree = self._tree_of_parent(missing[0][1]) if missing else None
        for start in range(0, max(1, len(missing)), _BATCH):  # once at least, to cut what is gone
            rows = []
            for identifier, raw in missing[start : start + _BATCH]:
                rows.append((identifier, raw, self._paths_between(tree, raw.tree)))
                tree = raw.tree
            self._append(base + start, rows)

    def _append(self, base: int, rows: list[tuple[str, RawCommit, tuple[PathChange, ...]]]) -> None:
        # Where another process was faster, what it wrote is the same: rows have fixed numbers.
        self._database.run(lambda db: log_table.append(db, base, rows), write=True)

    @property
    def _database(self) -> DerivedDatabase:
        if self._opened is None:
            file = self._cache / "commits.sqlite"
            self._opened = DerivedDatabase(file, log_table.SCHEMA, log_table.IDENTITY)
        return self._opened

    def _query(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Ask the table; when it turned out to be damaged, fill it and ask again."""
        before = self._database.generation
        result = self._database.run(work)
        if self._database.generation != before:
            self.update()
            result = self._database.run(work)
        return result

    def _missing(self, head: str, *, is_empty: bool) -> tuple[list[tuple[str, RawCommit]], int]:
        """The commits that the table lacks, oldest first, and the last row that still holds."""
        missing: list[tuple[str, RawCommit]] = []
        identifier: str | None = head
        while identifier is not None:
            number = None if is_empty else self._number_of(identifier)
            if number is not None:
                return missing[::-1], number
            raw = self._repository.read_commit(identifier)
            missing.append((identifier, raw))
            identifier = raw.parents[0] if raw.parents else None
        return missing[::-1], 0

    def _number_of(self, identifier: str) -> int | None:
        return self._database.run(lambda db: log_table.number_of(db, identifier))

    def _paths_of(self, raw: RawCommit) -> tuple[PathChange, ...]:
        return self._paths_between(self._tree_of_parent(raw), raw.tree)

    def _tree_of_parent(self, raw: RawCommit) -> str | None:
        return self._repository.read_commit(raw.parents[0]).tree if raw.parents else None

    def _paths_between(self, old: str | None, new: str | None) -> tuple[PathChange, ...]:
        """The differences of two trees, renames paired."""
        differences = sorted(self._repository.compare_trees(old, new))
        added = {path: now for path, was, now in differences if was is None and now}
        gone = {path: was for path, was, now in differences if now is None and was}
        renames: dict[str, str] = {}
        if added and gone:
            read = self._repository.read_blob
            renames = find_renames(
                {path: read(blob) for path, blob in added.items()},
                {path: read(blob) for path, blob in gone.items()},
            )
        vanished = set(renames.values())
        return tuple(
            _path_change(path, was, now, renames.get(path))
            for path, was, now in differences
            if path not in vanished
        )

    @cached_property
    def _sides(self) -> Sides:
        return Sides(self._repository, lambda each: self._number_of(each) is not None)

    def _all(self, wanted: LogFilter) -> Iterator[Commit]:
        # What a merge brought in may match where the merge itself doesn't.
        asked = log_table.LogFilter() if self._query(log_table.has_merges) else wanted
        seen: set[str] = set()
        before = log_table.NEWEST
        while rows := self._query(partial(log_table.page, wanted=asked, before=before)):
            before = rows[-1][0]
            for _, commit in rows:
                if wanted.matches(commit):
                    yield commit
                if commit.merged:
                    yield from filter(wanted.matches, self._brought_in(commit, seen))

    def _brought_in(self, merge: Commit, seen: set[str]) -> Iterator[Commit]:
        for identifier, raw in self._sides.commits(merge.merged, seen):
            yield read_commit(identifier, raw, self._paths_of(raw))

    def _by_path(self, path: str, wanted: LogFilter) -> Iterator[Commit]:
        before = log_table.NEWEST
        seen: set[str] = set()
        while rows := self._query(partial(log_table.page_of_path, path=path, before=before)):
            for number, commit in rows:
                before = number
                if wanted.matches(commit):
                    yield commit
                if commit.merged:
                    yield from self._brought_in_of(path, commit, wanted, seen)
                if old := _former_name(commit, path):
                    path = old
                    break

    def _brought_in_of(
        self, path: str, merge: Commit, wanted: LogFilter, seen: set[str]
    ) -> Iterator[Commit]:
        for commit in self._brought_in(merge, seen):
            below = f"{path}/"
            names = [name for c in commit.paths for name in (c.path, c.old_path) if name]
            if any(name == path or name.startswith(below) for name in names):
                if wanted.matches(commit):
                    yield commit
                path = _former_name(commit, path) or path


def _former_name(commit: Commit, path: str) -> str | None:
    """The name of a path before a commit that renamed it."""
    return next((change.old_path for change in commit.paths if change.path == path), None)


def _path_change(path: str, was: str | None, now: str | None, old_path: str | None) -> PathChange:
    if old_path is not None:
        return PathChange(path, "renamed", old_path, blob=now)
    if was is None:
        return PathChange(path, "added", blob=now)
    return PathChange(path, "deleted" if now is None else "modified", blob=now)
