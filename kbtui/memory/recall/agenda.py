"""What is to be done and what is coming: the one list of tasks and dated lines, from all notes.

Tasks are list items with an empty checkbox in the journal, in MEMORY.md and in notes, in whatever
notation a vault has (`kbtui.knowledge.format.tasks`), or with a day in plain words. Dated lines are
statements that name a day. Code, comments, struck lines, templates and archived folders have none.

It is read with the eyes of an audience: what its library doesn't show, isn't on its list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from kbtui.clock import local_day
from kbtui.errors import KbtuiError
from kbtui.knowledge.format.planned import Planned, planned
from kbtui.knowledge.format.tasks import TaskFields, TaskLine, fields_in, tasks_in
from kbtui.memory.records.dates import without_dates
from kbtui.memory.records.journal import day_of
from kbtui.offline.dated import NamedDay, days_named, time_named
from kbtui.offline.duties import names_duty
from kbtui.offline.frames import event_verbs, found_in, spoken_in
from kbtui.offline.lines import TextLine, lines_of
from kbtui.offline.times import Period
from kbtui.text import clean_line, fold, shorten
from kbtui.workspace.files import blob_of, text_of
from kbtui.workspace.layout import MEMORY

if TYPE_CHECKING:
    from kbtui.knowledge.entries.entry import EntryInfo
    from kbtui.knowledge.library.library import Library, Reader
    from kbtui.memory.records.journal import Journal
    from kbtui.views.view import View

COMING_DAYS = 14
_WEEK_DAYS = 7
_YEAR_DAYS = 366
_MAX_BYTES = 4_000_000
_CACHE_LIMIT = 100_000  # files
_TIME_LEAD = re.compile(r"(?:~~)?(\d\d:\d\d)[ \t]+")
_HEAD = 200  # characters of a line that are shown
_NEWER_WIDTH = 60
# What a file needs to have for there to be anything in it: a box, an outliner's marker, a date, or
# the name of a month.
_MAY_HAVE = re.compile(
    rb"\[[ /]\]|[-*+][ \t]+[A-Z]{3}[A-Z-]* |\d{4}-\d\d-\d\d|\d[ \t.]"
    rb"|(?i:jan|feb|m.{0,2}r|apr|ma[iy]|mag|jui?n|jul|lug|giu|aug|ago|ao.{0,2}t|sep|set|oct|okt"
    rb"|ott|nov|dec|dez|dic|d\xc3\xa9c)"
)

_OVER = ("x", "-")
"""Marks of what is done or dropped."""
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_RECENT = timedelta(days=400)
"""How long ago a note was changed whose dates without a year may still be ahead."""

When = Literal["late", "week", "later", "undated"]
GROUPS: tuple[When, ...] = ("late", "week", "later", "undated")


@dataclass(frozen=True, slots=True)
class AgendaItem:
    """An open task, or a line that names a day.

    Attributes:
        path: The workspace path of its file.
        title: The title of the file; empty for a day of the journal.
        line: Its line, from 1.
        text: What it says, without dates that are told by `day`.
        day: The day by which or on which it is; the last of a week or a month; None if undated.
        first: The first of these days.
        unit: How precise that is: ``day``, ``week`` or ``month``.
        time: The time of day in it, such as ``09:00``; may be empty.
        task: The task's line in the file; None for other dated lines.
        fields: The task's fields.
        said: The day on which it was said, for a line of the journal.
        wrong: What is wrong with its date, for people; empty if nothing is.
    """

    path: str
    title: str
    line: int
    text: str
    day: date | None = None
    first: date | None = None
    unit: str = "day"
    time: str = ""
    task: TaskLine | None = None
    fields: TaskFields = field(default_factory=TaskFields)
    said: date | None = None
    wrong: str = ""

    @property
    def priority(self) -> int:
        """From 0, the highest, to 5."""
        return self.fields.priority


class _Found(NamedTuple):
    """What is in one file."""

    tasks: tuple[AgendaItem, ...]
    dated: tuple[AgendaItem, ...]


_NOTHING = _Found((), ())
# By path, content and day of a file, so it is never stale, and may be shared by all audiences.
_known: dict[tuple[str, str, str], _Found] = {}


class Agenda(NamedTuple):
    """All open tasks and dated lines, in order of files."""

    tasks: tuple[AgendaItem, ...]
    dated: tuple[AgendaItem, ...]

    def grouped(self, today: date) -> dict[When, list[AgendaItem]]:
        """Return the tasks that are late, of the next seven days, later, and without a date."""
        groups: dict[When, list[AgendaItem]] = {name: [] for name in GROUPS}
        for item in sorted(self.tasks, key=_order):
            groups[group_of(item, today)].append(item)
        return groups

    def duties(self, today: date) -> list[AgendaItem]:
        """Return what was said to be done by a day to come, without being noted as a task."""
        said = (each for each in self.coming(today, _YEAR_DAYS) if each.said is not None)
        return [each for each in said if each.task is None and names_duty(each.text)]

    def coming(self, today: date, days: int = COMING_DAYS) -> list[AgendaItem]:
        """Return what has a day from today on, for so many days: tasks and other lines, by day.

        Of lines that say the same on the same day, one is there.
        """
        until, seen, found = today + timedelta(days=days), set[tuple[date, str]](), []
        for item in sorted((*self.tasks, *self.dated), key=_order):
            if item.day is None or item.first is None or item.day < today or item.first > until:
                continue
            same = item.first, _words(item.text)
            if same not in seen:
                seen.add(same)
                found.append(item)
        return found


def _words(text: str) -> str:
    """Return what a line says, without case and signs, to tell that two say the same."""
    return fold(re.sub(r"\W+", " ", text)).strip()


class NewerDay(NamedTuple):
    """What a newer line says of a task or a dated line: its day, or else the line itself."""

    text: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"newer: {self.text}"


def newer_days(
    items: Sequence[AgendaItem], agenda: Agenda, view: View, today: date
) -> list[NewerDay | None]:
    """Return for each item what a newer line says instead, where one is known.

    Args:
        items: Tasks and dated lines.
        agenda: Where the day of a newer line is looked up.
        view: What may be told.
        today: The day, to name others from it.
    """
    found = view.newer(each.text for each in items)
    days = {_words(each.text): each for each in (*agenda.dated, *agenda.tasks)} if found else {}
    told: list[NewerDay | None] = []
    for item in items:
        newer = found.get(item.text)
        if newer is None:
            told.append(None)
            continue
        other = days.get(_words(without_dates(newer.text)))
        day = short_days(other, today) if other is not None else ""
        said = day or shorten(clean_line(newer.text), _NEWER_WIDTH)
        told.append(NewerDay(said, newer.path, newer.line))
    return told


def group_of(item: AgendaItem, today: date) -> When:
    """Return when a task is to be done, seen from today."""
    if item.day is None:
        return "undated"
    if item.day < today:
        return "late"
    return "week" if item.day < today + timedelta(days=_WEEK_DAYS) else "later"


def _order(item: AgendaItem) -> tuple[date, str, int, str, int]:
    return item.first or date.max, item.time or "~", item.priority, item.path, item.line


def agenda_of(library: Library, journal: Journal) -> Agenda:
    """Return the list of the person whose workspace it is, everything private included."""
    return read_agenda(library, library.overlay().habits().is_in_use, journal.days())


def agenda_seen(view: View) -> Agenda:
    """Return the list as an audience may see it."""
    days = [path for path in view.files("memory") if day_of(path) is not None]
    return read_agenda(view.library, view.overlay().habits().is_in_use, days)


def read_agenda(
    library: Reader, is_in_use: Callable[[EntryInfo], bool], days: Iterable[str]
) -> Agenda:
    """Read the list; run in a thread.

    Args:
        library: What the audience may read.
        is_in_use: Whether a note is neither a template nor archived.
        days: The paths of the journal's days.
    """
    found = [_of_entry(library, info) for info in library.infos() if is_in_use(info)]
    entries = {info.path for info in library.infos()}
    found += [_of_file(library, path) for path in (MEMORY, *days) if path not in entries]
    return Agenda(
        tuple(item for each in found for item in each.tasks),
        tuple(item for each in found for item in each.dated),
    )


def _of_entry(library: Reader, info: EntryInfo) -> _Found:
    day = day_of(info.path)
    base = day.isoformat() if day else (info.updated or info.created or "")[:10]
    key = info.path, info.blob, base
    known = _known.get(key)
    if known is None:
        data = _bytes_of(library, info.path)
        known = _keep(key, _read(data, info.path, info.title, _as_day(base)))
    return known


def _of_file(library: Reader, path: str) -> _Found:
    data = _bytes_of(library, path)
    day = day_of(path)
    key = path, blob_of(data) or "", ""
    known = _known.get(key)
    return known if known is not None else _keep(key, _read(data, path, "", day))


def _keep(key: tuple[str, str, str], found: _Found) -> _Found:
    if len(_known) >= _CACHE_LIMIT:
        _known.clear()
    _known[key] = found
    return found


def _bytes_of(library: Reader, path: str) -> bytes:
    with suppress(KbtuiError):
        return library.read(path, _MAX_BYTES)
    return b""


def _as_day(text: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return None


def _read(data: bytes, path: str, title: str, day: date | None) -> _Found:
    if not _MAY_HAVE.search(data):
        return _NOTHING
    text = text_of(data)
    is_day = day_of(path) is not None
    tasks = [*tasks_in(text)]
    items = (
        _task(each, fields_in(text, each), path, title, day, is_day=is_day)
        for each in tasks
        if each.is_open
    )
    boxes = {each.line for each in tasks}
    may_come = _may_come(text, day, local_day())
    lines = (each for each in (lines_of(text) if may_come else ()) if each.first not in boxes)
    dated = (
        _planned(block, each.first, path, title) or _dated(each, path, title, day, is_day=is_day)
        for each in lines
        if (block := planned(text[each.start : each.end])).mark not in _OVER
    )
    return _Found(tuple(filter(None, items)), tuple(filter(None, dated)))


def _may_come(text: str, day: date | None, today: date) -> bool:
    """Return whether a line of a file may name a day that isn't over; what is over stays so."""
    first = today.isoformat()
    if any(match[0] >= first for match in _ISO_DAY.finditer(text)):
        return True
    return day is not None and abs(today - day) <= _RECENT


