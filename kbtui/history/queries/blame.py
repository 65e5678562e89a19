"""Blame: finds the commit that wrote each line of a file.

A file's versions are processed from the oldest to the newest. A line that stays, or moves within
the file, keeps its origin; so does one that came from another file in the same commit (its trailers
``Moved``), from the other side of a merge, or that an undo or a restore brought back. All other
lines were written by the commit. Results are cached, so one more commit costs one more comparison.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kbtui.derived import DerivedDatabase
from kbtui.history.objects.commit import Actor, Commit, Moved, Origin
from kbtui.history.objects.repository import Repository
from kbtui.history.queries.diff import statement_key
from kbtui.history.queries.log import CommitLog
from kbtui.history.queries.matching import common_ends, lines_of, match_lines
from kbtui.workspace.files import text_of


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """The origin of a line, and where it was written.

    Attributes:
        commit: The commit id; None for a line that isn't recorded yet, so it is the user's.
        actor: The author of the commit.
        time: The time of the commit in UTC; None if it isn't recorded.
        origin: The commit's session, messages, turn, archive cursor etc.
        path: The file that it was written into, by its path then.
        line: The line number there, 1-based.
    """

    commit: str | None
    actor: Actor = Actor.YOU
    time: datetime | None = None
    origin: Origin = field(default_factory=Origin)
    path: str = ""
    line: int = 0

    @property
    def who(self) -> str:
        """The name of the author: another person's, else the actor's."""
        return self.origin.author or self.actor.value


@dataclass(frozen=True, slots=True)
class Version:
    """A file after a commit: its lines with their origins, and the origins of deleted lines.

    `gone` has the last deleted line for each hash of a text.
    """

    lines: Sequence[str] = ()
    origins: Sequence[LineOrigin] = ()
    gone: Mapping[bytes, LineOrigin] = field(default_factory=dict)


_IDENTITY = "blame 2"
_FIELDS = tuple(each.name for each in fields(Origin))
_SCHEMA = ('CREATE TABLE files (path TEXT PRIMARY KEY, "commit" TEXT, blob TEXT, data BLOB)',)


class CachedVersion(NamedTuple):
    """A cached version of a file.

    Its lines are those of the blob (None if the file was deleted).
    """

    blob: str | None
    origins: Sequence[LineOrigin]
    gone: Mapping[bytes, LineOrigin]


class BlameCache:
    """Caches the last known version of each file that blame was asked about."""

    def __init__(self, file: Path) -> None:
        self._database = DerivedDatabase(file, _SCHEMA, _IDENTITY)

    def commit_of(self, path: str) -> str | None:
        """Return the commit up to which a file is cached."""
        row = self._one('SELECT "commit" FROM files WHERE path = ?', path)
        return row[0] if row else None

    def load(self, path: str) -> CachedVersion | None:
        """Return the cached version of a file."""
        row = self._one("SELECT blob, data FROM files WHERE path = ?", path)
        return self._read(*row) if row else None

    def _one(self, query: str, path: str) -> Any:
        return self._database.run(lambda db: db.execute(query, (path,)).fetchone())

    def store(self, path: str, commit: str, blob: str | None, version: Version) -> None:
        """Replace the cached version of a file."""
        row = (path, commit, blob, _serialize(version))
        self._database.run(
            lambda db: db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row),
            write=True,
        )

    def _read(self, blob: str | None, data: bytes) -> CachedVersion | None:
        try:
            kept = json.loads(zlib.decompress(data))
            written = [_read_written(*each) for each in kept["written"]]
            origins = [each for run in kept["runs"] for each in _read_run(written, run)]
            gone = {
                bytes.fromhex(mark): next(_read_run(written, [*place, 1]))
                for mark, place in kept["gone"].items()
            }
        except (zlib.error, ValueError, TypeError, KeyError, IndexError, sqlite3.Error):
            self._database.clear()  # damaged, or written by another version of kbtui
            return None
        return CachedVersion(blob, origins, gone)


def _serialize(version: Version) -> bytes:
    written: dict[tuple[str | None, str], int] = {}
    table: list[list[Any]] = []

    def number(origin: LineOrigin) -> int:
        key = origin.commit, origin.path
        if key not in written:
            written[key] = len(table)
            table.append(_as_row(origin))
        return written[key]

    document = {
        "runs": list(_runs((number(origin), origin.line) for origin in version.origins)),
        "gone": {mark.hex(): [number(each), each.line] for mark, each in version.gone.items()},
        "written": table,
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)


def _as_row(origin: LineOrigin) -> list[Any]:
    of = origin.origin
    known = {name: value for name in _FIELDS if (value := getattr(of, name)) is not None}
    seconds = origin.time.timestamp() if origin.time else None
    return [origin.commit, origin.actor.value, seconds, known, origin.path]


def _runs(places: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Combine adjacent lines of one commit into (number, first line, count)."""
    run: list[int] | None = None
    for number, line in places:
        if run and run[0] == number and run[1] + run[2] == line:
            run[2] += 1
            continue
        if run:
            yield run
        run = [number, line, 1]
    if run:
        yield run


