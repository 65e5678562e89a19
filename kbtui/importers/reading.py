"""The small questions that importers of JSON ask: of a value that may be anything, what it says."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from kbtui.importers.port import Skipped
from kbtui.text import clean_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbtui.importers.json_stream import Broken
    from kbtui.importers.opened import Opened

T = TypeVar("T")
_BINARY = (
    *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".svg", ".pdf", ".mp3", ".mp4", ".wav"),
    *(".m4a", ".mov", ".webm", ".docx", ".pptx", ".xlsx", ".zip", ".html", ".md", ".csv", ".dat"),
)
_MILLISECONDS = 1e11  # as seconds, the year 5138
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_SHOWN = 80


def json_members(opened: Opened) -> Iterator[tuple[str, bytes]]:
    """The members that begin as JSON does, each with its beginning; a single file by any name."""
    for name in opened.names:
        if opened.is_folder and name.lower().endswith(_BINARY):
            continue
        head = opened.head(name)
        if head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")[:1] in (b"[", b"{"):
            yield name, head


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON array; anything else has none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A text; anything else is empty."""
    return value if isinstance(value, str) else ""


def time_of(value: Any) -> datetime | None:
    """A time in UTC, of ISO text or of seconds or milliseconds since 1970; None for no time."""
    try:
        if isinstance(value, str):
            if value[4:5] == "-":
                found = datetime.fromisoformat(value.strip())
                if found.tzinfo is not UTC:
                    found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
                return _within(found)
            value = float(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            return None
        seconds = value / 1000 if value > _MILLISECONDS else value
        return _within(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _within(time: datetime) -> datetime | None:
    return time if _EARLIEST <= time < _LATEST else None


def newest(choices: Sequence[T], times: Sequence[datetime | None]) -> T:
    """The choice with the latest time; of equal ones the last."""
    known = [(time or _EARLIEST, number) for number, time in enumerate(times)]
    return choices[max(known)[1]]


def place_of(name: str, *titles: object) -> str:
    """Name a thing for a report: by the first title that says something, and its file."""
    title = next((text for each in titles if (text := clean_line(text_of(each)))), "")
    file = clean_line(name)
    return f"{shorten(title, _SHOWN)} ({file})" if title else file


def broken(name: str, element: Broken) -> Skipped:
    """Report an element that couldn't be read."""
    rest = " What follows it is not read." if element.ends else ""
    return Skipped(
        f"{clean_line(name)}, number {element.number}", f"{_capital(element.why)}.{rest}"
    )


def _capital(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].upper() + text[1:]
