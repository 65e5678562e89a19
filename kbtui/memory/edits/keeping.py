"""Keeps facts: each is put where it belongs, on a working copy, unless it is known or must not be.

One that says nothing, was forgotten, holds a secret, or that nobody has said is refused; one that
stands there in other words is known; one that is of the day alone is for the day's notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from kbtui.errors import KbtuiError, UsageError
from kbtui.knowledge.entries.entry import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.library.overlay import shown_text
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
from kbtui.memory.edits.subjects import is_user
from kbtui.memory.edits.working_copy import Done, Operation, WorkingCopy
from kbtui.memory.records.dates import absolute_dates
from kbtui.memory.records.usable_answers import is_placeholder, why_unusable
from kbtui.redaction.redact import redact
from kbtui.text import clean_line, slugify

_TELLING = 3
_ENTRIES = "knowledge/"
_FIRST = (f"{_ENTRIES}people/", f"{_ENTRIES}projects/")


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """The outcome of one fact.

    Attributes:
        kind: ``created`` an entry; ``added`` to a file; ``corrected`` what was no longer true;
            ``known`` already; ``noted``: it is for the notes of the day; ``proposed``: a person
            must decide; ``refused``: must not be written.
        path: The file, by its workspace path; empty where it is refused.
        why: Why it is known, proposed or refused, ready to be shown.
    """

    fact: Fact
    kind: Literal["created", "added", "corrected", "known", "noted", "proposed", "refused"]
    path: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class FileStatements:
    """The lines that somebody wrote into a file, or would have, meanwhile, and took out."""

    path: str
    statements: tuple[str, ...]
    removed: tuple[str, ...] = ()


@dataclass(eq=False)
class FactKeeper:
    """Puts one fact after the other into a working copy; a later one knows the earlier ones.

    Attributes:
        copy: What they are put into.
        day: The day on which they were said, in the user's time zone.
        written: What was written down meanwhile, and isn't written again.
        lasts: Tells what is more than a note of the day.
    """

    copy: WorkingCopy
    day: date
    written: Sequence[FileStatements] = ()
    lasts: Callable[[Fact], bool] = lambda _fact: True
    _links: list[Operation] = field(default_factory=list, init=False)

    def keep_all(self, facts: Iterable[Fact]) -> list[FactOutcome]:
        """Keep facts, link the entries that name each other, and see that MEMORY.md is lean."""
        outcomes = [self.keep(fact) for fact in facts]
        for operation in self._links:
            self._tried(operation)
        if MEMORY in self.copy.files.edits:
            make_lean(self.copy, self.day)
        return outcomes

    def keep(self, fact: Fact) -> FactOutcome:
        """Do what there is to do about a fact."""
        try:
            outcome = self._kept(self._grounded(self._placed(self._checked(fact))))
        except KbtuiError as error:
            return FactOutcome(fact, "refused", why=str(error))
        return replace(outcome, fact=fact)

    # Guards ----------------------------------------------------------------------------------

    def _checked(self, fact: Fact) -> Fact:
        """A fact without what must not be written."""
        lines = absolute_dates(fact.text, self.day).splitlines()
        _check_worth(fact, lines)
        lines = _without(
            lines, lambda line: self._is_buried(line, fact.subject), "It was forgotten by the user."
        )
        if self.copy.author.actor.is_machine:
            lines = _without(lines, lambda line: bool(redact(line).found), "It holds a secret.")
        subject, summary = clean_line(fact.subject), absolute_dates(fact.summary, self.day)
        return replace(
            fact,
            text="\n".join(lines),
            kind=fact.kind if fact.kind in ENTRY_TYPES else "topic",
            subject="" if is_placeholder(subject) else subject[:200],
            summary="" if self._is_buried(summary, subject) else summary,
            tags=tuple(slugify(tag) if " " in tag else tag for tag in fact.tags),
        )

    def _placed(self, fact: Fact) -> Fact:
        """A fact about nobody but the user belongs into MEMORY.md."""
        names = self.copy.user_names()
        if not is_user(fact.subject, names) or self.copy.named(fact.subject) is not None:
            return fact
        return replace(fact, subject="", place="memory", kind="fact")

    def _grounded(self, fact: Fact) -> Fact:
        """A fact without the lines, the summary and the subject that nobody has said."""
        path = self.copy.subject(fact) if fact.subject else None
        about = f"{fact.subject} {self.copy.title(path)}" if path is not None else ""
        about = f"{about} {next((old for _, old in self._standing(fact)), '')}"

        def is_made_up(line: str) -> bool:
            lacks = bool(statements(line) and self.copy.lacks(line, about))
            if lacks:
                self.copy.record_ungrounded(line)
            return lacks

        lines = _without(fact.text.splitlines(), is_made_up, "Nobody has said that.")
        is_known = path is not None or not self.copy.lacks(fact.subject, " ".join(lines))
        return replace(
            fact,
            text="\n".join(lines),
            subject=fact.subject if is_known else "",
            summary="" if self.copy.lacks(fact.summary, about) else fact.summary,
        )

    def _is_buried(self, line: str, subject: str) -> bool:
        said = plain_fact(line)
        is_forbidden = self.copy.is_forbidden
        return bool(said) and (is_forbidden(said) or is_forbidden(f"{subject}: {said}"))

    # One fact --------------------------------------------------------------------------------

    def _kept(self, fact: Fact) -> FactOutcome:
        if fact.replaces and (outcome := self._corrected(fact)) is not None:
            return outcome
        if not fact.text.strip():
            return FactOutcome(fact, "known", why="It doesn't stand there.")
        in_memory = fact.place == "memory"
        own = self.copy.subject(fact) if fact.subject else self._belongs(fact)
        path = MEMORY if in_memory else own
        known = self._stands_in(fact, path)
        if known is not None:
            return FactOutcome(fact, "known", known, "It stands there already.")
        if not self.lasts(fact):
            return FactOutcome(fact, "noted")
        return self._in_memory(plain_fact(fact.text), fact) if in_memory else self._in(path, fact)

    def _in(self, path: str | None, fact: Fact) -> FactOutcome:
        """Write a fact into an entry, or where it belongs to none into the day's note."""
        if path is None and not fact.subject:
            return self._in_note(fact)
        if path is not None and not fact.subject:
            entry = self.copy.files.parsed(path)
            fact = replace(fact, subject=entry.title, kind=entry.type or fact.kind)
        return self._in_entry(fact)

    def _in_memory(self, line: str, fact: Fact) -> FactOutcome:
        value = changed_value(self.copy.files.text(MEMORY) or "", line)
        if value is not None:
            done = [self.copy.perform(_by_value(correct_memory(*value), value[0], *value))]
        else:
            done = [self.copy.perform(remember(line))]
        return self._outcome(fact, done, MEMORY, corrected=value is not None)

    def _in_note(self, fact: Fact) -> FactOutcome:
        """A fact that belongs nowhere stands in the day's note."""
        path = f"memory/{self.day.isoformat()}.md"
        lines = [plain_fact(line) for line in fact.text.splitlines() if line.strip()]
        return self._outcome(fact, [self.copy.perform(note(path, each)) for each in lines], path)

    def _in_entry(self, fact: Fact) -> FactOutcome:
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
    ) -> FactOutcome:
        changes = [each for each in done if each.paths]
        waits = [each.proposed for each in changes if each.proposed]
        if not changes:
            return FactOutcome(fact, "known", path, "It says so already.")
        if len(waits) == len(changes):
            return FactOutcome(fact, "proposed", path, waits[0])
        if path in changes[0].made and path.startswith(_ENTRIES):
            return FactOutcome(fact, "created", path)
        return FactOutcome(fact, "corrected" if corrected else "added", path, "".join(waits[:1]))

    def _tried(self, operation: Operation) -> list[Done]:
        try:
            return [self.copy.perform(operation)]
        except KbtuiError:
            return []

    # What is known ---------------------------------------------------------------------------

    def _stands_in(self, fact: Fact, path: str | None) -> str | None:
        """The file, beside its own entry, where a fact stands in other words; None: none."""
        told = statements(fact.text)
        for file in self.written if told else ():
            there = [each for each in file.statements if each not in file.removed]
            if all(is_said(each, there, _likeness(each)) for each in told):
                return file.path
        return None if len(told) != 1 or fact.summary else self._told_in(fact, told[0], path)

    def _told_in(self, fact: Fact, told: str, path: str | None) -> str | None:
        """The statement of another file that says the one that a fact makes; None: none."""
        is_telling = len(telling(told)) >= _TELLING and fact.kind != "person"
        whole = told if is_telling else with_subject(told, fact.subject)
        # The same of somebody else is news.
        others = (
            other
            for other in self._others(told, path)
            if fact.place != "memory" or not other.startswith(_FIRST[0])
        )
        return next((other for other in others if self._says(other, whole)), None)

    def _says(self, path: str, statement: str) -> bool:
        said, title = stated(shown_text(self._data(path))), self.copy.title(path)
        titled = [f"{title} {each}" for each in said]
        return is_said(statement, said) or is_said(statement, titled)

    def _others(self, statement: str, path: str | None) -> list[str]:
        """The files that may say a statement, without its own."""
        places = dict.fromkeys([MEMORY, *self._likely(statement)])
        return [each for each in places if each != path]

    def _likely(self, statement: str) -> list[str]:
        """The entries that may say a statement: those changed in this run, then the nearest."""
        changed = [each for each in self.copy.files.edits if each.startswith(_ENTRIES)]
        return [*changed, *self.copy.services.subjects.near(statement)]

    def _data(self, path: str) -> bytes | None:
        return self.copy.files.data(path) if self.copy.files.exists(path) else None

    def _belongs(self, fact: Fact) -> str | None:
        """The one entry that a fact without a subject of its own names; people come first."""
        named = [
            path for path in self.copy.services.subjects.named_in(fact.text) if self._data(path)
        ]
        first = [path for path in named if path.startswith(_FIRST)]
        return next((group[0] for group in (first, named) if len(group) == 1), None)

    # What is no longer true ------------------------------------------------------------------

    def _corrected(self, fact: Fact) -> FactOutcome | None:
        """Let a fact take the place of what it replaces; None: that stands nowhere."""
        done: list[Done] = []
        where = ""
        for path, old in self._standing(fact):
            if where and path != MEMORY:
                continue
            is_other = fact.subject and path != self.copy.subject(fact)
            if is_other and _is_of_decision(path, fact):
                self._links.append(supersede_decision(path, fact, self.day))
                return None  # what was decided stays; both say which one holds
            done.append(self.copy.perform(self._correction(path, old, fact)))
            where = where or path
            if path != MEMORY:
                self._follow(path, old, fact)
        if not where:
            return None
        return self._outcome(fact, done, where, corrected=True)

    def _standing(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Where what a fact takes the place of stands, the likeliest first, and in which words."""
        for path in self._places(fact) if fact.replaces else ():
            old = find_statement(fact.replaces, stated(shown_text(self._data(path))))
            if old is not None:
                yield path, old

    def _places(self, fact: Fact) -> list[str]:
        """Where the old statement may stand, the likeliest first."""
        own = (self.copy.subject(fact) if fact.subject else self._belongs(fact)) or ""
        others = self._likely(fact.replaces)
        places = [own, MEMORY, *others]
        if fact.place == "memory":  # what a person's entry says may be the same of somebody else
            places = [MEMORY, own, *(each for each in others if not each.startswith(_FIRST[0]))]
        return [each for each in dict.fromkeys(places) if each and self._data(each)]

    def _correction(self, path: str, old: str, fact: Fact) -> Operation:
        new, part = plain_fact(fact.text), plain_fact(fact.replaces)
        if _is_of_decision(path, fact):
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


def _is_of_decision(path: str, fact: Fact) -> bool:
    return fact.kind == "decision" and path.startswith(f"{_ENTRIES}decisions/")


def _check_worth(fact: Fact, lines: Sequence[str]) -> None:
    """Refuse what is no statement at all."""
    told = [line for line in lines if normalise(plain_fact(line))]
    if not fact.replaces and all(is_placeholder(plain_fact(line)) for line in told):
        raise UsageError("It says nothing.")
    why = why_unusable(fact.text)
    if why is not None:
        raise UsageError(f"It {why}.")
    if len(told) == 1 and told[0].rstrip().endswith("?"):
        raise UsageError("It is a question.")


def _without(lines: Sequence[str], is_out: Callable[[str], bool], why: str) -> list[str]:
    """Some lines without those that are out; raises where no statement is left of them."""
    left = [line for line in lines if not is_out(line)]
    if any(map(str.strip, lines)) and not statements("\n".join(left)):
        raise UsageError(why)
    return left


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
