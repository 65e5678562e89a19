"""How commits descend from each other, merges included."""

from __future__ import annotations

import contextlib
import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from kbtui.history.objects.commit import RawCommit
    from kbtui.history.objects.repository import Repository

_OURS, _THEIRS, _BOTH = 1, 2, 3
_PASSED = 4


@dataclass(frozen=True, slots=True)
class Divergence:
    """How two tips are apart.

    Attributes:
        base: The newest commit that both descend from (or are); None: they have no past in common.
        ours: The commits that only our tip descends from, oldest first.
        theirs: The same of theirs.
    """

    base: str | None
    ours: list[tuple[str, RawCommit]]
    theirs: list[tuple[str, RawCommit]]


def diverge(repository: Repository, ours: str | None, theirs: str | None) -> Divergence:
    """See how two tips are apart; a tip that isn't there (None) has nothing in common."""
    if ours is None or theirs is None:
        return Divergence(None, newer(repository, ours), newer(repository, theirs))
    colours = _painted(repository, ours, theirs)
    common = {each for each, colour in colours.items() if colour & _BOTH == _BOTH}
    best = [each for each in common if not colours[each] & _PASSED]
    base = max(best, key=lambda each: (repository.read_commit(each).time, each), default=None)
    return Divergence(
        base, newer(repository, ours, known=common), newer(repository, theirs, known=common)
    )


def _painted(repository: Repository, ours: str, theirs: str) -> dict[str, int]:
    """Carry a colour from both ends towards older commits, as git does to find what is common.

    What gets both colours is common, and what lies below something common is passed.
    """
    colours: dict[str, int] = {}
    waiting: list[tuple[float, str]] = []

    def paint(identifier: str, colour: int) -> None:
        if colours.get(identifier, 0) & colour != colour:
            colours[identifier] = colours.get(identifier, 0) | colour
            moment = repository.read_commit(identifier).time.timestamp()
            heapq.heappush(waiting, (-moment, identifier))

    paint(ours, _OURS)
    paint(theirs, _THEIRS)
    while any(not colours[identifier] & _PASSED for _, identifier in waiting):
        _, identifier = heapq.heappop(waiting)
        colour = colours[identifier]
        if colour & _BOTH == _BOTH:
            colour |= _PASSED
        for parent in repository.read_commit(identifier).parents:
            paint(parent, colour)
    return colours


def newer(
    repository: Repository, tip: str | None, known: Container[str] = ()
) -> list[tuple[str, RawCommit]]:
    """The commits that lead to `tip`, oldest first, without those that are `known`.

    A commit's first line of descent stands before what its other parents bring in, so everything
    that was there at a commit of the first line comes before it. Below a known commit nothing is
    looked at.
    """
    return list(_walk(repository.read_commit, [tip], known)) if tip else []


def everything(repository: Repository) -> list[tuple[str, RawCommit]]:
    """The commits that lead to the branch and to each proposal, parents before their children.

    A proposal whose commit can't be read is left out.
    """
    head = repository.head()
    tips = [head] if head else []
    for commit in repository.proposals.all().values():
        with contextlib.suppress(NotFoundError):
            repository.read_commit(commit)
            tips.append(commit)
    return list(_walk(repository.read_commit, tips, ()))


def _walk(
    read: Callable[[str], RawCommit], tips: Iterable[str], known: Container[str]
) -> Iterator[tuple[str, RawCommit]]:
    seen: set[str] = set()
    work: list[tuple[str, RawCommit, Iterator[str]]] = []

    def enter(identifier: str) -> None:
        if identifier not in seen and identifier not in known:
            seen.add(identifier)
            raw = read(identifier)
            work.append((identifier, raw, iter(raw.parents)))

    for tip in tips:
        enter(tip)
        while work:
            identifier, raw, parents = work[-1]
            parent = next(parents, None)
            if parent is None:
                work.pop()
                yield identifier, raw
            else:
                enter(parent)
