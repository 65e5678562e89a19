"""Undo: exactly what one commit, one file or one hunk of it did is taken out again.

What was changed later stays byte for byte. Where the same line was changed again nothing is done,
and both sides are handed to whoever asked; what they decide is handed back with the same request.
An undo is a commit, so it can be undone itself. Accepting a proposal is the same step forwards:
from what it was made from to what it proposes. Plans only; the door writes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbtui.errors import UndoConflictError, UsageError
from kbtui.history.looking.diff import diff_file, split_lines, without_hunks
from kbtui.history.looking.log import CommitLog
from kbtui.history.merging.line_merge import Conflict, Decisions, Resolution, Side
from kbtui.history.merging.undo_merge import (
    LATER_WINS,
    holds_all_of,
    split_front,
    take_out,
    take_out_creation,
)
from kbtui.history.merging.untangling import untangled
from kbtui.history.objects.commit import (
    RESTORED,
    SHIPPED,
    Actor,
    Commit,
    Origin,
    PathChange,
    is_derived,
)
from kbtui.history.objects.repository import Repository
from kbtui.workspace import files
from kbtui.workspace.files import Decoded
from kbtui.workspace.layout import Layout, short_name

Edits = dict[str, "bytes | None"]
_UNDO_HINT = "Say which side is to stand, or undo the later change first."


class Revert:
    """Takes changes out one after the other; nothing is written.

    Attributes:
        edits: What each path will hold; None is no file.
        before: What it was worked out from.
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
        """True if somebody decided for what stands there now."""
        return self._decisions.kept

    def check(self) -> None:
        """Refuse while a conflict is open.

        Raises:
            UndoConflictError: One is.
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

    def take_out(self, commit: Commit, changes: Sequence[PathChange]) -> None:
        """Take out what a commit did to some paths."""
        former = [change.old_path or change.path for change in changes]
        before = self._repository.blobs_at(commit.parent, former)
        after = self._repository.blobs_at(commit.id, [change.path for change in changes])
        for change, path in zip(changes, former, strict=True):
            old, new = (self._content(blob) for blob in (before[path], after[change.path]))
            self.go(commit.id, change.path, change.old_path, new, old)

    def _content(self, blob: str | None) -> bytes | None:
        return None if blob is None else self._repository.read_blob(blob)

    def go(
        self,
        since: str | None,
        path: str,
        name: str | None,
        written: bytes | None,
        wanted: bytes | None,
    ) -> None:
        """Go from one content of a file to another, keeping what was changed in it since.

        Args:
            since: The commit after which the file is followed; None follows nothing.
            path: What the file was called then.
            name: What it is to be called, where that is another name.
            written: What it held; None: there was no file.
            wanted: What it is to hold; None: there is to be none.
        """
        if written is None:
            self._bring_back(since, path, wanted)
        elif wanted is None:
            self._take_away(since, path, written)
        else:
            there = self._merge(since, path, written, wanted)
            if name is not None:
                self._rename(there, path, name)

    def delete(self, since: str | None, path: str, written: bytes) -> None:
        """Take a file away, unless it was changed since: then somebody must say so.

        Args:
            since: The commit after which the file is followed; None follows nothing.
            path: What the file was called then.
            written: What it held.
        """
        path, _, _ = self._follow(since, path)
        now = self._now(path)
        if now is None or _significant(now) == _significant(written):
            self._put(path, None)
        else:
            self._ask_about_file(path, written, now, None)

    def take_out_hunk(self, commit: Commit, changes: Sequence[PathChange], hunk: int) -> None:
        """Take out one hunk; hunks are numbered from 1 through all files, in their order.

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
                self.take_out(commit, [change])
                return
            chosen = hunks[hunk - 1 - (count - len(hunks))]
            self._merge(commit.id, change.path, new, without_hunks(old, new, [chosen]))
            return
        raise UsageError(f"There is no hunk {hunk}.", f"It has {count}: 1 to {count}.")

    def untangle(self) -> None:
        """Give a file another name where what comes back makes a folder of it, or the reverse."""
        made = {path for path, data in self.edits.items() if data is not None}
        if all(self.before[path] is not None for path in made):
            return
        standing = self._repository.files(self._repository.head()).keys() - self.edits.keys()
        for old, new in untangled(standing | made).items():
            data = self._now(old)
            self._put(old, None)
            self._put(new, data)

    # What files hold

    def _now(self, path: str) -> bytes | None:
        if path in self.edits:
            return self.edits[path]
        data = files.read_if_there(self._layout, path)
        return self.before.setdefault(path, data)

    def _put(self, path: str, data: bytes | None) -> None:
        self._now(path)
        self.edits[path] = data

    def _follow(self, since: str | None, path: str) -> tuple[str, list[bytes], set[str]]:
        """Where a file is now, its versions since a commit, and which of them brought back."""
        versions = []
        returned = set()
        for later, change in self._log.later(since, path) if since else ():
            path = change.path
            data = self._repository.content_at(later.id, path)
            if data is not None:
                versions.append(data)
                if later.brings_back:
                    returned.add(files.text_of(data))
        return path, versions, returned

    # The cases

    def _bring_back(self, since: str | None, path: str, old: bytes | None) -> None:
        """Bring back a file that the commit had deleted, unless it is back under another name."""
        now = self._now(path)
        if now is None:
            there, _, returned = self._follow(since, path)
            if there != path and files.text_of(old) in returned and self._now(there) is not None:
                self._rename(there, path, path)
            else:
                self._put(path, old)
        elif now != old:
            self._ask_about_file(path, None, now, old)

    def _take_away(self, since: str | None, path: str, new: bytes) -> None:
        """Take away a file that the commit had created, but for what was added to it since."""
        path, versions, returned = self._follow(since, path)
        now = self._now(path)
        if now is None:
            return
        if _significant(now) == _significant(new):
            self._put(path, None)
            return
        texts = [files.decode(data) for data in (new, *versions, now)]
        if not _are_text(texts):
            self._ask_about_file(path, new, now, None)
            return
        said = [text.text for text in texts]
        left = take_out_creation(path, said, self._decisions, returned)
        self._put(path, None if left is None else left.encode(texts[-1].encoding))

    def _merge(self, since: str | None, path: str, new: bytes, old: bytes) -> str:
        """Bring the lines of a file back; returns the path that it has now."""
        path, versions, returned = self._follow(since, path)
        now = self._now(path)
        if now is None:
            if not _only_adds(new, old):
                self._ask_about_file(path, new, None, old)
        elif now == new:
            self._put(path, old)
        elif now != old:
            texts = [files.decode(data) for data in (new, *versions, now, old)]
            if not _are_text(texts):
                self._ask_about_file(path, new, now, old)
                return path
            said = [text.text for text in texts]
            merge = take_out(path, said[:-1], said[-1], self._decisions, returned)
            self._put(path, merge.text.encode(texts[-2].encoding))
        return path

    def _rename(self, path: str, written: str, wanted: str) -> None:
        """Give a file the name that it is to have, if it still has the one that it had."""
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

    def _ask_about_file(
        self, path: str, written: bytes | None, ours: bytes | None, theirs: bytes | None
    ) -> None:
        """Decide about a file as a whole, where its lines can't be told apart."""
        was, here, there = map(files.text_of, (written, ours, theirs))
        conflict = Conflict(path, 0, was, here, there, "file")
        if self._decisions.on(conflict) is Side.THEIRS:
            self._put(path, theirs)


