"""What a person is given to write their own text for a place of a proposal.

Where the file was changed meanwhile both sides stand in the text, between marks as git sets them;
a text in which the marks still stand isn't taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.looking.diff import CONTEXT, DiffLine, FileDiff, Hunk, split_lines
from kbtui.history.looking.matching import keys_of, opcodes
from kbtui.memory.inbox.plan import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbtui.memory.inbox.plan import Plan, PlannedFile, PlannedHunk

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


# As differences -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaceHunk(Hunk):
    """A place of a proposal with the lines around it.

    `title` says which and how it stands; `title_only`: the header is nothing else.
    """

    title: str = ""
    title_only: bool = False

    @property
    def header(self) -> str:
        """As in a patch, where the line may end with a text."""
        if self.title_only:
            return f" {self.title}"
        start, count = _range(self.old_start, self.old_count), self.new_count
        return f"@@ -{start} +{_range(self.new_start, count)} @@ {self.title}"


def plan_diff(plan: Plan, *, titles_only: bool = False) -> tuple[FileDiff, ...]:
    """The difference of each file to what it is now; a hunk for each place that waits, in order.

    Of a conflict, what stands there now is shown as removed, and what is proposed as added.
    `titles_only`: the headers are for reading, not those of a patch.
    """
    total = len(plan.hunks)
    diffs: list[FileDiff] = []
    number = 1
    for file in plan.files:
        if file.waiting:
            diffs.append(_file_diff(file, number, total))
            number += len(file.waiting)
    return tuple(_titled(diff) for diff in diffs) if titles_only else tuple(diffs)


def _titled(diff: FileDiff) -> FileDiff:
    hunks = [replace(hunk, title_only=True) for hunk in diff.hunks if isinstance(hunk, PlaceHunk)]
    return replace(diff, hunks=tuple(hunks))


def _file_diff(file: PlannedFile, number: int, total: int) -> FileDiff:
    source = file.now if file.old is None else file.old[1]
    now = split_lines(source.text or file.now.text or "")
    return FileDiff(
        path=file.now.path,
        old_path=None if file.old is None else file.old[1].path,
        kind=file.kind,
        hunks=tuple(_hunks(file.waiting, now, number, total)),
        old_blob=source.blob,
        new_blob=None,
    )


def _hunks(
    places: Sequence[PlannedHunk], now: Sequence[str], number: int, total: int
) -> Iterator[Hunk]:
    """The places with what stands around them; a line between two of them is shown once."""
    added = shown = 0
    ordered = sorted(places, key=lambda hunk: hunk.place.first)
    starts = [hunk.place.first for hunk in ordered] + [len(now) + CONTEXT]
    for index, hunk in enumerate(places):
        at = ordered.index(hunk)
        first = max(shown, hunk.place.first - CONTEXT)
        between = max(0, starts[at + 1] - hunk.place.last)
        last = min(len(now), hunk.place.last + min(CONTEXT, (between + 1) // 2))
        shown = max(shown, last)
        lines = tuple(_lines(hunk, now, min(first, hunk.place.first), last, added))
        added += len(hunk.place.theirs) - len(hunk.place.ours)
        yield _hunk(lines, hunk, f"{number + index} of {total}")


def _lines(
    hunk: PlannedHunk, now: Sequence[str], first: int, last: int, added: int
) -> Iterator[DiffLine]:
    place = hunk.place
    for index in range(first, place.first):
        yield _line(" ", now[index], index, index + added)
    for index, line in enumerate(place.ours, place.first):
        yield _line("-", line, index, None)
    for index, line in enumerate(place.theirs, place.first + added):
        yield _line("+", line, None, index)
    added += len(place.theirs) - len(place.ours)
    for index in range(place.last, last):
        yield _line(" ", now[index], index, index + added)


def _line(kind: str, text: str, old: int | None, new: int | None) -> DiffLine:
    return DiffLine(
        kind,  # type: ignore[arg-type]
        None if old is None else old + 1,
        None if new is None else new + 1,
        text.removesuffix("\n"),
        newline=text.endswith("\n"),
    )


def _hunk(lines: tuple[DiffLine, ...], hunk: PlannedHunk, title: str) -> PlaceHunk:
    old = [line.old for line in lines if line.old is not None]
    new = [line.new for line in lines if line.new is not None]
    if hunk.state == "conflict":
        title += f"  CONFLICT: {hunk.why}"
    start = hunk.place.first
    return PlaceHunk(
        old[0] if old else start,
        len(old),
        new[0] if new else start,
        len(new),
        lines,
        title,
    )


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"
