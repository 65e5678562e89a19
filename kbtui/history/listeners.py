"""Who is told of commits: of those made here, and of what other processes made meanwhile."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.commit import Changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kbtui.history.log import CommitLog
    from kbtui.history.repository import Repository

log = logging.getLogger(__name__)
_NOT_ASKED = ""  # what is newest: a commit, or None in an empty history


class Listeners:
    """The listeners of one history.

    Args:
        repository: Where the commits are.
        commits: What knows who made them.

    Attributes:
        coming: The commit that this process is making, or made last; it tells of that itself.
    """

    def __init__(self, repository: Repository, commits: CommitLog) -> None:
        self.coming: str | None = None
        self._repository = repository
        self._commits = commits
        self._told: str | None = _NOT_ASKED
        self._listeners: list[Callable[[Changed], None]] = []

    def subscribe(self, listener: Callable[[Changed], None]) -> Callable[[], None]:
        """Call `listener` after each commit; returns what ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def note_newest(self) -> None:
        """Take the newest commit for told: it is, or nobody needs to be."""
        self._told = self._repository.head()

    def foreign(self) -> list[Changed]:
        """What others recorded since the listeners were told last, as one event."""
        head, told = self._repository.head(), self._told
        if head in {told, self.coming}:
            return []
        self._told = head
        if head is None or told == _NOT_ASKED:
            return []
        try:
            paths = tuple(path for path, _, _ in self._repository.compare(told, head))
        except NotFoundError:  # a purge has taken it away
            paths = tuple(self._repository.files(head))
        return [Changed(head, paths, self._commits.commit(head).actor)] if paths else []

    def publish(self, events: Iterable[Changed]) -> None:
        """Tell everybody, in this thread."""
        for event in events:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except KbtuiError:
                    # The commit is made; who listens deals with its own troubles.
                    log.exception("a listener failed after commit %s", event.commit)
