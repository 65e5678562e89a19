"""The log: commits newest first, filtered by path, actor, text, time or turn.

A table of commits and the paths that each touched is cached and updated from the repository before
each query, so ten thousand trees are walked only once.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Literal, TypeVar

from kbtui.derived import DerivedDatabase
from kbtui.errors import NotFoundError
from kbtui.history.objects.commit import (
    Actor,
    Commit,
    PathChange,
    RawCommit,
    kind_of,
    read_commit,
)
from kbtui.history.objects.repository import Repository
from kbtui.history.queries.diff import pair_renames

IDENTITY = "commits 3"
SCHEMA = (
    """
    CREATE TABLE commits (
        seq INTEGER PRIMARY KEY, id TEXT UNIQUE, parent TEXT, time INTEGER, actor TEXT, turn TEXT,
        batch TEXT, message TEXT, paths TEXT, author TEXT,
        crc INTEGER
    )
    """,
    "CREATE TABLE paths (seq INTEGER, path TEXT, old_path TEXT)",
    "CREATE INDEX paths_of_commit ON paths (seq)",
    "CREATE INDEX commits_of_path ON paths (path, seq)",
    "CREATE INDEX commits_of_old_path ON paths (old_path, seq) WHERE old_path IS NOT NULL",
    "CREATE INDEX commits_of_turn ON commits (turn) WHERE turn IS NOT NULL",
    "CREATE INDEX commits_of_batch ON commits (batch) WHERE batch IS NOT NULL",
    "CREATE INDEX merges ON commits (seq) WHERE parent LIKE '% %'",
)
_CACHED_FROM = 1 << 14  # characters of JSON
PAGE = 256
NEWEST = 1 << 62
_COLUMNS = "seq, id, parent, time, actor, turn, batch, message, paths, author, crc"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Criteria for commits, of which None matches all.

    Both ends of the time range are inclusive.
    """

    actor: Actor | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    turn: str | None = None
    batch: str | None = None

    def matches(self, commit: Commit) -> bool:
        """Return whether a commit matches."""
        origin = commit.origin
        asked = ((self.actor, commit.actor), (self.turn, origin.turn), (self.batch, origin.batch))
        return (
            all(wanted in (None, found) for wanted, found in asked)
            and (self.since is None or commit.time >= self.since)
            and (self.until is None or commit.time <= self.until)
            and self.matches_text(commit)
        )

    def matches_text(self, commit: Commit) -> bool:
        """Return whether the subject or body contains the text, ignoring case."""
        return self.text is None or self.text.casefold() in (
            f"{commit.subject}\n{commit.body}".casefold()
        )


def tip(db: sqlite3.Connection) -> tuple[int, str | None]:
    """Return the number and the commit id of the newest row."""
    row = db.execute("SELECT seq, id FROM commits ORDER BY seq DESC LIMIT 1").fetchone()
    return (row[0], row[1]) if row else (0, None)


def row_of(db: sqlite3.Connection, identifier: str) -> int | None:
    """Return the row number of a commit."""
    row = db.execute("SELECT seq FROM commits WHERE id = ?", (identifier,)).fetchone()
    return row[0] if row else None


def append(
    db: sqlite3.Connection, base: int, rows: Sequence[tuple[str, RawCommit, tuple[PathChange, ...]]]
) -> bool:
    """Write rows after row `base`, replacing later ones.

    Return False if the table has no row `base`.
    """
    if tip(db)[0] < base:
        return False
    db.execute("DELETE FROM commits WHERE seq > ?", (base,))
    db.execute("DELETE FROM paths WHERE seq > ?", (base,))
    for seq, (identifier, raw, paths) in enumerate(rows, base + 1):
        db.execute(
            f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _row(seq, identifier, raw, paths),
        )
        db.executemany(
            "INSERT INTO paths VALUES (?, ?, ?)",
            [(seq, path.path, path.old_path) for path in paths],
        )
    return True


