"""Undo: exactly what one commit, one file or one hunk of it did is taken out again.

What was changed later stays byte for byte. Where the same line was changed again nothing is done,
and both sides are handed to whoever asked. An undo is a commit, so it can be undone itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UndoConflictError, UsageError
from kbtui.history.commit import Origin, is_derived
from kbtui.history.diff import diff_file, split_lines
from kbtui.history.front_keys import split_front
from kbtui.history.merge import Conflict, take_out
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.history.commit import Commit, PathChange
    from kbtui.history.log import CommitLog
    from kbtui.history.repository import Repository

Edits = dict[str, "bytes | None"]


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo writes: new contents, what they were computed from, and what it is for."""

    edits: Edits
    before: Edits
    reason: str
    origin: Origin


class Undo:
    """Works out undos for one workspace; writing them is the door's."""

    def __init__(self, root: Path, repository: Repository, log: CommitLog) -> None:
        self._root = root
        self._repository = repository
        self._log = log

    def of_commit(self, identifier: str, paths: Sequence[str], hunk: int | None) -> UndoPlan:
        """Plan the undo of a commit, of some of its paths, or of one hunk.

        Raises:
            UndoConflictError: Lines were changed again.
            UsageError: There is no such path or hunk in the commit, or nothing is left to undo.
        """
        commit = self._log.commit(identifier)
        changes = _chosen(commit, [files.checked_path(path) for path in paths])
        work = _Work(self._root, self._repository, self._log)
        if hunk is None:
            for change in changes:
                work.take_out(commit, change)
        else:
            work.take_out_hunk(commit, changes, hunk)
        return work.plan([commit])

    def of_turn(self, turn: str) -> UndoPlan:
        """Plan the undo of everything that a turn changed and that isn't undone yet.

        Raises:
            NotFoundError: The turn changed nothing.
            UndoConflictError: Lines were changed again.
            UsageError: Nothing is left to undo.
        """
        commits = self._not_undone(self._log.commits_of_turn(turn))
        work = _Work(self._root, self._repository, self._log)
        for commit in commits:
            for change in _chosen(commit, []):
                work.take_out(commit, change)
        return work.plan(commits)

    def _not_undone(self, commits: list[Commit]) -> list[Commit]:
        """Leave out what was undone since, unless that undo was undone in turn."""
        undone: set[str] = set()
        for commit in self._log.since(commits[-1].id):  # newest first
            for target in (commit.origin.undoes or "").split():
                if commit.id not in undone:
                    undone.add(target)
        return [commit for commit in commits if commit.id not in undone]


def _chosen(commit: Commit, paths: list[str]) -> list[PathChange]:
    """The changes to undo: all, or those of `paths`; what is generated follows by itself."""
    if not paths:
        written = [change for change in commit.paths if not is_derived(change.path)]
        return written or list(commit.paths)
    chosen = [change for change in commit.paths if {change.path, change.old_path} & set(paths)]
    if not chosen:
        named = ", ".join(short_name(path) for path in paths)
        raise UsageError(f"{commit.id[:10]} did not change {named}.", f"It says: {commit.subject}")
    return chosen


