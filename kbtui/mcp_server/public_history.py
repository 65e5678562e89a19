"""The history as somebody may see it who must not know of private entries.

A version is private if it says so itself, or if what has become of the file is private today: what
a person makes private was meant to be so from the beginning. Of a commit that touched a private
entry and others, only the others are told; the reason that was given for it, which may name any of
them, is left out then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.commit import describe, is_derived
from kbtui.knowledge.entry import parse_entry
from kbtui.workspace.files import checked_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.commit import Actor, Commit, PathChange
    from kbtui.history.diff import FileDiff
    from kbtui.history.history import History
    from kbtui.knowledge.library import Library

_MOST_NAMES = 100  # that one file has had


@dataclass(frozen=True, slots=True)
class PublicCommit:
    """A commit without what is private.

    Attributes:
        commit: The whole of it, which isn't to be shown.
        subject: What happened to the files that may be shown.
        reason: Why; empty where it might tell of others.
        paths: Those files.
        is_whole: Nothing was left out.
    """

    commit: Commit
    subject: str
    reason: str
    paths: tuple[str, ...]
    is_whole: bool


class PublicHistory:
    """What may be shown of a workspace's history."""

    def __init__(self, history: History, library: Library) -> None:
        self._history = history
        self._library = library
        self._gone: tuple[str | None, dict[str, bool]] = (None, {})

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
        """What a commit changed in the files that may be shown."""
        changes = self._history.changes_of(shown.commit.id)
        return tuple(diff for diff in changes if diff.path in shown.paths)

    def find_path(self, ref: str) -> str:
        """The file that has, or once had, a name: a path, or an entry's category/slug.

        Raises:
            NotFoundError: There never was one that may be shown.
        """
        try:
            return self._library.find_path(ref, show_private=False)
        except NotFoundError:
            for candidate in (ref, f"{ref}.md", f"knowledge/{ref}", f"knowledge/{ref}.md"):
                path = checked_path(candidate)
                was_there = next(self._history.log(path, limit=1), None) is not None
                if was_there and not self._hides(path):
                    return path
            raise

    def _shown(self, commit: Commit) -> PublicCommit:
        changes = [change for change in commit.paths if not is_derived(change.path)]
        public = tuple(change for change in changes if not self._is_private(commit, change))
        is_whole = len(public) == len(changes)
        paths = tuple(change.path for change in public)
        subject = commit.subject if is_whole else describe(public)
        # The reason of an undo names all that the undone commit had changed.
        reason = commit.body if is_whole and commit.origin.undoes is None else ""
        return PublicCommit(commit, subject, reason, paths, is_whole)

    def _is_private(self, commit: Commit, change: PathChange) -> bool:
        before = change.old_path or change.path
        if self._hides(change.path) or (before != change.path and self._hides(before)):
            return True
        if change.kind != "deleted" and self._was_private(change.path, commit.id):
            return True
        parent = commit.parent if change.kind != "added" else None
        return parent is not None and self._was_private(before, parent)

    def _was_private(self, path: str, at: str) -> bool:
        if not path.lower().endswith(".md"):
            return False
        try:
            return parse_entry(path, self._history.read(path, at)).private
        except NotFoundError:
            return False

    def _hides(self, path: str) -> bool:
        """Whether a file is private, or what has become of it is, or was at the last."""
        if self._library.info(path) is not None or self._library.is_private(path):
            return self._library.is_private(path)
        head = self._history.head()
        if self._gone[0] != head:
            self._gone = (head, {})
        known = self._gone[1]
        if path not in known:
            known[path] = self._was_hidden_at_last(path)
        return known[path]

    def _was_hidden_at_last(self, path: str) -> bool:
        """The same of a file that isn't there any more, or that isn't on the shelf."""
        seen = {path}
        while len(seen) < _MOST_NAMES:
            last = next(self._history.log(path, limit=1), None)
            if last is None:
                return False
            into = next((c.path for c in last.paths if c.old_path == path != c.path), None)
            if into is None or into in seen:
                at = last.id if path in self._history.tree(last.id) else last.parent
                return at is not None and self._was_private(path, at)
            seen.add(into)
            if self._library.info(into) is not None or self._library.is_private(into):
                return self._library.is_private(into)
            path = into
        return True


def _says(shown: PublicCommit, wanted: str) -> bool:
    return wanted in shown.subject.casefold() or wanted in shown.reason.casefold()
