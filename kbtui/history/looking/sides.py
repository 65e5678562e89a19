"""The other sides of merges: commits that no walk along first parents meets.

The log's table holds the branch itself, each commit and its first parent. What a merge brought in
is walked through when somebody asks, from its other parents down to where the branch is met.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kbtui.history.objects.commit import RawCommit
    from kbtui.history.objects.repository import Repository


class Sides:
    """Walks the other sides of merges.

    Args:
        repository: Where the commits are.
        is_on_branch: Whether a commit is on the branch, where walking ends.
    """

    def __init__(self, repository: Repository, is_on_branch: Callable[[str], bool]) -> None:
        self._repository = repository
        self._is_on_branch = is_on_branch

    def commits(self, tips: Sequence[str], seen: set[str]) -> Iterator[tuple[str, RawCommit]]:
        """Yield what only the other parents of a merge lead to, newest first.

        Args:
            tips: The other parents.
            seen: Commits to leave out; what is yielded is added.
        """
        waiting: list[tuple[float, int, str, RawCommit]] = []

        def add(identifiers: Sequence[str]) -> None:
            for identifier in identifiers:
                if identifier not in seen and not self._is_on_branch(identifier):
                    seen.add(identifier)
                    raw = self._repository.read_commit(identifier)
                    # Of the same second, what was met first is newer.
                    heappush(waiting, (-raw.time.timestamp(), len(seen), identifier, raw))

        add(tips)
        while waiting:
            _, _, identifier, raw = heappop(waiting)
            yield identifier, raw
            add(raw.parents)

    def way(self, start: str, tips: Sequence[str]) -> list[str] | None:
        """The commits that lead from `start` (left out) to one of `tips`, oldest first.

        None where `start` isn't among what the tips bring in.
        """
        child: dict[str, str | None] = dict.fromkeys(tips)
        for identifier, raw in self.commits(tips, set()):
            if identifier == start:
                break
            for parent in raw.parents:
                child.setdefault(parent, identifier)
        else:
            return None
        way: list[str] = []
        following = child[start]
        while following is not None:
            way.append(following)
            following = child[following]
        return way
