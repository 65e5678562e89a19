"""Read-only access to a history, ours or another git repository's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import NoReturn

from kbtui.cache import cache_folder
from kbtui.errors import NotFoundError, UnreadableError, UsageError
from kbtui.history.objects.branch import Branch
from kbtui.history.objects.commit import Actor, Commit, PathChange
from kbtui.history.objects.repository import Repository
from kbtui.history.queries.diff import FileDiff, diff_file, diff_files
from kbtui.history.queries.log import CommitLog, LogFilter
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import short_name

_REVISION = re.compile(r"^(?P<base>.+?)(?P<steps>(?:~\d*|\^)*)$")
_ID = re.compile(r"^[0-9a-f]{4,40}$")
_EARLIEST, _LATEST = 1900, 9999  # years; a calendar's ends are in none of some zones
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}")
_TICK = 1e-6  # seconds


def resolve(repository: Repository, log: CommitLog, rev: str) -> str:
    """Return the id of the commit that `rev` names.

    Args:
        repository: The repository, to look up ids.
        log: The log, to look up dates.
        rev: An id or its first 4 or more digits, ``HEAD``, or an ISO date or time (the last commit
            up to then; a bare date means the end of that day, local time). ``~n`` and ``^`` after
            it go to ancestors.

    Raises:
        NotFoundError: No commit matches.
        UsageError: Several commits match.
    """
    match = _REVISION.match(rev.strip())
    if match is None:
        raise NotFoundError("An empty revision names no commit.", "See `kbtui log`.")
    commit = _base(repository, log, match["base"])
    for step in re.findall(r"~\d*|\^", match["steps"]):
        for _ in range(1 if step in {"~", "^"} else int(step[1:])):
            parents = repository.read_commit(commit).parents
            if not parents:
                raise NotFoundError(f"{rev} lies before the first commit.", "See `kbtui log`.")
            commit = parents[0]
    return commit


def _base(repository: Repository, log: CommitLog, name: str) -> str:
    if name.upper() in {"HEAD", "@"}:
        head = repository.head()
        if head is None:
            raise NotFoundError("There is no commit yet.")
        return head
    if _ID.match(name.lower()):
        found = _by_id(repository, name.lower())
        if found is not None:
            return found
    if _DATE.match(name):
        return _by_date(log, name)
    raise NotFoundError(
        f"No commit is named {name!r}.", "Take an id from `kbtui log`, HEAD~1, or a date."
    )


def _by_id(repository: Repository, prefix: str) -> str | None:
    found = repository.with_prefix(prefix)
    if len(found) > 1:
        shown = ", ".join(identifier[:12] for identifier in found[:5])
        raise UsageError(f"{prefix} is short for several commits: {shown}.", "Add more digits.")
    return found[0] if found else None


def _by_date(log: CommitLog, name: str) -> str:
    try:
        moment = datetime.fromisoformat(name)
    except ValueError as error:
        raise NotFoundError(f"{name} is no date.", "Write it like 2026-11-21.") from error
    if len(name) == len("2026-11-21"):
        moment = datetime.combine(moment.date(), time(23, 59, 59))
    found = None
    if moment.year > _EARLIEST:
        wanted = LogFilter(until=_latest(moment) if moment.year < _LATEST else None)
        found = next(log.commits(None, wanted, 1), None)
    if found is None:
        raise NotFoundError(f"There is no commit up to {name}.", "See `kbtui log` for the first.")
    return found.id


def _latest(moment: datetime) -> datetime:
    """Return a time in UTC; of an hour that comes twice, or that doesn't exist, the later one."""
    return max(moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def read_version(repository: Repository, commit: str, path: str) -> bytes:
    """Read a file as it was in a commit.

    Raises:
        NotFoundError: There was no such file.
    """
    data = repository.content_at(commit, path)
    if data is None:
        raise NotFoundError(
            f"{short_name(path)} did not exist in {commit[:10]}.",
            f"`kbtui log {short_name(path)}` shows where it did.",
        )
    return data


class HistoryReader:
    """Read access to the commits of one repository.

    Args:
        repository: The objects and the branch.
        log: The log of its commits.
    """

    def __init__(self, repository: Repository, log: CommitLog) -> None:
        self._repository = repository
        self._log = log

    def head(self) -> str | None:
        """Return the id of the newest commit, or None before the first one."""
        return self._repository.head()

    def resolve(self, rev: str) -> str:
        """Return the full id of the commit that `rev` names: see `resolve`."""
        return resolve(self._repository, self._log, rev)

    def commit(self, rev: str) -> Commit:
        """Return one commit with its paths."""
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
        batch: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Commit]:
        """Yield commits newest first.

        Args:
            path: Only those that touched this file (followed through renames) or folder.
            actor: Only this actor's.
            text: Only those whose subject or reason contains this, ignoring case.
            since: Not before this time.
            until: Not after this time.
            turn: Only those of one turn.
            batch: Only those of one batch.
            limit: The maximum number.
        """
        wanted = LogFilter(actor, text, since, until, turn, batch)
        return self._log.commits(files.checked_path(path) if path else None, wanted, limit)

    def later(self, commit: str, path: str) -> Iterator[tuple[Commit, PathChange]]:
        """Yield the changes of a file after a commit, oldest first, following its renames.

        Raises:
            NotFoundError: The commit is not part of this history's branch.
        """
        return self._log.later(commit, path)

    def path_now(self, commit: str, path: str) -> str:
        """Return the present path of a file of a commit, or the last one that it had."""
        with contextlib.suppress(NotFoundError):
            for _, change in self.later(commit, path):
                path = change.path
        return path

    def versions(self, path: str) -> Iterator[tuple[Commit, str]]:
        """Yield the changes of a file, newest first, each with the path that it had after it."""
        head = self.head()
        if head is not None:
            yield from self._log.versions(files.checked_path(path), head)

    def between(
        self, path: str, since: str | datetime, until: str | datetime | None = None
    ) -> FileDiff | None:
        """Compare two states of one file, followed through its renames.

        Args:
            path: Its present path, or the last one that it had.
            since: A revision, or a time: how the file was just before it.
            until: The same for the later state; None is how it is now.

        Returns:
            The difference, or None if there is none.
        """
        old = self._version_at(path, since)
        new = self._version_at(path, until) if until is not None else self._version_now(path)
        before, after = old[1] or path, new[1] or path
        if old[0] == new[0] and before == after:
            return None
        return diff_file(after, old[0], new[0], before if before != after else None)

    def _version_now(self, path: str) -> tuple[bytes | None, str]:
        """Return the content of a file as it is now, recorded or not, and its path."""
        path = files.checked_path(path)
        blob = self._working_tree().get(path)
        return (self._content(path, blob) if blob is not None else None), path

    def _version_at(self, path: str, moment: str | datetime) -> tuple[bytes | None, str]:
        """Return the content and the path of a file at a moment; None and "" before it was made."""
        made = self._log.moments()
        if isinstance(moment, str):
            commit = self.commit(moment)
            last = made.get(commit.id, commit.time.timestamp())
        else:
            last = moment.timestamp() - _TICK
        for commit_then, path_then in self.versions(path):
            if made.get(commit_then.id, commit_then.time.timestamp()) <= last:
                return self._repository.content_at(commit_then.id, path_then), path_then
        return None, ""

    def tree(self, rev: str) -> dict[str, str]:
        """Return the blob id of every path in a commit."""
        return self._repository.files(self.resolve(rev))

    def read(self, path: str, at: str) -> bytes:
        """Read a file as it was in a commit.

        Raises:
            NotFoundError: There was no such file, or there is no such commit.
        """
        return read_version(self._repository, self.resolve(at), files.checked_path(path))

    def blob_at(self, path: str, at: str) -> str | None:
        """Return the blob id of a file in a commit (a full id), or None if there was none."""
        return self._repository.blob_at(at, path)

    def read_blob(self, blob: str) -> bytes:
        """Read a blob by its id, as in `tree`.

        Raises:
            NotFoundError: It doesn't exist or is damaged.
        """
        return self._repository.read_blob(blob)

    def diff(
        self, a: str | None, b: str | None = None, paths: Sequence[str] = ()
    ) -> tuple[FileDiff, ...]:
        """Compare two states.

        Args:
            a: A revision; None is the empty tree.
            b: A revision; None is the working files.
            paths: Only these files, or what lies below these folders.
        """
        old = self.tree(a) if a is not None else {}
        new = self.tree(b) if b is not None else self._working_tree()
        return self._compare(old, new, [files.checked_path(path) for path in paths])

    def changes_of(self, rev: str) -> tuple[FileDiff, ...]:
        """Return the diffs of one commit."""
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
        differing = [path for path in _differing(old, new) if not paths or _is_below(path, paths)]
        before, after = (
            {
                path: self._content(path, blobs[path]) if path in blobs else None
                for path in differing
            }
            for blobs in (old, new)
        )
        return diff_files(before, after)

    def _content(self, path: str, blob: str) -> bytes:  # noqa: ARG002 - a workspace needs it
        return self._repository.read_blob(blob)


