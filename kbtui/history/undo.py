"""Undo: reverts exactly what one commit, or one file or hunk of it, did.

Later changes are kept byte for byte. If the same line was changed again, nothing is done, and the
conflict is returned to the caller, who passes the decision with the same request. An undo is a
commit, so it can be undone itself. Accepting a proposal is the same operation forwards: from its
base to the proposed version. This module only plans; the door writes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbtui.errors import UndoConflictError, UsageError
from kbtui.history.merging.line_merge import Conflict, Decisions, Resolution, Side
from kbtui.history.merging.path_conflicts import resolve_path_conflicts
from kbtui.history.merging.undo_merge import (
    LATER_WINS,
    holds_all_of,
    revert,
    revert_creation,
    split_front,
)
from kbtui.history.objects.commit import (
    REJECTED,
    RESTORED,
    SHIPPED,
    Actor,
    Commit,
    Edits,
    Origin,
    PathChange,
    is_derived,
)
from kbtui.history.objects.repository import Repository
from kbtui.history.queries.diff import diff_file, split_lines, without_hunks
from kbtui.history.queries.log import CommitLog
from kbtui.workspace import files
from kbtui.workspace.files import Decoded
from kbtui.workspace.layout import Layout, short_name

_UNDO_HINT = "Say which side is to stand, or undo the later change first."


class Revert:
    """Reverts changes one after the other in memory.

    Attributes:
        edits: The new content of each path; None for no file.
        before: The content that it was computed from.
    """

    def __init__(
        self,
        layout: Layout,
        repository: Repository,
        log: CommitLog,
        decisions: Decisions,
    ) -> None:
        self._layout = layout
        self._repository = repository
        self._log = log
        self._decisions = decisions
        self.edits: Edits = {}
        self.before: Edits = {}

    @property
    def kept(self) -> bool:
        """Whether a decision kept the current content."""
        return self._decisions.kept

    def check(self) -> None:
        """Check that no conflict is open.

        Raises:
            UndoConflictError: A conflict is open.
        """
        conflicts = self._decisions.open
        if not conflicts:
            return
        paths = tuple(dict.fromkeys(conflict.path for conflict in conflicts))
        count = len(conflicts)
        places = "1 place was" if count == 1 else f"{count} places were"
        raise UndoConflictError(
            f"{places} changed again since, in {', '.join(map(short_name, paths))}.",
            f"Nothing was changed. {_UNDO_HINT}",
            paths=paths,
            conflicts=conflicts,
        )

    def revert(self, commit: Commit, changes: Sequence[PathChange]) -> None:
        """Revert a commit's changes of some paths."""
        former = [change.old_path or change.path for change in changes]
        before = self._repository.blobs_at(commit.parent, former)
        after = self._repository.blobs_at(commit.id, [change.path for change in changes])
        for change, path in zip(changes, former, strict=True):
            old, new = (self._content(blob) for blob in (before[path], after[change.path]))
            self.apply_change(commit.id, change.path, change.old_path, new, old)

    def _content(self, blob: str | None) -> bytes | None:
        return None if blob is None else self._repository.read_blob(blob)

    def apply_change(
        self,
        since: str | None,
        path: str,
        name: str | None,
        written: bytes | None,
        wanted: bytes | None,
    ) -> None:
        """Change a file from one content to another, keeping later changes.

        Args:
            since: The commit after which the file is followed through renames; None to not follow
                it.
            path: The file's path in that commit.
            name: The new path, if it is to be renamed.
            written: The content in that commit; None if there was no file.
            wanted: The content to change it to; None to delete it.
        """
        if written is None:
            self._restore_deleted(since, path, wanted)
        elif wanted is None:
            self._delete_created(since, path, written)
        else:
            there = self._merge(since, path, written, wanted)
            if name is not None:
                self._rename(there, path, name)

    def delete(self, since: str | None, path: str, written: bytes) -> None:
        """Delete a file; it is a conflict if the file was changed since.

        Args:
            since: The commit after which the file is followed through renames; None to not follow
                it.
            path: The file's path in that commit.
            written: The content in that commit.
        """
        path, _, _ = self._follow(since, path)
        now = self._now(path)
        if now is None or _significant(now) == _significant(written):
            self._put(path, None)
        else:
            self._resolve_file(path, written, now, None)

    def revert_hunk(self, commit: Commit, changes: Sequence[PathChange], hunk: int) -> None:
        """Revert one hunk; hunks are numbered from 1 through all files, in their order.

        Raises:
            UsageError: There is no such hunk.
        """
        count = 0
        for change in changes:
            old = self._repository.content_at(commit.parent, change.old_path or change.path)
            new = self._repository.content_at(commit.id, change.path)
            hunks = diff_file(change.path, old, new).hunks
            count += len(hunks)
            if hunk < 1 or hunk > count:
                continue
            if old is None or new is None:
                self.revert(commit, [change])
                return
            chosen = hunks[hunk - 1 - (count - len(hunks))]
            self._merge(commit.id, change.path, new, without_hunks(old, new, [chosen]))
            return
        raise UsageError(f"There is no hunk {hunk}.", f"It has {count}: 1 to {count}.")

    def resolve_path_conflicts(self) -> None:
        """Rename files to resolve conflicts between a file and a folder of the same name."""
        made = {path for path, data in self.edits.items() if data is not None}
        if all(self.before[path] is not None for path in made):
            return
        standing = self._repository.files(self._repository.head()).keys() - self.edits.keys()
        for old, new in resolve_path_conflicts(standing | made).items():
            data = self._now(old)
            self._put(old, None)
            self._put(new, data)

    # File contents

    def _now(self, path: str) -> bytes | None:
        if path in self.edits:
            return self.edits[path]
        data = files.read_if_there(self._layout, path)
        return self.before.setdefault(path, data)

    def _put(self, path: str, data: bytes | None) -> None:
        self._now(path)
        self.edits[path] = data

    def _follow(self, since: str | None, path: str) -> tuple[str, list[bytes], set[str]]:
        """Return a file's current path, its versions since a commit, and which were restored."""
        versions = []
        returned = set()
        for later, change in self._log.later(since, path) if since else ():
            path = change.path
            data = self._repository.content_at(later.id, path)
            if data is not None:
                versions.append(data)
                if later.is_restoration:
                    returned.add(files.text_of(data))
        return path, versions, returned

    # The cases

    def _restore_deleted(self, since: str | None, path: str, old: bytes | None) -> None:
        """Restore a file that the commit had deleted, unless it is back under another name."""
        now = self._now(path)
        if now is None:
            there, _, returned = self._follow(since, path)
            if there != path and files.text_of(old) in returned and self._now(there) is not None:
                self._rename(there, path, path)
            else:
                self._put(path, old)
        elif now != old:
            self._resolve_file(path, None, now, old)

    def _delete_created(self, since: str | None, path: str, new: bytes) -> None:
        """Delete a file that the commit had created, except for what was added to it since."""
        path, versions, returned = self._follow(since, path)
        now = self._now(path)
        if now is None:
            return
        if _significant(now) == _significant(new):
            self._put(path, None)
            return
        texts = [files.decode(data) for data in (new, *versions, now)]
        if not _are_text(texts):
            self._resolve_file(path, new, now, None)
            return
        contents = [text.text for text in texts]
        left = revert_creation(path, contents, self._decisions, returned)
        self._put(path, None if left is None else left.encode(texts[-1].encoding))

    def _merge(self, since: str | None, path: str, new: bytes, old: bytes) -> str:
        """Revert the lines of a file; return its current path."""
        path, versions, returned = self._follow(since, path)
        now = self._now(path)
        if now is None:
            if not _only_adds(new, old):
                self._resolve_file(path, new, None, old)
        elif now == new:
            self._put(path, old)
        elif now != old:
            texts = [files.decode(data) for data in (new, *versions, now, old)]
            if not _are_text(texts):
                self._resolve_file(path, new, now, old)
                return path
            contents = [text.text for text in texts]
            merge = revert(path, contents[:-1], contents[-1], self._decisions, returned)
            self._put(path, merge.text.encode(texts[-2].encoding))
        return path

    def _rename(self, path: str, written: str, wanted: str) -> None:
        """Rename a file, if it still has the name that the commit gave it."""
        content = self._now(path)
        if content is None or path == wanted:
            return
        if path != written or self._now(wanted) not in {None, content}:
            conflict = Conflict(path, 0, written, path, wanted, "name")
            decided = self._decisions.on(conflict)
            if decided is Side.THEIRS and self._now(wanted) is not None:
                raise UsageError(
                    f"{short_name(wanted)} exists already, so {short_name(path)} can't be"
                    " called so.",
                    "Keep the name that it has, or rename the other one first.",
                )
            if decided is not Side.THEIRS:
                return
        self._put(path, None)
        self._put(wanted, content)

    def _resolve_file(
        self, path: str, written: bytes | None, ours: bytes | None, theirs: bytes | None
    ) -> None:
        """Resolve a file as a whole, if its lines can't be merged."""
        was, here, there = map(files.text_of, (written, ours, theirs))
        conflict = Conflict(path, 0, was, here, there, "file")
        if self._decisions.on(conflict) is Side.THEIRS:
            self._put(path, theirs)


