"""Places: the hunks by which a proposal would change the current files, decided one by one.

A proposal may be old by the time it is looked at, so it isn't written as it is: it is merged into
the current file, and places are the differences between the two. What the file says already is no
place; if the same lines were changed differently meanwhile, the place is a conflict.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.history.merging.line_merge import Conflict, Decisions, Resolution, Side
from kbtui.history.merging.undo_merge import LATER_WINS, later_wins, split_front
from kbtui.history.objects.commit import Actor, Commit, Edits, Kind, Origin, kind_of
from kbtui.history.queries.diff import split_lines
from kbtui.history.queries.matching import common_ends, keys_of, opcodes
from kbtui.history.undo import Revert
from kbtui.text import clean_line, shorten
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

MAX_PLACES = 100
"""The largest number of places in one file; if there are more, neighbours are joined."""
_CHANGED = "changed since this was proposed"
_NOT_UTF8 = "the file isn't UTF-8"
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_KEY = re.compile(r"([\w-]+):(?:\s|$)")


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """One file of a proposal: its base, its proposed content (None: no file), and its old path."""

    path: str
    base: bytes | None
    wanted: bytes | None
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that waits for a decision.

    Attributes:
        id: The id, short enough to type.
        commit: Its actor, time, reason (`body`) and origin.
        edits: The proposed edit of each file.
    """

    id: str
    commit: Commit
    edits: tuple[ProposedEdit, ...]

    @property
    def actor(self) -> Actor:
        """The actor that proposed it."""
        return self.commit.actor

    @property
    def reason(self) -> str:
        """The reason given for it."""
        return self.commit.body

    @property
    def created(self) -> datetime:
        """The time of the proposal, in UTC."""
        return self.commit.time

    @property
    def origin(self) -> Origin:
        """The conversation or batch that it comes from."""
        return self.commit.origin

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it would change, under their new names."""
        return tuple(edit.path for edit in self.edits)


@dataclass(frozen=True, slots=True)
class ProposedPlace:
    """Lines of a current file, and the lines proposed to replace them.

    Attributes:
        first: The index of the first line, 0-based.
        ours: The current lines.
        theirs: The proposed lines.
        was: The lines that the proposal was made for.
        key: An id that stays the same whatever is decided about other places.
        why: Why it conflicts, in words; empty if it doesn't.
        whole: The file is created, deleted or renamed, or can only be decided as a whole.
    """

    first: int
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    was: tuple[str, ...] = ()
    key: str = ""
    why: str = ""
    whole: bool = False

    @property
    def last(self) -> int:
        """The end of the lines, exclusive."""
        return self.first + len(self.ours)

    @property
    def state(self) -> Literal["clean", "conflict"]:
        """``conflict`` if a person must say what the text should be, else ``clean``."""
        return "conflict" if self.why else "clean"

    def becoming(self, lines: Iterable[str]) -> ProposedPlace:
        """Return the place with other proposed lines."""
        return replace(self, theirs=tuple(lines))


@dataclass(frozen=True, slots=True)
class FilePlan:
    """One file of a proposal compared with the current state.

    Attributes:
        edit: The proposed edit.
        path: The current path, or the proposed one.
        old_path: The current path, if the file would be renamed.
        before: The current content of each path concerned.
        after: The new content of each, with the proposed side of every conflict.
        places: The differences, from top to bottom.
        error: Why it can't be written.
    """

    edit: ProposedEdit
    path: str
    old_path: str | None
    before: Edits
    after: Edits
    places: tuple[ProposedPlace, ...]
    error: KbtuiError | None = None

    @property
    def kind(self) -> Kind:
        """The kind of change."""
        return kind_of(self.edit.base, self.edit.wanted, self.old_path)

    @property
    def now(self) -> bytes | None:
        """The current content of the file; None if there is none."""
        return self.before.get(self.old_path or self.path)

    @property
    def changes(self) -> Edits:
        """The new content of each path that differs, if everything is accepted."""
        return {path: data for path, data in self.after.items() if data != self.before[path]}

    @property
    def stays(self) -> bool:
        """Whether the file is neither created, deleted nor renamed."""
        is_there = self.now is not None and self.after.get(self.path) is not None
        return self.old_path is None and is_there

    @property
    def text(self) -> str:
        """The current text of the file."""
        return files.text_of(self.now)

    @property
    def target(self) -> str:
        """The proposed text of the file."""
        return files.text_of(self.after.get(self.path))

    def current_text(self, place: ProposedPlace) -> str:
        """Return the current text of a place, or of the whole file."""
        return self.text if place.whole else "".join(place.ours)

    def with_(self, places: Iterable[ProposedPlace]) -> bytes:
        """Apply some places to the current file; every other line stays byte for byte."""
        text = put(split_lines(self.text), places)
        return files.encoded_as(text, files.decode(self.now or b""))

    def accepted(self, chosen: Collection[ProposedPlace]) -> Edits:
        """Return the new content of each path if some places are accepted."""
        places = [place for place in self.places if place in chosen]
        if not places:
            return {}
        if not places[0].whole:
            return {self.path: self.with_(places)}
        return self.changes

    def remaining(
        self,
        made: Collection[ProposedPlace] = (),
        dropped: Collection[ProposedPlace] = (),
        own: Mapping[ProposedPlace, str] = MappingProxyType({}),
    ) -> list[ProposedEdit]:
        """Return what still waits after some places are decided, based on the resulting file.

        Conflicts keep their old base, so that they remain conflicts.

        Args:
            made: The accepted places.
            dropped: The rejected places.
            own: The user's own text for a place, in place of the proposed one.
        """
        kept = [place for place in self.places if place not in (*made, *dropped)]
        if not kept:
            return []
        if kept[0].whole:
            return (
                self._reworded_file(own[kept[0]]) if kept[0] in own else [self._with_current_name()]
            )
        reworded = {place: place.becoming(split_lines(text)) for place, text in own.items()}
        wanted = (place for place in self.places if place not in dropped)
        conflicts = {place: place.becoming(place.was) for place in kept if place.why}
        base = {place: place for place in made} | conflicts
        before = (base[each] for each in self.places if each in base.keys() - own.keys())
        after = (reworded.get(each, each) for each in wanted)
        return [ProposedEdit(self.path, self.with_(before), self.with_(after))]

    def _with_current_name(self) -> ProposedEdit:
        if self.edit.old_path is None:
            return replace(self.edit, path=self.path)
        return replace(self.edit, old_path=self.old_path or self.edit.old_path)

    def _reworded_file(self, text: str) -> list[ProposedEdit]:
        """Return the whole file in the user's own words, based on the current one."""
        if not text.strip() and self.edit.wanted is not None:
            raise UsageError("There is no text.", "Reject the place if nothing of it shall stand.")
        there = self.before.get(self.path)
        wanted = in_form_of(self.now or there, text) if text else None
        if self.old_path is None or there is None:
            old_path = self.old_path if self.now is not None else None
            return [ProposedEdit(self.path, self.now, wanted, old_path)]
        return [
            ProposedEdit(self.old_path, self.now, None),
            ProposedEdit(self.path, there, wanted),
        ]


