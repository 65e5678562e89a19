"""What a person is given to write their own text for a place of a proposal.

Where the file was changed meanwhile both sides stand in the text, between marks as git sets them;
a text in which the marks still stand isn't taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import opcodes
from kbtui.history.looking.tracking import keys_of
from kbtui.memory.inbox.locate import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbtui.memory.inbox.plan import PlannedFile, PlannedHunk

OURS = "<<<<<<< in the file now"
BETWEEN = "======="
THEIRS = ">>>>>>> proposed"
_MARK = re.compile(r"^(?:<{7} in the file now|>{7} proposed)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to start from.

    Attributes:
        path: The file.
        text: What to show first.
        seen: What stands in that place now, to be handed back with the result.
        whole: It is the whole file, not some lines.
        place: Where it is.
    """

    path: str
    text: str
    seen: str
    whole: bool
    place: Place


def region(file: PlannedFile, hunk: PlannedHunk) -> Draft:
    """What to start from for a place."""
    if hunk.cut is None:
        return _whole(file, hunk)
    place = hunk.place
    clash = hunk.state == "conflict"
    text = "".join(_marked(place.ours, place.theirs) if clash else _ended(place.theirs))
    return Draft(file.now.path, text, "".join(place.ours), False, place)


def theirs_of(file: PlannedFile, hunk: PlannedHunk) -> str:
    """What the proposal wants to stand in a place, whatever stands there now."""
    if hunk.cut is None:
        return file.edit.text or ""
    return "".join(hunk.place.theirs)


def check_settled(text: str) -> None:
    """Refuse a text in which both sides still stand.

    Raises:
        UsageError: there is a mark in it.
    """
    if _MARK.search(text):
        raise UsageError(
            "Both sides are still marked in the text.",
            f"Keep what shall stand there, and take out the lines {OURS!r}, {BETWEEN!r} and"
            f" {THEIRS!r}.",
        )


def _whole(file: PlannedFile, hunk: PlannedHunk) -> Draft:
    source = file.now if file.old is None else file.old[1]
    now = source.text if source.text is not None else file.now.text
    ours, theirs = split_lines(now or ""), split_lines(file.edit.text or "")
    if file.edit.text is None:
        text = now or ""
    elif hunk.state == "conflict" and now is not None:
        text = "".join(_both(ours, theirs))
    elif file.old is not None:
        text = "".join((*ours[: hunk.place.first], *hunk.place.theirs, *ours[hunk.place.last :]))
    else:
        text = file.edit.text
    return Draft(file.now.path, text, now or "", True, Place(0, tuple(ours), tuple(theirs)))


def _both(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    """Two whole texts in one: what differs is marked."""
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