def _are_text(texts: Sequence[Decoded]) -> bool:
    return all(text.exact and text.encoding.startswith("utf-8") for text in texts)


def _only_adds(new: bytes, old: bytes) -> bool:
    """Return whether `new` contains all of `old`, so that its additions are gone with the file."""
    texts = files.text_of(old), files.text_of(new)
    before, after = (split_front(text) for text in texts)
    if before is None or after is None:
        return not Counter(split_lines(texts[0])) - Counter(split_lines(texts[1]))
    kept = all(
        key in LATER_WINS or (key in after.units and holds_all_of(after.units[key], unit))
        for key, unit in before.units.items()
    )
    return kept and not Counter(before.body) - Counter(after.body)


def _significant(data: bytes) -> tuple[object, ...] | bytes:
    """Return the parts of an entry to compare: all but the date that the door maintains."""
    front = split_front(files.text_of(data))
    if front is None:
        return data
    units = {key: unit for key, unit in front.units.items() if key not in LATER_WINS}
    return tuple(units.items()), tuple(front.body)


_CURSORS = "memory/cursors.json"
_TOMBSTONES = "memory/tombstones.jsonl"
_ARCHIVE = re.compile(r"memory/(?:history|HISTORY)[^/]*")
_MAX_NAMED = 3
_PARTLY = "Undo of a part of "


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The planned writes of an undo, what they were computed from, and the commit's metadata.

    `restores` is the commit in which the text that comes back stood; None if there was none.
    """

    edits: Edits
    before: Edits
    reason: str
    origin: Origin
    restores: str | None


class Undo:
    """Plans undos for one workspace; the door writes them."""

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
            UsageError: The commit has no such path or hunk, nothing is left to undo, or the commit
                recorded the files as they were found.
        """
        commit = self._log.commit(identifier)
        if commit.is_found:
            raise UsageError(
                "This is how kbtui found your files: taking it back would delete them.",
                "`kbtui delete NOTE` deletes one note, and so does `d` in the app.",
            )
        whole = _chosen(commit, [])
        changes = _chosen(commit, [files.checked_path(path) for path in paths])
        if not changes:
            raise UsageError(
                f"{commit.id[:10]} only says how far Dream has read: it wrote nothing.",
                "What it has read it doesn't read again, whatever is taken back.",
            )
        work = Revert(self._layout, self._repository, self._log, Decisions(decisions))
        if hunk is None:
            work.revert(commit, changes)
        else:
            work.revert_hunk(commit, changes, hunk)
        is_whole = hunk is None and changes == whole
        return _plan(work, [commit], "Undo of " if is_whole else _PARTLY)

    def of_several(
        self, commits: Sequence[Commit], decisions: Mapping[Conflict, Resolution] | None = None
    ) -> UndoPlan:
        """Plan the undo of everything in some commits that isn't undone yet.

        Args:
            commits: The commits, newest first, such as those of one turn or one batch.
            decisions: Decisions about conflicts.

        Raises:
            UndoConflictError: Lines were changed again.
            UsageError: Nothing is left to undo.
        """
        left = self.standing(commits)
        work = Revert(self._layout, self._repository, self._log, Decisions(decisions))
        for commit in left:
            work.revert(commit, _chosen(commit, []))
        return _plan(work, left, "Undo of ")

    def last(self, commits: Iterable[Commit]) -> Commit:
        """Return the newest commit that can be undone: not an undo, and not undone already.

        Automatic commits are skipped (a sync's merge, derived files), and so are edits made with
        another program: nobody should lose those by a single word. The user's own change of nothing
        but the tombstones counts: it forgot something that no file said.

        Raises:
            UsageError: There is none.
        """
        undone: set[str] = set()
        for commit in commits:
            is_own = commit.actor is Actor.SYNC or commit.body == SHIPPED or commit.is_outside
            if commit.id in undone:
                continue
            if commit.origin.undoes is not None:
                if not commit.body.startswith(_PARTLY):
                    undone.update(commit.origin.undoes.split())
            elif not is_own and any(_is_undoable(commit, change) for change in commit.paths):
                return commit
        raise UsageError("There is no change to take back.", "`kbtui log` lists all changes.")

    def standing(self, commits: Sequence[Commit]) -> list[Commit]:
        """Drop commits that were undone completely since, unless that undo was itself undone.

        They are given and returned newest first.
        """
        if not commits:
            return []
        undone: set[str] = set()
        for commit in self._log.since(commits[-1].id):  # newest first
            if commit.id not in undone and not commit.body.startswith(_PARTLY):
                undone.update((commit.origin.undoes or "").split())
        return [commit for commit in commits if commit.id not in undone]