@dataclass(frozen=True, slots=True)
class Plan:
    """A proposal compared with the current files."""

    proposal: Proposal
    files: tuple[FilePlan, ...]

    @property
    def places(self) -> tuple[ProposedPlace, ...]:
        """All places that wait, in the order of their numbers from 1."""
        return tuple(place for file in self.files for place in file.places)

    @property
    def conflicts(self) -> tuple[ProposedPlace, ...]:
        """The places that a person must resolve."""
        return tuple(place for place in self.places if place.why)

    def find(self, name: str) -> tuple[FilePlan, ProposedPlace]:
        """Return a place, with its file, by its key or number.

        Raises:
            NotFoundError: There is no such place.
        """
        both = [(file, place) for file in self.files for place in file.places]
        number = int(name) if name.isascii() and name.isdigit() else 0
        if 0 < number <= len(both):
            return both[number - 1]
        for file, place in both:
            if place.key == name:
                return file, place
        raise NotFoundError(
            f"There is no place {name} in the proposal {self.proposal.id} any more.",
            f"It has {len(both)}; `kbtui inbox show {self.proposal.id}` shows them."
            if both
            else "Nothing of it waits.",
        )

    def chosen(self, names: Collection[str] | None) -> frozenset[ProposedPlace]:
        """Return the places with the given keys or numbers, None for all; raises like `find`."""
        if names is None:
            return frozenset(self.places)
        return frozenset(self.find(name)[1] for name in names)

    def remaining(
        self,
        made: Collection[ProposedPlace] = (),
        dropped: Collection[ProposedPlace] = (),
        own: Mapping[ProposedPlace, str] = MappingProxyType({}),
    ) -> list[ProposedEdit]:
        """Return what still waits after some places are decided; see `FilePlan.remaining`."""
        return [edit for file in self.files for edit in file.remaining(made, dropped, own)]

    def reworded(self, name: str, text: str, seen: str | None) -> list[ProposedEdit]:
        """Replace what is proposed for a place by the user's own text.

        Args:
            name: The place, as in `find`.
            text: The text for it.
            seen: The current text of the place when the user began to write; None to not compare.

        Raises:
            NotFoundError: There is no such place.
            ConflictError: The text of the place has changed since.
            KbtuiError: The file can't be read or written.
        """
        changed, place = self.find(name)
        if changed.error is not None:
            raise changed.error
        if seen is not None and seen != changed.current_text(place):
            raise ConflictError(
                f"{short_name(changed.path)} was changed there while you wrote.",
                "Your text was not taken. Look at the place again.",
                paths=(changed.path,),
            )
        return self.remaining(own={place: text})

    def commit_reason(self, done: str, chosen: Collection[ProposedPlace]) -> str:
        """Return the reason for the commit that decides on some places."""
        count = len(self.places)
        what = "a proposal"
        if len(chosen) != count:
            what = f"{len(chosen)} of {count} places of a proposal"
        return f"{done} {what} of {self.proposal.actor}: {self.proposal.reason}"

    def check(self, chosen: Collection[ProposedPlace], *, theirs: bool) -> None:
        """Refuse what can't be written, and undecided conflicts.

        Args:
            chosen: The accepted places.
            theirs: Whether conflicts are decided for the proposed side.

        Raises:
            KbtuiError: A file can't be read or written.
            ConflictError: A person must resolve a conflict first.
        """
        for file in self.files:
            clashing = [place for place in file.places if place in chosen and place.why]
            if not clashing:
                continue
            if theirs and file.error is not None:
                raise file.error
            if not theirs:
                raise _conflict(file, clashing)


