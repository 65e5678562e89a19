"""The edit engine's face: facts in, one commit and an outcome for each of them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.statements import normalise, plain_fact, statements
from kbtui.memory.edits.drafting import Drafting, Said
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.edits.merging import is_said
from kbtui.memory.records.committing import committed
from kbtui.memory.records.extraction import Correction, Draft, Extraction
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    from kbtui.history.change import Actor, Change, Commit, Origin
    from kbtui.history.history import History
    from kbtui.knowledge.fact import Fact
    from kbtui.knowledge.library import Library
    from kbtui.memory.edits.drafting import Edits
    from kbtui.memory.edits.subjects import Subjects
    from kbtui.memory.inbox.inbox import Inbox
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.workspace.layout import Workspace

OutcomeKind = Literal["created", "added", "corrected", "known", "proposed", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fact.

    Attributes:
        fact: Which one.
        kind: ``created`` an entry; ``added`` to a file; ``corrected`` what was no longer true;
            ``known`` already; ``proposed``: a person must decide; ``refused``: must not be written.
        path: The file, by its workspace path; empty where it is refused.
        title: What the file is called for people.
        why: Why it is known, proposed or refused, ready to be shown.
    """

    fact: Fact
    kind: OutcomeKind
    path: str = ""
    title: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of some facts.

    Attributes:
        outcomes: One for each fact, in order.
        commit: What was written; None: nothing.
        proposals: The ids of what waits for a person.
    """

    outcomes: tuple[Outcome, ...]
    commit: Commit | None = None
    proposals: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """Edits that are worked out and not written yet."""

    outcomes: tuple[Outcome, ...]
    edits: Edits = field(repr=False)

    def stage(self, change: Change) -> None:
        """Put the edits into a running change."""
        for path, text in self.edits.texts.items():
            before = self.edits.before[path]
            change.write(path, text, expecting=None if before is None else files.blob_id(before))


class Editor:
    """Writes facts into entries and MEMORY.md."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        inbox: Inbox,
        tombstones: Tombstones,
        subjects: Subjects,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._library = library
        self._inbox = inbox
        self._drafting = Drafting(workspace, history, library, subjects, tombstones)

    def keep(
        self,
        facts: Sequence[Fact],
        *,
        actor: Actor,
        origin: Origin,
        day: date,
        reason: str,
        said: Sequence[tuple[datetime, str]] = (),
    ) -> Kept:
        """Write facts, all in one commit.

        Args:
            facts: What to keep; a later one of them knows the earlier ones.
            actor: Who writes. What works in the background may only propose to change lines that
                the user wrote; a live turn changes them.
            origin: Where they come from.
            day: The day on which they were said, in the user's time zone.
            reason: Why; the body of the commit.
            said: What the user said and when, by which a forgotten fact counts as stated anew.

        Raises:
            WorkspaceBusyError: somebody else kept writing.
            ConflictError: the files kept changing; nothing is written.
            StorageError: the file system refused; nothing is written.
        """

        def work(change: Change) -> tuple[Plan, tuple[str, ...]]:
            plan = self.plan(facts, actor=actor, day=day, said=said)
            plan.stage(change)
            return plan, tuple(self._propose(plan, actor, origin))

        (plan, proposals), commit = committed(
            self._history, self._workspace.root, actor, reason, origin, work
        )
        return Kept(plan.outcomes, commit, proposals)

    def plan(
        self,
        facts: Sequence[Fact],
        *,
        actor: Actor,
        day: date,
        said: Sequence[tuple[datetime, str]] = (),
    ) -> Plan:
        """Work out what `keep` would write, for callers whose commit holds more than that."""
        self._library.refresh()
        del actor
        extraction = Extraction(
            "",
            tuple(f.text for f in facts if f.place == "memory" and not f.replaces),
            tuple(Correction(f.replaces, f.text) for f in facts if f.replaces),
            tuple(
                Draft(f.kind, f.subject, "", f.text, f.tags, f.related)
                for f in facts
                if f.place == "entry" and f.subject
            ),
        )
        edits = self._drafting.edits(Said(day, said), extraction)
        return Plan(tuple(_outcome(fact, edits) for fact in facts), edits)

    def _propose(self, plan: Plan, actor: Actor, origin: Origin) -> list[str]:
        found = []
        for path, (why, text) in plan.edits.proposals.items():
            reason = f"An update of {short_name(path)} waits for you: {why}."
            proposal = self._inbox.add_unless_rejected(
                actor, reason, {path: text}, origin=origin, bases=plan.edits.before
            )
            found += [proposal.id] if proposal else []
        return found


def _outcome(fact: Fact, edits: Edits) -> Outcome:
    """Find a fact again in what was worked out."""
    told = [normalise(plain_fact(line)) for line in fact.text.splitlines() if line.strip()]
    for path, text in edits.texts.items():
        if all(line in set(map(normalise, statements(text))) for line in told):
            kind: OutcomeKind = "added" if edits.before[path] is not None else "created"
            kind = "corrected" if fact.replaces else kind
            return Outcome(fact, kind, path, _title(path, text))
    for path, (why, text) in edits.proposals.items():
        if is_said(plain_fact(fact.text), statements(text)):
            return Outcome(fact, "proposed", path, _title(path, text), why)
    for path, data in _texts(edits.before).items():
        if is_said(plain_fact(fact.text), statements(data)):
            return Outcome(fact, "known", path, _title(path, data), "It says so already.")
    return Outcome(fact, "refused", why="It isn't written.")


def _texts(before: Mapping[str, bytes | None]) -> dict[str, str]:
    return {path: files.decode(data).text for path, data in before.items() if data is not None}


def _title(path: str, text: str) -> str:
    return "MEMORY.md" if path == MEMORY else parse_entry(path, text.encode()).title
