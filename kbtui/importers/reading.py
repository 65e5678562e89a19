"""Parsing helpers for sources: JSON members, their records and lines, and typed values.

A loop over records or items lets go of each before it asks for the next one, which may be as long.
"""

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
from typing import IO, TYPE_CHECKING, Any, TypeVar

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.json_stream import Broken, elements, plain, unpacked, value_of
from kbtui.importers.markup import digest, line_of, words_of
from kbtui.importers.port import (
    ImportedConversation,
    ImportedMessage,
    ImportedNote,
    Item,
    Role,
    Skipped,
    Source,
)
from kbtui.text import counted, shorten

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

T = TypeVar("T")
_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant"}
_NO_JSON = (
    *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".svg", ".pdf", ".mp3", ".mp4", ".wav"),
    *(".m4a", ".mov", ".webm", ".docx", ".pptx", ".xlsx", ".zip", ".html", ".md", ".csv", ".dat"),
)
_LOG_SUFFIXES = (".jsonl", ".json", ".ndjson", ".txt", ".jsonl.gz", ".jsonl.zst")
_LIST = re.compile(rb'"(loglines|items|conversations)"\s*:\s*\[')
_FIELD = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)
_WEB_ID = re.compile(r"[\w-]+")
_AFTERNOON = re.compile(r"\bp\.?\s?m\b|下午|晚上|傍晚|中午|午後|오후|\bμ\.?μ|\bم\b", re.IGNORECASE)
_MORNING = re.compile(r"\ba\.?\s?m\b|上午|凌晨|早上|清晨|午前|오전|\bπ\.?μ|\bص\b", re.IGNORECASE)
_MAX_DEPTH = 3  # an object in a list in an object
_MILLISECONDS = 1e11  # larger numbers are milliseconds: as seconds, this is the year 5138
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_TITLE_WIDTH = 80
_MAX_LINE = 256 << 20
_MAX_FILE = 100 << 20
_MAX_PROBED = 400
_MAX_FIRST = 20
_HEAD_SIZE = 256 << 10
OF_A_SUBAGENT = "It is the log of a subagent, which nobody talked with."
IN_BIN = "It was in the bin there."
NOTHING = "Its form is known, and nothing in it is a message or a note."


# Members ------------------------------------------------------------------------------------------


