"""Reorders the best hits.

Up for what good ones link with and for what was said next to good ones, down for what repeats a
better one. All are off unless they are set. They look at the same number of passages whatever the
limit is, so the first hits don't depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kbtui.knowledge.links import links_in_body
from kbtui.knowledge.resolve import LinkIndex
from kbtui.search.index import analyser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.rows import ChunkRow

    Scores = NDArray[np.float64]
    Direction = Callable[[int], NDArray[np.float32] | None]
    Found = tuple[int, ChunkRow]

MOST_REORDERED = 50
_SAME_FILE = 0.5  # alike at least, where words are compared


def linked(scores: Scores, best: Sequence[Found], boost: float) -> Scores:
    """What the score of each is multiplied by: 1 and a share of the best one it is linked with.

    Args:
        scores: Of all documents, in 0..1.
        best: Documents with what they say, best first.
        boost: The share, from 0.

    Returns:
        One factor for each of `best`, in 1..1 + `boost`.
    """
    index = LinkIndex({row.path: row for _, row in best}.values())
    highest: dict[str, float] = {}
    for number, row in best:
        highest[row.path] = max(highest.get(row.path, 0.0), float(scores[number]))
    neighbours: dict[str, set[str]] = {path: set() for path in highest}
    for _, row in best:
        for placed in links_in_body(row.text):
            other = index.resolve(placed.link, row.path)
            if other is not None and other != row.path:
                neighbours[row.path].add(other)
                neighbours[other].add(row.path)
    nearest = [max((highest[p] for p in neighbours[row.path]), default=0.0) for _, row in best]
    return 1 + boost * np.asarray(nearest, dtype=np.float64)


def beside(scores: Scores, best: Sequence[Found], boost: float) -> Scores:
    """What the score of each is multiplied by: 1 and a share of the better message beside it.

    What answers a question is often said just before or after what the question's words are in.

    Args:
        scores: Of all documents, in 0..1.
        best: Documents with what they say, best first.
        boost: The share, from 0.

    Returns:
        One factor for each of `best`, in 1..1 + `boost`; 1 for what is no message.
    """
    said_at: dict[tuple[str, int], float] = {}
    for number, row in best:
        for message in row.messages or ():
            place = row.path, message
            said_at[place] = max(said_at.get(place, 0.0), float(scores[number]))

    def nearest(row: ChunkRow) -> float:
        if row.messages is None:
            return 0.0
        first, last = row.messages
        return max(said_at.get((row.path, at), 0.0) for at in (first - 1, last + 1))

    return 1 + boost * np.asarray([nearest(row) for _, row in best], dtype=np.float64)


def spread(scores: Scores, best: Sequence[Found], diversity: float, direction: Direction) -> Scores:
    """What the score of each is multiplied by, so that hits which say the same don't pile up.

    Maximal marginal relevance (Carbonell and Goldstein, 1998), as a factor: each time the one is
    taken whose score is highest after the share `diversity` of its likeness to any taken before.

    Args:
        scores: Of all documents.
        best: Documents with what they say, best first.
        diversity: From 0 (nothing changes) to 1 (a copy of a better hit counts nothing).
        direction: The unit vector of a document, None where it has none.

    Returns:
        One factor for each of `best`, in 0..1.
    """
    given = scores[[number for number, _ in best]]
    likeness = _likeness(best, direction)
    alike = np.zeros(len(best))
    factors = np.ones(len(best))
    left = np.ones(len(best), dtype=np.bool_)
    for _ in best:
        now = np.where(left, given * (1 - diversity * alike), -np.inf)
        taken = int(now.argmax())
        factors[taken] = 1 - diversity * alike[taken]
        left[taken] = False
        alike = np.maximum(alike, likeness[taken])
    return factors


def _likeness(best: Sequence[Found], direction: Direction) -> Scores:
    """How alike each two are, in 0..1: by meaning where both have a vector, else by words."""
    vectors = [direction(number) for number, _ in best]
    words = [frozenset(analyser.telling_terms(row.text)) for _, row in best]
    found = np.eye(len(best))
    for one, (_, row) in enumerate(best):
        for other in range(one):
            mine, theirs = vectors[one], vectors[other]
            if mine is not None and theirs is not None:
                alike = float(np.clip(mine @ theirs, 0, 1))
            else:
                shared = len(words[one] & words[other])
                alike = shared / max(1, len(words[one] | words[other]))
                alike = max(alike, _SAME_FILE if row.path == best[other][1].path else 0.0)
            found[one, other] = found[other, one] = alike
    return found
