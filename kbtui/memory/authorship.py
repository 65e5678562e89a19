"""Who wrote each line of a file, so that no machine changes what a person wrote (decision 7).

Lines are followed through the file's versions, from one commit to the next: what stays or moves
keeps its author, what is new or changed is the commit's. What isn't recorded yet is the user's.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor
from kbtui.history.tracking import follow
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.history import History


@dataclass(frozen=True, slots=True)
class _Version:
    """A file after a commit, with the author of each line."""

    commit: str
    lines: tuple[str, ...]
    authors: tuple[Actor, ...]


class Authorship:
    """Knows the authors of lines; what it has worked out of a file is gone on from."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[str, _Version] = {}
        self._lock = threading.Lock()

    def authors(self, path: str, text: str) -> Sequence[Actor]:
        """Who wrote each line of a text that stands in a file now.

        Args:
            path: The file.
            text: What it says, recorded or not.
        """
        with self._lock:
            recorded = self._recorded(path)
            if recorded is not None:
                self._known[path] = recorded
        lines = tuple(text.splitlines())
        if recorded is None:
            return [Actor.YOU] * len(lines)
        return _carried(recorded.lines, recorded.authors, lines, Actor.YOU)

    def _recorded(self, path: str) -> _Version | None:
        """The newest version on record; None: there is none."""
        known = self._known.get(path)
        version: _Version | None = None
        fresh: list[tuple[str, Actor, str]] = []
        name = path
        for commit in self._history.log(path):
            if known is not None and commit.id == known.commit:
                version = known
                break
            fresh.append((commit.id, commit.actor, self._text(name, commit.id)))
            renamed = next((c for c in commit.paths if c.path == name and c.old_path), None)
            name = renamed.old_path if renamed and renamed.old_path else name
        for identifier, actor, text in reversed(fresh):
            lines = tuple(text.splitlines())
            before = version or _Version("", (), ())
            authors = _carried(before.lines, before.authors, lines, actor)
            version = _Version(identifier, lines, tuple(authors))
        return version

    def _text(self, path: str, commit: str) -> str:
        try:
            return files.decode(self._history.read(path, commit)).text
        except NotFoundError:  # deleted in this commit
            return ""


def _carried(
    old: Sequence[str], authors: Sequence[Actor], new: Sequence[str], writer: Actor
) -> list[Actor]:
    """The authors of `new`: kept and moved lines keep theirs, the others are the writer's."""
    carried = [writer] * len(new)
    if not old or not new:
        return carried
    for fate, author in zip(follow([old, new]), authors, strict=True):
        if fate.state == "same":
            carried[fate.index] = author
    return carried