def _read_written(
    commit: str, actor: str, seconds: float | None, known: dict[str, Any], path: str
) -> LineOrigin:
    if "messages" in known:
        first, last = known["messages"]
        known["messages"] = (first, last)
    time = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return LineOrigin(commit, Actor(actor), time, Origin(**known), path)


def _read_run(written: list[LineOrigin], run: list[int]) -> Iterator[LineOrigin]:
    number, first, count = run
    of = written[number]
    for line in range(first, first + count):
        yield LineOrigin(of.commit, of.actor, of.time, of.origin, of.path, line)


_CACHE_SIZE = 128
_MIN_STEPS_TO_CACHE = 8  # comparisons
_MAX_DEPTH = 40  # files followed one from another
_EMPTY = Version()
_UNRECORDED = LineOrigin(None)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Source = Callable[[int], LineOrigin | None]


class _BlameStep(NamedTuple):
    """A commit that touched a file: the file's path then, and its blob (None if deleted)."""

    commit: Commit
    path: str
    blob: str | None


class Blame:
    """Computes line origins for one repository; thread-safe.

    Args:
        repository: The repository that holds the versions.
        log: The log, to find the commits that touched a file.
        cache: A cache file, which may be deleted at any time.
    """

    def __init__(self, repository: Repository, log: CommitLog, cache: Path) -> None:
        self._repository = repository
        self._log = log
        self._cache = BlameCache(cache)
        self._known: OrderedDict[tuple[str, str], Version] = OrderedDict()
        self._newest: OrderedDict[str, tuple[str, Version]] = OrderedDict()
        self._lock = threading.RLock()

    def at(self, path: str, commit: str) -> tuple[LineOrigin, ...]:
        """Return the origin of each line of a file as it was in a commit."""
        with self._lock:
            return tuple(self._version(path, commit).origins)

    def of_text(self, path: str, text: str) -> tuple[LineOrigin, ...]:
        """Return the origin of each line of a file's current text, recorded or not."""
        recorded = self._recorded(path)
        return tuple(_advance(recorded, lines_of(text), lambda _number: _UNRECORDED).origins)

    def _recorded(self, path: str) -> Version:
        """Return the newest recorded version, empty if there is none."""
        with self._lock:
            head = self._repository.head()
            if head is None:
                return _EMPTY
            known = self._newest.get(path)
            if known is None or known[0] != head:
                known = self._newest[path] = head, self._version(path, head, keep=True)
            _touch(self._newest, path)
            return known[1]

    # One file --------------------------------------------------------------------------------

    def _version(self, path: str, upto: str, depth: int = 0, *, keep: bool = False) -> Version:
        """Return a file after the last commit up to `upto` that touched it.

        Args:
            path: The file, by its path at `upto`.
            upto: The commit.
            depth: The number of files followed to get here.
            keep: Whether to cache the result on disk.
        """
        steps: list[_BlameStep] = []
        version = _EMPTY
        kept: dict[str, str | None] = {}  # by each path that the file has had
        for commit, name in self._log.versions(path, upto):
            if name not in kept:
                kept[name] = self._cache.commit_of(name)
            known = self._known.get((name, commit.id))
            if known is None and kept[name] == commit.id:
                known = self._loaded(name, commit.id)
            if known is not None:
                version = known
                break
            blob = next((change.blob for change in commit.paths if change.path == name), None)
            steps.append(_BlameStep(commit, name, blob))
        for number, step in enumerate(reversed(steps), 1):
            version = self._next(version, step, depth)
            # Files that exchange lines are asked about again at these commits.
            if number == len(steps) or step.commit.moves:
                self._known[step.path, step.commit.id] = version
                _touch(self._known, (step.path, step.commit.id))
        if keep and len(steps) >= _MIN_STEPS_TO_CACHE:
            self._cache.store(steps[0].path, steps[0].commit.id, steps[0].blob, version)
        return version

    def _loaded(self, path: str, commit: str) -> Version | None:
        kept = self._cache.load(path)
        if kept is None:
            return None
        lines = self._lines(kept.blob)
        if len(lines) != len(kept.origins):
            return None
        version = self._known[path, commit] = Version(lines, kept.origins, kept.gone)
        _touch(self._known, (path, commit))
        return version

    def _lines(self, blob: str | None) -> list[str]:
        return [] if blob is None else lines_of(text_of(self._repository.read_blob(blob)))

    # One commit ------------------------------------------------------------------------------

    def _next(self, version: Version, step: _BlameStep, depth: int) -> Version:
        """Return the version of a file after one more commit."""
        commit = step.commit
        lines = self._lines(step.blob)
        sources = list(self._sources(version, step, lines, depth))

        def written(number: int) -> LineOrigin:
            for source in sources:
                if (found := source(number)) is not None:
                    return found
            time, origin = commit.time, commit.origin
            return LineOrigin(commit.id, commit.actor, time, origin, step.path, number + 1)

        return _advance(version, lines, written)

    def _sources(
        self, version: Version, step: _BlameStep, lines: Sequence[str], depth: int
    ) -> Iterator[_Source]:
        """Yield lookups for the origin of lines that are new in a file, the most reliable first."""
        commit = step.commit
        if commit.is_restoration:
            yield lambda number: version.gone.get(_hash(lines[number]))
        if depth >= _MAX_DEPTH:
            return
        for other in commit.merged:
            name = self._name_on_side(step.path, commit, other)
            yield _from_other_side(self._version(name, other, depth + 1), lines)
        moves = [move for move in commit.moves if move.target == step.path]
        if moves and commit.parent is not None:
            yield self._from_other_files(moves, commit.parent, lines, depth)

    def _name_on_side(self, path: str, merge: Commit, other: str) -> str:
        """Return a file's path on the other side of a merge, as ours may have renamed it."""
        if merge.parent is not None and self._repository.blob_at(other, path) is None:
            for _, name in self._log.versions(path, merge.parent):
                if name != path and self._repository.blob_at(other, name) is not None:
                    return name
        return path

    def _from_other_files(
        self, moves: Iterable[Moved], parent: str, lines: Sequence[str], depth: int
    ) -> _Source:
        """Look up lines that a commit moved from other files.

        Of several sources, the oldest counts.
        """
        found: dict[int, LineOrigin] = {}
        for move in moves:
            source = self._version(move.source, parent, depth + 1)
            for offset in range(min(move.count, len(lines))):  # a trailer may be wrong
                old, new = move.source_line - 1 + offset, move.target_line - 1 + offset
                if _is_same(source.lines, old, lines, new):
                    origin = source.origins[old]
                    found[new] = min(found.get(new, origin), origin, key=_age)
        return found.get


