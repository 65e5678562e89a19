"""Tasks: list items with a checkbox, ``- [ ] buy milk``, and the fields behind them.

Two notations for these are read, as Obsidian Tasks reads them: its signs (``📅 2026-12-04``) and
Dataview's fields (``[due:: 2026-12-04]``). Fields are peeled off the end of the line: what has
other text behind it than tags and a block id is text. A date that no calendar has is invalid.

A recurring task that is done leaves its next occurrence above it (see `recurrence`).

A block that an outliner marks by a word in capitals (``- TODO buy milk``) is a task as well; its
dates stand on lines of their own (see `planned`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, NamedTuple

from kbtui.errors import UsageError
from kbtui.knowledge.format.document import Block, read
from kbtui.knowledge.format.planned import marker_of, moved_block, planned, ticked_block
from kbtui.knowledge.format.recurrence import next_day

_BOX = re.compile(r"\[[^\[\]\r\n]\][ \t]")
_MARKED = re.compile(r"^[ \t]*[-*+][ \t]+[A-Z]{3}[A-Z-]* ", re.MULTILINE)
_RANK_LEAD = re.compile(r"\[#([ABC])\] +")
_RANK_OF = {"A": 1, "B": 2, "C": 4}

Field = Literal["due", "scheduled", "start", "created", "done", "cancelled"]
NO_PRIORITY = 3
"""The rank of a task without a priority, between medium (2) and low (4)."""


class TaskLine(NamedTuple):
    """A task: its 1-based line, the mark in its checkbox, and the offset of that mark.

    Besides ``x`` the mark may be any character that an Obsidian theme gives a meaning. An
    outliner's block has a `marker` at that offset instead, and the mark that means the same; its
    dates stand up to the offset `end`.
    """

    line: int
    mark: str
    text: str
    box: int
    marker: str = ""
    end: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the task is still to be done, or half done: ``[/]``."""
        return self.mark in " /"


def tasks_in(text: str) -> Iterator[TaskLine]:
    """Yield the tasks of a whole document from top to bottom."""
    if _BOX.search(text) or _MARKED.search(text):
        yield from filter(None, (_task(text, each) for each in read(text).walk()))


def task_at(text: str, line: int) -> TaskLine | None:
    """Return the task on a line, or the one whose list item the line continues."""
    found = (_task(text, each) for each in read(text).walk() if each.first < line <= each.stop)
    return next(filter(None, found), None)


def _task(text: str, block: Block) -> TaskLine | None:
    if block.kind not in ("task", "item"):
        return None
    said = text[block.start : block.end].partition("\n")[0].strip()
    if block.kind == "task":
        return TaskLine(block.first + 1, block.mark, said, text.rindex("]", 0, block.start) - 1)
    marker, mark = marker_of(said)
    if not marker:
        return None
    said = said.removeprefix(marker).strip()
    return TaskLine(block.first + 1, mark, said, block.start, marker, block.end)


# Fields -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskFields:
    """What the end of a task's line says.

    Attributes:
        said: The text without the fields.
        dates: The dates by field.
        invalid: Dates as written that no calendar has, by field.
        priority: From 0, the highest, to 5.
        recurrence: The rule as written, such as ``every 2 weeks``.
        deletes: Whether the line is deleted once it is done.
        style: Which notation is used; empty if none.
        time: The time of day that stands with an outliner's date; may be empty.
        spans: Where the fields stand in the text, by name, and where only their values do.
    """

    said: str = ""
    dates: Mapping[Field, date] = field(default_factory=dict)
    invalid: Mapping[Field, str] = field(default_factory=dict)
    priority: int = NO_PRIORITY
    recurrence: str = ""
    deletes: bool = False
    style: Literal["", "signs", "fields"] = ""
    time: str = ""
    spans: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)

    @property
    def day(self) -> date | None:
        """When it is to be done: the day on which it is due, or else for which it is scheduled."""
        return self.dates.get("due") or self.dates.get("scheduled")


