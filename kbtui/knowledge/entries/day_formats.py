"""How other programs write days and times, by patterns of moment.js, Java and luxon."""

from __future__ import annotations

import re
from datetime import date

from kbtui.knowledge.entries.entry import ordinal

_MOMENT = re.compile(
    r"\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DDDD|Do|DD|D|dddd|ddd|gggg|GGGG|HH|hh|mm|ss|ww|WW|w|W|Q|A"
)
_LUXON = re.compile(r"y+|do|d+|E+|'([^']*)'")


def moment(when: date, pattern: str) -> str:
    """Format a time by a moment.js pattern such as ``YYYY-MM-DD dddd``."""
    values = {
        "YYYY": f"{when:%Y}",
        "YY": f"{when:%y}",
        "MMMM": f"{when:%B}",
        "MMM": f"{when:%b}",
        "MM": f"{when:%m}",
        "M": str(when.month),
        "Do": ordinal(when.day),
        "DDDD": f"{when:%j}",
        "DD": f"{when:%d}",
        "D": str(when.day),
        "Q": str((when.month + 2) // 3),
        "gggg": f"{when:%G}",
        "GGGG": f"{when:%G}",
        "dddd": f"{when:%A}",
        "ddd": f"{when:%a}",
        "HH": f"{when:%H}",
        "hh": f"{when:%I}",
        "A": f"{when:%p}",
        "mm": f"{when:%M}",
        "ss": f"{when:%S}",
        "ww": f"{when:%V}",
        "w": str(when.isocalendar().week),
        "WW": f"{when:%V}",
        "W": str(when.isocalendar().week),
    }
    return _MOMENT.sub(lambda found: values[found[0]] if found[1] is None else found[1], pattern)


def luxon(when: date, pattern: str) -> str:
    """Format a time by a Java or luxon pattern such as ``yyyy_MM_dd``."""
    return moment(when, _LUXON.sub(_as_moment, pattern))


def _as_moment(part: re.Match[str]) -> str:
    if part[1] is not None:
        return f"[{part[1]}]"
    sign, size = part[0][0], len(part[0])
    if sign == "y":
        return "YY" if size == len("yy") else "YYYY"
    if sign == "E":
        return "dddd" if size >= len("EEEE") else "ddd"
    return "Do" if part[0] == "do" else part[0].upper()