def append_next(
    db: sqlite3.Connection, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]
) -> None:
    """Append one new commit if its parent is the newest row, else do nothing."""
    number, newest = tip(db)
    if newest == (raw.parents[0] if raw.parents else None):
        append(db, number, [(identifier, raw, paths)])


def _row(
    seq: int, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]
) -> tuple[int | str | None, ...]:
    commit = read_commit(identifier, raw)
    # Without line counts, which only a commit made here has: both ways give the same row.
    listed = json.dumps([[path.path, path.kind, path.old_path, path.blob] for path in paths])
    row = (
        seq,
        identifier,
        " ".join(raw.parents),
        int(commit.time.timestamp()),
        commit.actor.value,
        commit.origin.turn,
        commit.origin.batch,
        raw.message,
        listed,
        raw.author,
    )
    return (*row, zlib.crc32(repr(row).encode("utf-8", "replace")))


def page(db: sqlite3.Connection, wanted: LogFilter, before: int) -> list[tuple[int, Commit]]:
    """Return a page of commits before row `before`, newest first, that match all but the text."""
    clauses, values = ["seq < ?"], [before]
    for clause, value in (
        ("actor = ?", wanted.actor and wanted.actor.value),
        ("turn = ?", wanted.turn),
        ("batch = ?", wanted.batch),
        ("time >= ?", wanted.since and wanted.since.timestamp()),
        ("time <= ?", wanted.until and wanted.until.timestamp()),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(value)  # type: ignore[arg-type]
    return _select(db, " AND ".join(clauses), values)


def page_of_path(
    db: sqlite3.Connection, path: str, before: int, limit: int | None = None
) -> list[tuple[int, Commit]]:
    """Return a page of commits before row `before`, newest first, that touched a file or folder."""
    where = """
    seq < ? AND seq IN (
        SELECT seq FROM paths WHERE path = ?
        UNION SELECT seq FROM paths WHERE old_path = ?
        UNION SELECT seq FROM paths WHERE path >= ? AND path < ?
        UNION SELECT seq FROM paths WHERE old_path >= ? AND old_path < ?
    )
    """
    # "0" is the character after "/", so this range holds everything below the folder.
    below = [f"{path}/", f"{path}0"]
    return _select(db, where, [before, path, path, *below, *below], limit=limit)


def later_of_path(db: sqlite3.Connection, path: str, after: int) -> list[tuple[int, Commit]]:
    """Return a page of commits after row `after`, oldest first, that touched or renamed a path."""
    where = "seq IN (SELECT seq FROM paths WHERE seq > ? AND (path = ? OR old_path = ?))"
    return _select(db, where, [after, path, path], order="ASC")


def has_merges(db: sqlite3.Connection) -> bool:
    """Return whether any commit has several parents."""
    query = "SELECT 1 FROM commits WHERE parent LIKE '% %' LIMIT 1"
    return db.execute(query).fetchone() is not None


def merges(db: sqlite3.Connection) -> list[tuple[int, Commit]]:
    """Return the commits with several parents, oldest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE parent LIKE '% %' ORDER BY seq",
    )
    return [(row[0], _commit(row)) for row in rows]


def times(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """Return the id and the time of each commit, newest first."""
    return db.execute("SELECT id, time FROM commits ORDER BY seq DESC").fetchall()


def _select(
    db: sqlite3.Connection,
    where: str,
    values: Sequence[int | str],
    order: str = "DESC",
    limit: int | None = None,
) -> list[tuple[int, Commit]]:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE {where} ORDER BY seq {order} LIMIT {limit or PAGE}",
        values,
    )
    return [(row[0], _commit(row)) for row in rows]


def _commit(row: tuple[Any, ...]) -> Commit:
    # A large commit that brought many files is at the end of all their histories.
    return _parse_cached(row) if len(row[-3]) > _CACHED_FROM else _parse(row)


@lru_cache(maxsize=8)
def _parse_cached(row: tuple[Any, ...]) -> Commit:
    return _parse(row)


def _parse(row: tuple[Any, ...]) -> Commit:
    *fields, crc = row
    if zlib.crc32(repr(tuple(fields)).encode("utf-8", "replace")) != crc:
        raise sqlite3.DatabaseError("a row of the log's table is damaged")
    _, identifier, parents, time, _, _, _, message, paths, author, _ = row
    raw = RawCommit("", tuple(parents.split()), datetime.fromtimestamp(time, UTC), message, author)
    changes = tuple(
        PathChange(path, kind, old_path, blob=blob)
        for path, kind, old_path, blob in json.loads(paths)
    )
    return read_commit(identifier, raw, changes)


class MergedCommits:
    """Walks the commits that merges brought in.

    Args:
        repository: The repository that holds the commits.
        is_on_branch: Returns whether a commit is on the branch, where a walk ends.
    """

    def __init__(self, repository: Repository, is_on_branch: Callable[[str], bool]) -> None:
        self._repository = repository
        self._is_on_branch = is_on_branch

    def commits(self, tips: Sequence[str], seen: set[str]) -> Iterator[tuple[str, RawCommit]]:
        """Yield the commits that only the other parents of a merge lead to, newest first.

        Args:
            tips: The other parents.
            seen: Commits to leave out; yielded ones are added.
        """
        queue: list[tuple[float, int, str, RawCommit]] = []

        def add(identifiers: Sequence[str]) -> None:
            for identifier in identifiers:
                if identifier not in seen and not self._is_on_branch(identifier):
                    seen.add(identifier)
                    raw = self._repository.read_commit(identifier)
                    # In case of equal times, the one reached first counts as newer.
                    heappush(queue, (-raw.time.timestamp(), len(seen), identifier, raw))

        add(tips)
        while queue:
            _, _, identifier, raw = heappop(queue)
            yield identifier, raw
            add(raw.parents)

    def path_from(self, start: str, tips: Sequence[str]) -> list[str] | None:
        """Return the commits from `start` (exclusive) to one of `tips`, oldest first.

        Returns None if `start` isn't an ancestor of the tips outside the branch.
        """
        child: dict[str, str | None] = dict.fromkeys(tips)
        for identifier, raw in self.commits(tips, set()):
            if identifier == start:
                break
            for parent in raw.parents:
                child.setdefault(parent, identifier)
        else:
            return None
        path_from: list[str] = []
        following = child[start]
        while following is not None:
            path_from.append(following)
            following = child[following]
        return path_from


_BATCH = 1000
_GAP = 0.01  # seconds between commits that a clock doesn't put in order
_ATTEMPTS = 3
"""How often the table is filled again when it fails; in memory, the last resort, it doesn't."""
_FIRST_PAGE = 4  # blame, which continues from its cache, needs only the newest
_Result = TypeVar("_Result")


class CommitLog:
    """The log of one repository."""

    def __init__(self, cache: Path, repository: Repository) -> None:
        """Open the log of `repository`, with its table in the folder `cache`."""
        self._cache = cache
        self._repository = repository
        self._opened: DerivedDatabase | None = None
        self._moments: tuple[str | None, Mapping[str, float]] | None = None

    def commits(
        self, path: str | None, wanted: LogFilter, limit: int | None = None
    ) -> Iterator[Commit]:
        """Yield commits newest first; a file is followed back through its renames."""
        if limit is not None and limit <= 0:
            return
        self.update()
        found = self._by_path(path, wanted) if path else self._all(wanted)
        for count, commit in enumerate(found, 1):
            yield commit
            if count == limit:
                return

    def commit(self, identifier: str) -> Commit:
        """Return one commit by its full id, with the paths that it changed."""
        raw = self._repository.read_commit(identifier)
        return read_commit(identifier, raw, self._paths_of(raw))

    def commits_of(self, kind: Literal["turn", "batch"], name: str) -> list[Commit]:
        """Return the commits of one turn or one batch, newest first.

        Raises:
            NotFoundError: It made none.
        """
        turn, batch = (name, None) if kind == "turn" else (None, name)
        found = list(self.commits(None, LogFilter(turn=turn, batch=batch)))
        if not found:
            raise NotFoundError(f"The {kind} {name} changed nothing.", "See `kbtui log`.")
        return found

    def since(self, identifier: str) -> Iterator[Commit]:
        """Yield the commits after one, newest first."""
        for commit in self.commits(None, LogFilter()):
            if commit.id == identifier:
                return
            yield commit

    def later(self, identifier: str, path: str) -> Iterator[tuple[Commit, PathChange]]:
        """Yield the changes of a path after a commit, oldest first, following renames."""
        self.update()
        after = self._query(partial(row_of, identifier=identifier))
        if after is None:
            after, between = self._path_to_branch(identifier)
            for side in between:
                change = next((c for c in side.paths if path in {c.path, c.old_path}), None)
                if change is not None:
                    yield side, change
                    path = change.path
        while rows := self._query(partial(later_of_path, path=path, after=after)):
            for number, commit in rows:
                after = number
                change = next(c for c in commit.paths if path in {c.path, c.old_path})
                yield commit, change
                if change.kind == "renamed" and change.path != path:
                    path = change.path
                    break

    def _path_to_branch(self, identifier: str) -> tuple[int, list[Commit]]:
        """Find the merge through which a commit came to the branch.

        Returns:
            The row before the merge, and the later commits of that side, oldest first.
        """
        for number, merge in self._query(merges):
            path_from = self._merged_commits.path_from(identifier, merge.merged)
            if path_from is not None:
                return number - 1, [self.commit(each) for each in path_from]
        raise NotFoundError(
            f"{identifier[:10]} is not part of this history's branch.",
            "Another git has recorded it elsewhere; `kbtui log` shows what can be undone.",
        )

    def versions(self, path: str, upto: str) -> Iterator[tuple[Commit, str]]:
        """Yield the commits up to `upto` that touched a file, newest first, with its path then.

        From a commit that isn't on the branch, such as the other side of a merge, first parents are
        followed until the branch is reached.
        """
        self.update()
        while (number := self._query(partial(row_of, identifier=upto))) is None:
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
        while rows := self._query(partial(page_of_path, path=path, before=before, limit=limit)):
            limit = min(limit * 8, PAGE)
            for number, commit in rows:
                before = number
                yield commit, path
                if old := _former_name(commit, path):
                    path = old
                    break

    def moments(self) -> Mapping[str, float]:
        """Return when each commit of the branch was made, as Unix times in their order.

        Each is earlier than the next one, also if it was made under a clock that was ahead.
        """
        self.update()
        rows = self._query(times)
        newest = rows[0][0] if rows else None
        if self._moments is None or self._moments[0] != newest:
            found: dict[str, float] = {}
            latest = float("inf")
            for identifier, time in rows:
                found[identifier] = latest = min(latest - _GAP, float(time))
            self._moments = newest, found
        return self._moments[1]

    def note(self, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]) -> None:
        """Add a commit that was just made, whose paths are known."""
        self._database.run(
            partial(append_next, identifier=identifier, raw=raw, paths=paths), write=True
        )

    def update(self) -> None:
        """Bring the table up to date with the branch, again if it was emptied meanwhile."""
        for _ in range(_ATTEMPTS):
            before = self._database.generation
            self._update()
            if self._database.generation == before:
                return

    def _update(self) -> None:
        head = self._repository.head()
        number, newest = self._database.run(tip)
        if newest == head:
            return
        if head is None:
            self._database.clear()
            return
        missing, base = self._missing(head, is_empty=number == 0)
        tree = self._tree_of_parent(missing[0][1]) if missing else None
        for start in range(0, max(1, len(missing)), _BATCH):  # at least once, to drop stale rows
            rows = []
            for identifier, raw in missing[start : start + _BATCH]:
                rows.append((identifier, raw, self._paths_between(tree, raw.tree)))
                tree = raw.tree
            self._append(base + start, rows)

    def _append(self, base: int, rows: list[tuple[str, RawCommit, tuple[PathChange, ...]]]) -> None:
        # Another process that was faster has written the same: row numbers are deterministic.
        self._database.run(lambda db: append(db, base, rows), write=True)

    @property
    def _database(self) -> DerivedDatabase:
        if self._opened is None:
            file = self._cache / "commits.sqlite"
            self._opened = DerivedDatabase(file, SCHEMA, IDENTITY)
        return self._opened

    def _query(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Query the table; if it turns out to be damaged, rebuild it and query again."""
        for _ in range(_ATTEMPTS):
            before = self._database.generation
            result = self._database.run(work)
            if self._database.generation == before:
                break
            self.update()
        return result

    def _missing(self, head: str, *, is_empty: bool) -> tuple[list[tuple[str, RawCommit]], int]:
        """Return the commits that the table lacks, oldest first, and the last valid row."""
        missing: list[tuple[str, RawCommit]] = []
        identifier: str | None = head
        while identifier is not None:
            find = partial(row_of, identifier=identifier)
            number = None if is_empty else self._database.run(find)
            if number is not None:
                return missing[::-1], number
            raw = self._repository.read_commit(identifier)
            missing.append((identifier, raw))
            identifier = raw.parents[0] if raw.parents else None
        return missing[::-1], 0

    def _paths_of(self, raw: RawCommit) -> tuple[PathChange, ...]:
        return self._paths_between(self._tree_of_parent(raw), raw.tree)

    def _tree_of_parent(self, raw: RawCommit) -> str | None:
        return self._repository.read_commit(raw.parents[0]).tree if raw.parents else None

    def _paths_between(self, old: str | None, new: str | None) -> tuple[PathChange, ...]:
        """Return the changes between two trees, with renames paired."""
        differences = sorted(self._repository.compare_trees(old, new))
        added = {path: now for path, was, now in differences if was is None and now}
        gone = {path: was for path, was, now in differences if now is None and was}
        renames = pair_renames(added, gone, self._repository.read_blob)
        vanished = set(renames.values())
        return tuple(
            PathChange(path, kind_of(was, now, renames.get(path)), renames.get(path), blob=now)
            for path, was, now in differences
            if path not in vanished
        )

    @cached_property
    def _merged_commits(self) -> MergedCommits:
        return MergedCommits(
            self._repository,
            lambda each: self._query(partial(row_of, identifier=each)) is not None,
        )

    def _all(self, wanted: LogFilter) -> Iterator[Commit]:
        # A merge may not match although commits that it brought in do.
        query = LogFilter() if self._query(has_merges) else wanted
        seen: set[str] = set()
        before = NEWEST
        while rows := self._query(partial(page, wanted=query, before=before)):
            before = rows[-1][0]
            for _, commit in rows:
                if wanted.matches(commit):
                    yield commit
                if commit.merged:
                    yield from filter(wanted.matches, self._merged_in(commit, seen))

    def _merged_in(self, merge: Commit, seen: set[str]) -> Iterator[Commit]:
        for identifier, raw in self._merged_commits.commits(merge.merged, seen):
            yield read_commit(identifier, raw, self._paths_of(raw))

    def _by_path(self, path: str, wanted: LogFilter) -> Iterator[Commit]:
        before = NEWEST
        seen: set[str] = set()
        while rows := self._query(partial(page_of_path, path=path, before=before)):
            for number, commit in rows:
                before = number
                if wanted.matches(commit):
                    yield commit
                if commit.merged:
                    yield from self._merged_in_of(path, commit, wanted, seen)
                if old := _former_name(commit, path):
                    path = old
                    break

    def _merged_in_of(
        self, path: str, merge: Commit, wanted: LogFilter, seen: set[str]
    ) -> Iterator[Commit]:
        for commit in self._merged_in(merge, seen):
            below = f"{path}/"
            names = [name for c in commit.paths for name in (c.path, c.old_path) if name]
            if any(name == path or name.startswith(below) for name in names):
                if wanted.matches(commit):
                    yield commit
                path = _former_name(commit, path) or path


def _former_name(commit: Commit, path: str) -> str | None:
    return next((change.old_path for change in commit.paths if change.path == path), None)
