"""What Dream did: its changes with their differences, and the ways back (``/dream-log``)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor
from kbtui.history.objects.commit import is_derived
from kbtui.memory.dream.writing import changed_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.history import History
    from kbtui.history.looking.diff import FileDiff
    from kbtui.history.objects.commit import Commit


@dataclass(frozen=True, slots=True)
class DreamChange:
    """One change of Dream's, and what it did to each file."""

    commit: Commit
    diffs: tuple[FileDiff, ...]


class DreamLog:
    """Dream's part of the history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def log(self, limit: int = 10) -> list[Commit]:
        """Its newest changes; runs that only read are left out."""
        return list(islice(self._changes(), limit))

    def show(self, rev: str | None = None) -> DreamChange:
        """One change, the newest unless said otherwise.

        Raises:
            NotFoundError: there is no such commit, or Dream has changed nothing yet.
            UsageError: somebody else made it.
        """
        commit = self._latest() if rev is None else self._dreamt(rev)
        return DreamChange(commit, changed_by(self._history, commit.id))

    def preview(self, rev: str) -> tuple[FileDiff, ...]:
        """What `restore` would change; raises as `show`."""
        return self._history.restore_before_preview(self._dreamt(rev).id)

    def restore(self, rev: str, *, actor: Actor = Actor.YOU) -> Commit | None:
        """Make everything durable what it was before a change of Dream's.

        Dream's cursor goes back as well: it reads again what it had read since. To take back only
        that change there is `History.undo`.

        Returns:
            The commit; None when all of it is so already.

        Raises:
            NotFoundError: there is no such commit.
            UsageError: somebody else made it.
            ConflictError: a file was changed in this moment; nothing is done.
        """
        return self._history.restore_before(self._dreamt(rev).id, actor=actor)

    def _changes(self) -> Iterator[Commit]:
        for commit in self._history.log(actor=Actor.DREAM):
            if not all(is_derived(change.path) for change in commit.paths):
                yield commit

    def _latest(self) -> Commit:
        latest = next(self._changes(), None)
        if latest is None:
            raise NotFoundError("Dream has changed nothing yet.", "`kbtui dream` lets it.")
        return latest

    def _dreamt(self, rev: str) -> Commit:
        commit = self._history.commit(rev)
        if commit.actor is not Actor.DREAM:
            raise UsageError(
                f"{commit.id[:10]} was made by {commit.actor}, not by Dream.",
                "`kbtui restore --to-before` goes back to before any commit.",
            )
        return commit
