"""Merging two histories: computes the resulting content of each file.

Each file is compared with the common base. A change by one side is taken over; changes by both are
merged; an edit wins over a deletion, and edits by one side follow a rename by the other. Nothing is
written here: the door applies the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kbtui.history.merging.line_merge import (
    Conflict as Conflict,
    Decisions,
    Resolution as Resolution,
    Side as Side,
)
from kbtui.history.merging.path_conflicts import resolve_path_conflicts
from kbtui.history.merging.undo_merge import (
    FrontmatterParts,
    common_items,
    date_of,
    holds_all_of,
    later_wins,
    revert,
    split_front as split_front,
)
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import GONE, TreeEntry
from kbtui.history.queries.diff import pair_renames, split_lines
from kbtui.history.queries.matching import keys_of, matching_blocks
from kbtui.workspace import files
from kbtui.workspace.layout import conflict_copy_of, folders_of, short_name


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of merging two texts.

    Attributes:
        data: The merged file, with our side of conflicts.
        theirs: The merged file with their side of conflicts; None if there are none.
        places: Our text of each conflict.
    """

    data: bytes
    theirs: bytes | None = None
    places: tuple[str, ...] = ()


def _is_text(read: files.Decoded) -> bool:
    return read.exact and read.encoding.startswith("utf-8")


def merge_three(path: str, base: bytes | None, ours: bytes, theirs: bytes) -> Merged | None:
    """Merge two versions of a file.

    If the merge would lose a line of either side in both results, because several changed lines
    coincide, the results are the two unmerged versions, and a person decides.

    Args:
        path: The file, for conflicts.
        base: The common ancestor; None if each side created the file.
        ours: Our version.
        theirs: Their version.

    Returns:
        The merge, or None if the versions aren't texts in UTF-8.
    """
    decoded = [files.decode(data) for data in (ours, theirs, base or b"")]
    encoding = decoded[0].encoding
    if not all(map(_is_text, decoded)) or any(b"\0" in each for each in (ours, theirs)):
        return None
    one, other = _agree_on_dates(decoded[0].text, decoded[1].text)
    start = _virtual_base(one, other) if base is None else decoded[2].text
    merge = revert(path, [start, one], other)
    here, there = merge.text, None
    if merge.conflicts:
        decisions = Decisions(dict.fromkeys(merge.conflicts, Side.THEIRS))
        there = revert(path, [start, one], other, decisions).text
    if any(_loses_lines(start, side, [here, there or here]) for side in (one, other)):
        here, there = one, other
    places = tuple(conflict.ours or conflict.written for conflict in merge.conflicts)
    return Merged(here.encode(encoding), None if there is None else there.encode(encoding), places)


def _loses_lines(base: str, side: str, results: list[str]) -> bool:
    """Return whether a line of `side` is in none of `results`; list items may be in any list."""
    kept = {line.strip() for text in (base, *results) for line in split_lines(text)}
    missing = {line.strip() for line in split_lines(side)} - kept - {""}
    if not missing:
        return False
    front, was = split_front(side), split_front(base)
    lists = [split_front(text) for text in results]
    for key, unit in front.units.items() if front else ():
        known = was.units.get(key, ()) if was else ()
        heads = [each.units.get(key, ()) for each in lists if each]
        if later_wins(key, unit) or any(holds_all_of(each, unit, known) for each in heads):
            missing.difference_update(line.strip() for line in unit)
    return bool(missing)


def _agree_on_dates(ours: str, theirs: str) -> tuple[str, str]:
    """Give both texts the later `updated` and the earlier `created`."""
    one, other = split_front(ours), split_front(theirs)
    if one is None or other is None:
        return ours, theirs
    choose: dict[str, Callable[[str, str], str]] = {"updated": max, "created": min}
    for key, chosen in choose.items():
        dates = [date_of(front.units.get(key, ())) for front in (one, other)]
        if dates[0] is None or dates[1] is None or dates[0] == dates[1]:
            continue
        winner = one if chosen(dates[0], dates[1]) == dates[0] else other
        for front in (one, other):
            front.units[key] = winner.units[key]
    return _join(one), _join(other)


def _join(front: FrontmatterParts) -> str:
    return "".join([*front.lines(), *front.body])


def _virtual_base(ours: str, theirs: str) -> str:
    """Return the lines that two texts share, as a base for texts without a common ancestor."""
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
    front = FrontmatterParts(one.opening, units, one.closing, [])
    return "".join(front.lines()) + _common_lines(one.body, other.body)


