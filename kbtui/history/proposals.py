"""Proposals: changes that wait beside the branch until somebody accepts or rejects them.

Each is a commit under ``refs/proposals/ID``; its parent holds the version it is based on, so the
difference can be merged into whatever the files have become. Creating one moves neither the branch
nor a file. Accepting works like an undo forwards: later edits stay, and if the same line or key was
changed again, a person decides.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kbtui.errors import ConflictError, NotFoundError, UsageError
from kbtui.history.change import Change
from kbtui.history.door import Door, redact_change
from kbtui.history.objects.commit import (
    REJECTED,
    Actor,
    Commit,
    Edits,
    Origin,
    PathChange,
    read_commit,
)
from kbtui.history.objects.repository import Repository
from kbtui.history.places import Plan, Proposal, ProposedEdit, ProposedPlace, Proposing, plan_file
from kbtui.history.queries.log import CommitLog
from kbtui.history.undo import Revert
from kbtui.text import clean_line
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.files import blob_of
from kbtui.workspace.layout import Layout, short_name

_BASE_REASON = "What a proposal was made from"
Companion = Callable[[Change, Plan, Collection[ProposedPlace]], None]


class Proposals:
    """The proposals of one workspace."""

    def __init__(
        self,
        layout: Layout,
        repository: Repository,
        log: CommitLog,
        door: Door,
        clock: Callable[[], datetime],
    ) -> None:
        self._clock = clock
        self._layout = layout
        self._repository = repository
        self._log = log
        self._door = door
        self._refs = repository.proposals
        self._known: dict[str, Proposal] = {}  # by commit

    def all(self) -> tuple[Proposal, ...]:
        """Return all readable proposals, the oldest first."""
        found = []
        for name, commit in self._refs.all().items():
            try:
                found.append(self._read(name, commit))
            except NotFoundError:
                continue
        self._known = {each.commit.id: each for each in found}
        return tuple(sorted(found, key=lambda each: (each.created, each.id)))

    def get(self, name: str) -> Proposal:
        """Return one proposal by its id.

        Raises:
            NotFoundError: There is none, or it is damaged.
        """
        commit = self._refs.all().get(name)
        if commit is None:
            raise NotFoundError(f"There is no proposal {clean_line(name)!r}.")
        return self._read(name, commit)

    def stamp(self) -> int:
        """Return a number that changes whenever any process adds, drops or changes a proposal."""
        return self._refs.stamp()

    def add(
        self,
        change: Change,
        *,
        id: str | None = None,
        bases: Mapping[str, bytes | None] | None = None,
        when: datetime | None = None,
    ) -> Proposal:
        """Store a change as a proposal: a commit beside the branch, without touching files.

        What a machine proposes is redacted; outside edits of the files are recorded first.

        Args:
            change: The proposed change, as a sink of `History.change` receives it.
            id: The id. If such a proposal exists, the change is added to it: its paths get the new
                text, others are added. None chooses a free id.
            bases: The base contents of some paths, if they differ from the current files (None:
                there was no file). Accepting merges from these.
            when: The time of the proposal; None for now.

        Raises:
            ConflictError: The file or the existing proposal isn't what the change expected.
            UsageError: It changes nothing, or `id` is invalid.
            WorkspaceBusyError: Another process is writing.
            StorageError: The file system refused.
        """
        bases = bases or {}
        with self._door.entered() as events:
            current = self._door.settled(change.edits, events)
            known = self._refs.all()
            old = self.get(id).commit if id is not None and id in known else None
            proposed = self._contents(old)
            _check_expected(change, {**current, **proposed}, set(bases) - proposed.keys())
            read = {p: bases.get(p, current[p]) for p in change.edits if p not in proposed}
            base = self._base(old.parent if old else self._repository.head(), read, change)
            before = self._repository.contents_at(base, [*proposed, *change.edits])
            if change.actor.is_machine:
                redact_change(change, before)
            when = old.time if old else when or self._next_time()
            commit = self._store(change, base, {**proposed, **change.edits}, when)
            if commit is None:
                raise UsageError("A proposal needs at least one file that it changes.")
            name = _free_id(known) if id is None else id
            self._refs.put(name, commit.id)
            return self._read(name, commit.id)

    def preview(self, id: str) -> Plan:
        """Return what accepting would do to the current files; raises like `get`."""
        proposal = self.get(id)
        since = self._since(proposal.commit)
        planned = []
        for edit in proposal.edits:
            decisions = Proposing()
            work = Revert(self._layout, self._repository, self._log, decisions)
            planned.append(plan_file(work, decisions, since, edit))
        return Plan(proposal, tuple(planned))

    def accept(
        self,
        id: str,
        *,
        actor: Actor = Actor.YOU,
        places: Collection[str] | None = None,
        theirs: bool = False,
        companion: Companion = lambda *_: None,
    ) -> Commit | None:
        """Commit a proposed change, merged into the current files.

        The rest of it continues to wait.

        Args:
            id: The proposal.
            actor: The actor that accepts.
            places: Only these, by key or by number from 1 as in `preview`.
            theirs: In conflicts, replace what was changed meanwhile by what is proposed.
            companion: Adds edits to the same commit.

        Returns:
            The commit, whose origin names the proposal; None if the files had all of it already.

        Raises:
            NotFoundError: There is no such proposal or place.
            ConflictError: The same lines were changed meanwhile. Nothing was changed, and the
                proposal continues to wait.
        """
        with self._door.entered():  # so that nobody else accepts it at the same time
            plan = self.preview(id)
            chosen = plan.chosen(places)
            plan.check(chosen, theirs=theirs)
            origin = replace(plan.proposal.origin, proposal=id)
            change = Change(self._layout, actor, plan.commit_reason("Accepted", chosen), origin)
            for file in plan.files:
                for path, data in file.accepted(chosen).items():
                    change.put(path, data, over=file.before[path])
            companion(change, plan, chosen)
            self._door.apply(change)
            self._keep(plan.proposal, plan.remaining(made=chosen))
        return change.result

    def drop(
        self,
        id: str,
        *,
        actor: Actor = Actor.YOU,
        places: Collection[str] | None = None,
        companion: Companion = lambda *_: None,
    ) -> Proposal:
        """Discard a proposal, or some places of it; return it as it was.

        The edits of `companion` are one commit. Arguments and errors are those of `accept`.
        """
        with self._door.entered():
            plan = self.preview(id)
            chosen = plan.chosen(places)
            reason = plan.commit_reason(REJECTED, chosen)
            change = Change(self._layout, actor, reason, plan.proposal.origin)
            companion(change, plan, chosen)
            self._door.apply(change)
            self._keep(plan.proposal, plan.remaining(dropped=chosen))
        return plan.proposal

    def reword(self, id: str, place: str, text: str, *, seen: str | None = None) -> Proposal:
        """Replace the proposed text of a place by another one; no file is written.

        Args:
            id: The proposal.
            place: Its key or number, as in `accept`.
            text: The text for the place.
            seen: The current text of the place when the user began to write; None to not compare.

        Returns:
            The proposal as it was.

        Raises:
            NotFoundError: There is no such proposal or place.
            ConflictError: The text of the place has changed since.
            UnreadableError: The file can't be written.
        """
        with self._door.entered():
            plan = self.preview(id)
            self._keep(plan.proposal, plan.reworded(place, text, seen))
        return plan.proposal

    def _keep(self, proposal: Proposal, edits: Sequence[ProposedEdit]) -> None:
        """Reduce a proposal to some edits, or drop it if there are none."""
        commit = proposal.commit
        change = Change(self._layout, commit.actor, commit.body, commit.origin)
        read: Edits = {}
        wanted: Edits = {}
        for edit in edits:
            if edit.old_path is not None:
                read |= {edit.old_path: edit.base, edit.path: None}
                wanted |= {edit.old_path: None, edit.path: edit.wanted}
            else:
                read[edit.path] = edit.base
                wanted[edit.path] = edit.wanted
        base = self._base(self._repository.head(), read, change)
        left = self._store(change, base, wanted, commit.time)
        if left is None:
            self._refs.drop(proposal.id)
        else:
            self._refs.put(proposal.id, left.id)

    def _next_time(self) -> datetime:
        """Return the current time, or one later than all proposals: commits have whole seconds."""
        newest = max((each.created for each in self.all()), default=None)
        now = self._clock()
        return now if newest is None else max(now, newest + timedelta(seconds=1))

    def _read(self, name: str, identifier: str) -> Proposal:
        known = self._known.get(identifier)
        if known is not None and known.id == name:
            return known
        commit = self._log.commit(identifier)
        return Proposal(name, commit, tuple(self._edit(commit, each) for each in commit.paths))

    def _edit(self, commit: Commit, change: PathChange) -> ProposedEdit:
        old = change.old_path or change.path
        base = self._repository.contents_at(commit.parent, [old])[old]
        wanted = self._repository.contents_at(commit.id, [change.path])[change.path]
        return ProposedEdit(change.path, base, wanted, change.old_path)

    def _since(self, commit: Commit) -> str | None:
        """Return the commit on the branch after which files are followed, or None if it is gone."""
        base = commit.parent
        while base is not None:
            made = read_commit(base, self._repository.read_commit(base))
            if made.body != _BASE_REASON:
                break
            base = made.parent
        try:
            next(self._log.later(base or "", ""), None)
        except NotFoundError:  # the history was replaced by another one
            return None
        return base

    def _contents(self, commit: Commit | None) -> Edits:
        """Return the new content of each path that a proposal changes."""
        if commit is None:
            return {}
        paths = [each for c in commit.paths for each in (c.path, c.old_path) if each]
        return self._repository.contents_at(commit.id, paths)

    def _base(self, parent: str | None, read: Edits, change: Change) -> str | None:
        """Return a commit that holds the base contents: `parent`, if it has the same."""
        made = self._store(Change(self._layout, change.actor, _BASE_REASON, Origin()), parent, read)
        return parent if made is None else made.id

    def _store(
        self, change: Change, base: str | None, edits: Edits, when: datetime | None = None
    ) -> Commit | None:
        """Store a commit of what differs from its base, or return None if nothing does."""
        before = self._repository.contents_at(base, edits)
        differing = {path: data for path, data in edits.items() if data != before[path]}
        if not differing:
            return None
        commit, _, objects = self._door.build(change, base, before, differing, when)
        with storage_errors("Can't record the proposal"):
            self._repository.store(objects)
        return commit


def _check_expected(change: Change, current: Edits, unchecked: Collection[str]) -> None:
    """Refuse a change that expects something other than the current or proposed content."""
    lost = [
        path
        for path, expected in change.expected.items()
        if path not in unchecked and blob_of(current[path]) != expected
    ]
    if lost:
        names = ", ".join(map(short_name, lost))
        raise ConflictError(
            f"{names}, or what waits in the inbox for it, was changed meanwhile.",
            "Nothing was proposed. Read it again, and propose what is still needed.",
            paths=tuple(lost),
        )


def _free_id(taken: Collection[str]) -> str:
    while (name := secrets.token_hex(3)) in taken:
        pass
    return name
