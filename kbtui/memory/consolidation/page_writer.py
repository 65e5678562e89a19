"""Writes the results of a page as one commit: archive, MEMORY.md, entries and daily notes.

Proposals are stored before the commit. A crash in between is harmless: the page is condensed again,
and an identical proposal isn't stored twice.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.facts import Fact, normalise, statements
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.consolidation.gate import gate_of
from kbtui.memory.consolidation.live_edits import LiveEdits, live_edits
from kbtui.memory.consolidation.notes import RAW, DayNote, stage_day_notes
from kbtui.memory.consolidation.page import Page
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.entry_updates import find_statement, is_said
from kbtui.memory.edits.grounding import ground_of, nearest
from kbtui.memory.edits.keeping import FactOutcome, keep_facts
from kbtui.memory.edits.subjects import names_of_user
from kbtui.memory.edits.working_copy import USER, Author, WorkingCopy
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import local, with_dates
from kbtui.memory.records.ranges import holds
from kbtui.offline.language import significant_terms
from kbtui.settings import OFFLINE, FlushSettings
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY, Workspace

_UPDATED = re.compile(r"(?m)^updated: *[\"']?(\d{4}-\d\d-\d\d)")


@dataclass(frozen=True, slots=True)
class SavedPage:
    """What was written for a page: archive cursor, commit, and proposal ids."""

    cursor: int
    commit: str
    proposals: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(eq=False)
class MemoryWriter:
    """Writes pages; the caller holds the memory lock.

    `notes` has the settings for daily notes. `batch` is the import that the pages come from; then
    facts from a model don't change MEMORY.md, which is about the present.
    """

    workspace: Workspace
    history: History
    archive: Archive
    inbox: Inbox
    editor: Editor
    notes: FlushSettings
    batch: str | None = None

    def live_edits(self, page: Page) -> LiveEdits:
        """Return the edits of entries and MEMORY.md made during a page."""
        return live_edits(self.history, self.inbox, page)

    def memory_text(self) -> str:
        """Return the text of MEMORY.md, or "" if there is none."""
        return self._text(MEMORY)

    def user_names(self) -> tuple[str, ...]:
        """Return the user's names according to USER.md and MEMORY.md."""
        return names_of_user(map(self._text, (USER, MEMORY)))

    def _text(self, path: str) -> str:
        try:
            return files.read_text(self.workspace, path)
        except NotFoundError:
            return ""

    def save(
        self, page: Page, answer: Answer, model: str, *, why_raw: str = ""
    ) -> SavedPage | None:
        """Write an answer; None if another process archived the page. Raises as `committed`.

        `why_raw`: why no model could condense it. Then it is archived in full, unless it is so in
        whatever way, and the notes of the day, which are the user's, say nothing of it.
        """
        is_verbatim = model == OFFLINE and not page.withheld
        if self._is_archived(page, by_model=not (is_verbatim or why_raw)):
            return None
        origin = Origin(page.session, page.range, model=model, batch=self.batch)
        live = self.live_edits(page)
        answer = replace(answer, facts=tuple(_with_source(page, each) for each in answer.facts))

        def work(change: Change) -> SavedPage:
            copy, outcomes = self._keep(page, answer, live)
            for line in answer.refused:
                copy.record_ungrounded(line)
            proposals = tuple(id_ for _, id_ in copy.propose(self.inbox, origin))
            kept = (each.fact.text for each in outcomes if each.kind != "refused")
            lines = [(page.day, each) for each in answer.notes] + [*_day_notes(outcomes, page)]
            notes = _current(lines, answer.facts)
            notes = list(_grounded(_without_fragments(notes, kept), copy))
            whole = f"{RAW} {page.shown} messages\n{page.text.rstrip()}"
            cursor = self.archive.stage(
                change,
                whole if why_raw else copy.dated(answer.summary, page.day, is_dated=True),
                session=page.session,
                messages=page.range,
                timestamp=page.timestamp,
                raw=bool(why_raw),
                verbatim=is_verbatim,
                dropped=page.dropped,
                not_grounded=copy.ungrounded,
            )
            change.origin = replace(change.origin, cursor=cursor)
            copy.stage(change)
            if self.notes.enabled:
                stage_day_notes(change, page, notes, copy.is_forbidden)
            return SavedPage(cursor, "", proposals)

        first, last = page.range
        done = f"Archived messages {first} to {last} of {page.session}."
        reason = f"Kept word for word. {why_raw}" if why_raw else done
        saved, commit = committed(
            self.history, self.workspace, Actor.CONSOLIDATOR, reason, origin, work
        )
        if commit is None:
            raise AssertionError("an archive entry is always new")
        return replace(saved, commit=commit.id)

    def _keep(
        self, page: Page, answer: Answer, live: LiveEdits
    ) -> tuple[WorkingCopy, list[FactOutcome]]:
        said = page.said + list(_stated_facts(page, answer.facts))
        ground = ground_of(page.spoken)
        gate = gate_of(page, ground, self.workspace)
        author = Author(
            Actor.CONSOLIDATOR,
            said,
            lambda fact: live.is_removed(fact, said),
            ground,
        )

        def is_waiting(fact: Fact) -> bool:
            return is_said(fact.text, live.waiting)

        def keep(facts: Iterable[Fact]) -> tuple[WorkingCopy, list[FactOutcome]]:
            copy = self.editor.open(author)
            return copy, keep_facts(
                copy,
                facts,
                page.day,
                written=live.written,
                lasts=lambda fact: not is_waiting(fact) and gate.lasts(fact),
                said=page.time_of,
                noted=gate.noted,
                heard=page.text_of,
            )

        # A waiting correction isn't made again; anything else that waits goes into daily notes.
        facts = [each for each in answer.facts if not (each.replaces and is_waiting(each))]
        copy, outcomes = keep(facts)
        if outdated := self._outdated(outcomes, page.day):
            return keep(fact for fact in facts if fact not in outdated)
        return copy, outcomes

    def _outdated(self, outcomes: Iterable[FactOutcome], day: date) -> list[Fact]:
        """Return an import's facts that would correct what was written after they were said."""
        return [
            each.fact
            for each in outcomes
            if self.batch is not None and each.kind in ("corrected", "proposed")
            if not self._is_older(each.path, day)
        ]

    def _is_older(self, path: str, day: date) -> bool:
        with contextlib.suppress(NotFoundError):
            found = _UPDATED.search(files.read_text(self.workspace, path))
            return found is not None and found[1] < day.isoformat()
        return False

    def _is_archived(self, page: Page, *, by_model: bool) -> bool:
        covered = self.archive.covered(page.session, by_model=by_model)
        return any(holds(covered, message.id) for message in page.messages)