def _conflict(file: FilePlan, places: Sequence[ProposedPlace]) -> ConflictError:
    stands = [line.strip() for place in places for line in place.ours if line.strip()]
    there = f" There stands: {shorten(clean_line(stands[0]), 60)}." if stands else ""
    return ConflictError(
        f"{short_name(file.edit.path)} can't be changed as proposed ({places[0].why}).{there}",
        "Nothing was changed. Edit the place to say what shall stand there, or reject it.",
        paths=(file.path,),
    )


# Planning -----------------------------------------------------------------------------------------


class Proposing(Decisions):
    """Decides every conflict for the proposed side, and records all of them in `open`."""

    def on(self, conflict: Conflict) -> Resolution | None:
        """Record the conflict and decide for the proposed side."""
        super().on(conflict)
        return Side.THEIRS


def plan_file(
    work: Revert, decisions: Proposing, since: str | None, edit: ProposedEdit
) -> FilePlan:
    """Merge one file of a proposal into the current state; reads files.

    Args:
        work: The merge, created for this file alone.
        decisions: Its decisions.
        since: The commit after which the file is followed through renames.
        edit: The proposed edit.
    """
    old = edit.old_path or edit.path
    try:
        if edit.wanted is None and edit.base is not None:
            work.delete(since, old, edit.base)
        else:
            work.apply_change(
                since, old, edit.path if edit.old_path else None, edit.base, edit.wanted
            )
    except KbtuiError as error:
        lines = tuple(split_lines(files.text_of(edit.wanted)))
        place = _whole(edit, error.message.rstrip("."), 0, (), lines)
        return FilePlan(edit, edit.path, None, {}, {}, (place,), error)
    file = _locate(edit, work.before, work.edits)
    conflicts = decisions.open
    if not file.changes:
        return file
    if not file.stays or edit.base is None or any(each.kind == "file" for each in conflicts):
        return _as_one(file, conflicts)
    return replace(file, places=_places(edit.path, file.text, file.target, conflicts))