class _Work:
    """One undo in the making: contents as they will be, on top of the files as they are."""

    def __init__(self, root: Path, repository: Repository, log: CommitLog) -> None:
        self._root = root
        self._repository = repository
        self._log = log
        self._edits: Edits = {}
        self._before: Edits = {}
        self._conflicts: list[Conflict] = []

    def plan(self, commits: list[Commit]) -> UndoPlan:
        if self._conflicts:
            raise self._refusal()
        edits = {path: data for path, data in self._edits.items() if data != self._before[path]}
        if not edits:
            raise UsageError("Nothing is left to undo: it is all taken back already.")
        named = "; ".join(f"{commit.subject} ({commit.id[:10]})" for commit in commits)
        origin = Origin(undoes=" ".join(commit.id for commit in commits))
        return UndoPlan(edits, self._before, f"Undo of {named}", origin)

    def take_out(self, commit: Commit, change: PathChange) -> None:
        """Take out what a commit did to one path."""
        old = self._recorded(commit.parent, change.old_path or change.path)
        new = self._recorded(commit.id, change.path)
        if new is None:
            self._bring_back(change.path, old)
        elif old is None:
            self._take_away(commit, change.path, new)
        else:
            self._restore_lines(commit, change, new, old)

    def take_out_hunk(self, commit: Commit, changes: list[PathChange], hunk: int) -> None:
        """Take out one hunk; hunks are numbered from 1 through all files, in their order."""
        count = 0
        for change in changes:
            old = self._recorded(commit.parent, change.old_path or change.path)
            new = self._recorded(commit.id, change.path)
            hunks = diff_file(change.path, old, new).hunks
            count += len(hunks)
            if hunk < 1 or hunk > count:
                continue
            if old is None or new is None:
                self.take_out(commit, change)
                return
            chosen = hunks[hunk - 1 - (count - len(hunks))]
            before, after = (split_lines(files.decode(data).text) for data in (old, new))
            start, first = chosen.new_start - 1, chosen.old_start - 1
            if not chosen.new_count:
                start += 1
            if not chosen.old_count:
                first += 1
            after[start : start + chosen.new_count] = before[first : first + chosen.old_count]
            self._merge(commit, change.path, new, "".join(after).encode())
            return
        raise UsageError(f"There is no hunk {hunk}.", f"It has {count}: 1 to {count}.")

    def _recorded(self, commit: str | None, path: str) -> bytes | None:
        blob = self._repository.blob_at(commit, path)
        return None if blob is None else self._repository.read_blob(blob)

    def _now(self, path: str) -> bytes | None:
        if path in self._edits:
            return self._edits[path]
        data = files.read_bytes(self._root, path) if files.exists(self._root, path) else None
        return self._before.setdefault(path, data)

    def _put(self, path: str, data: bytes | None) -> None:
        self._now(path)
        self._edits[path] = data

    def _bring_back(self, path: str, old: bytes | None) -> None:
        now = self._now(path)
        if now is None:
            self._put(path, old)
        elif now != old:
            self._refuse(path, "", _text(now), _text(old))

    def _take_away(self, commit: Commit, path: str, new: bytes) -> None:
        """Remove a file that the commit had created, unless it was changed since."""
        path, _ = self._follow(commit, path)
        now = self._now(path)
        if now is None:
            return
        if _significant(now) == _significant(new):
            self._put(path, None)
        else:
            self._refuse(path, _text(new), _text(now), "")

    def _restore_lines(self, commit: Commit, change: PathChange, new: bytes, old: bytes) -> None:
        path = self._merge(commit, change.path, new, old)
        if change.old_path is None:
            return
        if path != change.path or self._now(change.old_path) not in {None, self._now(path)}:
            self._refuse(path, change.path, path, change.old_path)
            return
        content = self._now(path)
        self._put(path, None)
        self._put(change.old_path, content)

    def _merge(self, commit: Commit, path: str, new: bytes, old: bytes) -> str:
        """Bring the lines of a file back; returns the path that it has now."""
        path, versions = self._follow(commit, path)
        now = self._now(path)
        if now is None:
            self._refuse(path, _text(new), "", _text(old))
        elif now == new:
            self._put(path, old)
        elif now != old:
            texts = [files.decode(data) for data in (new, *versions, now, old)]
            if not all(text.exact and text.encoding.startswith("utf-8") for text in texts):
                self._refuse(path, _text(new), _text(now), _text(old))
                return path
            merge = take_out(path, [text.text for text in texts[:-1]], texts[-1].text)
            self._conflicts += merge.conflicts
            self._put(path, merge.text.encode(texts[-2].encoding))
        return path

    def _follow(self, commit: Commit, path: str) -> tuple[str, list[bytes]]:
        """Where a file is now, and every version that it had since the commit."""
        versions = []
        for later, change in self._log.later(commit.id, path):
            path = change.path
            data = self._recorded(later.id, path)
            if data is not None:
                versions.append(data)
        return path, versions

    def _refuse(self, path: str, written: str, ours: str, theirs: str) -> None:
        self._conflicts.append(Conflict(path, 0, written, ours, theirs))

    def _refusal(self) -> UndoConflictError:
        paths = tuple(dict.fromkeys(conflict.path for conflict in self._conflicts))
        count = len(self._conflicts)
        places = "1 place was" if count == 1 else f"{count} places were"
        return UndoConflictError(
            f"{places} changed again since, in {', '.join(map(short_name, paths))}.",
            "Nothing was changed. Undo the later change first, or edit the file by hand.",
            paths=paths,
            conflicts=self._conflicts,
        )


def _text(data: bytes | None) -> str:
    return files.decode(data or b"").text


def _significant(data: bytes) -> tuple[object, ...] | bytes:
    """What of an entry counts as changed: all but the date that the door keeps."""
    front = split_front(_text(data))
    if front is None:
        return data
    units = {key: unit for key, unit in front.units.items() if key != "updated"}
    return tuple(units.items()), tuple(front.body)


def read_version(repository: Repository, commit: str, path: str) -> bytes:
    """Read a file as it was in a commit.

    Raises:
        NotFoundError: There was no such file.
    """
    blob = repository.blob_at(commit, path)
    if blob is None:
        raise NotFoundError(
            f"{short_name(path)} did not exist in {commit[:10]}.",
            f"`kbtui log {short_name(path)}` shows where it did.",
        )
    return repository.read_blob(blob)
