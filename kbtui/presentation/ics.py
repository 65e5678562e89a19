"""Tasks as a calendar: iCalendar's VTODO (RFC 5545), which calendars and task lists read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from kbtui.memory.recall.agenda import AgendaItem
from kbtui.text import clean_line

_MAX_BYTES = 75  # of a line, by the standard
_PRIORITIES = {0: 1, 1: 2, 2: 5, 4: 7, 5: 9}


def calendar_of(items: Iterable[AgendaItem], now: datetime) -> str:
    """Return the text of a calendar with the tasks; the same task keeps its id."""
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//kbtui//tasks//EN"]
    for item in items:
        lines += _task(item, stamp)
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _task(item: AgendaItem, stamp: str) -> Iterator[str]:
    same = hashlib.sha256(f"{item.path}\n{item.text}".encode("utf-8", "replace")).hexdigest()[:32]
    yield "BEGIN:VTODO"
    yield f"UID:{same}@kbtui"
    yield f"DTSTAMP:{stamp}"
    yield f"SUMMARY:{_escaped(item.text)}"
    dates = item.fields.dates
    start = dates.get("start") or dates.get("scheduled")
    if item.day is not None:
        if start is not None and start < item.day:
            yield f"DTSTART;VALUE=DATE:{_day(start)}"
        yield f"DUE;VALUE=DATE:{_day(item.day)}"
    if item.priority in _PRIORITIES:
        yield f"PRIORITY:{_PRIORITIES[item.priority]}"
    if item.title:
        yield f"DESCRIPTION:{_escaped(item.title)}"
    is_begun = item.task is not None and item.task.mark == "/"
    yield f"STATUS:{'IN-PROCESS' if is_begun else 'NEEDS-ACTION'}"
    yield "END:VTODO"


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"


def _escaped(text: str) -> str:
    text = clean_line(text)
    for sign in ("\\", ";", ","):
        text = text.replace(sign, f"\\{sign}")
    return text


def _folded(line: str) -> Iterator[str]:
    """Yield a line in parts of at most 75 bytes, of which all but the first begin with a blank."""
    part = ""
    for character in line:
        if len((part + character).encode("utf-8", "replace")) > _MAX_BYTES:
            yield part
            part = " "
        part += character
    yield part