def _locate(edit: ProposedEdit, before: Edits, after: Edits) -> FilePlan:
    """Return the plan of an edit under the file's current name, without places."""
    gone = [path for path in after if after[path] is None and path != edit.path]
    moves = edit.old_path is not None and bool(gone) and after.get(edit.path) is not None
    path = edit.path if moves or edit.path in before else next(iter(before), edit.path)
    return FilePlan(edit, path, gone[0] if moves else None, before, after, ())


def _as_one(file: FilePlan, conflicts: Sequence[Conflict]) -> FilePlan:
    now, target = file.text, file.target
    if file.edit.base is None and file.now is not None and same_text(now, target):
        return file
    why = _why(file, conflicts[0]) if conflicts else ""
    error = None
    if why == _NOT_UTF8:
        name = short_name(file.path)
        error = UnreadableError(f"{name} can't be changed: {why}.", "Edit it with another program.")
    old, new = split_lines(now), split_lines(target)
    head, tail = common_ends(keys_of(old), keys_of(new))
    ours, theirs = tuple(old[head : len(old) - tail]), tuple(new[head : len(new) - tail])
    place = _whole(file.edit, why, head, ours, theirs)
    return replace(file, places=(place,), error=error)


def _why(file: FilePlan, conflict: Conflict) -> str:
    if conflict.kind == "name" and conflict.ours != file.edit.old_path:
        return f"the file is called {conflict.ours} now"
    if conflict.kind == "name" or (conflict.kind == "file" and file.edit.base is None):
        return "there is another file of that name"
    if conflict.kind == "file" and file.now is None:
        return "the file is gone"
    return _NOT_UTF8 if conflict.kind == "file" and file.edit.wanted is not None else _CHANGED


def _whole(
    edit: ProposedEdit, why: str, first: int, ours: tuple[str, ...], theirs: tuple[str, ...]
) -> ProposedPlace:
    key = _key((edit.path, edit.base, edit.wanted))
    return ProposedPlace(first, ours, theirs, ours, key, why, whole=True)


def _places(
    path: str, now: str, target: str, conflicts: Sequence[Conflict]
) -> tuple[ProposedPlace, ...]:
    """Return the places of a text whose file isn't created, deleted or renamed."""
    lines = split_lines(now)
    found: list[tuple[ProposedPlace, list[Conflict]]] = [
        (place, []) for place in places_of(now, target)
    ]
    for conflict in conflicts:
        hit = [number for number, (place, _) in enumerate(found) if _concerns(conflict, place)]
        if hit:  # places with a common conflict become one
            together = found[hit[0] : hit[-1] + 1]
            about = [*(each for _, others in together for each in others), conflict]
            found[hit[0] : hit[-1] + 1] = [(_joined(lines, [each for each, _ in together]), about)]
    seen: Counter[object] = Counter()
    places = []
    for place, about in found:
        content = (path, tuple(keys_of(place.ours)), tuple(keys_of(place.theirs)))
        seen[content] += 1
        was = tuple(_base_lines(place.first, place.ours, about))
        key, why = _key((content, seen[content])), _CHANGED if about else ""
        places.append(replace(place, was=was, key=key, why=why))
    return tuple(places)


def _concerns(conflict: Conflict, place: ProposedPlace) -> bool:
    if conflict.line:
        first = conflict.line - 1
        last = first + max(1, len(split_lines(conflict.ours)))
        if not place.ours:
            return first < place.first < last
        return place.first < last and first < place.last
    wanted = keys_of(split_lines(conflict.theirs))
    return bool(wanted) and wanted[0] in keys_of(place.theirs)


def _base_lines(first: int, ours: tuple[str, ...], conflicts: Iterable[Conflict]) -> Iterator[str]:
    """Yield the lines that a place was proposed for, as far as they explain its conflicts."""
    lines: dict[int, list[str]] = {first + number: [line] for number, line in enumerate(ours)}
    for conflict in conflicts:
        written = conflict.written
        content = split_lines(written if not written or written.endswith("\n") else f"{written}\n")
        if not conflict.line:
            yield from content
        elif conflict.line - 1 in lines:
            for number in range(len(split_lines(conflict.ours))):
                lines.pop(conflict.line - 1 + number, None)
            lines[conflict.line - 1] = content
    for _, each in sorted(lines.items()):
        yield from each