def _common_lines(ours: list[str], theirs: list[str]) -> str:
    blocks = matching_blocks(keys_of(ours), keys_of(theirs))
    return "".join(line for start, _, size in blocks for line in ours[start : start + size])


Resolver = Callable[[str, "bytes | None", "bytes | None", "bytes | None"], "bytes | None"]
"""Merges a file of a special kind: a function of its path and base, ours and theirs."""


@dataclass(frozen=True, slots=True)
class Clash:
    """A file that both sides changed in the same place.

    Attributes:
        path: The file.
        kept: The merged file with our side of the conflicts.
        theirs: The merged file with their side.
        places: Our text of each conflict.
    """

    path: str
    kept: bytes
    theirs: bytes
    places: tuple[str, ...]


@dataclass(slots=True)
class MergePlan:
    """The effect of a merge on our files.

    Attributes:
        edits: The new content of each path that changes; None deletes it.
        clashes: Files with conflicts for a person to decide.
        copies: Their versions of files that can't be merged, by the name of the conflict copy.
        notes: What a person should know, one sentence each.
        foreign: Changed tree entries outside the workspace's files, such as a README.md, by path.
    """

    edits: dict[str, bytes | None] = field(default_factory=dict)
    clashes: list[Clash] = field(default_factory=list)
    copies: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    foreign: dict[str, TreeEntry] = field(default_factory=dict)


class _SideChanges:
    """The changes of one side since the base."""

    def __init__(self, repository: Repository, base: str | None, tip: str) -> None:
        self._repository = repository
        self.changes = {path: (was, now) for path, was, now in repository.compare(base, tip)}
        made = {path: now for path, (was, now) in self.changes.items() if not was and now}
        gone = {path: was for path, (was, now) in self.changes.items() if was and not now}
        found = pair_renames(made, gone, repository.read_blob)
        self.renames = {old: new for new, old in found.items()}

    def blob(self, path: str, was: str | None) -> str | None:
        """Return the current blob id of a path, given its blob id in the base."""
        return self.changes.get(path, (was, was))[1]


