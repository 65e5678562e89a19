"""Taking one change out of a text that was changed again since.

A three-way merge by line in which lines are followed through every version in between, so two
bullets added one below the other by different changes don't conflict. Frontmatter keys are units
of their own. A conflict is only where the same line or key was changed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.history.looking.diff import split_lines
from kbtui.history.merging.conflict import Conflict, Decisions
from kbtui.history.merging.front_keys import Front, merge_lists, split_front
from kbtui.history.merging.line_merge import LineMerge

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["Conflict", "Merge", "take_out", "take_out_creation"]

LATER_WINS = frozenset({"updated"})
"""Keys that follow every change by themselves."""

_Unit = tuple[str, ...]


@dataclass(slots=True)
class Merge:
    """The text without the change, and the places where that wasn't possible."""

    text: str = ""
    conflicts: list[Conflict] = field(default_factory=list)


def take_out(
    path: str,
    versions: Sequence[str],
    target: str,
    decisions: Decisions | None = None,
    returned: Collection[str] = (),
) -> Merge:
    """Undo the step from `target` to the first of `versions` in the last of them.

    Args:
        path: The file, for conflicts.
        versions: What the change wrote, every later version in order, and what stands there now.
        target: What had been there before the change.
        decisions: What was decided about conflicts; it also takes those that are open.
        returned: The versions that an undo or a restore wrote.
    """
    if versions[0] == versions[-1]:
        return Merge(target)
    decisions = decisions or Decisions()
    known = len(decisions.open)
    versions = without_detours(versions)
    returns = {number for number, text in enumerate(versions) if text in returned}
    fronts = [split_front(text) for text in versions]
    before, base, ours = split_front(target), fronts[0], fronts[-1]
    if before is None or base is None or ours is None:
        lines = [split_lines(text) for text in versions]
        text = LineMerge(path, lines, split_lines(target), 0, decisions, returns).merge()
    else:
        head = _merge_keys(path, base, before, ours, decisions)
        offset = len(ours.lines())
        bodies = _bodies(fronts, versions)
        text = head + LineMerge(path, bodies, before.body, offset, decisions, returns).merge()
    return Merge(text, decisions.open[known:])


def take_out_creation(
    path: str, versions: Sequence[str], decisions: Decisions, returned: Collection[str] = ()
) -> str | None:
    """Take the lines that created a file out of what it has become.

    What was added later stays, and with it the frontmatter and the headings that it stands under.

    Args:
        path: The file, for conflicts.
        versions: The file as it was created, every later version in order, and as it is now.
        decisions: What was decided about conflicts; it also takes those that are open.
        returned: The versions that an undo or a restore wrote.

    Returns:
        What is left; None when that is nothing.
    """
    versions = without_detours(versions)
    returns = {number for number, text in enumerate(versions) if text in returned}
    fronts = [split_front(text) for text in versions]
    made, now = fronts[0], fronts[-1]
    if made is None or now is None:
        lines = [split_lines(text) for text in versions]
        text = LineMerge(path, lines, [], 0, decisions, returns).merge(keep_headings=True)
        return text if text.strip() else None
    bodies = _bodies(fronts, versions)
    merge = LineMerge(path, bodies, [], len(now.lines()), decisions, returns)
    body = merge.merge(keep_headings=True)
    units: dict[str, _Unit] | None = now.units
    if not body.strip() and not now.units.keys() - made.units.keys():
        units = _kept_keys(path, made, now, decisions)
    if units is None:
        return None
    return "".join(Front(now.opening, units, now.closing, []).lines()) + body


def _kept_keys(path: str, made: Front, now: Front, decisions: Decisions) -> dict[str, _Unit] | None:
    """The frontmatter of a file of which only later changes to it are left, if one is to stay."""
    kept: dict[str, _Unit] = {}
    for key, unit in now.units.items():
        if key in LATER_WINS or _same(unit, made.units[key]):
            continue
        text = decisions.text_of(
            Conflict(path, _line_of(now, key), _shown(made.units[key]), _shown(unit), "", "key")
        )
        if text:
            kept[key] = _unit_of(text)
    return {**now.units, **kept} if kept else None


def without_detours(versions: Sequence[str]) -> list[str]:
    """Leave out what led back to where it came from: an undo and its undo move no line."""
    way: dict[str, None] = {}
    for version in versions:
        if version in way:
            while next(reversed(way)) != version:
                way.popitem()
        else:
            way[version] = None
    return list(way)


def _bodies(fronts: Sequence[Front | None], versions: Sequence[str]) -> list[list[str]]:
    return [
        front.body if front else split_lines(text)
        for front, text in zip(fronts, versions, strict=True)
    ]


def _merge_keys(path: str, base: Front, target: Front, ours: Front, decisions: Decisions) -> str:
    merged = dict(ours.units)
    order = list(target.units)
    for key in dict.fromkeys([*target.units, *base.units]):
        was, wanted, now = base.units.get(key), target.units.get(key), ours.units.get(key)
        if _same(was, wanted) or _same(now, wanted):
            continue
        if not _same(now, was):
            both = merge_lists(was, wanted, now) if was and wanted and now else None
            if both is None and key not in LATER_WINS:
                line = _line_of(ours, key)
                text = decisions.text_of(
                    Conflict(path, line, _shown(was), _shown(now), _shown(wanted), "key")
                )
                both = now if text is None else _unit_of(text)
            wanted = both if both is not None else now
        merged = _with_key(merged, key, wanted or None, order)
    return "".join(Front(ours.opening, merged, ours.closing, []).lines())


def _with_key(
    units: dict[str, _Unit], key: str, unit: _Unit | None, order: list[str]
) -> dict[str, _Unit]:
    """Set a key where it is, put it where it stood, or take it away."""
    if unit is None:
        return {other: lines for other, lines in units.items() if other != key}
    if key in units or key not in order:
        return {**units, key: unit}
    return _put_after(units, key, unit, order)


def _unit_of(text: str) -> _Unit:
    return tuple(split_lines(text if not text or text.endswith("\n") else f"{text}\n"))


def _same(a: _Unit | None, b: _Unit | None) -> bool:
    if a is None or b is None:
        return a is b
    return [line.rstrip() for line in a] == [line.rstrip() for line in b]


def _shown(unit: _Unit | None) -> str:
    return "".join(unit or ())


def _line_of(front: Front, key: str) -> int:
    line = 2
    for other, unit in front.units.items():
        if other == key:
            return line
        line += len(unit)
    return 0


def _put_after(
    units: dict[str, _Unit], key: str, unit: _Unit, order: list[str]
) -> dict[str, _Unit]:
    """Insert a key where it stood: behind the nearest key before it that is still there."""
    before = next((k for k in reversed(order[: order.index(key)]) if k in units), None)
    result = {} if before is not None else {key: unit}
    for other, lines in units.items():
        result[other] = lines
        if other == before:
            result[key] = unit
    return result