def _task(
    task: TaskLine, fields: TaskFields, path: str, title: str, day: date | None, *, is_day: bool
) -> AgendaItem | None:
    said = fields.said
    if is_day and (lead := _TIME_LEAD.match(said)):
        said = said[lead.end() :]
    if said.startswith("~~") or not any(map(str.isalnum, said)):
        return None
    wrong = "; ".join(f"no calendar has a {written}" for written in fields.invalid.values())
    start = fields.dates.get("start")
    first = last = fields.day or start
    unit = "day"
    if last is None and not fields.invalid and (named := _named(said, day, way=1)):
        first, last, unit = named.period.first, named.period.last, named.period.unit
    shown = clean_line(without_dates(said))[:_HEAD]
    at = time_named(said) or fields.time
    base = day if is_day else None
    return AgendaItem(
        path, title, task.line, shown, last, first, unit, at, task, fields, base, wrong
    )


def _named(text: str, day: date | None, *, way: int) -> NamedDay | None:
    """Return the day that a text is about: a whole date, or else the first that it names."""
    found = days_named(text, day, way=way)
    whole = [each for each in found if text[each.start : each.end][:4].isdigit()]
    return next(iter(whole or found), None)


def _planned(block: Planned, line: int, path: str, title: str) -> AgendaItem | None:
    """Return an outliner's block that has its date below it, or None for any other."""
    shown = clean_line(block.said)[:_HEAD]
    if block.day is None or not any(map(str.isalnum, shown)):
        return None
    return AgendaItem(path, title, line, shown, block.day, block.day, time=block.time)


