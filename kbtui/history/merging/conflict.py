"""Places that can't be undone by themselves, and what somebody decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["line", "key", "place", "file", "name"]


class Side(Enum):
    """Which side of a conflict is to stand."""

    OURS = "ours"
    THEIRS = "theirs"


Resolution = Side | str
"""A side, or the text that is to stand in that place; an empty one takes it away."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that can't be undone by itself.

    Attributes:
        path: The file.
        line: Where it stands now, 1-based; 0 when nothing is left of it, or it is the whole file.
        written: What the change that is to be undone had written.
        ours: What stands there now.
        theirs: What undoing would put there.
        kind: What was changed again: a line, a key of the frontmatter, the place of a line, the
            whole file, its name. The last three can't be given another text.
    """

    path: str
    line: int
    written: str
    ours: str
    theirs: str
    kind: Kind = "line"


class Decisions:
    """Settles conflicts as they come up, and gathers those that nobody has decided.

    A decision holds for exactly the conflict that was shown: where a file has changed since, the
    conflict is another one and is asked about anew.
    """

    def __init__(self, made: Mapping[Conflict, Resolution] | None = None) -> None:
        self._made = dict(made or {})
        self.open: list[Conflict] = []

    @property
    def kept(self) -> bool:
        """True if what stands there now was chosen anywhere."""
        return Side.OURS in self._made.values()

    def on(self, conflict: Conflict) -> Resolution | None:
        """The decision; None where nothing was, and then the conflict stays open."""
        found = self._made.get(conflict)
        if found is None:
            self.open.append(conflict)
        return found

    def text_of(self, conflict: Conflict) -> str | None:
        """The text that is to stand there; None while that is open."""
        decided = self.on(conflict)
        if decided is Side.OURS:
            return conflict.ours
        if decided is Side.THEIRS:
            return conflict.theirs
        return decided if isinstance(decided, str) else None