def _stated_facts(page: Page, facts: Iterable[Fact]) -> Iterator[tuple[datetime, str]]:
    """Yield each fact in the model's words with the time the user said it."""
    times = {each.id: each.time for each in page.messages if each.role == "user"}
    for fact in facts:
        if fact.message in times:
            yield times[fact.message], f"{fact.subject}: {fact.text}"


def _with_source(page: Page, fact: Fact) -> Fact:
    """Return a fact with the id of the message that states it, whatever the model gave."""
    said = [(each.id, each.content) for each in page.spoken if each.role == "user"]
    return replace(fact, message=nearest(f"{fact.subject} {fact.text}", said, fact.message))


def _day_notes(outcomes: Iterable[FactOutcome], page: Page) -> Iterator[DayNote]:
    """Yield the facts that are only notes of the day, each with the day it was said on."""
    days = {each.id: local(each.time).date() for each in page.messages}
    for outcome in outcomes:
        if outcome.kind == "noted":
            day = days.get(outcome.fact.message or 0, page.day)
            for line in statements(outcome.fact.text):
                subject = outcome.fact.subject
                is_named = set(significant_terms(subject)) <= set(significant_terms(line))
                yield day, line if is_named else f"{subject}: {line}"


def _current(notes: Iterable[DayNote], facts: Iterable[Fact]) -> list[DayNote]:
    """Remove the notes that were corrected in the same conversation."""
    found = list(notes)
    for fact in (each for each in facts if each.replaces):
        found = [
            (day, each)
            for day, each in found
            if is_said(fact.text, [each]) or find_statement(fact.replaces, [each]) is None
        ]
    return found


def _without_fragments(notes: Iterable[DayNote], facts: Iterable[str]) -> Iterator[DayNote]:
    """Yield the notes that aren't just a part of another note or of a fact.

    Small models note what was mentioned, name by name.
    """
    found = list(notes)
    lines = [normalise(each) for each in (*(line for _, line in found), *facts)]
    for day, note in found:
        words = normalise(note)
        if not any(f" {words} " in f" {line} " and line != words for line in lines):
            yield day, note


def _grounded(notes: Iterable[DayNote], copy: WorkingCopy) -> Iterator[DayNote]:
    """Yield the notes that somebody said and that weren't forgotten; record ungrounded ones."""
    for day, note in notes:
        if copy.is_forbidden(note):
            continue
        line = with_dates(note, day, is_dated=True)
        if copy.lacks(line):
            copy.record_ungrounded(note)
        else:
            yield day, line