def _dated(
    line: TextLine, path: str, title: str, day: date | None, *, is_day: bool
) -> AgendaItem | None:
    if len(line.text) > _HEAD * 5 or not any(map(str.isalnum, line.text)):
        return None
    said = day if is_day else None
    time = time_named(line.text)
    found = days_named(line.text, day)
    if is_day and not found and not _tells_past(line.text):
        found = days_named(line.text, day, way=1)  # a weekday: the next, as nothing says “came”
    if is_day and _tells_past(line.text) and not _tells_delay(line.text):
        found = [each for each in found if each.period.unit != "month"]  # painted in March
    if said is None:
        # Words like “tomorrow” count from when they were written, which a note doesn't tell.
        found = [
            each for each in found if any(map(str.isdecimal, line.text[each.start : each.end]))
        ]
    found = [each for each in found if _may_be_ahead(each.period, said)]
    if not found:
        return None
    period = max(found, key=lambda each: each.period.first).period
    shown = clean_line(without_dates(line.text))[:_HEAD]
    return AgendaItem(
        path, title, line.first, shown, period.last, period.first, period.unit, time, said=said
    )


def _may_be_ahead(period: Period, said: date | None) -> bool:
    """Return whether a time isn't only that at which something was said: *today*, *this week*."""
    since = period.last if period.unit == "day" else period.first
    return since != said and period.unit != "year"