def json_members(opened: OpenedExport) -> Iterator[tuple[str, bytes]]:
    """Yield the members that begin like JSON, with their heads; a single file whatever its name."""
    for name in opened.names:
        if opened.is_folder and name.lower().endswith(_NO_JSON):
            continue
        head = opened.head(name)
        if head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")[:1] in (b"[", b"{"):
            yield name, head


def fields_of(head: bytes, *lists: str) -> frozenset[str]:
    """Return the field names at the top of a JSON file, by which its format is recognised.

    They are those of the top-level object, or of the objects in the top-level list or in a list
    under one of the keys `lists`, as far as `head` goes. Deeper fields are ignored.
    """
    found: set[str] = set()
    path: list[bytes] = []
    under = ""
    for token in _FIELD.finditer(head):
        if token[0] in (b"{", b"["):
            path.append(token[0])
        elif token[0] in (b"}", b"]"):
            del path[-1:]
        elif token[2] and len(path) <= _MAX_DEPTH:
            name, place = token[1].decode("utf-8", "replace"), b"".join(path)
            under = name if place == b"{" else under
            if place in (b"{", b"[{") or (place == b"{[{" and under in lists):
                found.add(name)
    return frozenset(found)


def read_each(
    opened: OpenedExport,
    names: Iterable[str],
    read: Callable[[OpenedExport, str], Iterator[Item]],
    *,
    are_known: bool = False,
) -> Iterator[Item]:
    """Yield the items of each member, reporting damaged members as skipped.

    If they `are_known` to be of the source's form, those that give nothing are reported, too.
    """
    for name in names:
        gave = False
        try:
            for item in read(opened, name):
                gave = True
                yield item
                del item
        except UnreadableError as error:
            gave = True
            yield Skipped(line_of(name), str(error), lost=True)
        if are_known and not gave:
            yield Skipped(line_of(name), NOTHING)


def read_records(
    records: Iterable[Record | Skipped], read: Callable[[Record], Iterable[Item]]
) -> Iterator[Item]:
    """Yield the items of each record, passing skipped ones through."""
    for each in records:
        if isinstance(each, Skipped):
            yield each
        else:
            yield from read(each)
        del each


def unseen(
    records: Iterable[Record | Skipped], key: Callable[[Record], object]
) -> Iterator[Record | Skipped]:
    """Pass the records on whose `key` wasn't seen before; one without a key is never a copy.

    Programs write history again when they compact, resume or fork a conversation.
    """
    seen: set[object] = set()
    for each in records:
        mark = None if isinstance(each, Skipped) else key(each)
        if mark and mark in seen:
            continue
        seen.add(mark)
        yield each


def drained(items: list[T]) -> Iterator[T]:
    """Yield the items of a list, which doesn't hold them any more by then."""
    items.reverse()
    while items:
        yield items.pop()


def file_source(
    name: str,
    key: str,
    files: Callable[[OpenedExport], Iterable[str]],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """Build a source whose exports consist of independent files, listed by `files`."""
    return Source(name, key, has_any(files), lambda opened: _read_known(opened, files, read))


def has_any(files: Callable[[OpenedExport], Iterable[object]]) -> Callable[[OpenedExport], bool]:
    """Build a predicate that recognises an export if `files` yields anything."""
    return lambda opened: any(True for _ in files(opened))


def log_source(
    name: str,
    key: str,
    is_log: Callable[[Records], bool],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """Build a source of session logs, which are recognised by their first records."""

    def recognises(opened: OpenedExport) -> bool:
        names = islice(_candidates(opened), _MAX_PROBED)
        return any(is_log(first_records(opened, name)) for name in names)

    def logs(opened: OpenedExport) -> Iterator[str]:
        return (name for name in _candidates(opened) if is_log(first_records(opened, name)))

    return Source(
        name, key, recognises, lambda opened: _read_known(opened, logs, read), is_alone=True
    )


def _read_known(
    opened: OpenedExport,
    files: Callable[[OpenedExport], Iterable[str]],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Iterator[Item]:
    return read_each(opened, [*files(opened)], read, are_known=True)


def json_source(
    name: str,
    key: str,
    is_export: Callable[[bytes], object],
    read: Callable[[OpenedExport, str], Iterator[Item]],
) -> Source:
    """Build a source of JSON files, which are recognised by their first bytes."""

    def files(opened: OpenedExport) -> Iterator[str]:
        return (member for member, head in json_members(opened) if is_export(head))

    return file_source(name, key, files, read)


def record_source(
    name: str,
    key: str,
    is_export: Callable[[bytes], object],
    read: Callable[[str, Record], Iterator[Item]],
    inside: str = "conversations",
) -> Source:
    """Build a source of JSON files with a list of records, perhaps `inside` an object.

    `read` gets the name of the file and a record, a conversation as a rule.
    """

    def records(opened: OpenedExport, member: str) -> Iterator[Item]:
        return read_records(json_list(opened, member, inside), lambda each: read(member, each))

    return json_source(name, key, is_export, records)


def file_of(opened: OpenedExport, name: str, title: str = "") -> Item:
    """Read a picture, recording or document as a note with `data`, or report it as skipped."""
    try:
        data = data_of(opened, name)
    except UnreadableError as error:
        return Skipped(line_of(name), str(error), lost=True)
    return ImportedNote(name, title or name.rpartition("/")[2], "", data=data)


def data_of(opened: OpenedExport, name: str, most: int = _MAX_FILE) -> bytes:
    """Read a whole member.

    Raises:
        UnreadableError: It is damaged, or larger than `most` bytes.
    """
    if opened.size(name) > most:
        raise UnreadableError(f"It is larger than {most >> 20} MB.")
    with opened.open(name) as stream:
        return stream.read()


# Records ------------------------------------------------------------------------------------------


def first_records(opened: OpenedExport, name: str) -> Records:
    """Return the first objects of a JSON Lines file, a list, or a list in an object."""
    head = opened.head(name, _HEAD_SIZE)
    lines = head.split(b"\n")
    found: Records = []
    for line in (lines[:-1] or lines)[:_MAX_FIRST]:
        with suppress(ValueError, RecursionError):
            found += filter(None, records_of([json.loads(line, strict=False)]))
    if len(found) > 1:
        return found
    key = list_key(head)
    return found or records_of(list(islice(elements(io.BytesIO(head), key), _MAX_FIRST)))


def list_key(head: bytes) -> str:
    """Return the key of the list with the records if a file is one object, else ""."""
    key = _LIST.search(head) if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else None
    return key[1].decode() if key else ""


def json_lines(opened: OpenedExport, name: str) -> Iterator[Record | Skipped]:
    """Yield the objects of a JSON Lines file, each of which is accounted for, as `_json_lines`."""
    return _accounted(opened, name, _json_lines(opened, name), [])


def _accounted(
    opened: OpenedExport, name: str, records: Iterator[Record | Skipped], beside: Iterable[Record]
) -> Iterator[Record | Skipped]:
    """Yield records that are read for the first time, each of which must come to something.

    So must what is `beside` them, once they are read.
    """
    account = opened.account
    if account is None or not account.begin(name):
        yield from records
        return
    for each in records:
        if not isinstance(each, Skipped):
            account.add(name, each)
        yield each
        del each
    for other in beside:
        account.add(name, other)


def _json_lines(opened: OpenedExport, name: str) -> Iterator[Record | Skipped]:
    """Yield the objects of a JSON Lines file, then one report about all unreadable lines.

    What stands behind a place where the file is damaged is reported, too.
    """
    bad: list[tuple[int, str]] = []
    number = 0
    try:
        with opened.open(name) as stream:
            for number, line in enumerate(_lines(stream), 1):
                try:
                    value = value_of(line, PackedRecord)
                except RecursionError:
                    bad.append((number, "it is nested too deeply"))
                except ValueError as error:
                    bad.append((number, f"it is not valid JSON: {error}".splitlines()[0]))
                else:
                    if not isinstance(value, dict):
                        bad.append((number, "it is no object"))
                    elif value:
                        value = record_of(value)  # or what it copies would be held
                        yield value
                    del value
    except UnreadableError as error:
        yield _cut(name, number, error)
    if bad:
        number, why = bad[0]
        more = f" {counted(len(bad) - 1, 'more line')} can't either." if len(bad) > 1 else ""
        why = f"The line can't be read: {why}.{more}"
        yield Skipped(f"{line_of(name)}, line {number}", why, lost=True)


def _cut(name: str, number: int, error: UnreadableError) -> Skipped:
    """Report what follows the last record that could be read; raise if there is none."""
    if not number:
        raise error
    return Skipped(f"{line_of(name)}, behind number {number}", str(error), lost=True)


def json_list(
    opened: OpenedExport,
    name: str,
    key: str = "conversations",
    beside: Records | None = None,
) -> Iterator[Record | Skipped]:
    """Yield the objects of a top-level list, or of the list at `key` of an object.

    Each is accounted for, and so are the other members of that object, which `beside` gets.
    """
    beside = [] if beside is None else beside
    return _accounted(opened, name, _json_list(opened, name, key, beside), beside)


def _json_list(
    opened: OpenedExport, name: str, key: str, beside: Records
) -> Iterator[Record | Skipped]:
    number = 0
    try:
        with opened.open(name) as stream:
            for each in elements(
                stream, key, PackedRecord, lambda rest: beside.append(Record(rest))
            ):
                number += 1  # `enumerate` would keep the one before
                if isinstance(each, dict):
                    each = record_of(each)  # noqa: PLW2901 - or what it copies would be held
                    yield each
                elif isinstance(each, Broken):
                    rest = " What follows it is not read." if each.ends else ""
                    why = f"{each.why[:1].upper()}{each.why[1:].rstrip('.')}.{rest}"
                    yield Skipped(f"{line_of(name)}, number {each.number}", why, lost=True)
                else:
                    why = "It holds something that is no conversation."
                    yield Skipped(line_of(name), why, lost=True)
                del each
    except UnreadableError as error:
        yield _cut(name, number, error)


def _candidates(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        if not opened.is_folder or name.lower().endswith(_LOG_SUFFIXES):
            yield name


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the non-empty lines, truncating those of absurd length."""
    while line := stream.readline(_MAX_LINE):
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield line.removeprefix(b"\xef\xbb\xbf")
        while len(line) == _MAX_LINE and not line.endswith(b"\n"):
            line = stream.readline(_MAX_LINE)


# Values -------------------------------------------------------------------------------------------


class Record(dict[str, Any]):
    """A JSON object of an export. A value of another type than requested counts as missing."""

    __slots__ = ("__weakref__",)

    def text(self, *names: str) -> str:
        """Return the first of these values that is a non-empty string, else ""."""
        for name in names:
            value = self.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    def words(self, *names: str) -> str:
        """Return the first non-empty string, stripped and without control characters, else ""."""
        return self._first(words_of, names) or ""

    def line(self, *names: str) -> str:
        """Return the same on one line, for titles and names."""
        return self._first(line_of, names) or ""

    def time(self, *names: str) -> datetime | None:
        """Return the first of these values that `time_of` can parse."""
        return self._first(time_of, names)

    def _first(self, read: Callable[[Any], T | None], names: Sequence[str]) -> T | None:
        for name in names:
            if found := read(self.get(name)):
                return found
        return None

    def record(self, name: str) -> Record:
        """Return the object under a name, or an empty one."""
        found = record_of(self.get(name))
        if found:
            self[name] = found  # cached for the next call
        return found

    def records(self, name: str) -> list[Record]:
        """Return the objects in the list under a name."""
        return records_of(self.get(name))

    def drain(self, name: str) -> Iterator[Record]:
        """Yield the objects in the list under a name, which the record doesn't hold any more.

        So what comes of a long conversation isn't there beside all that it came of.
        """
        return drained(records_of(self.pop(name, None)))

    def lines(self, name: str, *inner: str) -> list[str]:
        """Return the non-empty lines under keys `inner` of the objects in a list."""
        return [line for each in self.records(name) if (line := each.line(*inner))]


class PackedRecord(Record):
    """A record that keeps its texts packed, which those who read it don't notice."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        return unpacked(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or `default` if there is none of that name."""
        return unpacked(super().get(name, default))

    def pop(self, name: str, default: Any = None) -> Any:
        """Remove a value and return it, or `default` if there is none of that name."""
        return unpacked(super().pop(name, default))

    def __iter__(self) -> Iterator[str]:  # or a copy would be made of what is packed
        return super().__iter__()

    def values(self) -> dict_values[str, Any]:
        """Return the values, of a copy."""
        return plain(super().items()).values()

    def items(self) -> dict_items[str, Any]:
        """Return the names and values, of a copy."""
        return plain(super().items()).items()


Records = list[Record]


def record_of(value: Any) -> Record:
    """Return a JSON object as a `Record`, an empty one for any other value."""
    if isinstance(value, Record):
        return value
    return Record(value) if isinstance(value, dict) else Record()


def records_of(value: Any) -> Records:
    """Return the objects of a JSON array, none for any other value."""
    if not isinstance(value, list):
        return []
    return [record_of(each) for each in value if isinstance(each, dict)]


def role_of(value: Any) -> Role | None:
    """Return the role for its usual names in exports, or None if it is neither."""
    return _ROLES.get(value.lower()) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """Return a string as it is, or "" for any other value."""
    return value if isinstance(value, str) else ""


def texts_in(value: Any, is_shown: Callable[[Record], object] = bool) -> Iterator[str]:
    """Yield the texts of a content: of a string, of a block with ``text``, or of a list of both.

    Of blocks, those that `is_shown` accepts.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each, is_shown)
    elif (block := record_of(value)) and is_shown(block):
        yield block.text("text") or block.record("text").text("value")


def paragraphs(texts: Iterable[str]) -> str:
    """Join non-empty texts as paragraphs."""
    return "\n\n".join(filter(None, (text.strip() for text in texts)))


def time_of(value: Any) -> datetime | None:
    """Parse ISO 8601, or seconds or milliseconds since 1970, to a time in UTC; None if invalid.

    A time without a zone is one of this machine's zone: whoever exports sees their own clock.
    Either may be wrapped as MongoDB exports it: ``{"$date": {"$numberLong": "1748772000000"}}``.
    """
    try:
        if isinstance(value, dict):  # MongoDB's notation
            value = value.get("$date", value.get("$numberLong"))
            return time_of(value)
        if isinstance(value, str):
            if value[4:5] == "-":
                found = datetime.fromisoformat(value.strip())
                if found.tzinfo is not UTC:
                    found = found.astimezone(UTC)
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
    except (ValueError, OverflowError, OSError, RecursionError):
        return None


def hour_of(hour: int, beside: str) -> int:
    """Return an hour of 24 by what stands beside it: ``PM``, ``p. m.``, ``下午``, or nothing."""
    is_late = _AFTERNOON.search(beside) is not None
    return hour % 12 + 12 * is_late if is_late or _MORNING.search(beside) else hour


def _within(time: datetime) -> datetime | None:
    return time if _EARLIEST <= time < _LATEST else None


def newest(choices: Sequence[T], times: Sequence[datetime | None]) -> T:
    """Return the choice with the latest time, the last of equal ones."""
    known = [(time or _EARLIEST, number) for number, time in enumerate(times)]
    return choices[max(known)[1]]


def conversation(
    name: str,
    title: str,
    messages: Sequence[ImportedMessage],
    *,
    created: datetime | None = None,
    updated: datetime | None = None,
    url: str = "",
    branches: int = 0,
    named: Counter[str] | None = None,
) -> ImportedConversation | None:
    """Build a conversation, or return None if there are no messages.

    Without a `name` its id is a hash of its first message, without a `title` the first message of
    the user is shortened to one. `created` and `updated` default to the times of the messages.
    """
    if not messages:
        return None
    first = next((each.text for each in messages if each.role == "user"), messages[0].text)
    return ImportedConversation(
        name or digest(f"{messages[0].time}", messages[0].text),
        line_of(title) or shorten(first, _TITLE_WIDTH),
        *dated(messages, created, updated),
        tuple(messages),
        url,
        branches,
        Counter() if named is None else named,
    )


def dated(
    messages: Iterable[ImportedMessage],
    created: datetime | None = None,
    updated: datetime | None = None,
) -> tuple[datetime | None, datetime | None]:
    """Return when a conversation was created and updated, by default from its messages."""
    times = [each.time for each in messages if each.time]
    return created or min(times, default=None), updated or max(times, default=None)


def identity_of(messages: Sequence[ImportedMessage], created: object) -> str:
    """Return an id that stays the same as an export grows, for a conversation without one."""
    return f"{created} {messages[0].id or messages[0].text[:200]}"


def address_of(prefix: str, id_: str) -> str:
    """Return the web address of a conversation, or "" if its id isn't valid in one."""
    return f"{prefix}{id_}" if _WEB_ID.fullmatch(id_) else ""


def place_of(name: str, *titles: object) -> str:
    """Name a thing for a report by its first non-empty title and its file."""
    title = next(filter(None, map(line_of, titles)), "")
    return f"{shorten(title, _TITLE_WIDTH)} ({line_of(name)})" if title else line_of(name)
