"""Reverting one change in a text that was changed again since.

A three-way merge by line in which lines are followed through every version in between, so two
bullets added one below the other by different changes don't conflict. Frontmatter keys are merged
separately; they are recognised by shape alone (``---`` lines, keys at the start of a line), so a
merge needs no YAML parser and rewrites nothing it doesn't have to. It is a conflict only if the
same line or key was changed again.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kbtui.history.merging.line_merge import Conflict, Decisions, LineMerge
from kbtui.history.queries.diff import split_lines

_KEY = re.compile(r"^(?P<key>[^\s#\-\[\]{},&*!|>'\"%@`][^:\n]*|\"[^\"\n]*\"|'[^'\n]*')\s*:(?=\s|$)")
_FLOW = re.compile(r"^[^:]+:\s*\[(?P<items>[^\[\]{}\"'#\n]*)\]\s*$")
_BLOCK_ITEM = re.compile(r"^(?P<lead>\s*-\s+)(?P<item>\S.*?)\s*$")
_DATE = re.compile(
    r"[^:\n]+:\s*(?P<quote>['\"]?)(?P<date>\d{4}-\d\d-\d\d(?:[T ][\dT:.+\- ]*Z?)?)(?P=quote)\s*"
)
_MAX_LINES = 2000


@dataclass(frozen=True, slots=True)
class FrontmatterParts:
    """A text split into its frontmatter and its body.

    Attributes:
        opening: The first ``---`` line with what precedes it.
        units: The lines of each key, by key, in order; a comment is its own key.
        closing: The second ``---`` line.
        body: The lines after it.
    """

    opening: str
    units: dict[str, tuple[str, ...]]
    closing: str
    body: list[str]

    def lines(self) -> list[str]:
        """Return the lines of the frontmatter block."""
        return [
            self.opening,
            *(line for unit in self.units.values() for line in unit),
            self.closing,
        ]


def split_front(text: str) -> FrontmatterParts | None:
    """Split a text; return None if it has no frontmatter with distinguishable keys."""
    lines = split_lines(text)
    if not lines or lines[0].rstrip() != "---":
        return None
    for end, line in enumerate(lines[1:_MAX_LINES], 1):
        if line.rstrip() in {"---", "..."}:
            units = _units(lines[1:end])
            return (
                None if units is None else FrontmatterParts(lines[0], units, line, lines[end + 1 :])
            )
    return None


def _units(lines: list[str]) -> dict[str, tuple[str, ...]] | None:
    units: dict[str, list[str]] = {}
    current: str | None = None
    for line in lines:
        match = _KEY.match(line)
        if match or line.startswith("#"):
            current = match["key"].strip() if match else line.rstrip()
            if current in units:
                return None
            units[current] = [line]
        elif current is None:
            return None
        else:
            units[current].append(line)
    return {key: tuple(unit) for key, unit in units.items()}


def merge_lists(
    base: tuple[str, ...], target: tuple[str, ...], ours: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Apply the change from `base` to `target` to `ours`, item by item.

    Returns:
        The merged lines, or None if one of the three isn't a plain list.
    """
    lists = [_items(unit) for unit in (base, target, ours)]
    if any(items is None for items in lists):
        return None
    was, wanted, now = (items or [] for items in lists)
    dropped = [item for item in was if item not in wanted]
    added = [item for item in wanted if item not in was and item not in now]
    merged = [item for item in now if item not in dropped]
    for item in added:
        merged.insert(_insertion_index(item, wanted, merged), item)
    return _render(merged, ours, target)


def _insertion_index(item: str, wanted: list[str], merged: list[str]) -> int:
    """Return the index for a new item: after its nearest predecessor that is in `merged`."""
    for before in reversed(wanted[: wanted.index(item)]):
        if before in merged:
            return merged.index(before) + 1
    return 0


