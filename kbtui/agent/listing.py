"""Answers that are lists: open tasks, what is coming, what was said on a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from kbtui.memory.recall.agenda import (
    COMING_DAYS,
    GROUPS,
    Agenda,
    AgendaItem,
    NewerDay,
    SaidLine,
    agenda_seen,
    day_lines,
    due_text,
    newer_days,
    short_day,
)
from kbtui.memory.records.journal import day_of
from kbtui.offline.asked import ListQuestion, days_of
from kbtui.offline.times import Period
from kbtui.text import counted
from kbtui.views.view import View

_MAX_LINES = 40
_BOX = {" ": "☐", "/": "☐"}


class ListedLine(NamedTuple):
    """A line of a list: where it stands, what it says, as shown, and when it is."""

    path: str
    line: int
    title: str
    text: str
    shown: str
    when: str = ""


class Listed(NamedTuple):
    """A list: a sentence above it, its lines, what is below them, and a summary."""

    head: str
    lines: tuple[ListedLine, ...]
    more: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The lists of one workspace, as an audience sees it, on a day."""

    view: View
    today: date

    def of(self, asked: ListQuestion) -> Listed:
        """Return the list that a question asks for; raises as reading files."""
        if asked.kind == "day":
            return self._day(*days_of(asked.period, self.today))
        agenda = agenda_seen(self.view)
        if asked.kind == "coming":
            return self._coming_within(asked.period, agenda)
        return self._tasks_until(asked.period, agenda)

    def _coming_within(self, period: Period | None, agenda: Agenda) -> Listed:
        if period is None:
            found = agenda.coming(self.today)
            return self._coming(self._items(found, agenda), "in the next two weeks")
        first, last = days_of(period, self.today)
        ahead = max(0, (last - self.today).days) + COMING_DAYS
        found = agenda.coming(self.today, ahead)
        return self._coming(
            self._items([each for each in found if _overlaps(each, first, last)], agenda),
            _span(first, last),
            self._items([each for each in found if _is_after(each, last)][:1], agenda),
        )

    def _tasks_until(self, period: Period | None, agenda: Agenda) -> Listed:
        groups = agenda.grouped(self.today)
        tasks = [item for name in GROUPS for item in groups[name]]
        duties = agenda.duties(self.today)
        if period is None:
            return self._tasks(self._items(tasks, agenda), self._items(duties, agenda))
        last = days_of(period, self.today)[1]
        return self._tasks(
            self._items([each for each in tasks if _is_until(each, last)], agenda),
            self._items([each for each in duties if _is_until(each, last)], agenda),
            self._items([each for each in (*tasks, *duties) if not _is_until(each, last)], agenda),
            last,
        )

    def _tasks(
        self,
        tasks: list[ListedLine],
        duties: list[ListedLine],
        later: Sequence[ListedLine] = (),
        until: date | None = None,
    ) -> Listed:
        """List tasks, and behind them what was said to be a duty without being noted as a task."""
        summary = counted(len(tasks), "open task")
        shown = [*tasks, *duties]
        if later and not shown and until is not None:
            head = f"Nothing is open {_until(until, self.today)}. Later:"
            return self._listed(head, later, summary)
        said = f"{len(duties):,} that you said" if tasks else "You said"
        head = " and ".join([summary] * bool(tasks) + [said] * bool(duties))
        listed = self._listed(f"{head}:" if shown else "Nothing is open.", shown, summary)
        return listed._replace(more=(*listed.more, f"{len(later):,} later.")) if later else listed

    def _coming(
        self, items: list[ListedLine], when: str, later: Sequence[ListedLine] = ()
    ) -> Listed:
        summary = f"{len(items)} coming"
        if later and not items:
            head, items = f"Nothing has a date {when}. The next after that:", [*later]
        else:
            head = f"Coming {when}:" if items else f"Nothing has a date {when}."
        return self._listed(head, items, summary)

    def _items(self, items: Sequence[AgendaItem], agenda: Agenda) -> list[ListedLine]:
        newer = newer_days(items, agenda, self.view, self.today)
        return [self._item(*pair) for pair in zip(items, newer, strict=True)]

    def _item(self, item: AgendaItem, newer: NewerDay | None) -> ListedLine:
        box = f"{_BOX.get(item.task.mark, '☐')} " if item.task is not None else ""
        when = " · ".join(filter(None, (due_text(item, self.today), str(newer or ""))))
        return ListedLine(item.path, item.line, item.title, item.text, f"{box}{item.text}", when)

    def _day(self, first: date, last: date) -> Listed:
        paths = (path for path in self.view.files("memory") if day_of(path) is not None)
        infos = (info.path for info in self.view.library.infos())
        days = {path: day for path in (*paths, *infos) if (day := day_of(path)) is not None}
        is_one = first == last
        lines = [
            _said(path, said, "" if is_one else short_day(day, self.today))
            for path, day in sorted(days.items(), key=lambda pair: (pair[1], pair[0]))
            if first <= day <= last
            for said in day_lines(self.view.library, path)
        ]
        when = _span(first, last) if first != last else _on(first, self.today)
        head = f"What you said {when}:" if lines else f"You said nothing {when}."
        return self._listed(head, lines, counted(len(lines), "line"))

    def _listed(self, head: str, lines: Sequence[ListedLine], summary: str) -> Listed:
        rest = len(lines) - _MAX_LINES
        more = (f"And {rest:,} more.",) if rest > 0 else ()
        return Listed(head, tuple(lines[:_MAX_LINES]), more, summary)


def _said(path: str, said: SaidLine, when: str) -> ListedLine:
    shown = f"~~{said.text}~~" if said.struck else said.text
    box = {"": "", " ": "☐ ", "x": "☑ ", "X": "☑ "}.get(said.task, "☐ ")
    return ListedLine(path, said.line, "", said.text, f"{said.time} {box}{shown}", when)


def _overlaps(item: AgendaItem, first: date, last: date) -> bool:
    return (
        item.first is not None and item.day is not None and item.first <= last and item.day >= first
    )


def _is_until(item: AgendaItem, day: date) -> bool:
    return item.day is None or item.day <= day


def _is_after(item: AgendaItem, day: date) -> bool:
    return item.first is not None and item.first > day


def _span(first: date, last: date) -> str:
    return (
        f"from {first.day} {first:%B} to {last.day} {last:%B}"
        if first != last
        else f"on {first:%A} {first.day} {first:%B}"
    )


def _until(day: date, today: date) -> str:
    return "today" if day == today else f"until {short_day(day, today)}"


def _on(day: date, today: date) -> str:
    names = {0: "today", 1: "yesterday"}
    return names.get((today - day).days) or f"on {short_day(day, today)}"
