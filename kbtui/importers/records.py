"""Logs of programs as they lie on disk: JSON lines, and lists of records, piece by piece."""

from __future__ import annotations

import io
import json
import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from kbtui.importers.json_stream import Broken, elements
from kbtui.importers.markup import digest, line_of
from kbtui.importers.port import Conversation, Skipped
from kbtui.importers.reading import broken, mappings
from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO

    from kbtui.importers.opened import Opened
    from kbtui.importers.port import Said

Records = list[dict[str, Any]]
_LONGEST_LINE = 256 << 20
_TITLE_WIDTH = 80
_LOOKED_AT = 400
_FIRST = 20
_HEAD = 256 << 10
_LIST = re.compile(rb'"(loglines|items|conversations)"\s*:\s*\[')
_LOGS = (".jsonl", ".json", ".ndjson", ".txt")


def conversation(
    name: str, title: str, said: Sequence[Said], *, url: str = "", branches: int = 0
) -> Conversation | None:
    """One that is dated by its messages, and titled by the first if need be; None of nothing."""
    times = [each.time for each in said if each.time]
    if not said:
        return None
    first = next((each.text for each in said if each.role == "user"), said[0].text)
    return Conversation(
        id=name or digest(f"{said[0].time}", said[0].text),
        title=line_of(title) or shorten(first, _TITLE_WIDTH),
        created=min(times, default=None),
        updated=max(times, default=None),
        messages=tuple(said),
        url=url,
        branches=branches,
    )


def logs(opened: Opened, is_one: Callable[[Records], bool]) -> Iterator[str]:
    """The members that are logs of a kind, by their first records."""
    for name in _candidates(opened):
        if is_one(first_records(opened, name)):
            yield name


def has_log(opened: Opened, is_one: Callable[[Records], bool]) -> bool:
    """True if one of the first members is such a log."""
    names = islice(_candidates(opened), _LOOKED_AT)
    return any(is_one(first_records(opened, name)) for name in names)


def first_records(opened: Opened, name: str) -> Records:
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


def json_lines(opened: Opened, name: str) -> Iterator[dict[str, Any] | Skipped]:
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


def json_list(opened: Opened, name: str, key: str) -> Iterator[dict[str, Any] | Skipped]:
    """The objects of a list, or of the one under `key` in an object, one at a time."""
    with opened.open(name) as stream:
        for each in elements(stream, key):
            if isinstance(each, Broken):
                yield broken(name, each)
            elif isinstance(each, dict):
                yield each


def _candidates(opened: Opened) -> Iterator[str]:
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