def _items(unit: tuple[str, ...]) -> list[str] | None:
    flow = _FLOW.match(unit[0]) if unit else None
    if flow and not any(line.strip() for line in unit[1:]):
        return [item.strip() for item in flow["items"].split(",") if item.strip()]
    if not unit or unit[0].partition(":")[2].strip():
        return None
    matches = [_BLOCK_ITEM.match(line) for line in unit[1:] if line.strip()]
    if not matches or not all(matches):
        return None
    return [match["item"] for match in matches if match]


def _render(items: list[str], ours: tuple[str, ...], target: tuple[str, ...]) -> tuple[str, ...]:
    """Format items in the style of `ours`."""
    end = "\r\n" if ours[0].endswith("\r\n") else "\n"
    flow = _FLOW.match(ours[0])
    if flow:
        head = ours[0][: ours[0].index("[")]
        return (f"{head}[{', '.join(items)}]{end}",)
    lead = next((m["lead"] for line in (*ours, *target) if (m := _BLOCK_ITEM.match(line))), "- ")
    if not items:
        return (f"{ours[0].rstrip()} []{end}",)
    return (ours[0], *(f"{lead}{item}{end}" for item in items))


def common_items(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the common items of two lists in our style, or None if one isn't a plain list."""
    here, there = _items(ours), _items(theirs)
    if here is None or there is None:
        return None
    return _render([item for item in here if item in there], ours, theirs)


def holds_all_of(
    unit: tuple[str, ...], other: tuple[str, ...], known: tuple[str, ...] = ()
) -> bool:
    """Return whether a key equals another, or lists all its items except `known` ones."""
    if [line.rstrip() for line in unit] == [line.rstrip() for line in other]:
        return True
    items, wanted = _items(unit), _items(other)
    if items is None or wanted is None:
        return False
    return set(wanted) <= {*items, *(_items(known) or ())}


def date_of(unit: tuple[str, ...]) -> str | None:
    """Return the date or time that is the whole value of a key, else None."""
    found = _DATE.fullmatch(unit[0]) if len(unit) == 1 else None
    return found["date"].strip() if found else None


LATER_WINS = frozenset({"updated"})
"""Frontmatter keys that every change updates: the later value wins."""

_TIME_WORDS = frozenset(
    word.lower()
    for words in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
    for word in (*words, "at", "utc", "gmt", "am", "pm", "st", "nd", "rd", "th")
)
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"[\d\s:.,/+'\"-]*")
_Unit = tuple[str, ...]


def later_wins(key: str, unit: _Unit | None) -> bool:
    """Return whether a key is updated by every change and its value is just a date or time."""
    if key not in LATER_WINS or not unit:
        return key in LATER_WINS
    if len(unit) > 1 or date_of(unit):
        return len(unit) == 1
    value = unit[0].partition(":")[2].lower()
    return bool(_DIGITS.fullmatch(_WORD.sub("", value))) and _TIME_WORDS.issuperset(
        _WORD.findall(value)
    )


@dataclass(slots=True)
class Merge:
    """The text without the change, and the conflicts."""

    text: str = ""
    conflicts: list[Conflict] = field(default_factory=list)


def revert(
    path: str,
    versions: Sequence[str],
    target: str,
    decisions: Decisions | None = None,
    returned: Collection[str] = (),
) -> Merge:
    """Undo the step from `target` to the first of `versions` in the last of them.

    Args:
        path: The file, for conflicts.
        versions: The text after the change, every later version in order, and the current text.
        target: The text before the change.
        decisions: Decisions about conflicts; it also collects the open ones.
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


def revert_creation(
    path: str, versions: Sequence[str], decisions: Decisions, returned: Collection[str] = ()
) -> str | None:
    """Remove the lines that created a file from its current text.

    Later additions stay, and with them the frontmatter and the headings above them.

    Args:
        path: The file, for conflicts.
        versions: The file as created, every later version in order, and the current text.
        decisions: Decisions about conflicts; it also collects the open ones.
        returned: The versions that an undo or a restore wrote.

    Returns:
        The remaining text, or None if nothing is left.
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
    return "".join(FrontmatterParts(now.opening, units, now.closing, []).lines()) + body


