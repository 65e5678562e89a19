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
from datetime import date
from typing import Literal, NamedTuple

_OWN = re.compile(
    r"^[ \t]*:LOGBOOK:\n(?:.*\n)*?[ \t]*:END:(?:\n|\Z)"
    r"|^[ \t]*(?:id|collapsed|heading):: .*(?:\n|\Z)",
    re.MULTILINE,
)
"""Lines that only the program needs."""
_MARKER = re.compile(
    r"\A(?:(?P<open>TODO|DOING|NOW|LATER|WAIT(?:ING)?|IN-PROGRESS)|(?P<done>DONE)|CANCELL?ED) "
)
_DATES = re.compile(
    r"\n?^[ \t]*(?:(?:SCHEDULED|DEADLINE): <\d{4}-\d\d-\d\d[^<>\n]*>[ \t]*)+$", re.MULTILINE
)
_DATE = re.compile(r"(?P<kind>[A-Z]+): <(?P<day>\d{4}-\d\d-\d\d)(?P<rest>[^<>\n]*)>")
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