# Changes of lines ---------------------------------------------------------------------------------


def places_of(now: str, target: str) -> list[ProposedPlace]:
    """Return the differences between two texts, each as small as a person may want to decide on.

    Adjacent list items that are added or removed are places of their own, and so are frontmatter
    keys and items that were replaced one by one. Line ends are ignored.
    """
    old, new = split_lines(now), split_lines(target)
    found = [
        part
        for tag, a1, a2, b1, b2 in opcodes(keys_of(old), keys_of(new))
        if tag != "equal"
        for part in _split_block(a1, tuple(old[a1:a2]), tuple(new[b1:b2]))
    ]
    while len(found) > MAX_PLACES:
        found = [_joined(old, found[n : n + 2]) for n in range(0, len(found), 2)]
    return found


def put(lines: Sequence[str], places: Iterable[ProposedPlace]) -> str:
    """Apply places to lines; only the last line may lack a line end."""
    result: list[str] = []
    at = 0
    for place in places:
        result += [*lines[at : place.first], *place.theirs]
        at = place.last
    *body, last = [*result, *lines[at:]] or [""]
    end = _line_end("".join(lines))
    return "".join(line if line.endswith("\n") else line + end for line in body) + last


def _joined(lines: Sequence[str], places: Sequence[ProposedPlace]) -> ProposedPlace:
    """Combine adjacent places, with the lines between them."""
    first, last = places[0].first, places[-1].last
    theirs = list(places[0].theirs)
    for before, after in pairwise(places):
        theirs += [*lines[before.last : after.first], *after.theirs]
    return ProposedPlace(first, tuple(lines[first:last]), tuple(theirs))


def _split_block(first: int, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[ProposedPlace]:
    """Split a changed block where a person would."""
    if len(old) == len(new) and all(map(_is_pair, old, new)):
        for offset, (line, other) in enumerate(zip(old, new, strict=True), first):
            yield ProposedPlace(offset, (line,), (other,))
    elif not old and _is_list(new):
        for start, end in _items(new):
            yield ProposedPlace(first, (), new[start:end])
    elif not new and _is_list(old):
        for start, end in _items(old):
            yield ProposedPlace(first + start, old[start:end], ())
    else:
        yield ProposedPlace(first, old, new)


def _is_pair(old: str, new: str) -> bool:
    """Return whether two lines pair up: two list items, or two values of the same key."""
    keys = _KEY.match(old), _KEY.match(new)
    if keys[0] and keys[1]:
        return keys[0][1] == keys[1][1]
    return bool(_ITEM.match(old) and _ITEM.match(new))


def _is_list(lines: Sequence[str]) -> bool:
    return bool(_ITEM.match(lines[0])) and all(
        _ITEM.match(line) or not line.strip() or line[0] in " \t" for line in lines
    )


def _items(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    starts = [index for index, line in enumerate(lines) if _ITEM.match(line)]
    yield from pairwise([*starts, len(lines)])


# Texts --------------------------------------------------------------------------------------------


def in_form_of(data: bytes | None, text: str) -> bytes:
    """Encode a text like an existing file: its BOM, line ends and date of last change."""
    old = files.decode(data or b"")
    text = _with_dates_of(old.text, text)
    if _line_end(old.text) != "\n":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return files.encoded_as(text, old)


def same_text(a: str, b: str) -> bool:
    """Return whether two texts differ only in line ends and the date of the last change."""
    return keys_of(split_lines(a)) == keys_of(split_lines(_with_dates_of(a, b)))


def _with_dates_of(base: str, text: str) -> str:
    """Return a text with another one's dates of the last change."""
    was, front = split_front(base), split_front(text)
    if was is None or front is None:
        return text
    both = was.units.keys() & front.units.keys() & LATER_WINS
    dates = {key: was.units[key] for key in both if later_wins(key, front.units[key])}
    units = {**front.units, **dates}
    return "".join([*replace(front, units=units).lines(), *front.body])


def _line_end(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _key(content: object) -> str:
    return "h" + hashlib.sha256(repr(content).encode("utf-8", "replace")).hexdigest()[:6]
