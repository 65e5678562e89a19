"""The frontmatter block as units of text: one for each top-level key, whatever it holds.

Only the shape is looked at (``---`` lines and keys at the start of a line), so that a merge changes
nothing that it doesn't have to and needs no YAML.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kbtui.history.looking.diff import split_lines

_KEY = re.compile(r"^(?P<key>[^\s#\-\[\]{},&*!|>'\"%@`][^:\n]*|\"[^\"\n]*\"|'[^'\n]*')\s*:(?=\s|$)")
_FLOW = re.compile(r"^[^:]+:\s*\[(?P<items>[^\[\]{}\"'#\n]*)\]\s*$")
_BLOCK_ITEM = re.compile(r"^(?P<lead>\s*-\s+)(?P<item>\S.*?)\s*$")
_MAX_LINES = 2000


@dataclass(frozen=True, slots=True)
class Front:
    """A text cut into its frontmatter and its body.

    Attributes:
        opening: The first ``---`` line with what stands before it.
        units: The lines of each key, by key, in order; comments stand under their own text.
        closing: The second ``---`` line.
        body: The lines after it.
    """

    opening: str
    units: dict[str, tuple[str, ...]]
    closing: str
    body: list[str]

    def lines(self) -> list[str]:
        """The whole block as lines."""
        return [
            self.opening,
            *(line for unit in self.units.values() for line in unit),
            self.closing,
        ]


def split_front(text: str) -> Front | None:
    """Cut a text; None when it has no frontmatter whose keys can be told apart."""
    lines = split_lines(text)
    if not lines or lines[0].rstrip() != "---":
        return None
    for end, line in enumerate(lines[1:_MAX_LINES], 1):
        if line.rstrip() in {"---", "..."}:
            units = _units(lines[1:end])
            return None if units is None else Front(lines[0], units, line, lines[end + 1 :])
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
    """Turn the way from `base` to `target` into a change of `ours`, item by item.

    None when one of them is no plain list.
    """
    lists = [_items(unit) for unit in (base, target, ours)]
    if any(items is None for items in lists):
        return None
    was, wanted, now = (items or [] for items in lists)
    dropped = [item for item in was if item not in wanted]
    added = [item for item in wanted if item not in was and item not in now]
    merged = [item for item in now if item not in dropped]
    for item in added:
        merged.insert(_place(item, wanted, merged), item)
    return _render(merged, ours, target)


def _place(item: str, wanted: list[str], merged: list[str]) -> int:
    """Where an item belongs: behind the nearest one before it that is there."""
    for before in reversed(wanted[: wanted.index(item)]):
        if before in merged:
            return merged.index(before) + 1
    return 0


def _items(unit: tuple[str, ...]) -> list[str] | None:
    flow = _FLOW.match(unit[0])
    if flow and not any(line.strip() for line in unit[1:]):
        return [item.strip() for item in flow["items"].split(",") if item.strip()]
    if unit[0].partition(":")[2].strip():
        return None
    matches = [_BLOCK_ITEM.match(line) for line in unit[1:] if line.strip()]
    if not matches or not all(matches):
        return None
    return [match["item"] for match in matches if match]


def _render(items: list[str], ours: tuple[str, ...], target: tuple[str, ...]) -> tuple[str, ...]:
    """Write items the way `ours` writes them."""
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
    """The list of what two lists share, written as `ours` is; None when one is no plain list."""
    here, there = _items(ours), _items(theirs)
    if here is None or there is None:
        return None
    return _render([item for item in here if item in there], ours, theirs)


def holds_all_of(unit: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """True if a key says what another says, or is a list that holds all of its items."""
    if [line.rstrip() for line in unit] == [line.rstrip() for line in other]:
        return True
    items, wanted = _items(unit), _items(other)
    return items is not None and wanted is not None and set(wanted) <= set(items)