def _are_text(texts: Sequence[Decoded]) -> bool:
    return all(text.exact and text.encoding.startswith("utf-8") for text in texts)


def _only_adds(new: bytes, old: bytes) -> bool:
    """True if nothing of `old` is missing in `new`: what was added is gone with the file."""
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
    """The parts of an entry that count as changed: all but the date that the door keeps."""
    front = split_front(files.text_of(data))
    if front is None:
        return data
    units = {key: unit for key, unit in front.units.items() if key not in LATER_WINS}
    return tuple(units.items()), tuple(front.body)


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
            UsageError: There is no such path or hunk in the commit, nothing is left to undo, or it
                is how the files were found, before which there is nothing.
        """
        commit = self._log.commit(identifier)
        if commit.is_found:
            raise UsageError(
                "This is how kbtui found your files: taking it back would delete them.",
                "`kbtui delete NOTE` deletes one note, and so does `d` in the app.",
            )
        whole = _chosen(commit, [])
        changes = _chosen(commit, [files.checked_path(path) for path in paths])
        work = Revert(self._layout, self._repository, self._log, Decisions(decisions))
        if hunk is None:
            work.take_out(commit, changes)
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
            work.take_out(commit, _chosen(commit, []))
        return _plan(work, left, "Undo of ")

    def last(self, commits: Iterable[Commit]) -> Commit:
        """The newest of commits that can be taken back: no undo, and none that is undone already.

        What kbtui does by itself isn't meant either (a sync's merge, what follows from others),
        and what somebody did with another program is theirs: nobody may lose it by one word.

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
            elif not is_own and not all(is_derived(change.path) for change in commit.paths):
                return commit
        raise UsageError("There is no change to take back.", "`kbtui log` lists all changes.")

    def _not_undone(self, commits: Sequence[Commit]) -> list[Commit]:
        """Leave out what was undone whole since, unless that undo was undone in turn."""
        undone: set[str] = set()
        for commit in self._log.since(commits[-1].id):  # newest first
            if commit.id not in undone and not commit.body.startswith(_PARTLY):
                undone.update((commit.origin.undoes or "").split())
        return [commit for commit in commits if commit.id not in undone]


def _plan(work: Revert, commits: Sequence[Commit], doing: str) -> UndoPlan:
    work.check()
    work.untangle()
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
