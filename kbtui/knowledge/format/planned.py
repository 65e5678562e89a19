"""Blocks of outliners that are to be done, as Logseq and Org write them.

Such a block begins with a word in capitals and has its dates on lines of their own::

    LATER [#A] Sow the beans
    SCHEDULED: <2026-12-04 Fri 10:00 .+1w>
    :LOGBOOK:
    CLOCK: [2026-11-26 Thu 10:00:00]
    :END:
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import Literal, NamedTuple

from kbtui.errors import UsageError
from kbtui.knowledge.format.recurrence import months_later

_OWN = re.compile(
    r"^[ \t]*:LOGBOOK:\n(?:(?![ \t]*:LOGBOOK:\n).*\n)*?[ \t]*:END:(?:\n|\Z)"
    r"|^[ \t]*(?:id|collapsed|heading):: .*(?:\n|\Z)",
    re.MULTILINE,
)
"""Lines that only the program needs."""
_MARKER = re.compile(
    r"\A(?:(?P<open>TODO|DOING|NOW|LATER|WAIT(?:ING)?|IN-PROGRESS)|(?P<done>DONE)|CANCELL?ED) +"
)
_DATES = re.compile(
    r"\n?^[ \t]*(?:(?:SCHEDULED|DEADLINE): <\d{4}-\d\d-\d\d[^<>\n]*>[ \t]*)+\r?$", re.MULTILINE
)
_DATE = re.compile(r"(?P<kind>[A-Z]+): <(?P<day>\d{4}-\d\d-\d\d)(?P<rest>[^<>\n]*)>")
_LATER = ("NOW", "LATER")
"""The markers of those who write ``LATER`` where others write ``TODO``."""
_REPEATER = re.compile(r"(?P<from>\.\+|\+\+|\+)(?P<count>\d{1,3})(?P<unit>[dwmy])\b")
_REPEATS = re.compile(r"(?:\.\+|\+\+|\+)\d+[a-z]")
_WEEKDAY = re.compile(r"\A *[^\W\d]+\.?")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME = re.compile(r"\b\d\d:\d\d\b")


class Planned(NamedTuple):
    """What a block says, without its marker, dates and lines of the program's own.

    `mark` is that of the checkbox which means the same as the marker, and empty without one. In
    `dates` are the days by kind, ``SCHEDULED`` and ``DEADLINE``; `time` is that of the last.
    """

    said: str
    mark: Literal["", " ", "x", "-"]
    dates: dict[str, str]
    time: str

    @property
    def day(self) -> date | None:
        """The day on which it is due, or else for which it is scheduled."""
        with suppress(ValueError):
            return date.fromisoformat(self.dates.get("DEADLINE") or self.dates.get("SCHEDULED", ""))
        return None


def planned(text: str) -> Planned:
    """Read a block as its program shows it: the first line, and below it what belongs to it."""
    text = _OWN.sub("", text).strip("\n")
    found = [each for line in _DATES.finditer(text) for each in _DATE.finditer(line[0])]
    said = _DATES.sub("", text).strip("\n")
    marker = _MARKER.match(said)
    times = [time[0] for each in found if (time := _TIME.search(each["rest"]))]
    dates = {each["kind"]: each["day"] for each in found}
    return Planned(
        said[marker.end() :] if marker else said, _mark(marker), dates, "".join(times[-1:])
    )


def _mark(marker: re.Match[str] | None) -> Literal["", " ", "x", "-"]:
    if marker is None:
        return ""
    return " " if marker["open"] else "x" if marker["done"] else "-"


def marker_of(text: str) -> tuple[str, Literal["", " ", "x", "-"]]:
    """Return the word that marks a block as a task, and the mark that means the same; or empty."""
    found = _MARKER.match(text)
    return (found[0].strip(), _mark(found)) if found else ("", "")


def ticked_block(text: str, today: date) -> str:
    """Return a marked block with an open task done, or another one open again.

    One that repeats stays to be done, on its next days, as in its program.

    Raises:
        UsageError: It can't be told when it is next.
    """
    marker, mark = marker_of(text)
    rest = text.removeprefix(marker)
    if mark != " ":
        return f"TODO{rest}"
    lines = [*_DATES.finditer(text)]
    if not any(_REPEATS.search(each[0]) for each in lines):
        return f"DONE{rest}"
    for line in reversed(lines):
        again = _DATE.sub(lambda found: _again(found, today), line[0])
        text = f"{text[: line.start()]}{again}{text[line.end() :]}"
    return f"{'LATER' if marker in _LATER else 'TODO'}{text.removeprefix(marker)}"


def moved_block(text: str, day: date, indent: str) -> str:
    """Return a marked block with another day: the one due, scheduled, or a new one due.

    `indent` is what stands before each line of the block but the first.
    """
    found = [
        (line.start() + each.start(), each)
        for line in _DATES.finditer(text)
        for each in _DATE.finditer(line[0])
    ]
    for kind in ("DEADLINE", "SCHEDULED"):
        for start, each in found:
            if each["kind"] == kind:
                return f"{text[:start]}{_on(each, day)}{text[start + len(each[0]) :]}"
    line_end = "\r\n" if "\r\n" in text else "\n"
    first, newline, rest = text.partition(line_end)
    due = f"{line_end}{indent}DEADLINE: <{day} {_WEEKDAYS[day.weekday()]}>"
    return f"{first}{due}{newline}{rest}"


def _on(found: re.Match[str], day: date) -> str:
    """Return a date with its kind, on another day."""
    rest = _WEEKDAY.sub("", found["rest"])
    return f"{found['kind']}: <{day} {_WEEKDAYS[day.weekday()]}{rest}>"


def _again(found: re.Match[str], today: date) -> str:
    """Return a date with its kind, moved to its next day if it repeats."""
    if not _REPEATS.search(found["rest"]):
        return found[0]
    rule = _REPEATER.search(found["rest"])
    count = int(rule["count"]) if rule else 0
    try:
        day = date.fromisoformat(found["day"])
    except ValueError as error:
        raise UsageError(
            f"No calendar has a {found['day']}.", "Put the date right first."
        ) from error
    if rule is None or not count:
        raise UsageError(
            f"When “{found['rest'].strip()}” is next can't be told for sure.",
            "Tick it in the program that wrote it.",
        )
    day = _later(today if rule["from"] == ".+" else day, count, rule["unit"])
    while rule["from"] == "++" and day <= today:
        day = _later(day, count, rule["unit"])
    return _on(found, day)


def _later(day: date, count: int, unit: str) -> date:
    if unit in "dw":
        return day + timedelta(days=count * (7 if unit == "w" else 1))
    return months_later(day, count * (12 if unit == "y" else 1))
