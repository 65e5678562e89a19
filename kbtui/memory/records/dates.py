"""Dates as memory keeps them: absolute, of the content, in the user's time zone.

Models are asked to write absolute dates and mostly do; what they leave relative is settled here,
where the text is plain about it. Anything that could mean something else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

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
_OTHER = {"heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2, "hoy": 0, "ayer": -1}
_OTHER |= {"anteayer": -2, "pasado mañana": 2}
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
        re.compile(rf"\b(?:{'|'.join(_OTHER)}){_END}", re.IGNORECASE),
        lambda found, day: day + timedelta(days=_OTHER[found[0].lower()]),
    ),
)
_IS_DATED = re.compile(r" \(\d{4}-\d\d-\d\d\)")
_SENTENCE_STARTS = ("", "\n", ".", "!", "?", ":", "-", "*")
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2})?"
_STAMP = re.compile(rf"\A\s*(?:\[{_DAY}[^\]\n]*\]|{_DAY}(?:[T ]{_CLOCK})?)[\s:,-]*")


def local(time: datetime) -> datetime:
    """A stored time in the user's time zone."""
    return time.astimezone()


def without_stamp(text: str) -> str:
    """An entry of the archive without the ``[2026-03-06 10:00]`` that models put in front of it."""
    return _STAMP.sub("", text, count=1).strip()


def absolute_dates(text: str, day: date, *, verbatim: bool = False) -> str:
    """Replace words like *yesterday*, *heute*, *ayer* by the date that they meant on `day`.

    Quotations, code and link targets stay as they were said. With `verbatim` all words stay, and
    the date stands behind them in brackets.
    """
    write = _bracketed if verbatim else _written
    left = _QUOTED_OR_ADDRESS if verbatim else _QUOTED
    return "".join(
        part if quoted else _dated(part, day, write) for part, quoted in _parts(text, left) if part
    )


def without_dates(text: str) -> str:
    """A text without the dates that `absolute_dates` puts in brackets behind words."""
    return _IS_DATED.sub("", text)


def _dated(text: str, day: date, write: Callable[[re.Match[str], date], str]) -> str:
    for pattern, meant in _PATTERNS:
        text = pattern.sub(lambda found, meant=meant: write(found, meant(found, day)), text)  # type: ignore[misc]
    return text


def _bracketed(found: re.Match[str], meant: date) -> str:
    is_name = _written(found, meant) == found[0]
    return found[0] if is_name else f"{found[0]} ({meant.isoformat()})"


def _written(found: re.Match[str], meant: date) -> str:
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
    return f"on {meant.isoformat()}" if needs_on and not joined else meant.isoformat()


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
# A fence, an address, a path, a tag, a file's name.
_QUOTED_OR_ADDRESS = re.compile(
    r"```.*?(?:```|\Z)|(?<!\S)[^\s@/\\#]*[@/\\#]\S*|(?<!\S)[^\s.@/\\#]+\.\w\S*|" + _QUOTED.pattern,
    re.DOTALL,
)


def _parts(text: str, left: re.Pattern[str]) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is left as it is."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for found in left.finditer(text):
        parts += [(text[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [*parts, (text[end:], False)]