class TreeMerge:
    """Plans one merge.

    Args:
        repository: The repository that holds all three commits.
        base: The common ancestor.
        ours: Our newest commit.
        theirs: Their newest commit.
        resolver_of: Returns the resolver for a file of a special kind, None for others.
    """

    def __init__(
        self,
        repository: Repository,
        base: str | None,
        ours: str,
        theirs: str,
        resolver_of: Callable[[str], Resolver | None],
    ) -> None:
        self._repository = repository
        self._tips = base, ours, theirs
        self._ours = _SideChanges(repository, base, ours)
        self._theirs = _SideChanges(repository, base, theirs)
        self._resolver_of = resolver_of
        self._plan = MergePlan()
        self._handled: set[str] = set()

    def plan(self) -> MergePlan:
        """Compute the plan."""
        for old in sorted(self._ours.renames.keys() | self._theirs.renames.keys()):
            self._follow_rename(old)
        for path in sorted(self._theirs.changes.keys() - self._handled):
            self._merge_path(path)
        self._fix_path_conflicts()
        self._merge_foreign()
        return self._plan

    def _merged_paths(self) -> set[str]:
        names = self._repository.files(self._tips[1]).keys() - self._plan.edits.keys()
        return names | {path for path, data in self._plan.edits.items() if data is not None}

    def _fix_path_conflicts(self) -> None:
        """Rename files where the other side has created a folder of the same name."""
        plan = self._plan
        for old, new in resolve_path_conflicts(self._merged_paths()).items():
            here = self._repository.content_at(self._tips[1], old)
            plan.edits[new] = plan.edits.get(old, here)
            plan.edits[old] = None
            plan.clashes = [
                replace(clash, path=new) if clash.path == old else clash for clash in plan.clashes
            ]
            self._note(f"{short_name(old)} is {short_name(new)} now: it is a folder as well")

    def _merge_foreign(self) -> None:
        """Take over their changes outside the workspace's files.

        kbtui itself never changes these.
        """
        base, ours, theirs = map(self._repository.foreign, self._tips)
        names = self._merged_paths()
        folders = {folder for path in names for folder in folders_of(path)}
        for path in sorted(base.keys() | theirs.keys()):
            entry = theirs.get(path)
            if entry in (base.get(path), ours.get(path)):
                continue
            if entry is None:
                self._plan.foreign[path] = GONE
            elif names.isdisjoint((path, *folders_of(path))) and path not in folders:
                self._plan.foreign[path] = entry

    def _read(self, blob: str | None) -> bytes | None:
        return None if blob is None else self._repository.read_blob(blob)

    def _base_blob(self, path: str) -> str | None:
        for side in (self._ours, self._theirs):
            if path in side.changes:
                return side.changes[path][0]
        return None

    def _follow_rename(self, old: str) -> None:
        """Combine a rename by one side with edits by the other."""
        here, there = self._ours.renames.get(old), self._theirs.renames.get(old)
        was = self._base_blob(old)
        if here is not None and there is None:
            edited = self._theirs.blob(old, was)
            if here in self._theirs.changes:
                return  # they created another file of that name: the edits have no target
            self._handled |= {old, here}
            if edited is None:
                self._note(f"{short_name(here)} stays: it was renamed here and deleted there.")
            elif edited != was:
                self._merge_contents(here, was, self._ours.blob(here, None), edited)
        elif there is not None and here is None:
            self._take_rename(old, there, was)
        elif here is not None and there is not None:
            self._merge_renamed(old, here, there, was)

    def _merge_renamed(self, old: str, here: str, there: str, was: str | None) -> None:
        """Merge a file that both sides renamed; our name stays."""
        if here != there and (here in self._theirs.changes or there in self._ours.changes):
            return  # a new name belongs to another file on the other side: keep both
        self._handled |= {old, here, there}
        self._merge_contents(here, was, self._ours.blob(here, None), self._theirs.blob(there, None))
        if here != there:
            self._note(f"{short_name(here)} keeps its name; {short_name(there)} was their name.")

    def _take_rename(self, old: str, new: str, was: str | None) -> None:
        here = self._ours.blob(old, was)
        if new in self._ours.changes:
            return
        self._handled |= {old, new}
        if here is None:
            self._note(f"{short_name(new)} is back: it was deleted here and renamed there.")
            self._plan.edits[new] = self._read(self._theirs.blob(new, None))
            return
        self._plan.edits[old] = None
        self._merge_contents(new, was, here, self._theirs.blob(new, None))
        if self._plan.edits.get(new) is None:  # only the name changed
            self._plan.edits[new] = self._read(here)

    def _merge_path(self, path: str) -> None:
        was, there = self._theirs.changes.get(path, (None, None))
        here = self._ours.blob(path, was)
        if here == there:
            return
        resolver = self._resolver_of(path)
        if here == was:
            self._plan.edits[path] = self._read(there)
        elif resolver is not None:
            self._resolve(resolver, path, was, here, there)
        elif there is None:
            self._note(f"{short_name(path)} stays: it was changed here and deleted there.")
        elif here is None:
            self._note(f"{short_name(path)} is back: it was deleted here and changed there.")
            self._plan.edits[path] = self._read(there)
        else:
            self._merge_contents(path, was, here, there)

    def _resolve(
        self,
        resolver: Resolver,
        path: str,
        was: str | None,
        here: str | None,
        there: str | None,
    ) -> None:
        now = self._read(here)
        merged = resolver(path, self._read(was), now, self._read(there))
        if merged != now:
            self._plan.edits[path] = merged

    def _merge_contents(
        self, path: str, was: str | None, here: str | None, there: str | None
    ) -> None:
        ours, theirs = self._read(here) or b"", self._read(there) or b""
        if there in (here, was):
            return
        if here == was:
            self._plan.edits[path] = theirs
            return
        merged = merge_three(path, self._read(was), ours, theirs)
        if merged is None:
            self._keep_both(path, theirs, there or "")
        else:
            self._record_merge(path, ours, merged)

    def _record_merge(self, path: str, ours: bytes, merged: Merged) -> None:
        if merged.data != ours:
            self._plan.edits[path] = merged.data
        if merged.theirs is not None and merged.theirs != merged.data:
            clash = Clash(path, merged.data, merged.theirs, merged.places)
            self._plan.clashes.append(clash)

    def _keep_both(self, path: str, theirs: bytes, blob: str) -> None:
        copy = conflict_copy_of(path, blob[:12])
        self._plan.copies[copy] = theirs
        self._note(f"{short_name(path)} was changed on both sides: their version is {copy}.")

    def _note(self, note: str) -> None:
        self._plan.notes.append(note if note.endswith(".") else f"{note}.")
