"""The inbox: changes that a machine proposed and a person must decide on.

The history keeps them beside its branch, and merges what is accepted into the current files. This
module adds what a decision means for memory: rejected facts are buried and not proposed again,
accepted ones are no longer buried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from kbtui.errors import ConflictError, NotFoundError, UsageError, WorkspaceBusyError
from kbtui.history.change import UNCHECKED, Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.history.places import Plan, Proposal, ProposedEdit, ProposedPlace, in_form_of
from kbtui.listeners import Listeners
from kbtui.memory.inbox import legacy
from kbtui.memory.inbox.drafts import PlaceDraft, check_settled, draft_for
from kbtui.memory.inbox.legacy import OlderProposal
from kbtui.memory.inbox.rejections import FOLDER, RecordedRejections, Rejections, fingerprint
from kbtui.memory.records.claims import facts_of
from kbtui.memory.records.tombstones import FactSource, Tombstones
from kbtui.redaction.redact import redact
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace, is_recorded, short_name

# Rejected changes that these actors propose again are left out; an agent acts on request.
_UNASKED = {Actor.CONSOLIDATOR, Actor.FLUSHER, Actor.SESSION_MEMORY, Actor.DREAM, Actor.IMPORT}
Expected = Mapping[str, "str | None"]


class Inbox:
    """The proposals of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        tombstones: Tombstones | None = None,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._tombstones = tombstones or Tombstones(workspace, history)
        self._rejections = Rejections(workspace)
        self._listeners: Listeners[[]] = Listeners()

    # Proposing -------------------------------------------------------------------------------

    def add(
        self,
        actor: Actor,
        reason: str,
        edits: Mapping[str, str | None],
        *,
        origin: Origin | None = None,
        bases: Mapping[str, bytes | None] | None = None,
        expected: Expected = MappingProxyType({}),
    ) -> Proposal:
        """Propose a change to the files as they are now; secrets are redacted.

        An identical change by the same actor is the same proposal. Places that the user rejected
        before are left out, unless an agent proposes them. See `was_rejected` before proposing
        again. An edit of None deletes the file. `bases` are the files that the texts were made from
        (missing: their current content); `expected` are the blob ids of the files that the texts
        were made from, None if there was no file.

        Raises:
            UsageError: It changes nothing, or a path that the history doesn't keep.
            ConflictError: A file that it was made from has changed.
            WorkspaceBusyError: Another process is writing.
            StorageError: The file system refused.
        """
        with self._history.alone():
            proposed = self._edits(edits, bases)
            known = self._rejections.read()
            if actor in _UNASKED:
                proposed = tuple(known.without_rejected(actor, proposed)) or proposed
            same = self._same(actor, proposed, known)
            if same is not None:
                return same
            origin = origin or Origin()
            found = self._propose(actor, reason, proposed, origin, bases=bases, expected=expected)
        self._listeners.tell()
        return found

    def add_unless_rejected(
        self,
        actor: Actor,
        reason: str,
        edits: Mapping[str, str | None],
        *,
        origin: Origin | None = None,
        bases: Mapping[str, bytes | None] | None = None,
    ) -> Proposal | None:
        """Propose a change as `add` does; return None if the user has rejected this very change."""
        with self._history.alone():
            if self.was_rejected(actor, edits, bases):
                return None
            return self.add(actor, reason, edits, origin=origin, bases=bases)

    def add_to_turn(
        self,
        reason: str,
        edits: Mapping[str, str | None],
        origin: Origin,
        *,
        actor: Actor = Actor.AGENT,
        expected: Expected = MappingProxyType({}),
    ) -> Proposal:
        """Add an agent's edits to the proposal of its turn.

        If the agent has already proposed a text for one of the files, that proposal is extended:
        the new text must be based on the proposed one, as `expected` says, or else as in `add`.

        Raises:
            ConflictError: What it was made from has changed: a person has edited the proposal or
                decided on it, or somebody has changed the file. Or it would extend several
                proposals.
        """
        with self._history.alone():
            known, others = self._open_for(actor, origin, edits)
            _check_extends(edits, _texts(known.edits) if known else {}, others)
            if known is None:
                return self.add(actor, reason, edits, origin=origin, expected=expected)
            fresh = self._edits(edits, None)
            reasons = dict.fromkeys([*known.reason.split("; "), redact(reason).text])
            grown = _merged_origin(known.origin, origin)
            reason = "; ".join(reasons)
            found = self._propose(actor, reason, fresh, grown, known.id, expected=expected)
        self._listeners.tell()
        return found

    def proposed_by(self, actor: Actor, origin: Origin) -> dict[str, str | None]:
        """Return the texts that a conversation or another program has proposed, by path."""
        texts: dict[str, str | None] = {}
        for each in self._proposals_of(actor, origin):
            texts |= _texts(each.edits)
        return texts

    def was_rejected(
        self,
        actor: Actor,
        edits: Mapping[str, str | None],
        bases: Mapping[str, bytes | None] | None = None,
    ) -> bool:
        """Return whether the user has rejected this very change: same lines added and removed."""
        return self._rejections.read().holds(actor, self._edits(edits, bases))

    def import_older(self) -> None:
        """Import the proposals that an older version kept in files; unreadable ones stay there.

        Raises:
            WorkspaceBusyError: Another process is writing; some are still to be imported.
        """
        legacy.import_older(self._workspace, self._history, self._take)

    def _take(self, older: OlderProposal) -> None:
        edits = self._edits(older.texts, older.bases)
        differing = [each for each in edits if each.base != each.wanted]
        if not differing or any(each.id == older.id for each in self.list()):
            return
        head = older.actor, older.reason
        found = self._propose(
            *head, differing, older.origin, older.id, older.created, bases=older.bases
        )
        if older.was:
            self._rejections.reword(found, older.was, datetime.now(UTC))

    # Reading ---------------------------------------------------------------------------------

    def list(self) -> list[Proposal]:
        """Return all waiting proposals, oldest first."""
        return [*self._history.proposals.all()]

    def get(self, ref: str) -> Proposal:
        """Return a proposal by its id or a unique prefix of it.

        Raises:
            NotFoundError: There is none.
            UsageError: Several match.
        """
        wanted = ref.strip().lower()
        found = [each for each in self.list() if wanted and each.id.startswith(wanted)]
        if not found:
            raise NotFoundError(
                f"There is no proposal {ref!r}.", "`kbtui inbox` lists those that wait."
            )
        if len(found) > 1:
            ids = ", ".join(proposal.id for proposal in found)
            raise UsageError(f"{ref!r} could be {ids}.", "Say more of it.")
        return found[0]

    def plan(self, ref: str) -> Plan:
        """Return what a proposal would do to the current files, place by place; reads files.

        Raises:
            NotFoundError: There is no such proposal.
        """
        return self._history.proposals.preview(self.get(ref).id)

    def waiting(self) -> tuple[Plan, ...]:
        """Return the plans of all proposals with something left to decide, oldest first."""
        plans = []
        for proposal in self.list():
            with contextlib.suppress(NotFoundError):  # somebody has just decided on it
                plans.append(self._history.proposals.preview(proposal.id))
        return tuple(plan for plan in plans if plan.places)

    def stamp(self) -> int:
        """Return a number that changes whenever a proposal comes or goes, in any process."""
        return self._history.proposals.stamp()

    def problems(self) -> tuple[str, ...]:
        """Return the unreadable files of an older inbox; they stay there."""
        return tuple(f"{FOLDER}/{file.name}" for file in legacy.old_files(self._workspace))

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when proposals come or go; return the unsubscriber."""
        return self._listeners.add(listener)

    # Deciding --------------------------------------------------------------------------------

    def accept(
        self,
        ref: str,
        actor: Actor = Actor.YOU,
        *,
        hunks: Collection[str] | None = None,
        theirs: bool = False,
    ) -> Commit | None:
        """Make a proposed change, or `hunks` of it, as `History.accept`; unbury its facts."""

        def remember(change: Change, plan: Plan, chosen: Collection[ProposedPlace]) -> None:
            self._tombstones.lift(change, _facts(plan, chosen))

        commit = self._history.proposals.accept(
            self.get(ref).id, actor=actor, places=hunks, theirs=theirs, companion=remember
        )
        self._listeners.tell()
        return commit

    def reject(
        self, ref: str, actor: Actor = Actor.YOU, *, hunks: Collection[str] | None = None
    ) -> Proposal:
        """Reject a proposal, or `hunks` of it, for good, as `History.drop`."""

        def bury(change: Change, plan: Plan, chosen: Collection[ProposedPlace]) -> None:
            sources = _sources_of(plan.proposal.origin)
            self._tombstones.bury(change, _facts(plan, chosen), sources, undone=True)
            self._rejections.reject(plan, chosen, datetime.now(UTC))

        proposal = self._history.proposals.drop(
            self.get(ref).id, actor=actor, places=hunks, companion=bury
        )
        self._listeners.tell()
        return proposal

    def draft(self, ref: str, hunk: str) -> PlaceDraft:
        """Return a draft for editing a place, given by key or number as in `accept`.

        Raises:
            NotFoundError: There is no such proposal or place.
        """
        return draft_for(*self.plan(ref).find(hunk))

    def edit(self, ref: str, hunk: str, text: str, *, seen: str | None = None) -> None:
        """Replace the proposed text of a place with the user's own; no file is written yet.

        `seen` is `PlaceDraft.seen`, so that a concurrent change isn't lost. Raises as
        `History.reword`, and UsageError if the text still has conflict markers.
        """
        check_settled(text)
        was = self._history.proposals.reword(self.get(ref).id, hunk, text, seen=seen)
        self._rejections.reword(was, [fingerprint(was.actor, was.edits)], datetime.now(UTC))
        self._listeners.tell()

    def settle(self) -> int:
        """Remove proposals whose changes are all in the files; return how many."""
        waiting = {plan.proposal.id for plan in self.waiting()}
        done = [each for each in self.list() if each.id not in waiting]
        with contextlib.suppress(NotFoundError, WorkspaceBusyError):  # the next call does it
            for proposal in done:
                self._history.proposals.drop(proposal.id, places=())
        if done:
            self._listeners.tell()
        return len(done)

    # Proposals -------------------------------------------------------------------------------

    def _edits(
        self, edits: Mapping[str, str | None], bases: Mapping[str, bytes | None] | None
    ) -> tuple[ProposedEdit, ...]:
        return tuple(self._edit(path, text, bases or {}) for path, text in sorted(edits.items()))

    def _edit(self, path: str, text: str | None, bases: Mapping[str, bytes | None]) -> ProposedEdit:
        path = files.checked_path(path)
        if not is_recorded(path):
            raise UsageError(f"{path} is not a file that the history keeps.")
        there = path in bases or not files.exists(self._workspace, path)
        base = bases.get(path) if there else files.read_bytes(self._workspace, path)
        if text is None:
            return ProposedEdit(path, base, None)
        kept = "" if base is None else files.text_of(base)
        return ProposedEdit(path, base, in_form_of(base, redact(text, keep=kept).text))

    def _propose(
        self,
        actor: Actor,
        reason: str,
        edits: Iterable[ProposedEdit],
        origin: Origin,
        name: str | None = None,
        when: datetime | None = None,
        bases: Mapping[str, bytes | None] | None = None,
        expected: Expected = MappingProxyType({}),
    ) -> Proposal:
        found: list[Proposal] = []

        def propose(change: Change) -> None:
            found.append(self._history.proposals.add(change, id=name, bases=bases, when=when))

        with self._history.change(actor, reason, origin, propose) as change:
            for edit in edits:
                expecting = expected.get(edit.path, UNCHECKED)
                if edit.wanted is None:
                    change.delete(edit.path, expecting=expecting)
                else:
                    change.write(edit.path, edit.wanted, expecting=expecting)
        if not found:
            raise UsageError("A proposal needs at least one file that it changes.")
        return found[0]

    def _same(
        self, actor: Actor, edits: Sequence[ProposedEdit], known: RecordedRejections
    ) -> Proposal | None:
        """Return the proposal that is this very change, or was before a person reworded it."""
        wanted = fingerprint(actor, edits)
        same = (
            each
            for each in self.list()
            if wanted in known.reworded.get(each.id, ())
            or (each.actor is actor and fingerprint(actor, each.edits) == wanted)
        )
        return next(same, None)

    def _proposals_of(self, actor: Actor, origin: Origin) -> Sequence[Proposal]:
        def known_by(other: Origin) -> tuple[str | None, str | None]:
            return other.session, other.model if other.session is None else None

        return [
            each
            for each in self.list()
            if each.actor is actor and known_by(each.origin) == known_by(origin)
        ]

    def _open_for(
        self, actor: Actor, origin: Origin, paths: Collection[str]
    ) -> tuple[Proposal | None, Sequence[Proposal]]:
        """Return the proposal that a turn's edits extend, and the actor's others.

        That is the last one with one of the files, or else the turn's.
        """
        own = self._proposals_of(actor, origin)
        match = (each for each in reversed(own) if not set(paths).isdisjoint(_texts(each.edits)))
        same = (each for each in own if each.origin.turn == origin.turn is not None)
        known = next(match, None) or next(same, None)
        return known, [each for each in own if each is not known]


def _check_extends(
    edits: Mapping[str, str | None], waits: Mapping[str, str | None], others: Iterable[Proposal]
) -> None:
    """Reject edits that can't extend what `waits`, or would extend other proposals too."""
    for path in edits.keys() & waits.keys():
        if edits[path] is not None and waits[path] is None:
            raise ConflictError(
                f"{short_name(path)} is to go: that it is renamed or deleted waits in the inbox.",
                "Edit it under its new name, or let the user decide first.",
                paths=(path,),
            )
    twice = sorted(path for each in others for path in each.paths if path in edits)
    if lacking := [path for path in twice if path not in waits]:
        raise ConflictError(
            f"Changes of {', '.join(map(short_name, dict.fromkeys(lacking)))} wait in the inbox"
            " already, in another proposal.",
            "Let the user decide on that first.",
            paths=tuple(lacking),
        )


