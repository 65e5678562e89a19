"""One file that was changed on two machines: both changes in one text.

Lines, list items and frontmatter keys are units of their own, as in `merge`; lists are sets,
`updated` is the later, `created` the earlier. Where the same unit was changed on both sides there
are two texts: one with each side in those places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import matching_blocks
from kbtui.history.looking.tracking import keys_of
from kbtui.history.merging.conflict import Decisions, Side
from kbtui.history.merging.front_keys import Front, common_items, split_front
from kbtui.history.merging.undo_merge import take_out
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE = re.compile(r"^[^:\n]+:\s*['\"]?(?P<date>\d{4}-\d{2}-\d{2}[^'\"\n#]*?)['\"]?\s*$")


@dataclass(frozen=True, slots=True)
class Merged:
    """Both changes in one text.

    Attributes:
        data: The file; where both sides changed the same, ours.
        theirs: The same with their side in those places; None where there are none.
        places: What can't stand side by side, as our side has it.
    """

    data: bytes
    theirs: bytes | None = None
    places: tuple[str, ...] = ()


def merge_three(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> Merged | None:
    """Bring two versions of a file together; None where they aren't texts in one encoding.

    Args:
        path: The file, for what is said about it.
        base: What both began with; None where each side created it by itself.
        ours: One version.
        theirs: The other one.
    """
    decoded = [files.decode(data) for data in (ours, theirs, base or b"")]
    encoding = decoded[0].encoding
    if not all(each.exact and each.encoding.startswith("utf-8") for each in decoded):
        return None
    if b"\0" in ours or b"\0" in theirs:
        return None
    one, other = _agree_on_dates(decoded[0].text, decoded[1].text)
    start = _common(one, other) if base is None else decoded[2].text
    merge = take_out(path, [start, one], other)
    if not merge.conflicts:
        return Merged(merge.text.encode(encoding))
    settled = Decisions(dict.fromkeys(merge.conflicts, Side.THEIRS))
    swapped = take_out(path, [start, one], other, settled)
    places = tuple(conflict.ours or conflict.written for conflict in merge.conflicts)
    return Merged(merge.text.encode(encoding), swapped.text.encode(encoding), places)


def _agree_on_dates(ours: str, theirs: str) -> tuple[str, str]:
    """Give both the later `updated` and the earlier `created`."""
    one, other = split_front(ours), split_front(theirs)
    if one is None or other is None:
        return ours, theirs
    choose: dict[str, Callable[[str, str], str]] = {"updated": max, "created": min}
    for key, chosen in choose.items():
        dates = [_date(front.units.get(key)) for front in (one, other)]
        if dates[0] is None or dates[1] is None or dates[0] == dates[1]:
            continue
        winner = one if chosen(dates[0], dates[1]) == dates[0] else other
        for front in (one, other):
            front.units[key] = winner.units[key]
    return _whole(one), _whole(other)


def _date(unit: tuple[str, ...] | None) -> str | None:
    found = _DATE.match(unit[0]) if unit and len(unit) == 1 else None
    return found["date"] if found else None


def _whole(front: Front) -> str:
    return "".join([*front.lines(), *front.body])


def _common(ours: str, theirs: str) -> str:
    """What two texts without a common past have alike, as if both had begun with it."""
    one, other = split_front(ours), split_front(theirs)
    if one is None or other is None:
        return _common_lines(split_lines(ours), split_lines(theirs))
    units: dict[str, tuple[str, ...]] = {}
    for key, unit in one.units.items():
        there = other.units.get(key)
        if there is not None and keys_of(there) == keys_of(unit):
            units[key] = unit
        elif there is not None and (both := common_items(unit, there)):
            units[key] = both
    front = Front(one.opening, units, one.closing, [])
    return "".join(front.lines()) + _common_lines(one.body, other.body)


def _common_lines(ours: list[str], theirs: list[str]) -> str:
    blocks = matching_blocks(keys_of(ours), keys_of(theirs))
    return "".join(line for start, _, size in blocks for line in ours[start : start + size])
