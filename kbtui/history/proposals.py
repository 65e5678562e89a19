"""Proposals: changes that wait beside the branch until somebody accepts or drops them.

Each is a commit under ``refs/proposals/ID``; its parent holds what it was made from, so the step
between the two can be merged into whatever the files have become. Making one moves neither the
branch nor a file. Accepting is an undo forwards: later edits stay, and where the same line or key
was changed again both sides are handed to whoever asked.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, NotFoundError, UsageError
from kbtui.history.change import Change
from kbtui.history.door import redact_change
from kbtui.history.looking.diff import diff_file, without_hunks
from kbtui.history.objects.commit import Origin, read_commit
from kbtui.history.undo.revert import Revert
from kbtui.history.undo.undo import UndoPlan
from kbtui.text import clean_line
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.files import blob_id
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from kbtui.history.door import Door, Edits
    from kbtui.history.looking.log import CommitLog
    from kbtui.history.merging.conflict import Conflict, Resolution
    from kbtui.history.objects.commit import Commit, PathChange
    from kbtui.history.objects.repository import Repository
    from kbtui.workspace.layout import Layout

_READ = "What a proposal was made from"


@dataclass(frozen=True, slots=True)
class ProposalRef:
    """A change that waits.

    Attributes:
        id: Its name, short enough to type.
        commit: Who proposed it, when, why (`body`), from what (`origin`), and for which paths.
    """

    id: str
    commit: Commit


@dataclass(frozen=True, slots=True)
class _Step:
    """One file of a proposal: from what to what, and what it proposes beside that."""

    change: PathChange
    base: bytes | None
    wanted: bytes | None
    rest: bytes | None = None
    is_whole: bool = True


class Proposals:
    """The proposals of one workspace; whoever changes one has entered the door."""

    def __init__(self, layout: Layout, repository: Repository, log: CommitLog, door: Door) -> None:
        self._layout = layout
        self._repository = repository
        self._log = log
        self._door = door
        self._refs = repository.proposals

    def all(self) -> tuple[ProposalRef, ...]:
        """All that wait and can be read, the oldest first."""
        found = []
        for name, commit in self._refs.all().items():
            try:
                found.append(ProposalRef(name, self._log.commit(commit)))
            except NotFoundError:
                continue
        return tuple(sorted(found, key=lambda each: (each.commit.time, each.id)))

    def get(self, name: str) -> ProposalRef:
        """One proposal by its id.

        Raises:
            NotFoundError: There is none, or it is damaged.
        """
        commit = self._refs.all().get(name)
        if commit is None:
            raise NotFoundError(f"There is no proposal {clean_line(name)!r}.")
        return ProposalRef(name, self._log.commit(commit))

    def add(
        self, change: Change, name: str | None, bases: Mapping[str, bytes | None]
    ) -> ProposalRef:
        """See `History.propose`."""
        with self._door.entered() as events:
            current = self._door.settled(change.edits, events)
            known = self._refs.all()
            old = self.get(name).commit if name in known and name is not None else None
            proposed = self._contents(old)
            _check_expected(change, {**current, **proposed}, set(bases) - proposed.keys())
            read = {p: bases.get(p, current[p]) for p in change.edits if p not in proposed}
            base = self._base(old.parent if old else self._repository.head(), read, change)
            before = self._at(base, [*proposed, *change.edits])
            if change.actor.is_machine:
                redact_change(change, before)
            when = old.time if old else None
            commit = self._store(change, base, {**proposed, **change.edits}, when)
            if commit is None:
                raise UsageError("A proposal needs at least one file that it changes.")
            name = _free(known) if name is None else name
            self._refs.put(name, commit.id)
        return ProposalRef(name, commit)

    def plan(
        self,
        ref: ProposalRef,
        hunks: Collection[int],
        decisions: Mapping[Conflict, Resolution] | None,
    ) -> UndoPlan:
        """Work out what accepting writes.

        Raises:
            UndoConflictError: Lines were changed meanwhile.
            UsageError: There is no such hunk.
        """
        work = Revert(self._layout, self._repository, self._log, decisions)
        since = self._since(ref.commit)
        for step in self._steps(ref.commit, hunks):
            path, name = step.change.old_path or step.change.path, None
            if step.is_whole and step.change.old_path is not None:
                name = step.change.path
            work.go(since, path, name, step.base, step.wanted)
        work.check("Say which side is to stand.")
        edits = {path: data for path, data in work.edits.items() if data != work.before[path]}
        said = "\n".join(part for part in (ref.commit.subject, ref.commit.body) if part)
        origin = replace(ref.commit.origin, proposal=ref.id)
        return UndoPlan(edits, work.before, f"Accepted: {said}", origin)

    def leave(self, ref: ProposalRef, hunks: Collection[int]) -> None:
        """Keep what a proposal says beside some hunks; without anything, or any hunks, it goes."""
        commit = ref.commit
        rest = self._contents(commit) if hunks else {}
        for step in self._steps(commit, hunks) if hunks else ():
            if not step.is_whole:
                rest[step.change.path] = step.rest
                continue
            for path in (step.change.path, step.change.old_path):
                rest.pop(path or "", None)
        change = Change(self._layout, commit.actor, commit.body, commit.origin)
        left = self._store(change, commit.parent, rest, commit.time)
        if left is None:
            self._refs.drop(ref.id)
        else:
            self._refs.put(ref.id, left.id)

    def _steps(self, commit: Commit, hunks: Collection[int]) -> Iterator[_Step]:
        """The files of a proposal of which some hunks are wanted; no hunks are all of them."""
        count = 0
        for change in commit.paths:
            base = self._at(commit.parent, [change.old_path or change.path]).popitem()[1]
            new = self._at(commit.id, [change.path])[change.path]
            if not hunks:
                yield _Step(change, base, new)
                continue
            found = dict(enumerate(diff_file(change.path, base, new).hunks, count + 1))
            count += len(found)
            taken = [hunk for number, hunk in found.items() if number in hunks]
            left = [hunk for number, hunk in found.items() if number not in hunks]
            if taken and (not left or base is None or new is None):
                yield _Step(change, base, new)
            elif taken and base is not None and new is not None:
                wanted, rest = without_hunks(base, new, left), without_hunks(base, new, taken)
                yield _Step(change, base, wanted, rest, is_whole=False)
        for number in hunks:
            if not 1 <= number <= count:
                raise UsageError(f"There is no hunk {number}.", f"It has {count}: 1 to {count}.")

    def _since(self, commit: Commit) -> str | None:
        """The commit of the branch after which the files are followed; None: it is gone."""
        base = commit.parent
        while base is not None:
            made = read_commit(base, self._repository.read_commit(base))
            if made.body != _READ:
                break
            base = made.parent
        try:
            next(self._log.later(base or "", ""), None)
        except NotFoundError:  # a history that was taken over from elsewhere
            return None
        return base

    def _contents(self, commit: Commit | None) -> Edits:
        """The new content of each path that a proposal changes."""
        if commit is None:
            return {}
        paths = [each for c in commit.paths for each in (c.path, c.old_path) if each]
        return self._at(commit.id, paths)

    def _at(self, commit: str | None, paths: Iterable[str]) -> Edits:
        blobs = self._repository.blobs_at(commit, paths)
        read = self._repository.read_blob
        return {path: None if blob is None else read(blob) for path, blob in blobs.items()}

    def _base(self, parent: str | None, read: Edits, change: Change) -> str | None:
        """The commit that holds what was read: `parent`, if that says the same."""
        made = self._store(Change(self._layout, change.actor, _READ, Origin()), parent, read)
        return parent if made is None else made.id

    def _store(
        self, change: Change, base: str | None, edits: Edits, when: datetime | None = None
    ) -> Commit | None:
        """Make the commit of what differs from its base durable; None where nothing does."""
        before = self._at(base, edits)
        differing = {path: data for path, data in edits.items() if data != before[path]}
        if not differing:
            return None
        commit, _, objects = self._door.build(change, base, before, differing, when)
        with storage_errors("Can't record the proposal"):
            self._repository.store(objects)
        return commit


def _check_expected(change: Change, current: Edits, unchecked: Collection[str]) -> None:
    """Refuse what was made from something else than what stands there or is proposed for it."""
    lost = [
        path
        for path, expected in change.expected.items()
        if path not in unchecked and _blob(current[path]) != expected
    ]
    if lost:
        names = ", ".join(map(short_name, lost))
        raise ConflictError(
            f"{names}, or what is proposed for it, was changed by somebody else meanwhile.",
            "Nothing was proposed. Read it again, and propose what is still needed.",
            paths=tuple(lost),
        )


def _blob(data: bytes | None) -> str | None:
    return None if data is None else blob_id(data)


def _free(taken: Collection[str]) -> str:
    while (name := secrets.token_hex(3)) in taken:
        pass
    return name
