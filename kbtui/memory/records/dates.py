"""Date handling in memory: absolute, relative to the content's day, in the user's time zone.

Models are asked to write absolute dates and mostly do. What they leave relative is resolved here if
it is unambiguous; anything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

from kbtui.knowledge.format.document import read_body

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WORDS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number for number, word in enumerate(_WORDS.split(), 1)}
_NUMBERS |= {"a": 1, "an": 1}
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(?P<unit>day|week)s?"
_END = r"\b(?!['\N{RIGHT SINGLE QUOTATION MARK}-])"
_FIXED = {
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
}
_FOREIGN = {"heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2, "hoy": 0, "ayer": -1}
_FOREIGN |= {"anteayer": -2, "pasado mañana": 2}
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], date]], ...] = (
    (
        re.compile(
            r"\b(?:" + "|".join(sorted(_FIXED, key=len, reverse=True)) + ")" + _END, re.IGNORECASE
        ),
        lambda found, day: day + timedelta(days=_FIXED[found[0].lower()]),
    ),
    (
        re.compile(rf"\b{_COUNT} {_UNIT} ago{_END}", re.IGNORECASE),
        lambda found, day: day - _span(found),
    ),
    (
        re.compile(rf"\bin {_COUNT} {_UNIT}(?: from (?:now|today))?{_END}", re.IGNORECASE),
        lambda found, day: day + _span(found),
    ),
    (
        re.compile(rf"\b(?P<which>last|next) (?P<day>{'|'.join(_DAYS)}){_END}", re.IGNORECASE),
        lambda found, day: _weekday(found, day),  # noqa: PLW0108 - it is defined below
    ),
    (
        re.compile(rf"\b(?:{'|'.join(_FOREIGN)}){_END}", re.IGNORECASE),
        lambda found, day: day + timedelta(days=_FOREIGN[found[0].lower()]),
    ),
)
_IS_DATED = re.compile(r" \(\d{4}-\d\d-\d\d\)")
_SENTENCE_STARTS = ("", "\n", ".", "!", "?", ":", "-", "*")
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2})?"
_STAMP = re.compile(rf"\A\s*(?:\[{_DAY}[^\]\n]*\]|{_DAY}(?:[T ]{_CLOCK})?)[\s:,-]*")


def local(time: datetime) -> datetime:
    """Return a stored time in the user's time zone."""
    return time.astimezone()


def without_stamp(text: str) -> str:
    """Strip the ``[2026-03-06 10:00]`` that models put in front of an archive entry."""
    return _STAMP.sub("", text, count=1).strip()


def absolute_dates(text: str, day: date, *, verbatim: bool = False) -> str:
    """Replace words like *yesterday*, *heute*, *ayer* with the date that they meant on `day`.

    Quotations, code and link targets are left alone. With `verbatim` all words stay, and the date
    follows them in brackets.
    """
    write = _bracketed if verbatim else _substituted
    skip = _QUOTED_OR_ADDRESS if verbatim else _QUOTED
    return "".join(
        part if quoted else _dated(part, day, write) for part, quoted in _split(text, skip) if part
    )


def without_dates(text: str) -> str:
    """Strip the bracketed dates that `absolute_dates` adds after words."""
    return _IS_DATED.sub("", text)


def _dated(text: str, day: date, write: Callable[[re.Match[str], date], str]) -> str:
    for pattern, target in _PATTERNS:
        text = pattern.sub(lambda found, target=target: write(found, target(found, day)), text)  # type: ignore[misc]
    return text


def _bracketed(found: re.Match[str], target: date) -> str:
    is_name = _substituted(found, target) == found[0]
    return found[0] if is_name else f"{found[0]} ({target.isoformat()})"


def _substituted(found: re.Match[str], target: date) -> str:
    lead = found.string[: found.start()].rstrip(" ")
    if _IS_DATED.match(found.string, found.end()):
        return found[0]
    if found[0][0].isupper() and lead[-1:] not in _SENTENCE_STARTS:
        return found[0]  # a name, such as USA Today
    before = lead.rsplit(" ", 1)[-1].lower()
    word = found[0].lower()
    needs_on = word.startswith(("in ", "last ", "next ")) or word.endswith("ago") or word in _FIXED
    joined = before in {
        "on",
        "by",
        "since",
        "until",
        "till",
        "from",
        "for",
        "of",
        "before",
        "after",
    }
    return f"on {target.isoformat()}" if needs_on and not joined else target.isoformat()


def _span(found: re.Match[str]) -> timedelta:
    written = found["count"].lower()
    count = int(written) if written.isdigit() else _NUMBERS[written]
    return timedelta(days=count * (7 if found["unit"].lower() == "week" else 1))


def _weekday(found: re.Match[str], day: date) -> date:
    wanted = _DAYS.index(found["day"].lower())
    if found["which"].lower() == "last":
        return day - timedelta(days=(day.weekday() - wanted - 1) % 7 + 1)
    return day + timedelta(days=(wanted - day.weekday() - 1) % 7 + 1)


_QUOTED = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|\N{LEFT DOUBLE QUOTATION MARK}[^\n]*?\N{RIGHT DOUBLE QUOTATION MARK}"
    r"|\]\([^)\n]*\)|\[\[[^\]\n]*\]\]"
)
# An address, a path, a tag, a file name.
_QUOTED_OR_ADDRESS = re.compile(
    r"(?<!\S)[^\s@/\\#]*[@/\\#]\S*|(?<!\S)[^\s.@/\\#]+\.\w\S*|" + _QUOTED.pattern,
    re.DOTALL,
)


def _split(text: str, skip: re.Pattern[str]) -> list[tuple[str, bool]]:
    """Split a text into pieces, each with whether it is code or matches `skip`, and stays."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for start, stop in sorted(
        [*read_body(text).code, *(each.span() for each in skip.finditer(text))]
    ):
        if stop > end:
            parts += [(text[end : max(start, end)], False), (text[max(start, end) : stop], True)]
            end = stop
    return [*parts, (text[end:], False)]
