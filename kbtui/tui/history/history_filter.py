"""What is typed into the filter of the history, understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.looking.reading import HistoryReader
    from kbtui.history.objects.commit import Actor, Commit


class HistoryFilter(NamedTuple):
    """Which commits are wanted: words, an actor, a part of a path, one path."""

    words: tuple[str, ...]
    actor: Actor | None
    path: str | None

    @property
    def text(self) -> str:
        """The words, as one text; empty where nothing is filtered."""
        return " ".join(self.words) or (str(self.actor) if self.actor else "")

    def commits(self, history: HistoryReader) -> Iterator[Commit]:
        """The commits, newest first, read as they are taken."""
        found = history.log(self.path, actor=self.actor)
        if not self.words:
            return found
        return (commit for commit in found if self._matches(commit))

    def _matches(self, commit: Commit) -> bool:
        paths = " ".join(change.path for change in commit.paths)
        text = f"{commit.subject} {commit.body} {paths} {commit.id}".casefold()
        return all(word in text for word in self.words)


def parse_filter(text: str, path: str | None = None) -> HistoryFilter:
    """Read a filter: an actor's name as its own word means the actor, all else is searched."""
    from kbtui.history.objects.commit import Actor

    actors = {str(actor): actor for actor in Actor}
    words = text.casefold().split()
    actor = next((actors[word.lstrip("@")] for word in words if word.lstrip("@") in actors), None)
    rest = tuple(word for word in words if actor is None or word.lstrip("@") != str(actor))
    return HistoryFilter(rest, actor, path)
