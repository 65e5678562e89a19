"""What sources read with: members that are JSON, records and lines of them, and their values."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, TypeVar

from kbtui.errors import UnreadableError
from kbtui.importers.json_stream import Broken, elements
from kbtui.importers.markup import digest, line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Item, Said, Skipped, Source
from kbtui.text import shorten

T = TypeVar("T")
Records = list[dict[str, Any]]
_BINARY = (
    *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".svg", ".pdf", ".mp3", ".mp4", ".wav"),
    *(".m4a", ".mov", ".webm", ".docx", ".pptx", ".xlsx", ".zip", ".html", ".md", ".csv", ".dat"),
)
_LOGS = (".jsonl", ".json", ".ndjson", ".txt")
_LIST = re.compile(rb'"(loglines|items|conversations)"\s*:\s*\[')
_FIELD = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)
_DEEPEST = 3  # an object in a list in an object
_MILLISECONDS = 1e11  # as seconds, the year 5138
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_TITLE_WIDTH = 80
_LONGEST_LINE = 256 << 20
_LARGEST_FILE = 100 << 20
_LOOKED_AT = 400
_FIRST = 20
_HEAD = 256 << 10


# Members ------------------------------------------------------------------------------------------


def json_members(opened: OpenedExport) -> Iterator[tuple[str, bytes]]:
    """The members that begin as JSON does, each with its beginning; a single file by any name."""
    for name in opened.names:
        if opened.is_folder and name.lower().endswith(_BINARY):
            continue
        head = opened.head(name)
        if head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")[:1] in (b"[", b"{"):
            yield name, head


def fields_of(head: bytes, *lists: str) -> frozenset[str]:
    """The names of fields by which a JSON file is known, as far as its beginning goes.

    They are those of the object that it is, or of the objects in the list that it is, or in a list
    under one of `lists`. What lies deeper says nothing of the whole.
    """
    found: set[str] = set()
    path: list[bytes] = []
    under = ""
    for token in _FIELD.finditer(head):
        if token[0] in (b"{", b"["):
            path.append(token[0])
        elif token[0] in (b"}", b"]"):
            del path[-1:]
        elif token[2] and len(path) <= _DEEPEST:
            name, place = token[1].decode("utf-8", "replace"), b"".join(path)
            under = name if place == b"{" else under
            if place in (b"{", b"[{") or (place == b"{[{" and under in lists):
                found.add(name)
    return frozenset(found)


def logs(opened: OpenedExport, is_one: Callable[[Records], bool]) -> Iterator[str]:
    """The members that are logs of a kind, by their first records."""
    for name in _candidates(opened):
        if is_one(first_records(opened, name)):
            yield name


def has_log(opened: OpenedExport, is_one: Callable[[Records], bool]) -> bool:
    """True if one of the first members is such a log."""
    names = islice(_candidates(opened), _LOOKED_AT)
    return any(is_one(first_records(opened, name)) for name in names)


def read_each(
    opened: OpenedExport, names: Iterable[str], read: Callable[[OpenedExport, str], Iterator[Item]]
) -> Iterator[Item]:
    """Read members one after the other; one that is damaged is reported, and passed over."""
    for name in names:
        try:
            yield from read(opened, name)
        except UnreadableError as error:
            yield Skipped(line_of(name), str(error))


def file_source(
    name: str,
    key: str,
    files: Callable[[OpenedExport], Iterable[str]],
    read: Callable[[OpenedExport, str], Iterator[Item]],
    *,
    is_alone: bool = False,
) -> Source:
    """A program whose exports are files that can each be read by itself; `files` names them."""
    return Source(
        name,
        key,
        lambda opened: any(True for _ in files(opened)),
        lambda opened: read_each(opened, [*files(opened)], read),
        is_alone,
    )


def json_source(
    name: str,
    key: str,
    is_export: Callable[[bytes], object],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """A program whose exports are JSON files that can be told by how they begin."""

    def files(opened: OpenedExport) -> Iterator[str]:
        return (member for member, head in json_members(opened) if is_export(head))

    return file_source(name, key, files, read)


def file_of(opened: OpenedExport, name: str, title: str = "") -> Item:
    """A picture, a recording or a paper, to be kept under its title."""
    if opened.size(name) > _LARGEST_FILE:
        return Skipped(line_of(name), f"It is larger than {_LARGEST_FILE >> 20} MB.")
    try:
        with opened.open(name) as stream:
            data = stream.read()
    except UnreadableError as error:
        return Skipped(line_of(name), str(error))
    return ImportedNote(name, title or name.rpartition("/")[2], "", data=data)


# Records ------------------------------------------------------------------------------------------


def first_records(opened: OpenedExport, name: str) -> Records:
    """The first objects of JSON lines, of a list, or of a list in an object."""
    head = opened.head(name, _HEAD)
    lines = head.split(b"\n")
    found: Records = []
    for line in (lines[:-1] or lines)[:_FIRST]:
        with suppress(ValueError, RecursionError):
            found += [each for each in mappings([json.loads(line, strict=False)]) if each]
    if len(found) > 1:
        return found
    key = list_key(head)
    return found or mappings(list(islice(elements(io.BytesIO(head), key), _FIRST)))


def list_key(head: bytes) -> str:
    """The name of the list that the records are in, where a file is one object; else empty."""
    key = _LIST.search(head) if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else None
    return key[1].decode() if key else ""


def json_lines(opened: OpenedExport, name: str) -> Iterator[dict[str, Any] | Skipped]:
    """The objects of a file of JSON lines; lines that can't be read are told of once, at the end.

    Raises:
        UnreadableError: The file is damaged.
    """
    bad, first, why = 0, 0, ""
    with opened.open(name) as stream:
        for number, line in enumerate(_lines(stream), 1):
            try:
                value = json.loads(line.decode("utf-8", "replace"), strict=False)
                reason = "" if isinstance(value, dict) else "it is no object"
            except RecursionError:
                reason = "it is nested too deeply"
            except ValueError as error:
                reason = f"it is not valid JSON: {error}".splitlines()[0]
            if reason:
                bad, first, why = bad + 1, first or number, why or reason
            elif value:
                yield value
    if bad:
        more = f" So are {bad - 1:,} more lines." if bad > 1 else ""
        yield Skipped(f"{line_of(name)}, line {first}", f"The line can't be read: {why}.{more}")


def json_list(
    opened: OpenedExport, name: str, key: str = "conversations"
) -> Iterator[dict[str, Any] | Skipped]:
    """The objects of a list, or of the one under `key` in an object, one at a time."""
    with opened.open(name) as stream:
        for each in elements(stream, key):
            if isinstance(each, dict):
                yield each
            elif isinstance(each, Broken):
                rest = " What follows it is not read." if each.ends else ""
                why = f"{each.why[:1].upper()}{each.why[1:].rstrip('.')}.{rest}"
                yield Skipped(f"{line_of(name)}, number {each.number}", why)
            else:
                yield Skipped(line_of(name), "It holds something that is no conversation.")


def _candidates(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        if not opened.is_folder or name.lower().endswith(_LOGS):
            yield name


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines, of which one that is too long to be one comes as its beginning."""
    while line := stream.readline(_LONGEST_LINE):
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield line.removeprefix(b"\xef\xbb\xbf")
        while len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST_LINE)


