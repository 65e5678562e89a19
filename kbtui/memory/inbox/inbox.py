"""The inbox: changes that a machine wanted to make and a person must decide on.

Each proposal is one file under ``.kbtui/inbox``, complete with the texts it was made from, so that
it can be merged into what the files have become since. It stays until all of its places are
accepted or rejected, or stand in the files already.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kbtui.errors import UsageError, WorkspaceBusyError
from kbtui.history.change import Actor, Origin
from kbtui.listeners import Listeners
from kbtui.memory.inbox.decide import accepted, described, edited, rejected
from kbtui.memory.inbox.plan import keys_of, no_place
from kbtui.memory.inbox.planner import Planner
from kbtui.memory.inbox.proposal import (
    InboxStore,
    Proposal,
    ProposedEdit,
    check_base,
    fingerprint,
    grown,
    is_among,
    sources_of,
    without_places,
)
from kbtui.memory.inbox.showing import Draft, check_settled, region, theirs_of
from kbtui.memory.records.tombstones import Tombstones
from kbtui.workspace import files
from kbtui.workspace.layout import is_recorded
from kbtui.workspace.lock import WorkspaceLock
from kbtui.workspace.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kbtui.history.change import Commit
    from kbtui.history.history import History
    from kbtui.memory.inbox.plan import Plan, PlannedFile, PlannedHunk
    from kbtui.workspace.layout import Workspace

__all__ = ["Inbox", "Proposal", "ProposedEdit"]

# What these propose again after it was rejected isn't asked about again; an agent was told to.
_UNASKED = {
    Actor.CONSOLIDATOR,
    Actor.FLUSHER,
    Actor.SESSION_MEMORY,
    Actor.DREAM,
    Actor.IMPORT,
}


_PATIENCE_SECONDS = 5.0
_SYNC_SECONDS = 0.5


class Inbox:
    """The proposals of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        tombstones: Tombstones | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = InboxStore(workspace)
        self._history = history
        self._tombstones = tombstones or Tombstones(workspace, history, clock)
        self._clock = clock
        self._planner = Planner(workspace, history)
        self._listeners: Listeners[[]] = Listeners()
        # Held from reading the proposals until what comes of that is stored, over all processes.
        self._deciding = WorkspaceLock(workspace, "inbox.lock")

    def add(
        self,
        actor: Actor,
        reason: str,
        edits: Mapping[str, str | None],
        *,
        origin: Origin | None = None,
        bases: Mapping[str, bytes | None] | None = None,
    ) -> Proposal:
        """Propose a change to the files as they are now; secrets are redacted.

        The same change proposed again by the same actor is the same proposal, brought up to date
        with what the files say now. What the user has rejected of it before is left out, if anybody
        else than the agent proposes it unasked. See `was_rejected` before asking a second time.

        Args:
            actor: Who proposes it.
            reason: Why it isn't simply made.
            edits: The new text of each path; None deletes the file.
            origin: Where it comes from.
            bases: What the files held when the texts were made; None: what they hold now.

        Raises:
            UsageError: no edits, or a path that the history doesn't keep.
            WorkspaceBusyError: somebody else kept deciding on proposals.
            StorageError: the file system refused.
        """
        proposed = tuple(self._edit(path, text, bases) for path, text in sorted(edits.items()))
        if not proposed:
            raise UsageError("A proposal needs at least one file that it changes.")
        with self._alone(actor):
            if actor in _UNASKED:
                proposed = without_places(actor, proposed, self._store.rejections()) or proposed
            known = self._same(actor, proposed)
            if known is not None and (known.edits == proposed or known.was):
                return known
            proposal = Proposal(
                known.id if known else self._store.free_id(),
                known.created if known else self._clock(),
                actor,
                redact(reason).text,
                origin or Origin(),
                proposed,
            )
            self._store.put(proposal)
        self._tell()
        return proposal

    @contextlib.contextmanager
    def _alone(self, actor: Actor) -> Iterator[None]:
        """Hold the lock for adding.

        A sync proposes while it holds the workspace's lock, for which somebody who accepts a
        proposal may be waiting: so it doesn't insist, and at worst something is proposed twice.
        """
        with contextlib.ExitStack() as stack:
            patience = _SYNC_SECONDS if actor is Actor.SYNC else _PATIENCE_SECONDS
            try:
                stack.enter_context(self._deciding.hold(patience))
            except WorkspaceBusyError:
                if actor is not Actor.SYNC:
                    raise
            yield

    def add_unless_rejected(
        self,
        actor: Actor,
        reason: str,
        edits: Mapping[str, str | None],
        *,
        origin: Origin | None = None,
        bases: Mapping[str, bytes | None] | None = None,
    ) -> Proposal | None:
        """Propose a change as `add` does; None where the user has rejected that very change."""
        with self._deciding.hold():
            if self.was_rejected(actor, edits, bases):
                return None
            return self.add(actor, reason, edits, origin=origin, bases=bases)

    def add_to_turn(
        self,
        reason: str,
        edits: Mapping[str, str | None],
        origin: Origin,
        built_on: str = "",
        *,
        actor: Actor = Actor.AGENT,
        expected: Mapping[str, str | None] | None = None,
    ) -> Proposal:
        """Propose what an agent wants to do, together with what else it wants to do in its turn.

        Args:
            reason: What it is.
            edits: As in `add`.
            origin: Which turn it is.
            built_on: The path whose text was made from the one that is proposed already.
            actor: Who it is.
            expected: The blob id of what the text of a path was made from; None: there was nothing.

        Raises:
            ConflictError: what it was made from is something else by now: a person has edited the
                proposal, or decided on it, or somebody has changed the file.
        """
        with self._deciding.hold():
            known = self._open_for(actor, origin, built_on)
            before = {edit.path: edit for edit in known.edits} if known else {}
            fresh = {path: self._edit(path, text, None) for path, text in edits.items()}
            for path, edit in fresh.items():
                check_base(edit, before.get(path) if path == built_on else None, expected or {})
            if known is None or any(path in before and path != built_on for path in edits):
                return self.add(actor, reason, edits, origin=origin)
            both = grown(known, redact(reason).text, list(fresh.values()), origin)
            self._store.put(both)
        self._tell()
        return both

    def proposed_by(self, actor: Actor, origin: Origin) -> dict[str, str | None]:
        """What somebody has proposed, as far as it waits: text by path.

        An agent is known by its conversation, a program that has none by its name.
        """
        mine = self._proposals_of(actor, origin)
        return {edit.path: edit.text for each in mine for edit in each.edits}

    def _proposals_of(self, actor: Actor, origin: Origin) -> list[Proposal]:
        def known_by(other: Origin) -> tuple[str | None, str | None]:
            return other.session, other.model if other.session is None else None

        return [
            each
            for each in self.list()
            if each.actor is actor and known_by(each.origin) == known_by(origin)
        ]

    def _open_for(self, actor: Actor, origin: Origin, built_on: str) -> Proposal | None:
        """The proposal that somebody goes on with: the one they build on, else the turn's."""
        mine = self._proposals_of(actor, origin)
        built = (each for each in reversed(mine) if built_on in each.paths)
        same = (each for each in mine if each.origin.turn == origin.turn is not None)
        return next(built, None) or next(same, None)

    def was_rejected(
        self,
        actor: Actor,
        edits: Mapping[str, str | None],
        bases: Mapping[str, bytes | None] | None = None,
    ) -> bool:
        """Whether the user has rejected this very change before: these lines in, those out."""
        proposed = [self._edit(path, text, bases) for path, text in sorted(edits.items())]
        return is_among(actor, proposed, self._store.rejections())

    def list(self) -> list[Proposal]:
        """All proposals that wait, the oldest first."""
        return self._store.list()

    def get(self, ref: str) -> Proposal:
        """One proposal by its id or the unique beginning of it.

        Raises:
            NotFoundError: there is none.
            UsageError: several begin so.
        """
        return self._store.get(ref)

    def plan(self, ref: str | Proposal) -> Plan:
        """What a proposal would do to the files as they are now, place by place; reads files.

        Raises:
            NotFoundError: there is no such proposal.
        """
        return self._planner.plan(ref if isinstance(ref, Proposal) else self.get(ref))

    def waiting(self) -> tuple[Plan, ...]:
        """The plans of all proposals of which something is left to decide, the oldest first."""
        plans = (self._planner.plan(proposal) for proposal in self.list())
        return tuple(plan for plan in plans if plan.hunks)

    def accept(
        self,
        ref: str,
        actor: Actor = Actor.YOU,
        *,
        hunks: Sequence[str] | None = None,
        theirs: bool = False,
    ) -> Commit | None:
        """Make a proposed change, or some places of it, merged into what the files say now.

        Args:
            ref: The proposal.
            actor: Who accepts.
            hunks: The keys or the numbers (from 1) of places; None: all that wait.
            theirs: Where the file was changed meanwhile, what is proposed takes the place of that.

        Returns:
            The commit; None when everything stood there already.

        Raises:
            NotFoundError: there is no such proposal or place.
            ConflictError: a file was changed where the proposal changes it; nothing is done, and
                the proposal stays.
        """
        with self._deciding.hold():
            plan = self.plan(ref)
            keys = keys_of(plan, hunks)
            if theirs:
                plan, keys = self._with_theirs(plan, keys)
            decision = accepted(plan, keys)
            reason = described("Accepted", plan, decision)
            with self._history.change(actor, reason, plan.proposal.origin) as change:
                for path, (before, after) in decision.writes.items():
                    if after is None:
                        change.delete(path, expecting=before)
                    else:
                        change.write(path, after, expecting=before)
                self._tombstones.lift(change, decision.facts)
            self._keep(plan.proposal, decision.left)
        self._tell()
        return change.result

    def reject(
        self, ref: str, actor: Actor = Actor.YOU, *, hunks: Sequence[str] | None = None
    ) -> Proposal:
        """Put a proposal or some places of it away; their facts aren't proposed again.

        Args:
            ref: The proposal.
            actor: Who rejects.
            hunks: As in `accept`.

        Returns:
            The proposal as it was.

        Raises:
            NotFoundError: there is no such proposal or place.
        """
        with self._deciding.hold():
            plan = self.plan(ref)
            proposal = plan.proposal
            decision = rejected(plan, keys_of(plan, hunks))
            reason = described("Rejected", plan, decision)
            with self._history.change(actor, reason, proposal.origin) as change:
                self._tombstones.bury(change, decision.facts, sources_of(proposal.origin))
            record: dict[str, object] = {
                "time": self._clock().isoformat(),
                "places": list(dict.fromkeys(decision.prints)),
            }
            if not decision.left:
                record["change"] = fingerprint(proposal.actor, proposal.edits)
            self._store.note_rejection(record)
            self._keep(proposal, decision.left)
        self._tell()
        return proposal

    def draft(self, ref: str, hunk: str) -> Draft:
        """What to start from for a text of one's own in a place: key or number, as in `accept`.

        Raises:
            NotFoundError: there is no such proposal or place.
        """
        return region(*self._place(self.plan(ref), hunk))

    def edit(self, ref: str, hunk: str, text: str, *, seen: str | None = None) -> Proposal:
        """Let a text of one's own take the place of what is proposed; nothing is written yet.

        Args:
            ref: The proposal.
            hunk: The place, as in `accept`.
            text: What is to stand there.
            seen: `Draft.seen`, so that a change made meanwhile isn't lost.

        Raises:
            NotFoundError: there is no such proposal or place.
            ConflictError: something else stands there by now.
            UsageError: both sides of a conflict are still marked in the text.
        """
        check_settled(text)
        with self._deciding.hold():
            plan = self.plan(ref)
            _, place = self._place(plan, hunk)
            left = edited(plan, place.key, text, seen)
            was = (*plan.proposal.was, fingerprint(plan.proposal.actor, plan.proposal.edits))
            proposal = replace(plan.proposal, edits=tuple(left), was=was)
            self._keep(proposal, left)
        self._tell()
        return proposal

    def settle(self) -> int:
        """Remove proposals of which nothing is left, since it stands in the files; how many."""
        count = 0
        with self._deciding.hold():
            for proposal in self.list():
                if not self.plan(proposal).hunks:
                    self._store.remove(proposal)
                    count += 1
        if count:
            self._tell()
        return count

    def stamp(self) -> int:
        """Changes whenever a proposal came or went, in whichever process."""
        return self._store.stamp()

    def problems(self) -> tuple[str, ...]:
        """Files in the inbox that can't be read; they stay there."""
        return self._store.problems()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when proposals come or go; returns the way out."""
        return self._listeners.add(listener)

    def _edit(
        self, path: str, text: str | None, bases: Mapping[str, bytes | None] | None
    ) -> ProposedEdit:
        path = files.checked_path(path)
        if not is_recorded(path):
            raise UsageError(f"{path} is not a file that the history keeps.")
        data = bases[path] if bases is not None and path in bases else self._planner.read(path)
        before = None if data is None else files.decode(data).text
        if text is not None:
            text = redact(text, keep=before or "").text
        return ProposedEdit(path, None if data is None else files.blob_id(data), text, before)

    def _same(self, actor: Actor, edits: Sequence[ProposedEdit]) -> Proposal | None:
        wanted = fingerprint(actor, edits)
        same = (
            each
            for each in self.list()
            if wanted in each.was or fingerprint(each.actor, each.edits) == wanted
        )
        return next(same, None)

    def _with_theirs(self, plan: Plan, keys: set[str] | None) -> tuple[Plan, set[str] | None]:
        """Settle the conflicts among the chosen places: what is proposed shall stand there."""
        for hunk in plan.conflicts:
            found = plan.find(hunk.key) if keys is None or hunk.key in keys else None
            if found is None:
                continue
            before = {each.key for each in plan.hunks}
            left = edited(plan, hunk.key, theirs_of(*found))
            plan = self.plan(replace(plan.proposal, edits=tuple(left)))
            if keys is not None:
                keys = keys | {each.key for each in plan.hunks if each.key not in before}
        return plan, keys

    def _place(self, plan: Plan, hunk: str) -> tuple[PlannedFile, PlannedHunk]:
        (key,) = keys_of(plan, [hunk]) or {""}
        found = plan.find(key)
        if found is None:
            raise no_place(plan, hunk)
        return found

    def _keep(self, proposal: Proposal, left: Sequence[ProposedEdit]) -> None:
        """Store what is left of a proposal; without anything it goes."""
        rest = replace(proposal, edits=tuple(left))
        if left and self.plan(rest).hunks:
            self._store.put(rest)
        else:
            self._store.remove(proposal)

    def _tell(self) -> None:
        self._listeners.tell()
