"""Selection of what was said from what is recorded: a branch of a tree, one of two notations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from kbtui.importers.port import ImportedMessage, Role
from kbtui.importers.reading import Record, newest

_NO_PARENT = re.compile("[048-]{36}|client-created-root")
"""What exports name as the parent of a first message, in exports that have no such message."""
_NEAR = timedelta(minutes=1)
_MAX_PENDING = 30


def branch_of(
    parents: Mapping[str, str],
    times: Mapping[str, datetime | None],
    current: str = "",
    is_shown: Callable[[str], bool] = lambda _id: True,
) -> tuple[list[str], int]:
    """Return the ids from the root to `current`, else the newest leaf, and how many leaves remain.

    `parents` maps every id, in the order of the export, to that of its parent or "". A parent that
    the export lacks is replaced by what was said before, or stands before in an export without
    times, so that nothing is cut off; a cycle is cut where it closes. A leaf that isn't shown, as
    an answer that broke off, is none: what is above it takes its place.
    """
    if not parents:
        return [], 0
    parents = _without_gaps(_in_time(parents, times))
    if current in parents and not is_shown(current):
        current = _above(current, parents, is_shown)
    children: dict[str, int] = dict.fromkeys(parents, 0)
    for parent in parents.values():
        if parent in children:
            children[parent] += 1
    for id_ in parents:
        while id_ in children and not children[id_] and not is_shown(id_):
            del children[id_]
            id_ = parents[id_]  # noqa: PLW2901 — the leaf above, if this was its only child
            if id_ in children:
                children[id_] -= 1
    leaves = [id_ for id_, count in children.items() if not count] or list(parents)
    if current not in parents:
        current = newest(leaves, [times.get(id_) for id_ in leaves])
    branch: list[str] = []
    seen_ids: set[str] = set()
    node = current
    while node in parents and node not in seen_ids:
        seen_ids.add(node)
        branch.append(node)
        node = parents[node]
    return branch[::-1], sum(id_ not in seen_ids for id_ in leaves)


def parents_of(nodes: Mapping[str, Record], parent: str, children: str) -> dict[str, str]:
    """Return each node's parent by its own field, else by the parent's children; "" if none.

    `parent` and `children` name those fields. A parent that the export lacks is replaced by the
    node that names it among its children.
    """
    listed: dict[str, str] = {}
    for key, node in nodes.items():
        below = node.get(children)
        for child in below if isinstance(below, list) else ():
            if isinstance(child, str) and child != key:
                listed.setdefault(child, key)
    parents: dict[str, str] = {}
    for key, node in nodes.items():
        own = node.text(parent)
        parents[key] = own if own in nodes else listed.get(key) or listed.get(own) or own
    return parents


def _above(id_: str, parents: Mapping[str, str], is_shown: Callable[[str], bool]) -> str:
    """Return the nearest message above that is shown, or "" if there is none."""
    seen = {id_}
    while (id_ := parents.get(id_, "")) and id_ not in seen:
        seen.add(id_)
        if is_shown(id_):
            return id_
    return ""


def _in_time(parents: Mapping[str, str], times: Mapping[str, datetime | None]) -> Mapping[str, str]:
    """Return the ids by time, if a parent is missing: an export may list the newest first.

    One without a time stays behind the one that it stands behind.
    """
    above = parents.values()
    if all(each in parents or not each or _NO_PARENT.fullmatch(each) for each in above):
        return parents
    at: dict[str, datetime] = {}
    last = min(filter(None, times.values()), default=datetime.min.replace(tzinfo=UTC))
    for id_ in parents:
        at[id_] = last = times.get(id_) or last
    return {id_: parents[id_] for id_ in sorted(parents, key=at.__getitem__)}


def _without_gaps(parents: Mapping[str, str]) -> dict[str, str]:
    """Replace each missing parent by the id before, unless that would close a circle."""
    whole = {id_: "" if _NO_PARENT.fullmatch(up) else up for id_, up in parents.items()}
    roots: dict[str, str] = {}
    before = ""
    for id_, parent in whole.items():
        if parent and parent not in parents:
            is_below = not before or _root(before, whole, roots) == id_
            whole[id_] = "" if is_below else before
        before = id_
    return whole


def _root(id_: str, parents: Mapping[str, str], roots: dict[str, str]) -> str:
    """Return the root of a message; `roots` remembers what stands far above those seen before."""
    way: list[str] = []
    seen: set[str] = set()
    while id_ not in seen:
        way.append(id_)
        seen.add(id_)
        above = roots.get(id_) or parents.get(id_, "")
        if above not in parents:
            break
        id_ = above
    roots.update((each, id_) for each in way if each != id_)
    return id_


def one_notation(
    logged: Iterable[tuple[str, ImportedMessage]],
) -> list[ImportedMessage]:
    """Return the messages of a log that may hold each in several notations.

    A message is recorded twice if the same role says the same in another notation, with nothing
    else of that role in between or at about the same time. Then the first record counts.
    """
    found: list[ImportedMessage] = []
    pending: dict[Role, list[tuple[str, ImportedMessage, set[str]]]] = {"user": [], "assistant": []}
    for notation, message in logged:
        text = " ".join(message.text.split())
        for known, first, notations in reversed(pending[message.role]):
            is_near = known == pending[message.role][-1][0] or _are_near(first, message)
            if known == text and notation not in notations and is_near:
                notations.add(notation)
                break
        else:
            found.append(message)
            pending[message.role].append((text, message, {notation}))
            del pending[message.role][:-_MAX_PENDING]
    return found


def _are_near(one: ImportedMessage, other: ImportedMessage) -> bool:
    if one.time is None or other.time is None:
        return False
    return abs(one.time - other.time) <= _NEAR