def _texts(edits: Iterable[ProposedEdit]) -> dict[str, str | None]:
    """Return the proposed text of each path, None for a deletion."""
    texts: dict[str, str | None] = {}
    for edit in edits:
        if edit.old_path is not None:
            texts[edit.old_path] = None
        texts[edit.path] = None if edit.wanted is None else files.text_of(edit.wanted)
    return texts


def _merged_origin(one: Origin, other: Origin) -> Origin:
    """Return the origin of an extended proposal, covering the messages of both."""
    if one.messages is None or other.messages is None:
        return one
    first, last = zip(one.messages, other.messages, strict=True)
    return replace(one, messages=(min(first), max(last)))


def _facts(plan: Plan, chosen: Collection[ProposedPlace]) -> list[str]:
    found: list[str] = []
    for file in plan.files:
        places = [place for place in file.places if place in chosen]
        if not places:
            continue
        known = {*facts_of(file.text), *facts_of(files.text_of(file.edit.base))}
        data = file.edit.wanted if places[0].whole else file.accepted(places)[file.path]
        found += [each for each in facts_of(files.text_of(data)) if each not in known]
    return list(dict.fromkeys(found))


def _sources_of(origin: Origin) -> tuple[FactSource, ...]:
    """Return the messages that a change is based on, if its origin has them."""
    if origin.session is None or origin.messages is None:
        return ()
    return (FactSource(origin.session, origin.messages),)
