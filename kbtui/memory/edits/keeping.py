"""Places facts where they belong on a working copy, by operations, unless known or forbidden.

A fact that says nothing, was forgotten, has a secret, or that nobody said is refused; one that is
there in other words is known; one that matters only today goes into the daily notes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

from kbtui.errors import KbtuiError, UsageError
from kbtui.knowledge.entries.entry import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.library.overlay import shown_text
from kbtui.memory.comparing.known import is_known
from kbtui.memory.edits.entry_updates import (
    LOOSE,
    STRICT,
    changed_value,
    changed_words,
    content_words,
    current_statements,
    find_statement,
    is_said,
    sentence_of,
    with_value,
)
from kbtui.memory.edits.guards import MAX_LINE
from kbtui.memory.edits.memory_limits import trim_memory
from kbtui.memory.edits.operations import (
    correct_memory,
    keep_in_entry,
    note,
    relate,
    rename_entry,
    supersede,
    supersede_decision,
    without_line,
)
from kbtui.memory.edits.subjects import is_qualified, is_user, without_qualifier
from kbtui.memory.edits.working_copy import Operation, OperationResult, WorkingCopy
from kbtui.memory.records.claims import Claim, lines_where
from kbtui.memory.records.dates import with_dates
from kbtui.memory.records.usable_answers import is_placeholder, why_unusable
from kbtui.offline.frames import kin_of
from kbtui.redaction.redact import redact
from kbtui.text import clean_line, slugify
from kbtui.workspace.layout import MEMORY

_MIN_CONTENT_WORDS = 3
_ENTRIES = "knowledge/"
_PREFERRED = (f"{_ENTRIES}people/", f"{_ENTRIES}projects/")
_SIDE_BY_SIDE = ("person", "project")  # what one sentence says of two stands with both
_LINKS = "it links a note that you wrote to others that were named with it"


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """The outcome of one fact.

    Attributes:
        kind: ``created`` an entry; ``added`` to a file; ``corrected`` what was no longer true;
            ``known`` already; ``noted``: only for the daily notes; ``proposed``: a person must
            decide; ``refused``: must not be written.
        path: The workspace path of the file; empty if refused.
        why: Why it is known, proposed or refused, in words for people.
    """

    fact: Fact
    kind: Literal["created", "added", "corrected", "known", "noted", "proposed", "refused"]
    path: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class FileStatements:
    """Statements that were written to a file meanwhile, or proposed, and those removed."""

    path: str
    statements: tuple[str, ...]
    removed: tuple[str, ...] = ()


def keep_facts(
    copy: WorkingCopy,
    facts: Iterable[Fact],
    day: date,
    *,
    written: Sequence[FileStatements] = (),
    lasts: Callable[[Fact], bool] = lambda _fact: True,
    said: Callable[[Fact], datetime | None] = lambda _fact: None,
    noted: Sequence[str] = (),
    heard: Callable[[Fact], str] = lambda _fact: "",
) -> list[FactOutcome]:
    """Keep facts, link entries that mention each other, and shorten MEMORY.md if needed.

    Args:
        copy: The working copy.
        facts: The facts; later ones see the earlier ones.
        day: The day on which they were said, in the user's time zone, if they don't tell.
        written: What was written meanwhile, and isn't written again.
        lasts: Returns whether a fact is more than a note of the day.
        said: Returns when a fact was said, if that is known.
        noted: The notes of earlier days, oldest first.
        heard: Returns the message that states a fact.
    """
    placing = _Placing(copy, day, written, lasts, said, noted, heard)
    outcomes = [placing.keep(fact) for fact in facts]
    for operation in (*placing.links, *placing.relations(outcomes)):
        placing.try_perform(operation)
    if MEMORY in copy.files.edits:
        trim_memory(copy, day)
    return outcomes


@dataclass(eq=False)
class _Placing:
    """Finds the places of facts; `links` are the operations for when all have theirs."""

    copy: WorkingCopy
    day: date
    written: Sequence[FileStatements]
    lasts: Callable[[Fact], bool]
    said: Callable[[Fact], datetime | None]
    noted: Sequence[str]
    heard: Callable[[Fact], str]
    links: list[Operation] = field(default_factory=list, init=False)

    def keep(self, fact: Fact) -> FactOutcome:
        """Keep one fact."""
        try:
            told = self._told_apart(self._placed(self._checked(fact)))
            if told is None:
                return FactOutcome(fact, "noted", why="Several people are called so.")
            grounded = self._grounded(told)
        except KbtuiError as error:
            return FactOutcome(fact, "refused", why=str(error))
        try:
            return replace(self._keep_checked(grounded), fact=fact)
        except KbtuiError as error:  # it was said, and has no place but its day
            return FactOutcome(fact, "noted", why=str(error))

    # Guards ----------------------------------------------------------------------------------

    def _checked(self, fact: Fact) -> Fact:
        when = self._when(fact)
        lines = with_dates(fact.text, when).splitlines()
        _check_worth(fact, lines)
        lines = _without(
            lines, lambda line: self._is_buried(line, fact.subject), "It was forgotten by the user."
        )
        if self.copy.author.actor.is_machine:
            lines = _without(lines, lambda line: bool(redact(line).found), "It holds a secret.")
        subject, summary = clean_line(fact.subject), with_dates(fact.summary, when)
        return replace(
            fact,
            text="\n".join(lines),
            kind=fact.kind if fact.kind in ENTRY_TYPES else "topic",
            subject="" if is_placeholder(subject) else subject[:200],
            summary="" if self._is_buried(summary, subject) else summary,
            tags=tuple(slugify(tag) if " " in tag else tag for tag in fact.tags),
        )

    def _when(self, fact: Fact) -> datetime | date:
        return self.copy.said(fact.text, self.said(fact)) or self.day

    def _day_of(self, fact: Fact) -> date:
        """Return the day on which a fact was said."""
        when = self._when(fact)
        return when.date() if isinstance(when, datetime) else when

    def _placed(self, fact: Fact) -> Fact:
        """Move a fact about the user, without an entry of their own, to MEMORY.md."""
        names = self.copy.user_names()
        if not is_user(fact.subject, names) or self.copy.named(fact.subject) is not None:
            return fact
        return replace(fact, subject="", place="memory", kind="fact")

    def _told_apart(self, fact: Fact) -> Fact | None:
        """Return a fact with the one of several people of its subject's name that it is about.

        They are told apart by how the user calls them: their sister Jana, their daughter Jana. None
        if it isn't said which one is meant.
        """
        if fact.kind != "person" or not fact.subject or is_qualified(fact.subject):
            return fact
        people = self._people_called(fact.subject)
        kin = kin_of(fact.text, fact.subject) or kin_of(self.heard(fact), fact.subject)
        if kin is None:
            return None if len(people) > 1 else fact
        same = [title for title, relation in people.items() if relation == kin[0]]
        if same:
            return replace(fact, subject=same[0])
        is_another = any(relation is not None for relation in people.values())
        return replace(fact, subject=f"{fact.subject} ({kin[1]})") if is_another else fact

    def _people_called(self, name: str) -> dict[str, int | None]:
        """Return the titles of the people of a name, each with their relation to the user."""
        paths = [info.path for info in self.copy.services.subjects.called(name)]
        paths += [each for each in self.copy.files.edits if each.startswith(_PREFERRED[0])]
        found: dict[str, int | None] = {}
        for path in dict.fromkeys(paths):
            if not self._data(path):
                continue
            entry = self.copy.files.parsed(path)
            names = [without_qualifier(each) for each in (entry.title, *entry.aliases)]
            if normalise(name) in map(normalise, names):
                said = [entry.title.replace("(", "my "), *current_statements(entry.text)]
                kin = (kin_of(each, name) for each in said)
                found[entry.title] = next((each[0] for each in kin if each is not None), None)
        return found

    def _grounded(self, fact: Fact) -> Fact:
        """Return a fact without the lines, summary and subject that nobody has said."""
        path = self.copy.subject(fact) if fact.subject else None
        about = f"{fact.subject} {self.copy.title(path)}" if path is not None else ""
        about = f"{about} {next((old for _, old in self._outdated(fact)), '')}"

        def is_said(claim: Claim) -> bool:
            lacking = self.copy.lacks_claim(claim, about, of_user=fact.place == "memory")
            if lacking:
                self.copy.record_ungrounded(claim.text)
            return not lacking

        text = "\n".join(lines_where(fact.text, is_said))
        if fact.text.strip() and not statements(text):
            raise UsageError("Nobody has said that.")
        is_known = path is not None or is_said(Claim(fact.subject, "title"))
        return replace(
            fact,
            text=text,
            subject=fact.subject if is_known else "",
            summary=fact.summary if is_said(Claim(fact.summary)) else "",
        )

    def _is_buried(self, line: str, subject: str) -> bool:
        said = plain_fact(line)
        is_forbidden = self.copy.is_forbidden
        return bool(said) and (is_forbidden(said) or is_forbidden(f"{subject}: {said}"))

    # One fact --------------------------------------------------------------------------------

    def _keep_checked(self, fact: Fact) -> FactOutcome:
        if fact.replaces and (outcome := self._corrected(fact)) is not None:
            return outcome
        if not fact.text.strip():
            return FactOutcome(fact, "known", why="It doesn't stand there.")
        in_memory = fact.place == "memory"
        own = self.copy.subject(fact) if fact.subject else self._entry_mentioned(fact)
        path = MEMORY if in_memory else own
        known = self._file_stating(fact, path)
        if known is not None:
            return FactOutcome(fact, "known", known, "It stands there already.")
        lasts, has_place = self.lasts(fact), bool(path or fact.subject)
        if not (lasts and has_place) and is_known(fact.text, self.noted):
            return FactOutcome(fact, "known", why="It was noted on an earlier day.")
        if not lasts:
            return FactOutcome(fact, "noted")
        return self._in_memory(plain_fact(fact.text), fact) if in_memory else self._in(path, fact)

    def _in(self, path: str | None, fact: Fact) -> FactOutcome:
        """Write a fact into an entry, or into the daily note if it belongs to none."""
        if path is None and not fact.subject:
            return self._in_note(fact)
        if path is not None and not fact.subject:
            entry = self.copy.files.parsed(path)
            fact = replace(fact, subject=entry.title, kind=entry.type or fact.kind)
        return self._in_entry(fact)

    def _in_memory(self, line: str, fact: Fact) -> FactOutcome:
        value = changed_value(self.copy.files.text(MEMORY) or "", line)
        if value is not None:
            operation = self._ask_unless_said(correct_memory(*value), value[0], *value)
            done = [self.copy.perform(operation)]
        else:
            done = [self.copy.perform(note(MEMORY, line))]
        return self._outcome(fact, done, MEMORY, corrected=value is not None)

    def _in_note(self, fact: Fact) -> FactOutcome:
        """Write a fact that belongs nowhere else into the daily note."""
        path = f"memory/{self._day_of(fact).isoformat()}.md"
        lines = [plain_fact(line) for line in fact.text.splitlines() if line.strip()]
        done = [self.copy.perform(note(path, each, "Noted")) for each in lines]
        return self._outcome(fact, done, path)

    def _in_entry(self, fact: Fact) -> FactOutcome:
        path = self.copy.subject(fact)
        is_written = any(each.path == path for each in self.written)
        make, correct, summarise, link = keep_in_entry(
            fact, self._day_of(fact), LOOSE if is_written else STRICT
        )
        added = self.copy.perform(make)
        made = [each for each in added.made if each.startswith(_ENTRIES)]
        corrected = OperationResult() if made else self.copy.perform(correct)
        done = [added, corrected, *([] if made else self.try_perform(summarise))]
        self.links.append(link)
        path = made[0] if made else self.copy.subject(fact) or ""
        return self._outcome(fact, done, path, corrected=bool(corrected.paths))

    def _outcome(
        self, fact: Fact, done: Sequence[OperationResult], path: str, *, corrected: bool = False
    ) -> FactOutcome:
        changes = [each for each in done if each.paths]
        reasons = [each.proposed for each in changes if each.proposed]
        if not changes:
            return FactOutcome(fact, "known", path, "It says so already.")
        if len(reasons) == len(changes):
            return FactOutcome(fact, "proposed", path, reasons[0])
        if path in changes[0].made and path.startswith(_ENTRIES):
            return FactOutcome(fact, "created", path)
        return FactOutcome(fact, "corrected" if corrected else "added", path, "".join(reasons[:1]))

    def relations(self, outcomes: Iterable[FactOutcome]) -> Iterator[Operation]:
        """Yield the operations that relate entries that one message names to each other.

        Only entries that are changed anyway; what a person wrote is suggested to them.
        """
        told: dict[int, list[FactOutcome]] = defaultdict(list)
        for outcome in outcomes:
            if outcome.fact.message is not None and outcome.path.startswith(_ENTRIES):
                told[outcome.fact.message].append(outcome)
        for group in told.values():
            named = self.copy.services.subjects.clearly_named_in(self.heard(group[0].fact))
            paths = list(dict.fromkeys([*(each.path for each in group), *named]))
            for path in paths:
                if len(paths) > 1 and path in self.copy.files.edits:
                    authors = self.copy.authors(path)
                    is_theirs = bool(authors) and authors[0].writes_human_text
                    yield replace(relate(path, paths, self.day), ask=_LINKS if is_theirs else "")

    def try_perform(self, operation: Operation) -> list[OperationResult]:
        """Perform an operation if it can be done."""
        try:
            return [self.copy.perform(operation)]
        except KbtuiError:
            return []

    # Known facts -----------------------------------------------------------------------------

    def _file_stating(self, fact: Fact, path: str | None) -> str | None:
        """Return another file that states a fact in other words, or None."""
        stated = statements(fact.text)
        for file in self.written if stated else ():
            there = [each for each in file.statements if each not in file.removed]
            if all(is_said(each, there, _likeness(each)) for each in stated):
                return file.path
        return None if len(stated) != 1 or fact.summary else self._other_file(fact, stated[0], path)

    def _other_file(self, fact: Fact, statement: str, path: str | None) -> str | None:
        """Return the other file with the statement of a fact, or None."""
        is_telling = len(content_words(statement)) >= _MIN_CONTENT_WORDS and fact.kind != "person"
        whole = statement if is_telling else with_subject(statement, fact.subject)
        # The same about somebody else is new.
        names_subject = set(normalise(fact.subject).split()) <= set(normalise(statement).split())
        is_of_both = fact.kind in _SIDE_BY_SIDE and bool(fact.subject) and names_subject
        others = (
            other
            for other in self._others(statement, path)
            if (fact.place != "memory" or not other.startswith(_PREFERRED[0]))
            and not (is_of_both and other.startswith(_PREFERRED))
        )
        if path is not None and is_known(whole, current_statements(shown_text(self._data(path)))):
            return path
        return next((other for other in others if self._states(other, whole)), None)

    def _states(self, path: str, statement: str) -> bool:
        said, title = current_statements(shown_text(self._data(path))), self.copy.title(path)
        titled = [f"{title} {each}" for each in said]
        if is_said(statement, said) or is_said(statement, titled):
            return True
        return is_known(statement, said) or is_known(statement, titled)

    def _others(self, statement: str, path: str | None) -> list[str]:
        """Return the files that may have a statement, except its own."""
        places = dict.fromkeys([MEMORY, *self._likely_entries(statement)])
        return [each for each in places if each != path]

    def _likely_entries(self, statement: str) -> list[str]:
        """Return the entries that may have a statement: first those changed in this run."""
        changed = [each for each in self.copy.files.edits if each.startswith(_ENTRIES)]
        return [*changed, *self.copy.services.subjects.near(statement)]

    def _data(self, path: str) -> bytes | None:
        return self.copy.files.data(path) if self.copy.files.exists(path) else None

    def _entry_mentioned(self, fact: Fact) -> str | None:
        """Return the only entry that a fact without a subject mentions; people take precedence."""
        named = [
            path for path in self.copy.services.subjects.named_in(fact.text) if self._data(path)
        ]
        first = [path for path in named if path.startswith(_PREFERRED)]
        return next((group[0] for group in (first, named) if len(group) == 1), None)

    # Corrections -----------------------------------------------------------------------------

    def _corrected(self, fact: Fact) -> FactOutcome | None:
        """Replace what a fact corrects; return None if that is nowhere."""
        done: list[OperationResult] = []
        where = ""
        for path, old in self._outdated(fact):
            if where and path != MEMORY:
                continue
            is_other = fact.subject and path != self.copy.subject(fact)
            if is_other and _is_of_decision(path, fact):
                self.links.append(supersede_decision(path, fact, self._day_of(fact)))
                return None  # decisions stay; both say which one holds
            done.append(self.copy.perform(self._correction(path, old, fact)))
            where = where or path
            if path != MEMORY:
                self._update_title(path, old, fact)
        if not where:
            return None
        return self._outcome(fact, done, where, corrected=True)

    def _outdated(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield the files, most likely first, with the statement in them that a fact replaces."""
        for path in self._candidates(fact) if fact.replaces else ():
            old = find_statement(fact.replaces, current_statements(shown_text(self._data(path))))
            if old is not None:
                yield path, old

    def _candidates(self, fact: Fact) -> list[str]:
        """Return the files that may have the old statement, most likely first."""
        own = (self.copy.subject(fact) if fact.subject else self._entry_mentioned(fact)) or ""
        others = self._likely_entries(fact.replaces)
        places = [own, MEMORY, *others]
        if fact.place == "memory":  # a person's entry may say it of somebody else
            places = [MEMORY, own, *(each for each in others if not each.startswith(_PREFERRED[0]))]
        return [each for each in dict.fromkeys(places) if each and self._data(each)]

    def _correction(self, path: str, old: str, fact: Fact) -> Operation:
        new, part = plain_fact(fact.text), plain_fact(fact.replaces)
        if _is_of_decision(path, fact):
            return supersede(path, old, fact, self._day_of(fact))
        whole = with_value(old, part, new) or new
        operation = correct_memory(old, whole)
        if path != MEMORY and new:
            changed = replace(fact, text=whole.removesuffix("."), replaces=old)
            operation = supersede(path, old, changed, self._day_of(fact))
        elif path != MEMORY:
            operation = without_line(path, old)
        if fact.asks:
            return replace(operation, ask="it changes a line")
        return self._ask_unless_said(operation, old, part, new)

    def _ask_unless_said(self, operation: Operation, line: str, part: str, new: str) -> Operation:
        """Have a person decide on a correction in a model's words of more than a value."""
        if with_value(line, part, new) is not None or self.copy.was_said(new):
            return operation
        return replace(operation, ask="it changes more than a value")

    def _update_title(self, path: str, old: str, fact: Fact) -> None:
        """Update the title if it has the old value."""
        was, now = changed_words(sentence_of(old, fact.replaces), plain_fact(fact.text))
        title = self.copy.title(path)
        if was and now and re.search(rf"\b{re.escape(was)}\b", title):
            self.try_perform(rename_entry(path, title.replace(was, now)))


