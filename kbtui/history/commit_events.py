"""Events of commits: of those made here, and of what other processes made meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.objects.commit import Changed
from kbtui.listeners import Listeners

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.history.looking.log import CommitLog
    from kbtui.history.objects.repository import Repository

_NOT_ASKED = ""  # what is newest: a commit, or None in an empty history


class CommitEvents:
    """Tells the listeners of one history.

    Args:
        repository: Where the commits are.
        commits: What knows who made them.

    Attributes:
        listeners: Who is told.
        coming: The commit that this process is making, or made last; it tells of that itself.
    """

    def __init__(self, repository: Repository, commits: CommitLog) -> None:
        self.listeners: Listeners[Changed] = Listeners()
        self.coming: str | None = None
        self._repository = repository
        self._commits = commits
        self._told: str | None = _NOT_ASKED

    def note_newest(self) -> None:
        """Take the newest commit for told: it is, or nobody needs to be."""
        self._told = self._repository.head()

    def foreign(self) -> list[Changed]:
        """The commits of others since the listeners were told last, as one event."""
        head, told = self._repository.head(), self._told
        if head in {told, self.coming}:
            return []
        self._told = head
        if head is None or told == _NOT_ASKED:
            return []
        try:
            paths = {path for path, _, _ in self._repository.compare(told, head)}
        except NotFoundError:  # a purge has taken it away
            paths = set(self._repository.files(head))
        actor = self._commits.commit(head).actor
        return [Changed(head, tuple(sorted(paths)), actor)] if paths else []

    def publish(self, events: Iterable[Changed]) -> None:
        """Tell everybody, in this thread."""
        for event in events:
            self.listeners.tell(event)
