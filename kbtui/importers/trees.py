"""Messages that know their parents: the branch that a person saw last."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kbtui.importers.reading import newest


def branch_of(
    parents: Mapping[str, str], times: Mapping[str, datetime | None], current: str = ""
) -> tuple[list[str], int]:
    """The ids from the root to `current`, else to the newest leaf; how many other leaves there are.

    `parents` has every id, in the order of the export, with that of its parent or an empty one. A
    circle is cut where it closes.
    """
    inner = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in inner] or list(parents)
    if current not in parents:
        current = newest(leaves, [times.get(id_) for id_ in leaves])
    line: list[str] = []
    seen: set[str] = set()
    at = current
    while at in parents and at not in seen:
        seen.add(at)
        line.append(at)
        at = parents[at]
    return line[::-1], sum(id_ not in seen for id_ in leaves)
