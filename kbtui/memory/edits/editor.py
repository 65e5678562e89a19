"""The edit engine's face: facts in, one commit and an outcome for each of them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.knowledge.entries.templates import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.library.library import Library
from kbtui.knowledge.library.overlay import shown_text
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.growing import (
    LOOSE,
    STRICT,
    changed_value,
    changed_words,
    find_statement,
    is_said,
    sentence_of,
    stated,
    telling,
    with_value,
)
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.edits.operations import (
    correct_memory,
    keep_in_entry,
    note,
    remember,
    rename_entry,
    supersede,
    supersede_decision,
    without_line,
)
from kbtui.memory.edits.spotlight import make_lean
from kbtui.memory.edits.subjects import Subjects, is_user
from kbtui.memory.edits.working_copy import Done, Operation, Surroundings, WorkingCopy
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import absolute_dates
from kbtui.memory.records.tombstones import Tombstones
from kbtui.memory.records.usable_answers import is_placeholder, why_unusable
from kbtui.redaction.redact import redact
from kbtui.text import clean_line, slugify
from kbtui.workspace.layout import Workspace

OutcomeKind = Literal["created", "added", "corrected", "known", "noted", "proposed", "refused"]
_TELLING = 3
_ENTRIES = "knowledge/"
_FIRST = (f"{_ENTRIES}people/", f"{_ENTRIES}projects/")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one fact.

    Attributes:
        kind: ``created`` an entry; ``added`` to a file; ``corrected`` what was no longer true;
            ``known`` already; ``noted``: it is for the notes of the day; ``proposed``: a person
            must decide; ``refused``: must not be written.
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
    """The outcomes of some facts, in their order, the commit if any, and the ids of what waits."""

    outcomes: tuple[Outcome, ...]
    commit: Commit | None = None
    proposals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """The lines that somebody wrote into a file, or would have, meanwhile, and took out."""

    path: str
    statements: tuple[str, ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judging:
    """What facts are judged by before they are written.

    Attributes:
        refuse: Tells what must not be written, besides what was forgotten.
        ground: What lines must come from; None: whoever writes answers for them.
        lasts: Tells what is more than a note of the day.
    """

    refuse: Callable[[str], bool] = lambda _fact: False
    ground: Ground | None = None
    lasts: Callable[[Fact], bool] = lambda _fact: True


@dataclass(frozen=True, slots=True)
class Plan:
    """Edits that are worked out and not written yet: stage them, then propose the rest."""

    copy: WorkingCopy
    outcomes: tuple[Outcome, ...]

    def stage(self, change: Change) -> None:
        """Put the edits into a running change."""
        self.copy.stage(change)

    def propose(self, inbox: Inbox, origin: Origin) -> tuple[str, ...]:
        """Store what a person must decide on; the ids of the proposals."""
        return tuple(id_ for _, id_ in self.copy.propose(inbox, origin))


@dataclass(frozen=True, slots=True)
class Author:
    """Who edits by a tool, and what holds for them.

    Attributes:
        origin: The turn, or the program, that they edit for.
        said: What the user has said in this turn, by which a forgotten fact counts as stated anew.
        asked: True if the user has asked in this turn to change what is called so, where these
            lines would go or come; their lines are left alone otherwise. None: all may be changed.
        shows_private: They may read and change what only local models may see.
        names_private: They may know that it is there, without seeing it.
        ground: What they may write by themselves; a person decides on the rest. None: all of it.
    """

    actor: Actor
    origin: Origin
    said: Sequence[tuple[datetime, str]] = ()
    asked: Callable[[Sequence[str], Sequence[str]], bool] | None = None
    shows_private: bool = True
    names_private: bool = True
    ground: Ground | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """The outcome of an edit.

    `path` is the file under the name that it has now, `former` under the one that it had; `commit`
    what was written, if anything; `waits` the change that a person must decide on, and `why` they
    must.
    """

    path: str
    former: str = ""
    commit: Commit | None = None
    waits: Change | None = None
    why: str = ""


@dataclass(eq=False)
class Editor:
    """Writes facts into entries, MEMORY.md and the day's notes; `inbox` has what waits."""

    workspace: Workspace
    history: History
    library: Library
    inbox: Inbox
    tombstones: Tombstones
    subjects: Subjects

    def open(
        self,
        actor: Actor,
        said: Sequence[tuple[datetime, str]] = (),
        *,
        shows_private: bool = True,
        ground: Ground | None = None,
    ) -> WorkingCopy:
        """A working copy of the files as they are, for operations one by one; `said` as in `keep`.

        With `shows_private` what only local models may see can be read and changed. Lines must come
        from the `ground`, if any, or from the files that a model is shown.
        """
        self.library.refresh()
        around = self._around(actor, said, shows_private=shows_private)
        return WorkingCopy(replace(around, ground=ground, cites_files=True))

    def _around(
        self,
        actor: Actor,
        said: Sequence[tuple[datetime, str]],
        refuse: Callable[[str], bool] = lambda _fact: False,
        *,
        shows_private: bool = True,
    ) -> Surroundings:
        return Surroundings(
            self.history,
            self.library,
            self.subjects,
            self.tombstones,
            actor,
            said,
            refuse,
            shows_private,
        )

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
        """Write facts, all in one commit; a later one of them knows the earlier ones.

        What works in the background may only propose to change lines that the user wrote; a live
        turn changes them. `day` is the day on which they were said, in the user's time zone; `said`
        what the user said and when, by which a forgotten fact counts as stated anew. Raises as
        `committed`.
        """

        def work(change: Change) -> tuple[Plan, tuple[str, ...]]:
            plan = self.plan(facts, actor=actor, day=day, said=said)
            proposals = plan.propose(self.inbox, origin)
            plan.stage(change)
            return plan, proposals

        (plan, proposals), commit = committed(
            self.history, self.workspace, actor, reason, origin, work
        )
        return Kept(plan.outcomes, commit, proposals)

    def write(
        self,
        operation: Operation,
        author: Author,
        reason: Callable[[Edited], str],
        *,
        reviewed: bool = False,
    ) -> Edited:
        """Do what was asked for by a tool, in one commit, if a person needn't decide on it.

        What waits isn't in the inbox yet; it is worked out as if all that the author has proposed
        before were accepted. `reviewed`: a person decides on all that this author does.

        Raises:
            NotFoundError: what is to be changed isn't there.
            UsageError: it can't be done, or must not.
            ConflictError: the files kept changing; nothing is written. Else as `committed`.
        """
        waiting = self.inbox.proposed_by(author.actor, author.origin)
        why = ""
        if not reviewed:

            def work(change: Change) -> Edited:
                return self._written(operation, author, reason, change)

            try:
                edited, commit = committed(
                    self.history, self.workspace, author.actor, "", author.origin, work
                )
            except NotFoundError:
                if not waiting:
                    raise
                why = "it goes on with what waits already"
            else:
                if not edited.why:
                    return replace(edited, commit=commit)
                why = edited.why
        taken: list[Change] = []
        with self.history.change(author.actor, "", author.origin, taken.append) as change:
            decided = replace(author, asked=None, ground=None)
            edited = self._written(operation, decided, reason, change, waiting)
        return replace(edited, waits=taken[0] if taken else None, why=why)

    def _written(
        self,
        operation: Operation,
        author: Author,
        reason: Callable[[Edited], str],
        change: Change,
        waiting: Mapping[str, str | None] | None = None,
    ) -> Edited:
        """Put an edit into a running change, unless a person must decide on it."""
        self.library.refresh()
        around = replace(
            self._around(author.actor, author.said, shows_private=author.shows_private),
            by_tool=True,
            asked=author.asked,
            names_private=author.names_private,
            ground=author.ground,
        )
        copy = WorkingCopy(around, waiting=waiting)
        former = copy.file(operation.ref) if operation.ref else ""
        done = copy.perform(operation)
        edited = Edited(done.made[0] if done.made else former, former, why=done.proposed)
        change.reason = reason(edited)
        if not done.proposed:
            copy.stage(change)
        return edited

    def plan(
        self,
        facts: Sequence[Fact],
        *,
        actor: Actor,
        day: date,
        said: Sequence[tuple[datetime, str]] = (),
        written: Sequence[Written] = (),
        judging: Judging = Judging(),
    ) -> Plan:
        """Work out what `keep` would write, for callers whose commit holds more than that.

        Args:
            facts: As in `keep`, and so `actor`, `day` and `said`.
            actor: Who writes.
            day: When it was said.
            said: What the user said.
            written: What was written down meanwhile, and isn't written again.
            judging: What they are judged by.
        """
        self.library.refresh()
        around = replace(self._around(actor, said, judging.refuse), ground=judging.ground)
        copy, lasts = WorkingCopy(around), judging.lasts
        keeping = _Keeping(copy, self.subjects, day, written, lasts)
        outcomes = [keeping.keep(fact) for fact in facts]
        keeping.link()
        if MEMORY in keeping.copy.files.edits:
            make_lean(keeping.copy, day)
        return Plan(keeping.copy, tuple(outcomes))