_REF = re.compile(r"refs/(?:[^./\x00-\x20~^:?*\[\\][^\x00-\x20~^:?*\[\\/]*/?)+")
_FORMAT = re.compile(r"^\s*(objectformat|refstorage)\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_SUPPORTED = {"sha1", "files"}
_MAX_SYMREFS = 5


class _ForeignBranch(Branch):
    """The commit that HEAD points to, directly or through a branch of any name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._root = folder

    def _read(self) -> str | None:
        text = self._text("HEAD")
        for _ in range(_MAX_SYMREFS):
            if text is None or not text.startswith("ref:"):
                return text
            name = text.removeprefix("ref:").strip()
            if not _REF.fullmatch(name):
                return text
            text = self._text(name) or self._packed(name)
        return text

    def _text(self, name: str) -> str | None:
        with storage_errors(f"Can't read {self._root}"):
            try:
                return (self._root / name).read_text("ascii", "replace").strip()
            except FileNotFoundError:
                return None

    def _packed(self, name: str) -> str | None:
        for line in (self._text("packed-refs") or "").splitlines():
            identifier, _, packed = line.partition(" ")
            if packed == name:
                return identifier
        return None


class _ForeignRepository(Repository):
    """Another repository, all of whose files are shown."""

    @staticmethod
    def keeps(path: str) -> bool:  # noqa: ARG004
        return True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.branch = _ForeignBranch(folder)

    def files(self, commit: str | None) -> dict[str, str]:
        """Return the blob id of every path in a commit, with undecodable bytes replaced."""
        return {_as_text(path): blob for path, blob in super().files(commit).items()}

    def compare_trees(
        self, old: str | None, new: str | None
    ) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield (path, old blob id, new blob id) where two trees differ, paths as in `files`."""
        for path, was, now in super().compare_trees(old, new):
            yield _as_text(path), was, now


def _as_text(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class ForeignHistory(HistoryReader):
    """The read-only history of another repository; methods that would write raise `UsageError`."""

    def _refuse(self, *_args: object, **_more: object) -> NoReturn:
        raise UsageError(
            "This is another repository's history: it is only looked at.",
            "y copies the id of a commit, Y its patch.",
        )

    undo = undo_turn = undo_batch = _refuse
    restore = restore_preview = restore_before = restore_before_preview = _refuse


def open_foreign(folder: Path) -> ForeignHistory:
    """Open a git repository for reading, bare or with a working tree.

    Its commits are indexed in the user's cache; nothing is written to the repository.

    Raises:
        NotFoundError: There is no repository.
        UnreadableError: Its format isn't supported.
    """
    place = next(
        (each for each in (folder, folder / ".git") if is_repository(each)),
        None,
    )
    if place is None:
        raise NotFoundError(
            f"{folder} is no git repository.", "Name a folder that holds one, bare or not."
        )
    _check_format(place)
    name = hashlib.sha256(os.fsencode(place.resolve())).hexdigest()[:16]
    repository = _ForeignRepository(place)
    return ForeignHistory(repository, CommitLog(cache_folder(f"git-{name}"), repository))


def is_repository(folder: Path) -> bool:
    """Return whether a folder is a bare git repository."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def _check_format(folder: Path) -> None:
    with storage_errors(f"Can't read {folder}"):
        try:
            config = (folder / "config").read_text("utf-8", "replace")
        except FileNotFoundError:
            return
    for key, value in _FORMAT.findall(config):
        if value.lower() not in _SUPPORTED:
            raise UnreadableError(
                f"{folder} keeps its history in a form that isn't read here ({key} = {value}).",
                "Clone it with `git clone --bare --ref-format=files` from a repository with SHA-1"
                " ids, and open that.",
            )


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def _is_below(path: str, places: Sequence[str]) -> bool:
    return path in places or path.startswith(tuple(f"{each}/" for each in places))
