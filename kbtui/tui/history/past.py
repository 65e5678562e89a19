"""A knowledge base as it was at a commit, for the panes that show one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.knowledge.past import PastLibrary

if TYPE_CHECKING:
    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import SearchResult


class PastSearch:
    """Search in the files of a commit, by meaning as well where their vectors are still there."""

    def __init__(self, kb: KnowledgeBase, at: str) -> None:
        self._kb = kb
        self._at = at

    def search(
        self, query: str, scope: str = "default", limit: int = 10, *, semantic: bool = True
    ) -> SearchResult:
        """Find passages, as `SearchIndex.search` does."""
        return self._kb.search.search(query, scope, limit, semantic=semantic, at=self._at)


class PastKnowledge:
    """Gives readers of a `KnowledgeBase` the state of a commit; nothing of it can be written.

    Attributes:
        now: The knowledge base of today.
        commit: The commit.
    """

    def __init__(self, kb: KnowledgeBase, commit: Commit) -> None:
        self.now = kb
        self.commit = commit
        self.workspace = kb.workspace
        self.history = kb.history
        self.sessions = kb.sessions
        self.library = PastLibrary(kb.history, commit.id, kb.library)
        self.search = PastSearch(kb, commit.id)

    def read(self, path: str) -> bytes:
        """Read a file as it was.

        Raises:
            NotFoundError: It wasn't there.
        """
        return self.library.read(path)
