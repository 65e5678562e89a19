"""Selection of the branch shown last from a tree of messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kbtui.importers.reading import newest


def branch_of(
    parents: Mapping[str, str], times: Mapping[str, datetime | None], current: str = ""
) -> tuple[list[str], int]:
    """Return the ids from the root to `current`, else the newest leaf, and how many leaves remain.

    `parents` maps every id, in the order of the export, to that of its parent or "". A cycle is
    cut where it closes.
    """
    inner = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in inner] or list(parents)
    if current not in parents:
        current = newest(leaves, [times.get(id_) for id_ in leaves])
    branch: list[str] = []
    seen: set[str] = set()
    node = current
    while node in parents and node not in seen:
        seen.add(node)
        branch.append(node)
        node = parents[node]
    return branch[::-1], sum(id_ not in seen for id_ in leaves)
