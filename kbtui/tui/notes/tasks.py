"""The tasks of journal and notes: late, this week, later, undated; ticked and moved in place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import Any, Literal

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from kbtui.clock import local_day
from kbtui.errors import UsageError
from kbtui.history.change import Commit
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.agenda import (
    GROUPS,
    Agenda,
    AgendaItem,
    When,
    due_text,
    named_day,
    newer_days,
    short_day,
)
from kbtui.presentation.notes import name_of
from kbtui.text import clean_line, has_words
from kbtui.tui.actions.registry import bindings
from kbtui.tui.markdown.inline import checkbox
from kbtui.tui.messages import OpenEntry, TimePassed, leave_for, tell
from kbtui.tui.notes.documents import move_task, tick
from kbtui.tui.notes.entry_actions import may_replace
from kbtui.tui.notes.preview import Preview
from kbtui.tui.terminal.background import SerialQueue, latest
from kbtui.tui.widgets.dialogs import ask_text
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.finder import Finder
from kbtui.tui.widgets.row_list import RowList, justified_row
from kbtui.views.view import Audience

_SAID: Literal["said"] = "said"
Group = When | Literal["said"]
_HEADINGS: dict[Group, str] = {
    "late": "Late",
    "week": "This week",
    "later": "Later",
    "undated": "Without a date",
    "said": "Said, not noted as a task",
}
_PRIORITIES = {0: "▲▲ ", 1: "▲ ", 2: "△ ", 4: "▽ ", 5: "▽▽ "}
_READING = "Looking through the notes …"
_NOTHING = (
    "Nothing is open.\n\nA task is a line with a box, “- [ ] water the plants”, in any note, or"
    " what you ask to be reminded of in the chat."
)
_SPACIOUS_ROWS = 30
Row = AgendaItem | Group | None


def _queued(
    work: Callable[[TasksScreen, AgendaItem], Coroutine[Any, Any, None]],
) -> Callable[[TasksScreen], None]:
    """Queue a change of the task under the cursor behind the changes before it."""

    @wraps(work)
    def run(screen: TasksScreen) -> None:
        item = screen.rows.chosen
        if item is not None:
            screen.turns.run(work, screen, item)

    return run


class TaskList(RowList[Row]):
    """Tasks under headings that say when they are to be done."""

    CLICK_SELECTS = False
    empty = _READING

    def __init__(self, *, classes: str | None = None) -> None:
        self.items: Sequence[Row] = ()
        self.today = local_day()
        self.counts: dict[Group, int] = {}
        self.newer: dict[str, str] = {}
        super().__init__(classes=classes)

    @property
    def chosen(self) -> AgendaItem | None:
        """The task under the cursor."""
        return self.item if isinstance(self.item, AgendaItem) else None

    def can_stop_on(self, index: int) -> bool:
        return isinstance(self.items[index], AgendaItem)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Render a heading, or a task with its day and its note."""
        row = self.items[index]
        if row is None:
            return []
        if not isinstance(row, AgendaItem):
            style = ".rows--bad" if row == "late" else ".rows--strong"
            count = (f"  {self.counts.get(row, 0):,}", ".rows--muted")
            return [Content.assemble((f" {_HEADINGS[row]}", style), count)]
        sign = checkbox(row.task.mark).plain if row.task is not None else "• "
        priority = _PRIORITIES.get(row.priority, "")
        text = Content.assemble("   ", sign, (priority, ".rows--match"), clean_line(row.text))
        return [justified_row(text, self._about(row), width)]

    def _about(self, row: AgendaItem) -> Content:
        is_late = row.day is not None and row.day < self.today
        style = ".rows--bad" if is_late or row.wrong else ".rows--second"
        when = short_day(row.day, self.today) if is_late and row.day else due_text(row, self.today)
        recurs = f"↻ {row.fields.recurrence}" if row.fields.recurrence else ""
        said = f"said {short_day(row.said, self.today)}" if row.said is not None else ""
        place = row.title or said or name_of(row.path)
        parts = [
            (when, style),
            (self.newer.get(row.text, ""), ".rows--accent"),
            (recurs, ".rows--accent"),
            (clean_line(place), ".rows--muted"),
        ]
        return Content.assemble(*_joined([part for part in parts if part[0]]))


