"""What a proposal would do to the files as they are now, place by place.

A proposal may be old when somebody looks at it. So nothing of it is ever written as it stands:
each place is merged into the current text, three-way, whenever it is shown or accepted. What
stands there already is done, and what was changed otherwise meanwhile is a conflict.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from kbtui.errors import NotFoundError
from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import keys_of as line_keys
from kbtui.history.looking.matching import opcodes
from kbtui.history.merging.undo_merge import take_out
from kbtui.memory.inbox.hunks import cut, joined, put, says_the_same
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.looking.matching import Opcode
    from kbtui.memory.inbox.hunks import Cut
    from kbtui.memory.inbox.proposal import Proposal, ProposedEdit

State = Literal["clean", "conflict", "done"]
Kind = Literal["added", "modified", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class Current:
    """A file as it is now; `data` is None where there is none, `path` its name since a rename.

    `problem` says why it can't be read.
    """

    path: str
    data: bytes | None
    problem: str = ""

    @property
    def text(self) -> str | None:
        """What it says."""
        return None if self.data is None else files.decode(self.data).text

    @property
    def blob(self) -> str | None:
        """The hash that a change may expect."""
        return None if self.data is None else files.blob_id(self.data)

    @property
    def is_text(self) -> bool:
        """Whether it can be written again without losing characters."""
        if self.data is None:
            return not self.problem
        decoded = files.decode(self.data)
        return decoded.exact and decoded.encoding != "utf-16"

    def encoded(self, text: str) -> bytes:
        """A text in the form of the file."""
        encoding = "utf-8" if self.data is None else files.decode(self.data).encoding
        return text.encode(encoding, "replace")


@dataclass(frozen=True, slots=True)
class PlannedHunk:
    """One place that can be decided on by itself.

    Attributes:
        key: Names it as long as it waits, whatever is decided about others.
        state: ``clean``: it can be made; ``conflict``: a person must say what shall stand there;
            ``done``: it stands there already.
        why: What is in the way, in words.
        place: Where it is in the file as it is now, with both sides.
        cut: The lines; None: the whole file.
    """

    key: str
    state: State
    why: str
    place: Place
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """The places of one file.

    Attributes:
        edit: What was proposed for it.
        now: The file.
        kind: What becomes of it.
        hunks: Its places, from top to bottom; one where the file comes, goes or moves whole.
        old: Where it is to be moved from, and that file.
    """

    edit: ProposedEdit
    now: Current
    kind: Kind
    hunks: tuple[PlannedHunk, ...]
    old: tuple[ProposedEdit, Current] | None = None

    @property
    def edits(self) -> tuple[ProposedEdit, ...]:
        """All that was proposed for it."""
        return (self.edit,) if self.old is None else (self.old[0], self.edit)

    @property
    def waiting(self) -> tuple[PlannedHunk, ...]:
        """The places that aren't done."""
        return tuple(hunk for hunk in self.hunks if hunk.state != "done")


@dataclass(frozen=True, slots=True)
class Plan:
    """A proposal against the files as they are."""

    proposal: Proposal
    files: tuple[PlannedFile, ...]

    @property
    def hunks(self) -> tuple[PlannedHunk, ...]:
        """The places that wait, as they are numbered from 1."""
        return tuple(hunk for file in self.files for hunk in file.waiting)

    @property
    def conflicts(self) -> tuple[PlannedHunk, ...]:
        """The places that a person must settle."""
        return tuple(hunk for hunk in self.hunks if hunk.state == "conflict")

    def find(self, key: str) -> tuple[PlannedFile, PlannedHunk] | None:
        """A place that waits, by its key."""
        return next(
            ((file, hunk) for file in self.files for hunk in file.waiting if hunk.key == key), None
        )


def keys_of(plan: Plan, hunks: Sequence[str] | None) -> set[str] | None:
    """The keys of places that were named by key or number; None stands for all.

    Raises:
        NotFoundError: there is no such place.
    """
    if hunks is None:
        return None
    waiting = plan.hunks
    known = {hunk.key for hunk in waiting}
    keys = set()
    for name in hunks:
        number = int(name) if name.isascii() and name.isdigit() else 0
        if 0 < number <= len(waiting):
            keys.add(waiting[number - 1].key)
        elif name in known:
            keys.add(name)
        else:
            raise no_place(plan, name)
    return keys


def no_place(plan: Plan, name: str) -> NotFoundError:
    """Say that nothing of that name waits."""
    count = len(plan.hunks)
    return NotFoundError(
        f"There is no place {name} in the proposal {plan.proposal.id} any more.",
        f"It has {count}; `kbtui inbox show {plan.proposal.id}` shows them."
        if count
        else "Nothing of it waits.",
    )