_DAY = r"(\d{4}-\d{2}-\d{2})"
_WORDS = r"([a-zA-Z0-9, !]+)"
_IDS = r"([a-zA-Z0-9_-]+(?: *, *[a-zA-Z0-9_-]+)*)"
_SIGNS: Mapping[str, tuple[str, str]] = {
    "due": ("[📅📆🗓]", _DAY),
    "scheduled": ("[⏳⌛]", _DAY),
    "start": ("🛫", _DAY),
    "created": ("\N{HEAVY PLUS SIGN}", _DAY),
    "done": ("✅", _DAY),
    "cancelled": ("❌", _DAY),
    "recurrence": ("🔁", _WORDS),
    "completion": ("🏁", "([a-zA-Z]+)"),
    "depends": ("⛔", _IDS),
    "id": ("🆔", "([a-zA-Z0-9_-]+)"),
    "priority": ("", "([🔺⏫🔼🔽⏬])"),
}
_KEYS: Mapping[str, tuple[str, str]] = {
    "due": ("due", _DAY),
    "scheduled": ("scheduled", _DAY),
    "start": ("start", _DAY),
    "created": ("created", _DAY),
    "done": ("completion", _DAY),
    "cancelled": ("cancelled", _DAY),
    "recurrence": ("repeat", _WORDS),
    "completion": ("onCompletion", "([a-zA-Z]+)"),
    "depends": ("dependsOn", _IDS),
    "id": ("id", "([a-zA-Z0-9_-]+)"),
    "priority": ("priority", "(highest|high|medium|low|lowest)"),
}
_VARIANT = "\ufe0f?"  # many keyboards write it behind a sign
_PATTERNS: tuple[tuple[Literal["signs", "fields"], str, re.Pattern[str]], ...] = (
    *[
        ("signs", name, re.compile(rf"{sign}{_VARIANT if sign else ''} *{value}{_VARIANT}\Z"))
        for name, (sign, value) in _SIGNS.items()
    ],
    *[
        ("fields", name, re.compile(rf"(?:\[ *{key}:: *{value} *\]|\( *{key}:: *{value} *\)),?\Z"))
        for name, (key, value) in _KEYS.items()
    ],
)
_ENDS = "0123456789])🔺⏫🔼🔽⏬\ufe0f,"
_RANKS = {
    **{sign: rank for rank, sign in zip((0, 1, 2, 4, 5), "🔺⏫🔼🔽⏬", strict=True)},
    **dict(zip(("highest", "high", "medium", "low", "lowest"), (0, 1, 2, 4, 5), strict=True)),
}
_TAG = re.compile(r"(?:\A|\s)#[^\s!@#$%^&*(),.?\":{}|<>]+\Z")
_BLOCK_ID = re.compile(r"[ \t]\^[a-zA-Z0-9-]+\Z")
_MOST_FIELDS = 20
_KINDS: tuple[tuple[Field, str], ...] = (("due", "DEADLINE"), ("scheduled", "SCHEDULED"))
_DATES: tuple[Field, ...] = ("due", "scheduled", "start", "created", "done", "cancelled")


def fields_of(text: str) -> TaskFields:
    """Read the fields at the end of a task's text, as `TaskLine.text` has it."""
    rest, tags = _BLOCK_ID.sub("", text).rstrip(), ""
    values: dict[str, str] = {}
    spans: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
    style: Literal["", "signs", "fields"] = ""
    for _ in range(_MOST_FIELDS):
        if tag := _TAG.search(rest):
            # Tags among the fields belong to what is said.
            rest, tags = rest[: tag.start()].rstrip(), f" {tag[0].strip()}{tags}"
            continue
        found = _last_field(rest)
        if found is None:
            break
        style, name, match = found
        if name not in values:
            group = next(n for n in range(1, len(match.groups()) + 1) if match[n] is not None)
            values[name], spans[name] = match[group].strip(), (match.span(), match.span(group))
        rest = rest[: match.start()].rstrip()
    dates, invalid = _dates_of(values)
    return TaskFields(
        said=f"{rest}{tags}".strip() if values else _BLOCK_ID.sub("", text).strip(),
        dates=dates,
        invalid=invalid,
        priority=_RANKS.get(values.get("priority", ""), NO_PRIORITY),
        recurrence=values.get("recurrence", ""),
        deletes=values.get("completion", "").casefold() == "delete",
        style=style,
        spans=spans,
    )


def fields_in(text: str, task: TaskLine) -> TaskFields:
    """Return what a task says besides its text, as `fields_of`; `text` is the whole document."""
    found = fields_of(task.text)
    if not task.marker:
        return found
    block = planned(text[task.box : task.end])
    dates = dict(found.dates)
    invalid = dict(found.invalid)
    for name, kind in _KINDS:
        if written := block.dates.get(kind):
            try:
                dates[name] = date.fromisoformat(written)
            except ValueError:
                invalid[name] = written
    rank = _RANK_LEAD.match(found.said)
    return replace(
        found,
        said=found.said[rank.end() :] if rank else found.said,
        dates=dates,
        invalid=invalid,
        priority=_RANK_OF[rank[1]] if rank else found.priority,
        time=block.time,
    )


def _last_field(
    text: str,
) -> tuple[Literal["signs", "fields"], str, re.Match[str]] | None:
    """Return the field that a text ends with."""
    if not (text.isascii() and text[-1:] not in _ENDS):
        for style, name, pattern in _PATTERNS:
            if match := pattern.search(text, max(0, text.rfind("\n"))):
                return style, name, match
    return None


