"""Undo: exactly what one commit, one file or one hunk of it did is taken out again.

What was changed later stays byte for byte. Where the same line was changed again nothing is done,
and both sides are handed to whoever asked; what they decide is handed back with the same request.
An undo is a commit, so it can be undone itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.merging.conflict import Decisions
from kbtui.history.objects.commit import RESTORED, Origin, is_derived
from kbtui.history.undo.revert import Revert
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kbtui.history.looking.log import CommitLog
    from kbtui.history.merging.conflict import Conflict, Resolution
    from kbtui.history.objects.commit import Commit, PathChange
    from kbtui.history.objects.repository import Repository
    from kbtui.history.undo.revert import Edits
    from kbtui.workspace.layout import Layout


_NAMED = 3
_PARTLY = "Undo of a part of "


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The writes of an undo: new contents, what they were computed from, and what it is for."""

    edits: Edits
    before: Edits
    reason: str
    origin: Origin


class Undo:
    """Works out undos for one workspace; writing them is the door's."""

    def __init__(self, layout: Layout, repository: Repository, log: CommitLog) -> None:
        self._layout = layout
        self._repository = repository
        self._log = log

    def of_commit(
        self,
        identifier: str,
        paths: Sequence[str],
        hunk: int | None,
        decisions: Mapping[Conflict, Resolution] | None = None,
    ) -> UndoPlan:
        """Plan the undo of a commit, of some of its paths, or of one hunk.

        Raises:
            UndoConflictError: Lines were changed again.
            UsageError: There is no such path or hunk in the commit, or nothing is left to undo.
        """
        commit = self._log.commit(identifier)
        whole = _chosen(commit, [])
        changes = _chosen(commit, [files.checked_path(path) for path in paths])
        work = Revert(self._layout, self._repository, self._log, Decisions(decisions))
        if hunk is None:
            for change in changes:
                work.take_out(commit, change)
        else:
            work.take_out_hunk(commit, changes, hunk)
        is_whole = hunk is None and changes == whole
        return _plan(work, [commit], "Undo of " if is_whole else _PARTLY)

    def of_several(
        self, commits: Sequence[Commit], decisions: Mapping[Conflict, Resolution] | None = None
    ) -> UndoPlan:
        """Plan the undo of everything that commits changed and that isn't undone yet.

        Args:
            commits: Newest first, as of one turn or one batch.
            decisions: What was decided about conflicts.

        Raises:
            UndoConflictError: Lines were changed again.
            UsageError: Nothing is left to undo.
        """
        left = self._not_undone(commits)
        work = Revert(self._layout, self._repository, self._log, Decisions(decisions))
        for commit in left:
            for change in _chosen(commit, []):
                work.take_out(commit, change)
        return _plan(work, left, "Undo of ")

    def _not_undone(self, commits: Sequence[Commit]) -> list[Commit]:
        """Leave out what was undone whole since, unless that undo was undone in turn."""
        undone: set[str] = set()
        for commit in self._log.since(commits[-1].id):  # newest first
            if commit.id not in undone and not commit.body.startswith(_PARTLY):
                undone.update((commit.origin.undoes or "").split())
        return [commit for commit in commits if commit.id not in undone]


def _plan(work: Revert, commits: Sequence[Commit], doing: str) -> UndoPlan:
    work.check()
    edits = {path: data for path, data in work.edits.items() if data != work.before[path]}
    if not edits and work.kept:
        raise UsageError("Nothing was changed: what stands there now stays.")
    if not edits:
        raise UsageError("Nothing is left to undo: it is all taken back already.")
    named = "; ".join(f"{commit.subject} ({commit.id[:10]})" for commit in commits[:_NAMED])
    if len(commits) > _NAMED:
        named += f"; and {len(commits) - _NAMED} more"
    origin = Origin(undoes=" ".join(commit.id for commit in commits))
    return UndoPlan(edits, work.before, f"{doing}{named}", origin)


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


_CURSORS = "memory/cursors.json"
_ARCHIVE = re.compile(r"memory/(?:history|HISTORY)[^/]*")


@dataclass(frozen=True, slots=True)
class Rewind:
    """The way back to before a change: the blob ids of each file, as it is and as it was.

    Files that don't differ are left out; one that isn't there on a side is missing on it.
    """

    reason: str
    now: Mapping[str, str]
    then: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """Every file that differs."""
        return sorted(self.now.keys() | self.then.keys())


def rewind(repository: Repository, commit: Commit, now: Mapping[str, str]) -> Rewind:
    """Work out what to change so that everything is as it was before a commit.

    Args:
        repository: Where the older state is kept.
        commit: The change in question.
        now: The blob id of every file as it stands in the working tree.

    Raises:
        UsageError: Nothing was recorded before it.
    """
    if commit.parent is None:
        raise UsageError(
            f"{commit.id[:10]} is the first commit: there is nothing before it.",
            "Choose a later one from `kbtui log`.",
        )
    then = repository.files(commit.parent)
    differing = {
        path
        for path in now.keys() | then.keys()
        if now.get(path) != then.get(path) and not is_exempt(path)
    }
    return Rewind(
        f"{RESTORED}{commit.parent[:10]}: everything as it was before {commit.id[:10]}"
        f" ({commit.subject}).",
        {path: blob for path, blob in now.items() if path in differing},
        {path: blob for path, blob in then.items() if path in differing},
    )


def is_exempt(path: str) -> bool:
    """True if a file doesn't go back: it accounts for what happened, or follows from others."""
    if _ARCHIVE.fullmatch(path):
        return True
    return is_derived(path) and path != _CURSORS