def plan_file(edit: ProposedEdit, now: Current) -> PlannedFile:
    """Plan one file that stays where it is, comes or goes."""
    if now.problem:
        place = Place(0, (), tuple(split_lines(edit.text or "")))
        return PlannedFile(edit, now, "modified", (_whole(edit, "conflict", now.problem, place),))
    if edit.text is None:
        return PlannedFile(edit, now, "deleted", (_deletion(edit, now),))
    if edit.base_text is None:
        return PlannedFile(edit, now, "added", (_addition(edit, now),))
    if now.text is None:
        gone = _whole(
            edit, "conflict", "the file is gone", Place(0, (), tuple(split_lines(edit.text)))
        )
        return PlannedFile(edit, now, "modified", (gone,))
    if not now.is_text:
        place = place_of(now.text, edit.text)
        return PlannedFile(edit, now, "modified", (_whole(edit, "conflict", _NO_TEXT, place),))
    return PlannedFile(edit, now, "modified", tuple(_places(edit, now)))


def plan_rename(
    old: tuple[ProposedEdit, Current], new: tuple[ProposedEdit, Current]
) -> PlannedFile:
    """Plan a file that is to be moved; what was changed in it since moves with it."""
    (gone, source), (edit, target) = old, new
    base, text, now = gone.base_text or "", edit.text or "", source.text
    moved_already = now is None and not source.problem and target.text is not None
    if moved_already:
        moved = replace(edit, base=gone.base, base_text=base)
        return plan_file(moved, target)
    hunk = _whole(edit, "clean", "", place_of(now or "", text))
    problem = source.problem or target.problem
    if problem:
        hunk = replace(hunk, state="conflict", why=problem)
    elif now is None or source.path != gone.path:
        why = "the file is gone" if now is None else f"the file is called {source.path} now"
        hunk = replace(hunk, state="conflict", why=why)
    elif target.text is not None:
        hunk = replace(hunk, state="conflict", why="there is another file of that name")
    elif not source.is_text:
        hunk = replace(hunk, state="conflict", why=_NO_TEXT)
    else:
        merge = take_out(edit.path, [base, now], text)
        if merge.conflicts:
            hunk = replace(hunk, state="conflict", why=_CHANGED)
        else:
            hunk = replace(hunk, place=place_of(now, merge.text))
    return PlannedFile(edit, target, "renamed", (hunk,), old)


_CHANGED = "changed since this was proposed"
_NO_TEXT = "the file isn't UTF-8"


def _whole(edit: ProposedEdit, state: State, why: str, place: Place) -> PlannedHunk:
    parts = (edit.path, edit.base_text, edit.text)
    return PlannedHunk(_key(repr(parts)), state, why, place)


def _deletion(edit: ProposedEdit, now: Current) -> PlannedHunk:
    if now.text is None:
        return _whole(edit, "done", "", Place(0, (), ()))
    place = Place(0, tuple(split_lines(now.text)), ())
    if edit.base_text is None or says_the_same(edit.base_text, now.text):
        return _whole(edit, "clean", "", place)
    return _whole(edit, "conflict", _CHANGED, place)


def _addition(edit: ProposedEdit, now: Current) -> PlannedHunk:
    text = edit.text or ""
    if now.text is None:
        return _whole(edit, "clean", "", Place(0, (), tuple(split_lines(text))))
    if says_the_same(now.text, text):
        return _whole(edit, "done", "", Place(0, (), ()))
    return _whole(edit, "conflict", "there is another file of that name", place_of(now.text, text))


def _places(edit: ProposedEdit, now: Current) -> list[PlannedHunk]:
    """The places of a file that is there, so that none is in another's way."""
    base, text = edit.base_text or "", now.text or ""
    if says_the_same(edit.text or "", text):
        return []
    cuts = cut(base, edit.text or "")
    lines = split_lines(base)
    since = Since(base, text)
    while True:
        keys = _Keys(edit.path, lines)
        hunks = [_judged(edit.path, (base, text), since, each, keys.of(each)) for each in cuts]
        waiting = [index for index, hunk in enumerate(hunks) if hunk.state != "done"]
        clash = next(((a, b) for a, b in pairwise(waiting) if _meet(hunks[a], hunks[b])), None)
        if clash is None:
            return hunks
        first, last = clash[0], clash[1] + 1
        cuts[first:last] = [joined(lines, cuts[first:last])]


