"""The page of today: what is coming and open, the lines of the day, and the notes written today."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import NamedTuple

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Commit, is_derived
from kbtui.knowledge.library.library import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.agenda import AgendaItem, NewerDay, newer_days, short_day, short_days
from kbtui.memory.records.journal import day_of
from kbtui.presentation.actors import KBTUI, actor_name, committer
from kbtui.presentation.commit_summary import is_upkeep, sentence
from kbtui.presentation.notes import Named, Names, names_of
from kbtui.presentation.times import format_day
from kbtui.text import clean_line
from kbtui.tui.markdown.source import Cell, Neighbour, Section
from kbtui.tui.notes.documents import Document, days_beside, load_document
from kbtui.tui.notes.said import added_lines
from kbtui.views.view import Audience
from kbtui.workspace.layout import ENTRIES

_MAX_COMING = 8
_MAX_OPEN = 6
_AHEAD_DAYS = 92  # what is shown where less than a page is coming soon
_WHEN_COLUMNS = 12  # 30 Nov-2 Dec
_WEEKS = 5
_MAX_WRITTEN = 8
_MAX_COMMITS = 500  # looked at, of a day on which much was written
_MANY_NOTES = 4  # of one commit, which is then told as one
_OURSELVES = frozenset({actor_name(Actor.YOU), KBTUI})


class Around(NamedTuple):
    """What stands around the lines of the day: above, and below or beside; none need be there."""

    coming: tuple[Section, ...]
    written: tuple[Section, ...]
    weeks: Section

    def placed(self, page: Document) -> Document:
        """Return the page with all of it, and without its sentence for an empty day."""
        reason = "" if self.written else page.reason
        return replace(page, above=self.coming, below=(*self.written, self.weeks), reason=reason)


def todays_page(kb: KnowledgeBase, today: date) -> str:
    """Return the path of the page of today: the owner's daily note, if any, else the journal's.

    It need not be there yet.
    """
    own = kb.library.daily_note(today)
    if own is not None and kb.library.exists(own[0]):
        return own[0]
    if own is not None and kb.journal.in_daily_notes:
        return own[0]
    return f"memory/{today.isoformat()}.md"


def load_to_edit(kb: KnowledgeBase, path: str, today: date) -> Document:
    """Load a document to be edited; the page of today is begun if it isn't there yet.

    Raises:
        StorageError: That page can't be written.
    """
    if path == todays_page(kb, today):
        kb.journal.begin_page(today, path)
    return load_document(kb, path)


def is_page_of(path: str, today: date) -> bool:
    """Return whether a path may be that of the page of a day."""
    name = path.rpartition("/")[2].removesuffix(".md").replace("_", "-")
    return name == today.isoformat()


def around_today(kb: KnowledgeBase, path: str, today: date) -> Around:
    """Return what is around the page of today; run in a thread."""
    weeks = _last_weeks(today, days_beside(kb, path))
    return Around(_agenda(kb, today), _written(kb, today), weeks)


def _agenda(kb: KnowledgeBase, today: date) -> tuple[Section, ...]:
    """Return what is coming, and what is open."""
    if isinstance(kb.library, PastLibrary):
        return ()
    with suppress(KbtuiError):
        agenda = kb.agenda()
        groups = agenda.grouped(today)
        coming = agenda.coming(today, _AHEAD_DAYS)
        view = kb.seen_by(Audience.OWN_MODEL)
        found = []
        for title, items, limit in (
            ("Coming", [*groups["late"], *coming], _MAX_COMING),
            ("Open", groups["undated"], _MAX_OPEN),
        ):
            shown = items[:limit] if len(items) > limit + 1 else items
            newer = newer_days(shown, agenda, view, today)
            rows = [_row(*pair, today) for pair in zip(shown, newer, strict=True)]
            if items:
                found.append(_section(title, items, rows))
        return tuple(found)
    return ()


def _section(title: str, items: Sequence[AgendaItem], rows: list[tuple[Cell, ...]]) -> Section:
    if rest := len(items) - len(rows):
        rows.append((Cell(f"… {rest:,} more · T lists all tasks"),))
    return Section(f"{title} {len(items):,}", cells=tuple(rows))


def _row(item: AgendaItem, newer: NewerDay | None, today: date) -> tuple[Cell, ...]:
    """Return when, what is newer, and what, which leads to its line."""
    box = "" if item.task is None else "☐ "
    text = Cell(f"{box}{clean_line(item.text)}", item.path, line=item.line)
    instead = Cell(f"↗ {newer.text}", newer.path, line=newer.line) if newer is not None else None
    rest = (text,) if instead is None else (instead, text)
    if item.day is None or item.first is None:
        return rest
    is_late = item.day < today
    when = short_day(item.day, today)
    if item.unit == "month":
        when = f"{item.first:%B}"
    elif item.task is None:
        when = short_days(item, today)
    if item.unit == "week":
        when = f"from {item.first.day} {item.first:%b}"
    return Cell(f"{when:<{_WHEN_COLUMNS}}", strong=is_late or item.day == today), *rest


# Written today


def _written(kb: KnowledgeBase, today: date) -> tuple[Section, ...]:
    """Return the notes that were written today, the latest first, each with what came to it."""
    if isinstance(kb.library, PastLibrary):
        return ()
    with suppress(KbtuiError):
        log = islice((each for each in kb.history.log() if _is_written(each)), _MAX_COMMITS)
        commits = [*takewhile(lambda each: each.time.astimezone().date() >= today, log)]
        names = names_of(kb.library, {path for each in commits for path in _notes_of(each)})
        found = [*_rows_of(kb, commits, names)]
        rows = [make() for make in islice(found, _MAX_WRITTEN)]
        if rest := len(found) - len(rows):
            rows.append(Neighbour(None, f"… {rest:,} more · F4 lists all changes"))
        return (Section(f"Written today {len(found):,}", tuple(rows)),) if rows else ()
    return ()


def _is_written(commit: Commit) -> bool:
    """Return whether somebody wrote it, not kbtui for itself, nor somebody before it came."""
    return not commit.is_found and not is_upkeep(commit)


def _rows_of(
    kb: KnowledgeBase, commits: Sequence[Commit], names: Names
) -> Iterator[Callable[[], Neighbour]]:
    """Yield what makes each row: a note by the last commit of few notes, and those of many."""
    seen: set[str] = set()
    for commit in commits:
        notes = _notes_of(commit)
        if len(notes) > _MANY_NOTES:
            yield partial(_many, commit, names)
            continue
        for path in notes:
            if path not in seen and kb.library.exists(path):
                yield partial(_one, kb, commit, names[path])
            seen.add(path)


def _notes_of(commit: Commit) -> list[str]:
    """Return the notes that a commit wrote, without notes of days."""
    return [
        each.path
        for each in commit.paths
        if each.path.startswith(ENTRIES)
        and each.kind != "deleted"
        and not is_derived(each.path)
        and day_of(each.path) is None
    ]


def _one(kb: KnowledgeBase, commit: Commit, note: Named) -> Neighbour:
    lines = added_lines(kb.history.diff(commit.parent, commit.id, [note.path]))
    said = lines[0].text if lines else ""
    return Neighbour(note, f"{_when(commit)}  {said}".rstrip(), lines[0].line if lines else 0)


def _many(commit: Commit, names: Names) -> Neighbour:
    return Neighbour(None, f"{commit.time.astimezone():%H:%M}  {sentence(commit, names)}")


def _when(commit: Commit) -> str:
    """Return the time of a commit, with the name of a program that isn't kbtui itself."""
    time, who = f"{commit.time.astimezone():%H:%M}", committer(commit)
    return time if who in _OURSELVES else f"{time} {who}:"


# The days before


def _last_weeks(today: date, days: Mapping[date, str]) -> Section:
    """Return the last five weeks, as rows of days that lead to their notes."""
    monday = today - timedelta(days=today.weekday())
    rows = [tuple(Cell(f"{name:>3}") for name in calendar.day_abbr)]
    for weeks in range(_WEEKS - 1, -1, -1):
        first = monday - timedelta(weeks=weeks)
        week = [first + timedelta(days=ahead) for ahead in range(7)]
        rows.append(
            tuple(
                Cell(f"{day.day:>3}" if day <= today else "   ", days.get(day, ""), day == today)
                for day in week
            )
        )
    before = max((day for day in days if day < monday - timedelta(weeks=_WEEKS - 1)), default=None)
    if before is not None:
        rows.append((Cell(" "), Cell(f"◂ {format_day(before)}", days[before])))
    return Section("The last five weeks", cells=tuple(rows))
