"""Drafts and diffs for a person who decides on a place of a proposal.

If the file was changed meanwhile, a draft has both sides between markers like git's; a text that
still has the markers is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbtui.errors import UsageError
from kbtui.history.places import FilePlan, Plan, ProposedPlace, put
from kbtui.history.queries.diff import (
    CONTEXT,
    FileDiff,
    Hunk,
    Opcode,
    head_length,
    hunk_of,
    keys_of,
    opcodes,
    split_lines,
)
from kbtui.workspace import files

OURS = "<<<<<<< in the file now"
BETWEEN = "======="
THEIRS = ">>>>>>> proposed"
_MARK = re.compile(r"^(?:<{7} in the file now|>{7} proposed)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlaceDraft:
    """A draft of some lines or of the `whole` file; `seen` is passed back with the edit."""

    path: str
    text: str
    seen: str
    whole: bool


def draft_for(file: FilePlan, place: ProposedPlace) -> PlaceDraft:
    """Return a draft for editing a place."""
    if place.whole:
        text = _whole(file, place)
    else:
        both = _marked(place.ours, place.theirs) if place.why else _ended(place.theirs)
        text = "".join(both)
    return PlaceDraft(file.path, text, file.current_text(place), place.whole)


def check_settled(text: str) -> None:
    """Reject a text that still has conflict markers.

    Raises:
        UsageError: There is a marker in it.
    """
    if _MARK.search(text):
        raise UsageError(
            "Both sides are still marked in the text.",
            f"Keep what shall stand there, and take out the lines {OURS!r}, {BETWEEN!r} and"
            f" {THEIRS!r}.",
        )


def _whole(file: FilePlan, place: ProposedPlace) -> str:
    wanted = files.text_of(file.edit.wanted)
    if file.edit.wanted is None or (place.why and file.now is not None):
        ours, theirs = split_lines(file.text), split_lines(wanted)
        return "".join(_merged(ours, theirs)) if wanted else file.text
    return file.target if file.old_path is not None else wanted


def _merged(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    """Merge two texts into one, with the differences marked."""
    for tag, a1, a2, b1, b2 in opcodes(keys_of(ours), keys_of(theirs)):
        if tag == "equal":
            yield from ours[a1:a2]
        else:
            yield from _marked(ours[a1:a2], theirs[b1:b2])


def _marked(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    yield f"{OURS}\n"
    yield from _ended(ours)
    yield f"{BETWEEN}\n"
    yield from _ended(theirs)
    yield f"{THEIRS}\n"


def _ended(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n"


# Diffs --------------------------------------------------------------------------------------------


def plan_diff(plan: Plan) -> tuple[FileDiff, ...]:
    """Return the diff of each file with its current text, one hunk per waiting place in order.

    In a conflict, the current text is shown as removed, and the proposed one as added.
    """
    total = len(plan.places)
    diffs: list[FileDiff] = []
    number = 1
    for file in plan.files:
        if file.places:
            diffs.append(_file_diff(file, number, total))
            number += len(file.places)
    return tuple(diffs)


def _file_diff(file: FilePlan, number: int, total: int) -> FileDiff:
    now = split_lines(file.text)
    return FileDiff(
        path=file.path,
        old_path=file.old_path,
        kind=file.kind,
        hunks=tuple(_hunks(file.places, now, number, total)),
        old_blob=files.blob_of(file.now),
        new_blob=None,
        heads=(head_length(now), head_length(split_lines(put(now, file.places)))),
    )


def _hunks(
    places: Sequence[ProposedPlace], now: Sequence[str], number: int, total: int
) -> Iterator[Hunk]:
    """Yield the places with their context; a line between two of them is shown once."""
    target = split_lines(put(now, places))
    added = shown = 0
    for index, place in enumerate(places):
        above = max(shown, place.first - CONTEXT)
        following = places[index + 1].first if index + 1 < len(places) else len(now) + CONTEXT
        shown = min(len(now), place.last + min(CONTEXT, (following - place.last + 1) // 2))
        start, end = place.first + added, place.first + added + len(place.theirs)
        group: list[Opcode] = [
            ("equal", above, place.first, above + added, start),
            ("replace", place.first, place.last, start, end),
            ("equal", place.last, shown, end, end + shown - place.last),
        ]
        added = end - place.last
        conflict = f"  CONFLICT: {place.why}" if place.why else ""
        yield hunk_of(now, target, group, f"{number + index} of {total}{conflict}")