def _judged(path: str, texts: tuple[str, str], since: Since, each: Cut, key: str) -> PlannedHunk:
    """Merge one cut, by itself, into the text as it is: `texts` are that before and now."""
    base, now = texts
    if since.left_alone(each) and not _stands_elsewhere(each, base, now):
        return PlannedHunk(key, "clean", "", since.place(each), each)
    merge = take_out(path, [base, now], put(base, [each]))
    if merge.conflicts:
        return PlannedHunk(key, "conflict", _CHANGED, since.place(each), each)
    done = merge.text == now or _stands_elsewhere(each, base, now)
    return PlannedHunk(key, "done" if done else "clean", "", place_of(now, merge.text), each)


def _meet(one: PlannedHunk, other: PlannedHunk) -> bool:
    """Whether two places would have to be decided together."""
    a, b = one.place, other.place
    if a.last < b.first or b.last < a.first:
        return False
    if "conflict" in (one.state, other.state):  # whoever settles it sees the lines next to it
        return True
    if a.ours and b.ours:
        return max(a.first, b.first) < min(a.last, b.last)
    return b.first < a.first < b.last or a.first < b.first < a.last


def _stands_elsewhere(each: Cut, base: str, now: str) -> bool:
    """Whether lines that only come were put into the file by somebody meanwhile."""
    if each.first != each.last:
        return False
    wanted = [line for line in line_keys(each.lines) if line.strip()]
    new = set(line_keys(split_lines(now))) - set(line_keys(split_lines(base)))
    return bool(wanted) and all(line in new for line in wanted)


class _Keys:
    """Names places by what they do, so that a name holds when another place is decided."""

    def __init__(self, path: str, base: Sequence[str]) -> None:
        self._path = path
        self._base = base
        self._seen: Counter[str] = Counter()

    def of(self, each: Cut) -> str:
        """The name of the next place."""
        lines = (line_keys(each.removed(self._base)), line_keys(each.lines))
        said = repr((self._path, lines))
        self._seen[said] += 1
        return _key(f"{said}{self._seen[said]}")


def _key(said: str) -> str:
    return "h" + hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:6]


# Where a place stands now -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a text as it is now, and those that would take their place.

    Attributes:
        first: The first of the lines, 0-based.
        ours: What stands there now.
        theirs: What is proposed.
        base: The lines of the old text that correspond to `ours`: first, and last exclusive.
    """

    first: int
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    base: tuple[int, int] = (0, 0)

    @property
    def last(self) -> int:
        """Where the lines end, exclusive."""
        return self.first + len(self.ours)


class Since:
    """What was done to a text since a proposal was made from it."""

    def __init__(self, base: str, now: str) -> None:
        self._old, self._new = split_lines(base), split_lines(now)
        self._codes = opcodes(line_keys(self._old), line_keys(self._new))
        self._changed = [(a1, a2) for tag, a1, a2, *_ in self._codes if tag != "equal"]

    def left_alone(self, cut: Cut) -> bool:
        """Whether the lines of a cut, and those above and below, are what they were."""
        return not any(a1 <= cut.last + 1 and cut.first - 1 <= a2 for a1, a2 in self._changed)

    def place(self, cut: Cut) -> Place:
        """Both sides of a cut; lines that were changed together with its own are taken in."""
        first, last = cut.first, cut.last
        for a1, a2 in self._changed:
            if _lies_in(cut, a1, a2):
                first, last = min(first, a1), max(last, a2)
        start, end = _start(self._codes, first), _end(self._codes, last)
        if first == last:  # lines that only come go below the line above
            start = end
        theirs = (*self._old[first : cut.first], *cut.lines, *self._old[cut.last : last])
        return Place(start, tuple(self._new[start:end]), theirs, (first, last))


def _lies_in(cut: Cut, first: int, last: int) -> bool:
    """Whether a cut has a line in common with others, or comes in between them."""
    if cut.first == cut.last:
        return first < cut.first < last
    return max(first, cut.first) < min(last, cut.last)


def place_of(now: str, then: str) -> Place:
    """The one place in which two texts differ; all between the first and the last difference."""
    old, new = split_lines(now), split_lines(then)
    a, b = line_keys(old), line_keys(new)
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return Place(head, tuple(old[head : len(a) - tail]), tuple(new[head : len(b) - tail]))


def _start(codes: Sequence[Opcode], line: int) -> int:
    """Where what begins with a line of the old text begins in the new one."""
    for tag, a1, a2, b1, _ in codes:
        if a1 <= line < a2:
            return b1 + line - a1 if tag == "equal" else b1
    return codes[-1][4] if codes else 0


def _end(codes: Sequence[Opcode], line: int) -> int:
    """Where what ends before a line of the old text ends in the new one."""
    for tag, a1, a2, b1, b2 in codes:
        if a1 < line <= a2:
            return b1 + line - a1 if tag == "equal" else b2
    return 0