# Values -------------------------------------------------------------------------------------------


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


def conversation(
    name: str,
    title: str,
    said: Sequence[Said],
    *,
    url: str = "",
    branches: int = 0,
    named: tuple[tuple[str, int], ...] = (),
) -> ImportedConversation | None:
    """One that is dated by its messages, and titled by the first if need be; None of nothing."""
    if not said:
        return None
    first = next((each.text for each in said if each.role == "user"), said[0].text)
    name = name or digest(f"{said[0].time}", said[0].text)
    title = line_of(title) or shorten(first, _TITLE_WIDTH)
    return ImportedConversation(name, title, *dated(said), tuple(said), url, branches, named)


def dated(
    said: Sequence[Said], created: object = None, updated: object = None
) -> tuple[datetime | None, datetime | None]:
    """When a conversation was begun and changed: as it says itself, else as its messages say."""
    times = [each.time for each in said if each.time]
    return (
        time_of(created) or min(times, default=None),
        time_of(updated) or max(times, default=None),
    )


def place_of(name: str, *titles: object) -> str:
    """Name a thing for a report: by the first title that says something, and its file."""
    title = next(filter(None, map(line_of, titles)), "")
    return f"{shorten(title, _TITLE_WIDTH)} ({line_of(name)})" if title else line_of(name)