@dataclass(eq=False)
class _Keeping:
    """Puts one fact after the other into a working copy."""

    copy: WorkingCopy
    subjects: Subjects
    day: date
    written: Sequence[Written]
    lasts: Callable[[Fact], bool]
    _links: list[Operation] = field(default_factory=list, init=False)

    def keep(self, fact: Fact) -> Outcome:
        """Do what there is to do about a fact."""
        try:
            whole = self._checked(fact)
            outcome = self._kept(whole)
        except KbtuiError as error:
            return Outcome(fact, "refused", why=str(error))
        return replace(outcome, fact=fact)

    def link(self) -> None:
        """Link entries that name each other, once all are there."""
        for operation in self._links:
            self._tried(operation)

    # Guards ----------------------------------------------------------------------------------

    def _checked(self, fact: Fact) -> Fact:
        """A fact without what must not be written."""
        lines = absolute_dates(fact.text, self.day).splitlines()
        told = [line for line in lines if normalise(plain_fact(line))]
        if not fact.replaces and all(is_placeholder(plain_fact(line)) for line in told):
            raise UsageError("It says nothing.")
        why = why_unusable(fact.text)
        if why is not None:
            raise UsageError(f"It {why}.")
        if len(told) == 1 and told[0].rstrip().endswith("?"):
            raise UsageError("It is a question.")
        kept = [line for line in lines if not self._is_buried(line, fact.subject)]
        if told and not statements("\n".join(kept)):
            raise UsageError("It was forgotten by the user.")
        is_machine = self.copy.around.actor.is_machine
        public = [line for line in kept if not (is_machine and redact(line).found)]
        if told and not statements("\n".join(public)):
            raise UsageError("It holds a secret.")
        summary = absolute_dates(fact.summary, self.day)
        subject = clean_line(fact.subject)
        whole = replace(
            fact,
            text="\n".join(public),
            kind=fact.kind if fact.kind in ENTRY_TYPES else "topic",
            subject="" if is_placeholder(subject) else subject[:200],
            summary="" if self._is_buried(summary, subject) else summary,
            tags=tuple(slugify(tag) if " " in tag else tag for tag in fact.tags),
        )
        return self._grounded(self._placed(whole))

    def _placed(self, fact: Fact) -> Fact:
        """A fact about nobody but the user belongs into MEMORY.md."""
        names = self.copy.user_names()
        if not is_user(fact.subject, names) or self.copy.named(fact.subject) is not None:
            return fact
        return replace(fact, subject="", place="memory", kind="fact")

    def _grounded(self, fact: Fact) -> Fact:
        """A fact without the lines, the summary and the subject that nobody has said."""
        if self.copy.around.ground is None:
            return fact
        path = self.copy.subject(fact) if fact.subject else None
        about = f"{fact.subject} {self.copy.title(path)}" if path is not None else ""
        about = f"{about} {self._replaced(fact)}"
        lines = fact.text.splitlines()
        kept = []
        for line in lines:
            if statements(line) and self.copy.lacks(line, about):
                self.copy.leave_out(line)
            else:
                kept.append(line)
        if statements(fact.text) and not statements("\n".join(kept)):
            raise UsageError("Nobody has said that.")
        is_known = path is not None or not self.copy.lacks(fact.subject, " ".join(kept))
        return replace(
            fact,
            text="\n".join(kept),
            subject=fact.subject if is_known else "",
            summary="" if self.copy.lacks(fact.summary, about) else fact.summary,
        )

    def _is_buried(self, line: str, subject: str) -> bool:
        said = plain_fact(line)
        must_not = self.copy.must_not
        return bool(said) and (must_not(said) or must_not(f"{subject}: {said}"))

    # One fact --------------------------------------------------------------------------------

    def _kept(self, fact: Fact) -> Outcome:
        if fact.replaces and (outcome := self._corrected(fact)) is not None:
            return outcome
        if not fact.text.strip():
            return Outcome(fact, "known", why="It doesn't stand there.")
        in_memory = fact.place == "memory"
        own = self.copy.subject(fact) if fact.subject else self._belongs(fact)
        path = MEMORY if in_memory else own
        known = self._known(fact, path)
        if known is not None:
            return known
        if not self.lasts(fact):
            return Outcome(fact, "noted")
        return self._in_memory(plain_fact(fact.text), fact) if in_memory else self._in(path, fact)

    def _in(self, path: str | None, fact: Fact) -> Outcome:
        """Write a fact into an entry, or where it belongs to none into the day's note."""
        if path is None and not fact.subject:
            return self._in_note(fact)
        if path is not None and not fact.subject:
            entry = self.copy.files.parsed(path)
            fact = replace(fact, subject=entry.title, kind=entry.type or fact.kind)
        return self._in_entry(fact)

    def _in_memory(self, line: str, fact: Fact) -> Outcome:
        value = changed_value(self.copy.files.text(MEMORY) or "", line)
        if value is not None:
            done = [self.copy.perform(_by_value(correct_memory(*value), value[0], *value))]
        else:
            done = [self.copy.perform(remember(line))]
        return self._outcome(fact, done, MEMORY, corrected=value is not None)

    def _in_note(self, fact: Fact) -> Outcome:
        """A fact that belongs nowhere stands in the day's note."""
        path = f"memory/{self.day.isoformat()}.md"
        lines = [plain_fact(line) for line in fact.text.splitlines() if line.strip()]
        return self._outcome(fact, [self.copy.perform(note(path, each)) for each in lines], path)

    def _in_entry(self, fact: Fact) -> Outcome:
        path = self.copy.subject(fact)
        is_written = any(each.path == path for each in self.written)
        make, correct, summarise, link = keep_in_entry(
            fact, self.day, LOOSE if is_written else STRICT
        )
        added = self.copy.perform(make)
        made = [each for each in added.made if each.startswith(_ENTRIES)]
        corrected = Done() if made else self.copy.perform(correct)
        done = [added, corrected, *([] if made else self._tried(summarise))]
        self._links.append(link)
        path = made[0] if made else self.copy.subject(fact) or ""
        return self._outcome(fact, done, path, corrected=bool(corrected.paths))

    def _outcome(
        self, fact: Fact, done: Sequence[Done], path: str, *, corrected: bool = False
    ) -> Outcome:
        changes = [each for each in done if each.paths]
        title = self.copy.title(path)
        if not changes:
            return Outcome(fact, "known", path, title, "It says so already.")
        waits = next((each.proposed for each in changes if each.proposed), "")
        if waits and all(each.proposed for each in changes):
            return Outcome(fact, "proposed", path, title, waits)
        if path in changes[0].made and path.startswith(_ENTRIES):
            return Outcome(fact, "created", path, title)
        return Outcome(fact, "corrected" if corrected else "added", path, title, waits)

    def _tried(self, operation: Operation) -> list[Done]:
        try:
            return [self.copy.perform(operation)]
        except KbtuiError:
            return []

    # What is known ---------------------------------------------------------------------------

    def _known(self, fact: Fact, path: str | None) -> Outcome | None:
        """Where a fact stands already in other words, beside its own entry; None: nowhere."""
        told = statements(fact.text)
        for file in self.written:
            there = [each for each in file.statements if each not in file.removed]
            if told and all(is_said(each, there, _likeness(each)) for each in told):
                return self._stands(fact, file.path)
        if len(told) != 1 or fact.summary:
            return None
        is_telling = len(telling(told[0])) >= _TELLING and fact.kind != "person"
        whole = told[0] if is_telling else with_subject(told[0], fact.subject)
        for other in self._others(told[0], path):
            said = stated(shown_text(self._data(other)))
            title = self.copy.title(other)
            if fact.place == "memory" and other.startswith(_FIRST[0]):
                continue  # the same of somebody else
            if is_said(whole, said) or is_said(whole, [f"{title} {each}" for each in said]):
                return self._stands(fact, other)
        return None

    def _others(self, statement: str, path: str | None) -> list[str]:
        """The files that may say a statement, without its own."""
        changed = [each for each in self.copy.files.edits if each.startswith(_ENTRIES)]
        near = self.subjects.near(statement)
        return [each for each in dict.fromkeys([MEMORY, *changed, *near]) if each != path]

    def _stands(self, fact: Fact, path: str) -> Outcome:
        return Outcome(fact, "known", path, self.copy.title(path), "It stands there already.")

    def _data(self, path: str) -> bytes | None:
        return self.copy.files.data(path) if self.copy.files.exists(path) else None

    def _belongs(self, fact: Fact) -> str | None:
        """The one entry that a fact without a subject of its own names; people come first."""
        named = [path for path in self.subjects.named_in(fact.text) if self._data(path)]
        first = [path for path in named if path.startswith(_FIRST)]
        return next((group[0] for group in (first, named) if len(group) == 1), None)

    # What is no longer true ------------------------------------------------------------------

    def _corrected(self, fact: Fact) -> Outcome | None:
        """Let a fact take the place of what it replaces; None: that stands nowhere."""
        done: list[Done] = []
        where = ""
        for path in self._places(fact):
            old = find_statement(fact.replaces, stated(shown_text(self._data(path))))
            if old is None or (where and path != MEMORY):
                continue
            if (
                fact.kind == "decision"
                and path.startswith(f"{_ENTRIES}decisions/")
                and (fact.subject and path != self.copy.subject(fact))
            ):
                self._links.append(supersede_decision(path, fact, self.day))
                return None  # what was decided stays; both say which one holds
            done.append(self.copy.perform(self._correction(path, old, fact)))
            where = where or path
            if path != MEMORY:
                self._follow(path, old, fact)
        if not where:
            return None
        return self._outcome(fact, done, where, corrected=True)

    def _replaced(self, fact: Fact) -> str:
        """The statement that a fact takes the place of; empty where there is none."""
        places = self._places(fact) if fact.replaces else []
        found = (
            find_statement(fact.replaces, stated(shown_text(self._data(path)))) for path in places
        )
        return next(filter(None, found), "")

    def _places(self, fact: Fact) -> list[str]:
        """Where the old statement may stand, the likeliest first."""
        own = self.copy.subject(fact) if fact.subject else self._belongs(fact)
        changed = [each for each in self.copy.files.edits if each.startswith(_ENTRIES)]
        near = [] if fact.place == "memory" else self.subjects.near(fact.replaces)
        places = [MEMORY] if fact.place == "memory" else [own or "", MEMORY, *changed, *near]
        return [each for each in dict.fromkeys(places) if each and self._data(each)]

    def _correction(self, path: str, old: str, fact: Fact) -> Operation:
        new, part = plain_fact(fact.text), plain_fact(fact.replaces)
        if fact.kind == "decision" and path.startswith(f"{_ENTRIES}decisions/"):
            return supersede(path, old, fact, self.day)
        whole = with_value(old, part, new) or new
        operation = correct_memory(old, whole)
        if path != MEMORY and new:
            changed = replace(fact, text=whole.removesuffix("."), replaces=old)
            operation = supersede(path, old, changed, self.day)
        elif path != MEMORY:
            operation = without_line(path, old)
        return _by_value(operation, old, part, new)

    def _follow(self, path: str, old: str, fact: Fact) -> None:
        """Let the title follow what has changed, and the other decision say so."""
        was, now = changed_words(sentence_of(old, fact.replaces), plain_fact(fact.text))
        title = self.copy.title(path)
        if was and now and re.search(rf"\b{re.escape(was)}\b", title):
            self._tried(rename_entry(path, title.replace(was, now)))


def _by_value(operation: Operation, line: str, part: str, new: str) -> Operation:
    """A person decides on a correction that changes more of a line than a value."""
    is_value = with_value(line, part, new) is not None
    return operation if is_value else replace(operation, ask="it changes more than a value")


def _likeness(statement: str) -> float:
    """How much of a statement must be said to count as known; of a value all of it."""
    return STRICT if ": " in statement else LOOSE


def with_subject(statement: str, subject: str) -> str:
    """A statement that can be read alone."""
    words = set(normalise(statement).split())
    return statement if words >= set(normalise(subject).split()) else f"{subject} {statement}"