def _kept_keys(
    path: str, made: FrontmatterParts, now: FrontmatterParts, decisions: Decisions
) -> dict[str, _Unit] | None:
    """Return the frontmatter of a file without body lines, or None if no changed key stays."""
    kept: dict[str, _Unit] = {}
    for key, unit in now.units.items():
        if key in LATER_WINS or _same(unit, made.units[key]):
            continue
        text = decisions.text_of(
            Conflict(path, _line_of(now, key), _joined(made.units[key]), _joined(unit), "", "key")
        )
        if text:
            kept[key] = _split_unit(text)
    return {**now.units, **kept} if kept else None


def without_detours(versions: Sequence[str]) -> list[str]:
    """Drop versions that lead back to an earlier one: an undo and its undo move no line."""
    kept: dict[str, None] = {}
    for version in versions:
        if version in kept:
            while next(reversed(kept)) != version:
                kept.popitem()
        else:
            kept[version] = None
    return list(kept)


def _bodies(fronts: Sequence[FrontmatterParts | None], versions: Sequence[str]) -> list[list[str]]:
    return [
        front.body if front else split_lines(text)
        for front, text in zip(fronts, versions, strict=True)
    ]


def _merge_keys(
    path: str,
    base: FrontmatterParts,
    target: FrontmatterParts,
    ours: FrontmatterParts,
    decisions: Decisions,
) -> str:
    merged = dict(ours.units)
    order = list(target.units)
    for key in dict.fromkeys([*target.units, *base.units]):
        was, wanted, now = base.units.get(key), target.units.get(key), ours.units.get(key)
        if _same(was, wanted) or _same(now, wanted):
            continue
        if not _same(now, was):
            both = merge_lists(was, wanted, now) if was and wanted and now else None
            if both is None and not all(later_wins(key, unit) for unit in (wanted, now)):
                line = _line_of(ours, key)
                text = decisions.text_of(
                    Conflict(path, line, _joined(was), _joined(now), _joined(wanted), "key")
                )
                both = now if text is None else _split_unit(text)
            wanted = both if both is not None else now
        merged = _with_key(merged, key, wanted or None, order)
    return "".join(FrontmatterParts(ours.opening, merged, ours.closing, []).lines())


def _with_key(
    units: dict[str, _Unit], key: str, unit: _Unit | None, order: list[str]
) -> dict[str, _Unit]:
    """Replace a key in place, insert it at its old position, or remove it."""
    if unit is None:
        return {other: lines for other, lines in units.items() if other != key}
    if key in units or key not in order:
        return {**units, key: unit}
    return _insert_after(units, key, unit, order)


def _split_unit(text: str) -> _Unit:
    return tuple(split_lines(text if not text or text.endswith("\n") else f"{text}\n"))


def _same(a: _Unit | None, b: _Unit | None) -> bool:
    if a is None or b is None:
        return a is b
    return [line.rstrip() for line in a] == [line.rstrip() for line in b]


def _joined(unit: _Unit | None) -> str:
    return "".join(unit or ())


def _line_of(front: FrontmatterParts, key: str) -> int:
    line = 2
    for other, unit in front.units.items():
        if other == key:
            return line
        line += len(unit)
    return 0


def _insert_after(
    units: dict[str, _Unit], key: str, unit: _Unit, order: list[str]
) -> dict[str, _Unit]:
    """Insert a key after the nearest key before it in `order` that still exists."""
    before = next((k for k in reversed(order[: order.index(key)]) if k in units), None)
    result = {} if before is not None else {key: unit}
    for other, lines in units.items():
        result[other] = lines
        if other == before:
            result[key] = unit
    return result
