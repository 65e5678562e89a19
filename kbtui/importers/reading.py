"""What sources read with: members that are JSON, records and lines of them, and their values."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, TypeVar

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.json_stream import Broken, elements
from kbtui.importers.markup import digest, line_of, words_of
from kbtui.importers.port import (
    ImportedConversation,
    ImportedNote,
    Item,
    Role,
    Said,
    Skipped,
    Source,
)
from kbtui.text import shorten

T = TypeVar("T")
_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant"}
_BINARY = (
    *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".svg", ".pdf", ".mp3", ".mp4", ".wav"),
    *(".m4a", ".mov", ".webm", ".docx", ".pptx", ".xlsx", ".zip", ".html", ".md", ".csv", ".dat"),
)
_LOGS = (".jsonl", ".json", ".ndjson", ".txt")
_LIST = re.compile(rb'"(loglines|items|conversations)"\s*:\s*\[')
_FIELD = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)
_WEB_ID = re.compile(r"[\w-]+")
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


def read_each(
    opened: OpenedExport, names: Iterable[str], read: Callable[[OpenedExport, str], Iterator[Item]]
) -> Iterator[Item]:
    """Read members one after the other; one that is damaged is reported, and passed over."""
    for name in names:
        try:
            yield from read(opened, name)
        except UnreadableError as error:
            yield Skipped(line_of(name), str(error))


def read_records(
    records: Iterable[Record | Skipped], read: Callable[[Record], Iterable[Item]]
) -> Iterator[Item]:
    """Read records one after the other; what is no record goes on as it is."""
    for each in records:
        if isinstance(each, Skipped):
            yield each
        else:
            yield from read(each)


def file_source(
    name: str,
    key: str,
    files: Callable[[OpenedExport], Iterable[str]],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """A program whose exports are files that can each be read by itself; `files` names them."""
    return Source(
        name, key, has_any(files), lambda opened: read_each(opened, [*files(opened)], read)
    )


def has_any(files: Callable[[OpenedExport], Iterable[object]]) -> Callable[[OpenedExport], bool]:
    """Recognise an export by there being one of such `files`."""
    return lambda opened: any(True for _ in files(opened))


def log_source(
    name: str,
    key: str,
    is_log: Callable[[Records], bool],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """A program that keeps logs of sessions, which can be told by their first records."""

    def recognises(opened: OpenedExport) -> bool:
        names = islice(_candidates(opened), _LOOKED_AT)
        return any(is_log(first_records(opened, name)) for name in names)

    def logs(opened: OpenedExport) -> Iterator[str]:
        return (name for name in _candidates(opened) if is_log(first_records(opened, name)))

    return Source(
        name, key, recognises, lambda opened: read_each(opened, logs(opened), read), is_alone=True
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
            found += filter(None, records_of([json.loads(line, strict=False)]))
    if len(found) > 1:
        return found
    key = list_key(head)
    return found or records_of(list(islice(elements(io.BytesIO(head), key), _FIRST)))


def list_key(head: bytes) -> str:
    """The name of the list that the records are in, where a file is one object; else empty."""
    key = _LIST.search(head) if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else None
    return key[1].decode() if key else ""


def json_lines(opened: OpenedExport, name: str) -> Iterator[Record | Skipped]:
    """The objects of a file of JSON lines; lines that can't be read are told of once, at the end.

    Raises:
        UnreadableError: The file is damaged.
    """
    bad: list[tuple[int, str]] = []
    with opened.open(name) as stream:
        for number, line in enumerate(_lines(stream), 1):
            try:
                value = json.loads(line.decode("utf-8", "replace"), strict=False)
            except RecursionError:
                bad.append((number, "it is nested too deeply"))
            except ValueError as error:
                bad.append((number, f"it is not valid JSON: {error}".splitlines()[0]))
            else:
                if not isinstance(value, dict):
                    bad.append((number, "it is no object"))
                elif value:
                    yield Record(value)
    if bad:
        number, why = bad[0]
        more = f" So are {len(bad) - 1:,} more lines." if len(bad) > 1 else ""
        yield Skipped(f"{line_of(name)}, line {number}", f"The line can't be read: {why}.{more}")


def json_list(
    opened: OpenedExport, name: str, key: str = "conversations"
) -> Iterator[Record | Skipped]:
    """The objects of a list, or of the one under `key` in an object, one at a time."""
    with opened.open(name) as stream:
        for each in elements(stream, key):
            if isinstance(each, dict):
                yield Record(each)
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


class Record(dict[str, Any]):
    """A JSON object of an export. A value of another kind than is asked for counts as missing."""

    def text(self, *names: str) -> str:
        """The first of these values that is a text and not empty; else an empty one."""
        for name in names:
            value = self.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    def words(self, *names: str) -> str:
        """The same by `words_of`: stripped, and without control characters."""
        return self._first(words_of, names) or ""

    def line(self, *names: str) -> str:
        """The same in one line, for titles and names."""
        return self._first(line_of, names) or ""

    def time(self, *names: str) -> datetime | None:
        """The first of these values that is a time, as `time_of` reads it."""
        return self._first(time_of, names)

    def _first(self, read: Callable[[Any], T | None], names: Sequence[str]) -> T | None:
        for name in names:
            if found := read(self.get(name)):
                return found
        return None

    def record(self, name: str) -> Record:
        """The object under a name; an empty one where there is none."""
        found = record_of(self.get(name))
        if found:
            self[name] = found  # it is asked for again
        return found

    def records(self, name: str) -> list[Record]:
        """The objects in the list under a name."""
        return records_of(self.get(name))

    def lines(self, name: str, *inner: str) -> list[str]:
        """The names or titles of the objects in a list, of those that have one."""
        return [line for each in self.records(name) if (line := each.line(*inner))]


Records = list[Record]


def record_of(value: Any) -> Record:
    """A JSON object; anything else is an empty one."""
    if isinstance(value, Record):
        return value
    return Record(value) if isinstance(value, dict) else Record()


def records_of(value: Any) -> Records:
    """The objects of a JSON array; anything else has none."""
    if not isinstance(value, list):
        return []
    return [Record(each) for each in value if isinstance(each, dict)]


def role_of(value: Any) -> Role | None:
    """Who is speaking, by the names that most programs have for them; None: nobody of the two."""
    return _ROLES.get(value) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """A text; anything else is empty."""
    return value if isinstance(value, str) else ""


def paragraphs(texts: Iterable[str]) -> str:
    """Texts as paragraphs of one, without the empty ones."""
    return "\n\n".join(filter(None, (text.strip() for text in texts)))


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
    created: datetime | None = None,
    updated: datetime | None = None,
    url: str = "",
    branches: int = 0,
    named: Counter[str] | None = None,
) -> ImportedConversation | None:
    """A conversation of what was said; None of nothing.

    Without a name it is named after its first message, and titled by the first of the user's. What
    it doesn't say of when it was `created` and `updated` its messages do.
    """
    if not said:
        return None
    first = next((each.text for each in said if each.role == "user"), said[0].text)
    return ImportedConversation(
        name or digest(f"{said[0].time}", said[0].text),
        line_of(title) or shorten(first, _TITLE_WIDTH),
        *dated(said, created, updated),
        tuple(said),
        url,
        branches,
        Counter() if named is None else named,
    )


def dated(
    said: Iterable[Said], created: datetime | None = None, updated: datetime | None = None
) -> tuple[datetime | None, datetime | None]:
    """When a conversation was begun and changed: as it says itself, else as its messages say."""
    times = [each.time for each in said if each.time]
    return created or min(times, default=None), updated or max(times, default=None)


def identity_of(said: Sequence[Said], created: object) -> str:
    """A name that stays the same as an export grows, for a conversation without an id."""
    return f"{created} {said[0].id or said[0].text[:200]}"


def address_of(prefix: str, id_: str) -> str:
    """Where a conversation is on the web; empty where its id can't stand in an address."""
    return f"{prefix}{id_}" if _WEB_ID.fullmatch(id_) else ""


def place_of(name: str, *titles: object) -> str:
    """Name a thing for a report: by the first title that says something, and its file."""
    title = next(filter(None, map(line_of, titles)), "")
    return f"{shorten(title, _TITLE_WIDTH)} ({line_of(name)})" if title else line_of(name)
