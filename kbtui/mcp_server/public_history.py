"""The history as somebody may see it who must not know of private entries.

A version is private if it, or a later one, says so or lies where all is private: what a person
makes private was meant to be so from the beginning. Of a commit that touched a private
entry and others, only the others are told; the reason that was given for it, which may name any of
them, is left out then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbtui.errors import NotFoundError
from kbtui.history.history import History
from kbtui.history.looking.diff import FileDiff
from kbtui.history.objects.commit import Actor, Commit, PathChange, describe, is_derived
from kbtui.knowledge.entries.privacy import says_private
from kbtui.knowledge.library.library import Library
from kbtui.workspace.files import checked_path

_MOST_NAMES = 100  # that one file has had


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
        self._newest_at: tuple[str | None, dict[str, Commit | None]] = (None, {})
        self._known: dict[str, tuple[tuple[str | None, bool], frozenset[str]]] = {}

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
        names = {self._last_name(name) for name in (change.path, change.old_path) if name}
        return any(commit.id in self._hidden(name) for name in names)

    def _hides(self, path: str) -> bool:
        """True if nothing that a file ever said may be shown."""
        path = self._last_name(path)
        newest = self._newest(path)
        return self._library.is_private(path) or (
            newest is not None and newest.id in self._hidden(path)
        )

    def _newest(self, path: str) -> Commit | None:
        head = self._history.head()
        memo = self._newest_at
        if memo[0] != head:
            memo = self._newest_at = (head, {})
        if path not in memo[1]:
            memo[1][path] = next(self._history.log(path, limit=1), None)
        return memo[1][path]

    def _last_name(self, path: str) -> str:
        """The last name of a file, or today's."""
        seen = {path}
        while self._library.info(path) is None and len(seen) < _MOST_NAMES:
            last = self._newest(path)
            changes = last.paths if last is not None else ()
            into = next((c.path for c in changes if c.old_path == path != c.path), None)
            if into is None or into in seen:
                break
            seen.add(into)
            path = into
        return path

    def _hidden(self, path: str) -> frozenset[str]:
        """The commits of a file that touched something private, and all before; or all of them."""
        newest = self._newest(path)
        state = (newest.id if newest else None, self._library.is_private(path))
        known = self._known.get(path)
        if known is None or known[0] != state:
            known = self._known[path] = (state, self._find_hidden(path, is_private=state[1]))
        return known[1]

    def _find_hidden(self, path: str, *, is_private: bool) -> frozenset[str]:
        hidden: list[str] = []
        name = path
        for commit in self._history.log(path):
            change = next((c for c in commit.paths if name in {c.path, c.old_path}), None)
            if change is None:
                continue
            is_private = is_private or self._touches_private(commit, change)
            if is_private:
                hidden.append(commit.id)
            name = change.old_path or name
        return frozenset(hidden)

    def _touches_private(self, commit: Commit, change: PathChange) -> bool:
        """True if a file is private before or after a commit."""
        before = change.old_path or change.path
        return self._was_private(change.path, commit.id) or (
            commit.parent is not None and self._was_private(before, commit.parent)
        )

    def _was_private(self, path: str, at: str) -> bool:
        try:
            return says_private(self._history.read(path, at))
        except NotFoundError:
            return False


def _says(shown: PublicCommit, wanted: str) -> bool:
    return wanted in shown.subject.casefold() or wanted in shown.reason.casefold()