def _tells_past(text: str) -> bool:
    return bool(event_verbs(text, [each.code for each in spoken_in(text)]))


def _tells_delay(text: str) -> bool:
    return bool(found_in(text, "delaying", [each.code for each in spoken_in(text)]))


def due_text(item: AgendaItem, today: date) -> str:
    """Return when an item is, for people: ``by Mon 30 Nov``, ``in January``."""
    if item.wrong:
        return item.wrong
    if item.day is None or item.first is None:
        return ""
    if item.task is not None and item.day < today:
        return f"late, was due {short_day(item.day, today)}"
    if item.unit == "month":
        year = f" {item.first.year}" if item.first.year != today.year else ""
        return f"in {item.first:%B}{year}"
    if item.unit == "week":
        return f"in the week of {short_day(item.first, today)}"
    is_task = item.task is not None
    return f"by {short_day(item.day, today)}" if is_task else short_days(item, today)


def short_days(item: AgendaItem, today: date) -> str:
    """Return the day or days of a line, as short as it stays clear, as from 5 to 8 Dec."""
    first, last = item.first, item.day
    if first is None or last is None or first == last:
        return short_day(last, today) if last is not None else ""
    begun = f"{first.day}" if first.month == last.month else f"{first.day} {first:%b}"
    year = f" {last.year}" if last.year != today.year else ""
    return f"{begun}\u2013{last.day} {last:%b}{year}"


def named_day(text: str, today: date) -> date | None:
    """Return the day ahead that a person typed, as ``Friday``, ``12 December`` or ``in a week``."""
    found = _named(text, today, way=1)
    return found.period.last if found is not None else None


def named_past(text: str, today: date) -> Period | None:
    """Return the time up to today that a person typed, as ``Friday``, ``last week`` or ``May``."""
    found = _named(text, today, way=-1)
    return found.period if found is not None and found.period.first <= today else None


def short_day(day: date, today: date) -> str:
    """Return a day, as short as it stays clear: ``today``, ``Tue 1 Dec``, ``4 Jan 2027``."""
    names = {0: "today", 1: "tomorrow", -1: "yesterday"}
    if (near := names.get((day - today).days)) is not None:
        return near
    year = (
        f" {day.year}" if day.year != today.year and abs(day - today) > timedelta(days=90) else ""
    )
    return f"{day:%a} {day.day} {day:%b}{year}"


# A day -------------------------------------------------------------------------------------------


class SaidLine(NamedTuple):
    """A line of a day in the journal: its line number, time, text, and whether it is struck out.

    `task` is the mark in its checkbox, if it has one.
    """

    line: int
    time: str
    text: str
    struck: bool = False
    task: str = ""


_STRUCK = re.compile(
    r"~~(?P<text>.+?)~~\s*(?:→\s*(?:\d{4}-\d\d-\d\d)?\s*(?:\d\d:\d\d)?)?\s*\Z", re.DOTALL
)


def day_lines(library: Reader, path: str) -> Sequence[SaidLine]:
    """Return what was said on a day, struck out lines included, in the order of the file."""
    text = text_of(_bytes_of(library, path))
    marks = {task.line: task.mark for task in tasks_in(text)}
    return [*_said_lines(text, marks)]


def _said_lines(text: str, marks: dict[int, str]) -> Iterator[SaidLine]:
    for line in lines_of(text, struck_too=True):
        if line.time:
            struck = _STRUCK.match(line.text)
            said = struck["text"] if struck else line.text
            mark = marks.get(line.first, "")
            yield SaidLine(
                line.first, line.time, clean_line(without_dates(said)), bool(struck), mark
            )