def _dates_of(values: Mapping[str, str]) -> tuple[dict[Field, date], dict[Field, str]]:
    dates: dict[Field, date] = {}
    invalid: dict[Field, str] = {}
    for name in _DATES:
        if written := values.get(name):
            try:
                dates[name] = date.fromisoformat(written)
            except ValueError:
                invalid[name] = written
    return dates, invalid


# Changing -----------------------------------------------------------------------------------------


def ticked(text: str, task: TaskLine, today: date) -> str:
    """Return the text with an open task done, or one that is done or dropped open again.

    A task with fields gets the day on which it was done, in their notation, and a recurring one its
    next occurrence in the line above.

    Raises:
        UsageError: It can't be told when it recurs.
    """
    if task.marker:
        return text[: task.box] + ticked_block(text[task.box : task.end], today) + text[task.end :]
    start, end = _line_span(text, task)
    line, box = text[start:end], task.box - start
    if task.mark != " ":
        opened = f"{line[:box]} {line[box + 1 :]}"
        return f"{text[:start]}{_without(opened, ('done', 'cancelled'))}{text[end:]}"
    found = fields_of(task.text)
    done = f"{line[:box]}x{line[box + 1 :]}"
    if found.style:
        done = _with_date(done, "done", today)
    if not found.recurrence:
        if found.deletes:
            return text[:start] + text[end:].removeprefix("\n")
        return f"{text[:start]}{done}{text[end:]}"
    again = _again(line, found, today)
    lines = again if found.deletes else f"{again}\n{done}"
    if "\r" in text[end - 1 : end + 1] or text[end : end + 2] == "\r\n":
        lines = lines.replace("\n", "\r\n")
    return f"{text[:start]}{lines}{text[end:]}"


def moved(text: str, task: TaskLine, day: date) -> str:
    """Return the text with a task's day changed: the one due, scheduled, or a new one due."""
    start, end = _line_span(text, task)
    if task.marker:
        indent = re.sub(r"\S", " ", text[start : task.box])
        block = moved_block(text[task.box : task.end], day, indent)
        return f"{text[: task.box]}{block}{text[task.end :]}"
    found = fields_of(task.text)
    has_scheduled = "scheduled" in found.dates or "scheduled" in found.invalid
    has_due = "due" in found.dates or "due" in found.invalid
    name: Field = "scheduled" if has_scheduled and not has_due else "due"
    return f"{text[:start]}{_with_date(text[start:end], name, day)}{text[end:]}"


def _line_span(text: str, task: TaskLine) -> tuple[int, int]:
    start = text.rfind("\n", 0, task.box) + 1
    end = text.find("\n", task.box)
    end = len(text) if end < 0 else end
    return start, end - (text[end - 1 : end] == "\r")


def _said_at(line: str) -> int:
    """Return where the text of a task begins in its line."""
    box = _BOX.search(line)
    return box.end() if box else 0


def _with_date(line: str, name: Field, day: date) -> str:
    """Return a task's line with a date: replaced where it stands, else behind the other fields."""
    at = _said_at(line)
    found = fields_of(line[at:])
    if name in found.spans:
        start, end = found.spans[name][1]
        return f"{line[: at + start]}{day.isoformat()}{line[at + end :]}"
    sign, key = _SIGNS[name][0].strip("[]")[:1], _KEYS[name][0]
    added = f"[{key}:: {day}]" if found.style == "fields" else f"{sign} {day}"
    block_id = _BLOCK_ID.search(line)
    end = block_id.start() if block_id else len(line)
    return f"{line[:end].rstrip()} {added}{line[end:]}"


def _without(line: str, names: tuple[str, ...]) -> str:
    """Return a task's line without some of its fields."""
    at = _said_at(line)
    spans = fields_of(line[at:]).spans
    for start, end in sorted((spans[name][0] for name in names if name in spans), reverse=True):
        line = f"{line[: at + start].rstrip()}{line[at + end :]}"
    return line


_ONE_OCCURRENCE = ("created", "done", "cancelled", "id", "depends")


def _again(line: str, found: TaskFields, today: date) -> str:
    """Return the line of the next occurrence of a recurring task."""
    names: tuple[Field, ...] = ("due", "scheduled", "start")
    for written in found.invalid.values():
        raise UsageError(f"No calendar has a {written}.", "Put the date right first.")
    origin = next((found.dates[name] for name in names if name in found.dates), None)
    line = _BLOCK_ID.sub("", _without(line, _ONE_OCCURRENCE))
    line = re.sub(r"\[[^\[\]\r\n]\]", "[ ]", line, count=1)
    coming = next_day(found.recurrence, origin, today)
    if origin is not None:
        for name in names:
            if name in found.dates:
                line = _with_date(line, name, coming + (found.dates[name] - origin))
    return line
