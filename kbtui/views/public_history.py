"""The history as somebody may see it who must not know of private entries.

A version is private if it, or a later one, says so or lies where all is private: what a person
makes private was meant to be so from the beginning. A line that a private version has held is
shown in no difference, for good: who moves a note out of a private folder shows what it says today,
and not what was scrubbed from it before or since. Of a commit that touched a private
entry and others, only the others are told; the reason that was given for it, which may name any of
them, is left out then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor, Commit, Origin, PathChange, Sink, describe, is_derived
from kbtui.history.history import History
from kbtui.history.looking.diff import FileDiff, diff_file, split_lines
from kbtui.knowledge.entries.entry import originals, says_private
from kbtui.knowledge.library.library import Library
from kbtui.workspace.files import checked_path, text_of

if TYPE_CHECKING:
    from kbtui.history.history import LineOrigin

_WORD = re.compile(r"\w")
_SHORT = 10  # characters of a commit's name


@dataclass(frozen=True, slots=True)
class PublicCommit:
    """A commit without what is private: `commit` is the whole of it, which isn't to be shown.

    `reason` is empty where it might tell of others; `is_whole`: nothing was left out.
    """

    commit: Commit
    subject: str
    reason: str
    paths: tuple[str, ...]
    is_whole: bool


class PublicHistory:
    """The part of a workspace's history that may be shown."""

    def __init__(self, history: History, library: Library) -> None:
        self._history = history
        self._library = library
        self._head: str | None = None
        # Of a version, by commit and path: the last name of the file; empty: it became private.
        self._ends: dict[tuple[str, str], str] = {}
        self._lines: dict[str, frozenset[str]] = {}
        self._said: dict[str, bool] = {}

    def log(
        self, path: str | None = None, *, actor: Actor | None = None, text: str | None = None
    ) -> Iterator[PublicCommit]:
        """Yield commits newest first: all, or those of a file, an actor, or with a text."""
        for commit in self._history.log(path, actor=actor):
            shown = self._shown(commit)
            if shown.paths and (text is None or _says(shown, text.casefold())):
                yield shown

    def commit(self, rev: str) -> PublicCommit:
        """One commit.

        Raises:
            NotFoundError: There is none, or nothing of it may be shown.
        """
        shown = self._shown(self._history.commit(rev))
        if not shown.paths:
            raise NotFoundError(
                f"There is no change {rev!r} that can be shown.", "entry_history lists changes."
            )
        return shown

    def diffs(self, shown: PublicCommit) -> tuple[FileDiff, ...]:
        """A commit's changes in the files that may be shown."""
        commit = shown.commit
        names = [
            name
            for change in commit.paths
            if change.path in shown.paths
            for name in (change.path, change.old_path)
            if name
        ]
        changes = self._history.diff(commit.parent, commit.id, names)
        return tuple(
            self._without_private_lines(diff) for diff in changes if diff.path in shown.paths
        )

    def undo(
        self, shown: PublicCommit, *, actor: Actor, origin: Origin, sink: Sink | None = None
    ) -> Commit | None:
        """Undo a commit of which nothing is left out; else as `History.undo`.

        Raises:
            UsageError: something of it may not be shown.
        """
        if not shown.is_whole:
            name = shown.commit.id[:_SHORT]
            raise UsageError(
                f"The change {name} can't be undone from here.",
                f"Tell the user: `kbtui undo {name}` takes it back.",
            )
        return self._history.undo(shown.commit.id, actor=actor, origin=origin, sink=sink)

    def find_path(self, ref: str) -> str:
        """The file that has, or once had, a name: a path, or an entry's category/slug.

        Raises:
            NotFoundError: There never was one that may be shown.
        """
        try:
            return self._library.public.find_path(ref)
        except NotFoundError:
            for candidate in (ref, f"{ref}.md", f"knowledge/{ref}", f"knowledge/{ref}.md"):
                path = checked_path(candidate)
                if self._may_name(path):
                    return path
            raise

    def has_private_past(self, path: str) -> bool:
        """True if a file is private, or once was, by whichever name; it may be gone."""
        return self._library.is_private(path) or bool(self._private_lines(path))

    def may_tell_of(self, origin: LineOrigin) -> bool:
        """True if it may be said how a line came to be where it was written."""
        if origin.commit is None:
            return True
        commit = self._history.commit(origin.commit)
        changes = [each for each in commit.paths if origin.path in {each.path, each.old_path}]
        return bool(changes) and not any(self._is_private(commit, each) for each in changes)

    def _may_name(self, path: str) -> bool:
        """True if something of a file, or of a folder, was once there that may be shown."""
        return any(
            not self._is_private(commit, change)
            for commit in self._history.log(path)
            for change in commit.paths
            if any(f"{name}/".startswith(f"{path}/") for name in (change.path, change.old_path))
        )

    def _shown(self, commit: Commit) -> PublicCommit:
        changes = [change for change in commit.paths if not is_derived(change.path)]
        # Of a commit of thousands of files, as the first one may be, only some are looked at.
        seen = changes[:50]
        public = tuple(change for change in seen if not self._is_private(commit, change))
        is_whole = len(public) == len(changes)
        paths = tuple(change.path for change in public)
        subject = commit.subject if is_whole else describe(public)
        if len(changes) > len(seen):
            subject += f"; and {len(changes) - len(seen):,} more"
        # The reason of an undo names all that the undone commit had changed.
        reason = commit.body if is_whole and commit.origin.undoes is None else ""
        return PublicCommit(commit, subject, reason, paths, is_whole)

    def _is_private(self, commit: Commit, change: PathChange) -> bool:
        """True if a file is private before a commit, after it, or ever since."""
        before = change.old_path or change.path
        if commit.parent is not None and self._was_private(before, commit.parent):
            return True
        return self._becomes_private(commit, change)

    def _becomes_private(self, commit: Commit, change: PathChange) -> bool:
        """True if what a commit left of a file is private, or a later version or today's is."""
        self._catch_up()
        last, passed = change.path, [(commit.id, change.path)]
        versions = chain([(commit, change)], self._history.later(commit.id, change.path))
        try:
            for later, then in versions:
                last = then.path
                passed.append((later.id, last))
                if passed[-1] in self._ends:
                    last = self._ends[passed[-1]]
                    break
                if self._version_is_private(last, then.blob, later.id):
                    last = ""
                    break
        except NotFoundError:  # it isn't on the branch, so nobody knows what became of it
            last = ""
        self._ends.update(dict.fromkeys(passed, last))
        return not last or self._library.is_private(last)

    def _catch_up(self) -> None:
        """Forget what no longer holds once there are more commits."""
        head = self._history.head()
        if head != self._head:
            self._head, self._ends, self._lines = head, {}, {}

    def _was_private(self, path: str, at: str) -> bool:
        """True if there was a file in a commit, and it was private."""
        blob = self._history.blob_at(path, at)
        return blob is not None and self._version_is_private(path, blob, at)

    def _version_is_private(self, path: str, blob: str | None, at: str) -> bool:
        """True if a file is private as it was in a commit: by its name, its text, or as a copy."""
        names = (path, *originals(path))
        return (
            any(map(self._library.is_named_private, names))
            or (blob is not None and self._says(blob))
            or any(self._was_private(each, at) for each in names[1:])
        )

    def _says(self, blob: str) -> bool:
        if blob not in self._said:
            try:
                self._said[blob] = says_private(self._history.read_blob(blob))
            except NotFoundError:  # purged, or damaged
                return True
        return self._said[blob]

    def _without_private_lines(self, diff: FileDiff) -> FileDiff:
        """A difference as if no version had held the lines that a private one has held."""
        hidden = self._private_lines(diff.path)
        if not hidden:
            return diff

        def shown(blob: str | None) -> bytes | None:
            if blob is None:
                return None
            lines = split_lines(text_of(self._history.read_blob(blob)))
            return "".join(line for line in lines if _key(line) not in hidden).encode()

        return diff_file(diff.path, shown(diff.old_blob), shown(diff.new_blob), diff.old_path)

    def _private_lines(self, path: str) -> frozenset[str]:
        """The lines that a private version of a file has held, by whichever name."""
        self._catch_up()
        if path not in self._lines:
            names, lines = {path}, set[str]()
            for commit in self._history.log(path):
                for change in commit.paths:
                    if names.isdisjoint({change.path, change.old_path}):
                        continue
                    names.update({change.path, change.old_path or change.path})
                    if change.blob and self._version_is_private(
                        change.path, change.blob, commit.id
                    ):
                        text = text_of(self._history.read_blob(change.blob))
                        lines.update(map(_key, split_lines(text)))
            self._lines[path] = frozenset(filter(_WORD.search, lines))
        return self._lines[path]


def _key(line: str) -> str:
    return " ".join(line.split())


def _says(shown: PublicCommit, wanted: str) -> bool:
    return wanted in shown.subject.casefold() or wanted in shown.reason.casefold()