def _joined(parts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for index, part in enumerate(parts):
        if index:
            yield " · ", ".rows--muted"
        yield part


class TasksScreen(Finder):
    """All open tasks; what is done here is done in the lines of their files."""

    DEFAULT_CSS = """
    TasksScreen {
        &.-beside .split-list { width: 3fr; }
        &.-beside .split-detail { width: 2fr; }
        &.-low #tasks-note, &.-short #tasks-note { display: none; }
        &.-beside #tasks-note { display: block; }
        &.-empty #tasks-note { display: none; }
    }
    """
    BINDINGS = bindings("tasks")
    TITLE_TEXT = "Tasks"
    FILTER_HINT = "words of a task, a tag, a note"
    rows: TaskList

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.rows = TaskList(classes="split-list framed")
        self._note = Preview(kb, id="tasks-note", classes="split-detail framed")
        self.turns = SerialQueue(self, "change")
        self._agenda = Agenda((), ())
        self._duties: Sequence[AgendaItem] = ()
        self._query = ""
        self._last_change: Commit | None = None

    def compose_body(self) -> ComposeResult:
        yield Divided(self.rows, self._note, classes="parts")

    def on_mount(self) -> None:
        self.rows.border_title = "Tasks"
        self._note.border_title = "Its note"
        self.rows.focus()
        self._read()

    # Reading

    def on_knowledge_changed(self) -> None:
        self._read()

    @on(TimePassed)
    def _time_passed(self, event: TimePassed) -> None:
        if event.new_day:
            self._show()

    @latest("tasks")
    async def _read(self) -> None:
        self._agenda, self._duties, self.rows.newer = await asyncio.to_thread(self._read_all)
        self.rows.empty = _NOTHING
        self._show()

    def _read_all(self) -> tuple[Agenda, Sequence[AgendaItem], dict[str, str]]:
        """Read the list, what else was said to be done, and what is newer; run in a thread."""
        agenda, today = self.kb.agenda(), local_day()
        duties = agenda.duties(today)
        items = (*agenda.tasks, *duties)
        newer = newer_days(items, agenda, self.kb.seen_by(Audience.OWN_MODEL), today)
        told = zip(items, newer, strict=True)
        found = {each.text: str(instead) for each, instead in told if instead is not None}
        return agenda, duties, found

    async def find(self, query: str) -> None:
        self._query = query
        self._show()

    def look_at(self) -> None:
        item = self.rows.chosen
        if item is not None and self._note.display:
            title = clean_line(item.title or name_of(item.path))
            self._note.border_title = Content(title)
            self._note.look_at(item.path, (item.line, item.line))

    def _show(self) -> None:
        """Show the tasks that match, with the cursor where it was."""
        rows, here, at = self.rows, self.rows.chosen, self.rows.cursor
        rows.today = local_day()
        rows.empty = "No task matches." if self._query and self._agenda.tasks else rows.empty
        groups: list[tuple[Group, Sequence[AgendaItem]]] = [
            *self._agenda.grouped(rows.today).items(),
            (_SAID, self._duties),
        ]
        shown: list[Row] = []
        rows.counts = {}
        for name, items in groups:
            found = [item for item in items if self._matches(item)]
            if found:
                rows.counts[name] = len(found)
                spaced = bool(shown) and self.app.size.height >= _SPACIOUS_ROWS
                shown += [*([None] if spaced else []), name, *found]
        same = (n for n, row in enumerate(shown) if here is not None and _is_same(row, here))
        self.set_class(not shown, "-empty")
        rows.show(shown, next(same, at))
        rows.border_title = Content(f"Tasks · {self._count(len(self._agenda.tasks))}")

    def _count(self, total: int) -> str:
        shown = sum(self.rows.counts.get(name, 0) for name in GROUPS)
        late = self.rows.counts.get("late", 0)
        count = f"{shown:,} of {total:,} open" if shown != total else f"{total:,} open"
        return f"{count} · {late:,} late" if late else count

    def _matches(self, item: AgendaItem) -> bool:
        return has_words(f"{item.text} {item.title} {item.path}", self._query)

    # Keys

    @_queued
    async def action_tick(self, item: AgendaItem) -> None:
        if item.task is None:
            raise _not_a_task(item)
        if not await may_replace(self, self.kb, item.path):
            return
        self._last_change = await asyncio.to_thread(tick, self.kb, item.path, item.task)
        again = " It comes again." if item.fields.recurrence else ""
        tell(self, f"Done: {clean_line(item.text)}.{again} u takes it back.")
        await self._read_now()

    @_queued
    async def action_move_day(self, item: AgendaItem) -> None:
        if item.task is None:
            raise _not_a_task(item)
        about = "A day: tomorrow, Friday, 12 December, in two weeks, 2026-12-04"
        typed = await ask_text(self, clean_line(item.text), "", about)
        if not typed:
            return
        day = named_day(typed, local_day())
        if day is None:
            raise UsageError(f"“{clean_line(typed)}” names no day.", about)
        if not await may_replace(self, self.kb, item.path):
            return
        commit = await asyncio.to_thread(move_task, self.kb, item.path, item.task, day)
        self._last_change = commit
        tell(self, f"Moved to {short_day(day, local_day())}. u takes it back.")
        await self._read_now()

    async def _read_now(self) -> None:
        self._agenda, self._duties, self.rows.newer = await asyncio.to_thread(self._read_all)
        self._show()

    def action_undo(self) -> None:
        self.turns.run(self._undo)

    async def _undo(self) -> None:
        commit, self._last_change = self._last_change, None
        if commit is None:
            tell(self, "Nothing was changed here yet.")
            return
        await asyncio.to_thread(self.kb.history.undo, commit.id)
        await self._read_now()

    def action_open(self) -> None:
        item = self.rows.chosen
        if item is not None:
            leave_for(self, OpenEntry(item.path, item.line))


def _not_a_task(item: AgendaItem) -> UsageError:
    return UsageError(
        f"“{clean_line(item.text)}” was said, not noted as a task.", "Enter opens its line."
    )


def _is_same(row: Row, item: AgendaItem) -> bool:
    return isinstance(row, AgendaItem) and (row.path, row.text) == (item.path, item.text)