def _is_same(old: Sequence[str], i: int, new: Sequence[str], j: int) -> bool:
    """Return whether two lines match; a purge may have changed lines that a trailer refers to."""
    return i < len(old) and j < len(new) and statement_key(old[i]) == statement_key(new[j])


def _age(origin: LineOrigin) -> float:
    return origin.time.timestamp() if origin.time else 0.0


def _from_other_side(version: Version, lines: Sequence[str]) -> _Source:
    """Look up lines that the other side of a merge has as well."""
    origins = match_lines(version.lines, lines)
    return {n: version.origins[i] for n, i in enumerate(origins) if i >= 0}.get


def _advance(
    version: Version, lines: Sequence[str], written: Callable[[int], LineOrigin]
) -> Version:
    """Return the next version of a file; `written` gives the origin of each new line."""
    old, known = version.lines, version.origins
    head, tail = common_ends(old, lines)
    until = len(old) - tail
    middle = match_lines(old[head:until], lines[head : len(lines) - tail])
    origins = [
        *known[:head],
        *[known[head + i] if i >= 0 else written(head + n) for n, i in enumerate(middle)],
        *known[until:],
    ]
    kept = set(middle)
    lost = {_hash(old[n]): known[n] for n in range(head, until) if n - head not in kept}
    return Version(lines, origins, {**version.gone, **lost} if lost else version.gone)


def _hash(line: str) -> bytes:
    return blake2b(line.encode("utf-8", "replace"), digest_size=8).digest()


def _touch(known: OrderedDict[_Key, _Value], key: _Key) -> None:
    """Mark a cache key as recently used, and evict the least recently used one."""
    known.move_to_end(key)
    if len(known) > _CACHE_SIZE:
        known.popitem(last=False)