def _is_of_decision(path: str, fact: Fact) -> bool:
    return fact.kind == "decision" and path.startswith(f"{_ENTRIES}decisions/")


def _check_worth(fact: Fact, lines: Sequence[str]) -> None:
    stated = [line for line in lines if normalise(plain_fact(line))]
    if not fact.replaces and all(is_placeholder(plain_fact(line)) for line in stated):
        raise UsageError("It says nothing.")
    why = why_unusable(fact.text)
    if why is not None:
        raise UsageError(f"It {why}.")
    if len(stated) == 1 and stated[0].rstrip().endswith("?"):
        raise UsageError("It is a question.")
    if any(len(line) > MAX_LINE for line in lines):
        raise UsageError("A line of that length is no fact.")


def _without(lines: Sequence[str], is_excluded: Callable[[str], bool], why: str) -> list[str]:
    """Return the lines that aren't excluded; raise if no statement is left."""
    kept = [line for line in lines if not is_excluded(line)]
    if any(map(str.strip, lines)) and not statements("\n".join(kept)):
        raise UsageError(why)
    return kept


def _likeness(statement: str) -> float:
    """Return the share of a statement that must match; a value must match fully."""
    return STRICT if ": " in statement else LOOSE


def with_subject(statement: str, subject: str) -> str:
    """Return a statement that can be read on its own."""
    words = set(normalise(statement).split())
    return statement if words >= set(normalise(subject).split()) else f"{subject} {statement}"
