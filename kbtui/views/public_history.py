"""The history for audiences that must not learn about private entries.

A version is private if it, or a later one, is marked private or is in a private folder: what a
person makes private is treated as if it had always been. A line that a private version contained is
never shown in a diff: moving a note out of a private folder reveals its current text, but not what
was removed from it before or since. Of a commit that touched private and other entries, only the
others are shown, without the commit's reason, which may name any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor, Commit, Origin, PathChange, Sink, describe, is_derived
from kbtui.history.history import History, LineOrigin
from kbtui.history.queries.diff import FileDiff, diff_file, split_lines
from kbtui.knowledge.entries.entry import originals, says_private
from kbtui.knowledge.library.library import Library
from kbtui.workspace.files import checked_path, text_of

_WORD = re.compile(r"\w")
_SHORT_ID = 10  # characters of a commit id


@dataclass(frozen=True, slots=True)
class PublicCommit:
    """A commit without private parts; `commit` is the complete one, which isn't to be shown.

    `reason` is empty if it may refer to private entries; `is_whole` if nothing was left out.
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
        # By commit and path of a version: the last path of the file, or empty if it became private.
        self._last_paths: dict[tuple[str, str], str] = {}
        self._private_lines_by_path: dict[str, frozenset[str]] = {}
        self._marked_private: dict[str, bool] = {}

    def log(
        self, path: str | None = None, *, actor: Actor | None = None, text: str | None = None
    ) -> Iterator[PublicCommit]:
        """Yield commits newest first, optionally those of a file or actor, or with a text."""
        for commit in self._history.log(path, actor=actor):
            shown = self._without_private(commit)
            if shown.paths and (text is None or _contains(shown, text.casefold())):
                yield shown

    def commit(self, rev: str) -> PublicCommit:
        """Return one commit.

        Raises:
            NotFoundError: There is none, or nothing of it may be shown.
        """
        shown = self._without_private(self._history.commit(rev))
        if not shown.paths:
            raise NotFoundError(
                f"There is no change {rev!r} that can be shown.", "entry_history lists changes."
            )
        return shown

    def diffs(self, shown: PublicCommit) -> tuple[FileDiff, ...]:
        """Return a commit's diffs of the files that may be shown."""
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
        """Undo a commit of which nothing was left out; otherwise like `History.undo`.

        Raises:
            UsageError: A part of it may not be shown.
        """
        if not shown.is_whole:
            name = shown.commit.id[:_SHORT_ID]
            raise UsageError(
                f"The change {name} can't be undone from here.",
                f"Tell the user: `kbtui undo {name}` takes it back.",
            )
        return self._history.undo(shown.commit.id, actor=actor, origin=origin, sink=sink)

    def find_path(self, ref: str) -> str:
        """Return the file that has, or once had, a name: a path, or an entry's category/slug.

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
        """Return whether a file is private, or ever was under any name; it may be deleted."""
        return self._library.is_private(path) or bool(self._private_lines(path))

    def blame(self, path: str, text: str) -> tuple[LineOrigin, ...]:
        """Return the origins of the lines of a file that is shown, in its current text.

        Those that may not be told of are without their commit.
        """
        return tuple(
            each if self.may_tell_of(each) else LineOrigin(None)
            for each in self._history.blame(path, text=text)
        )

    def may_tell_of(self, origin: LineOrigin) -> bool:
        """Return whether the origin of a line may be shown."""
        if origin.commit is None:
            return True
        commit = self._history.commit(origin.commit)
        changes = [each for each in commit.paths if origin.path in {each.path, each.old_path}]
        return bool(changes) and not any(self._is_private(commit, each) for each in changes)

    def _may_name(self, path: str) -> bool:
        """Return whether a file or folder has any history that may be shown."""
        return any(
            not self._is_private(commit, change)
            for commit in self._history.log(path)
            for change in commit.paths
            if any(f"{name}/".startswith(f"{path}/") for name in (change.path, change.old_path))
        )

    def _without_private(self, commit: Commit) -> PublicCommit:
        changes = [change for change in commit.paths if not is_derived(change.path)]
        # The first commit may have thousands of files: look only at some of them.
        seen = changes[:50]
        public = tuple(change for change in seen if not self._is_private(commit, change))
        is_whole = len(public) == len(changes)
        paths = tuple(change.path for change in public)
        subject = commit.subject if is_whole else describe(public)
        if len(changes) > len(seen):
            subject += f"; and {len(changes) - len(seen):,} more"
        # The reason of an undo names everything that the undone commit changed.
        reason = commit.body if is_whole and commit.origin.undoes is None else ""
        return PublicCommit(commit, subject, reason, paths, is_whole)

    def _is_private(self, commit: Commit, change: PathChange) -> bool:
        """Return whether a file is private before a commit, after it, or in any later version."""
        before = change.old_path or change.path
        if commit.parent is not None and self._was_private(before, commit.parent):
            return True
        return self._becomes_private(commit, change)

    def _becomes_private(self, commit: Commit, change: PathChange) -> bool:
        """Return whether a file as of a commit, in a later version, or today is private."""
        self._refresh()
        last, passed = change.path, [(commit.id, change.path)]
        versions = chain([(commit, change)], self._history.later(commit.id, change.path))
        try:
            for later, then in versions:
                last = then.path
                passed.append((later.id, last))
                if passed[-1] in self._last_paths:
                    last = self._last_paths[passed[-1]]
                    break
                if self._version_is_private(last, then.blob, later.id):
                    last = ""
                    break
        except NotFoundError:  # not on the branch, so its later versions are unknown
            last = ""
        self._last_paths.update(dict.fromkeys(passed, last))
        return not last or self._library.is_private(last)

    def _refresh(self) -> None:
        """Clear the caches if there are new commits."""
        head = self._history.head()
        if head != self._head:
            self._head, self._last_paths, self._private_lines_by_path = head, {}, {}

    def _was_private(self, path: str, at: str) -> bool:
        """Return whether a file existed in a commit and was private."""
        blob = self._history.blob_at(path, at)
        return blob is not None and self._version_is_private(path, blob, at)

    def _version_is_private(self, path: str, blob: str | None, at: str) -> bool:
        """Return whether a file was private in a commit, by path, by text, or as a copy."""
        names = (path, *originals(path))
        return (
            any(map(self._library.is_named_private, names))
            or (blob is not None and self._is_marked_private(blob))
            or any(self._was_private(each, at) for each in names[1:])
        )

    def _is_marked_private(self, blob: str) -> bool:
        if blob not in self._marked_private:
            try:
                self._marked_private[blob] = says_private(self._history.read_blob(blob))
            except NotFoundError:  # purged or damaged
                return True
        return self._marked_private[blob]

    def _without_private_lines(self, diff: FileDiff) -> FileDiff:
        """Compute a diff without lines that a private version contained."""
        hidden = self._private_lines(diff.path)
        if not hidden:
            return diff

        def shown(blob: str | None) -> bytes | None:
            if blob is None:
                return None
            lines = split_lines(text_of(self._history.read_blob(blob)))
            return "".join(line for line in lines if _normalized(line) not in hidden).encode()

        return diff_file(diff.path, shown(diff.old_blob), shown(diff.new_blob), diff.old_path)

    def _private_lines(self, path: str) -> frozenset[str]:
        """Return the lines that any private version of a file contained, under any name."""
        self._refresh()
        if path not in self._private_lines_by_path:
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
                        lines.update(map(_normalized, split_lines(text)))
            self._private_lines_by_path[path] = frozenset(filter(_WORD.search, lines))
        return self._private_lines_by_path[path]


def _normalized(line: str) -> str:
    return " ".join(line.split())


def _contains(shown: PublicCommit, wanted: str) -> bool:
    return wanted in shown.subject.casefold() or wanted in shown.reason.casefold()