def _is_undoable(commit: Commit, change: PathChange) -> bool:
    # A rejection buries facts as well, but undoing that wouldn't bring the proposal back.
    buried = commit.actor is Actor.YOU and not commit.body.startswith(REJECTED)
    forgot = buried and change.path == _TOMBSTONES
    return forgot or not is_derived(change.path)


def _plan(work: Revert, commits: Sequence[Commit], prefix: str) -> UndoPlan:
    work.check()
    work.resolve_path_conflicts()
    edits = {path: data for path, data in work.edits.items() if data != work.before[path]}
    if not edits and work.kept:
        raise UsageError("Nothing was changed: what stands there now stays.")
    if not edits:
        raise UsageError("Nothing is left to undo: it is all taken back already.")
    named = "; ".join(f"{commit.subject} ({commit.id[:10]})" for commit in commits[:_MAX_NAMED])
    if len(commits) > _MAX_NAMED:
        named += f"; and {len(commits) - _MAX_NAMED} more"
    origin = Origin(undoes=" ".join(commit.id for commit in commits))
    return UndoPlan(edits, work.before, f"{prefix}{named}", origin, commits[-1].parent)


def _chosen(commit: Commit, paths: list[str]) -> list[PathChange]:
    """Return the changes to undo: all, or those of `paths`; derived files follow by themselves.

    How far Dream has read isn't among them: what is taken back stays read.
    """
    changes = [change for change in commit.paths if change.path != _CURSORS]
    if not paths or not changes:
        return [change for change in changes if not is_derived(change.path)] or changes
    chosen = [change for change in changes if {change.path, change.old_path} & set(paths)]
    if not chosen:
        named = ", ".join(short_name(path) for path in paths)
        raise UsageError(f"{commit.id[:10]} did not change {named}.", f"It says: {commit.subject}")
    return chosen


@dataclass(frozen=True, slots=True)
class Rewind:
    """The differences to the state before a change: blob ids by path, as they are and as they were.

    Files that don't differ are left out; a file missing on one side has no entry there.
    """

    reason: str
    now: Mapping[str, str]
    then: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """All paths that differ."""
        return sorted(self.now.keys() | self.then.keys())


def rewind(repository: Repository, commit: Commit, now: Mapping[str, str]) -> Rewind:
    """Compute what to change to restore everything to the state before a commit.

    Args:
        repository: The repository that holds the older state.
        commit: The commit.
        now: The blob id of every file in the working tree.

    Raises:
        UsageError: The commit is the first one.
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
    """Return whether a rewind leaves a file as is: records of events, and derived files."""
    return _ARCHIVE.fullmatch(path) is not None or is_derived(path)
