"""The format of an archive line, and the merged reading of all archive files."""

from __future__ import annotations

import platform
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from hashlib import sha256
from typing import Any

import platformdirs

from kbtui.memory.records.ranges import Range, merged, overlap, read_range
from kbtui.text import slugify
from kbtui.workspace.jsonl import BadLine, parse_records

MAX_CURSOR = 2**53
NOT_GROUNDED = "not_grounded"
_MAX_DIGITS = 15
_RECORD = re.compile(r"memory/(?:history(?:-\w+)?\.jsonl|HISTORY(?:-\w+)?\.md|tombstones\.jsonl)")


def is_record(path: str) -> bool:
    """Return whether a file records what happened, so no undo or restore may roll it back."""
    return _RECORD.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One slice of a conversation, condensed or, if no model could do that, in full (`raw`).

    `verbatim`: no model was asked, and the content was chosen from what was said. `timestamp` is
    the content's time in the user's zone, ``YYYY-MM-DD HH:MM``. `messages` is the range that the
    entry accounts for; those in `dropped` (message id, reason) were left out. `not_grounded` are
    the lines that a model wanted to write although nobody had said them; an entry without a session
    holds only those of a run of Dream.
    """

    cursor: int
    timestamp: str
    content: str
    session: str | None = None
    messages: Range | None = None
    origin: str = ""
    raw: bool = False
    dropped: tuple[tuple[int, str], ...] = ()
    verbatim: bool = False
    not_grounded: tuple[str, ...] = ()

    @property
    def is_unread(self) -> bool:
        """Whether no model has condensed its messages."""
        return self.session is not None and (self.verbatim or self.raw)

    @property
    def day(self) -> date | None:
        """The day of the content, or None if the timestamp has none."""
        try:
            return date.fromisoformat(self.timestamp[:10])
        except ValueError:
            return None

    def is_of(self, session: str | None, messages: Range | None) -> bool:
        """Return whether the entry covers any of these messages of a session."""
        return self.session == session and overlap(self.messages, messages)


@dataclass(frozen=True, slots=True)
class Holding:
    """A range of a session's messages that an entry accounts for; `dropped` has reasons by id."""

    cursor: int
    messages: Range
    dropped: Mapping[int, str] = field(default_factory=dict, hash=False)

    def holds(self, message: int) -> bool:
        """Return whether the range includes a message."""
        return self.messages[0] <= message <= self.messages[1]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of all archive files at one moment, lowest cursor first."""

    entries: tuple[ArchiveEntry, ...]
    bad: tuple[BadLine, ...]


def to_record(entry: ArchiveEntry) -> dict[str, Any]:
    """Return the JSON object of an entry's line; empty fields are left out."""
    record: dict[str, Any] = {
        "cursor": entry.cursor,
        "timestamp": entry.timestamp,
        "content": entry.content,
    }
    if entry.session is not None:
        record["session"] = entry.session
    if entry.messages is not None:
        record["messages"] = list(entry.messages)
    record["origin"] = entry.origin
    if entry.raw:
        record["raw"] = True
    if entry.verbatim:
        record["verbatim"] = True
    if entry.dropped:
        record["dropped"] = [list(each) for each in entry.dropped]
    if entry.not_grounded:
        record[NOT_GROUNDED] = list(entry.not_grounded)
    return record


def read_entry(value: Mapping[str, Any]) -> ArchiveEntry | None:
    """Parse a line, nanobot's format included; return None without a valid cursor and content."""
    cursor, content = _cursor(value.get("cursor")), value.get("content")
    if cursor is None or not isinstance(content, str):
        return None
    session, origin = value.get("session"), value.get("origin")
    return ArchiveEntry(
        cursor=cursor,
        timestamp=str(value.get("timestamp") or ""),
        content=content,
        session=session if isinstance(session, str) else None,
        messages=read_range(value.get("messages")),
        origin=origin if isinstance(origin, str) else "",
        raw=value.get("raw") is True,
        dropped=_dropped(value.get("dropped")),
        verbatim=value.get("verbatim") is True,
        not_grounded=texts_of(value.get(NOT_GROUNDED)),
    )


def _cursor(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MAX_DIGITS:
        value = int(value)
    return value if type(value) is int and 1 <= value <= MAX_CURSOR else None


def texts_of(value: Any) -> tuple[str, ...]:
    """Return the strings in a JSON list, skipping other values."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _dropped(value: Any) -> tuple[tuple[int, str], ...]:
    pairs = value if isinstance(value, list) else []
    return tuple(
        (pair[0], pair[1])
        for pair in pairs
        if isinstance(pair, list)
        and len(pair) == 2  # id and reason
        and isinstance(pair[0], int)
        and isinstance(pair[1], str)
    )


def read_snapshot(data: list[tuple[str, bytes]]) -> Snapshot:
    """Read the archive files; an entry that appears twice counts once, two under one id both count.

    An unread entry is skipped if a model has condensed all of its messages since.
    """
    entries: dict[tuple[str, int], ArchiveEntry] = {}
    bad: list[BadLine] = []
    for path, part in data:
        records, broken = parse_records(part, path)
        bad += broken
        for record in records:
            entry = read_entry(record.value)
            if entry is None:
                bad.append(BadLine(path, record.number, record.data, "no cursor or no content"))
                continue
            if record.value.get("messages") is not None and entry.messages is None:
                bad.append(BadLine(path, record.number, record.data, "no range of messages"))
            twin = entries.get((entry.origin, entry.cursor))
            if twin is not None and twin != entry:
                entry = _with_unique_origin(entry)
            entries.setdefault((entry.origin, entry.cursor), entry)
    standing = _without_superseded(list(entries.values()))
    ordered = sorted(standing, key=lambda entry: (entry.cursor, entry.origin))
    bad.sort(key=lambda line: (line.path, line.number))
    return Snapshot(tuple(ordered), tuple(bad))


def _without_superseded(entries: list[ArchiveEntry]) -> Iterator[ArchiveEntry]:
    """Yield the entries except unread ones whose messages are covered by a condensed entry."""
    condensed: dict[str | None, list[Range]] = {}
    for each in entries:
        if each.messages is not None and not each.is_unread:
            condensed.setdefault(each.session, []).append(each.messages)
    known = {session: merged(ranges) for session, ranges in condensed.items()}
    for each in entries:
        first, last = each.messages or (1, 0)
        others = known.get(each.session, []) if each.is_unread else []
        if not any(start <= first <= last <= end for start, end in others):
            yield each


def _with_unique_origin(entry: ArchiveEntry) -> ArchiveEntry:
    """Give an entry whose id is taken a unique origin, so that no reader skips it."""
    mark = sha256(f"{entry.timestamp}\0{entry.content}\0{entry.messages}".encode()).hexdigest()[:8]
    return replace(entry, origin=f"{entry.origin}~{mark}")


def as_block(entry: ArchiveEntry) -> str:
    """Return an entry as a dated paragraph of HISTORY.md and a blank line; "" without content."""
    if not entry.content:
        return ""
    mark = "[RAW] " if entry.raw and not entry.content.startswith("[RAW]") else ""
    return f"[{entry.timestamp}] {mark}{entry.content}".rstrip() + "\n\n"


def with_block(text: str, block: str) -> str:
    """Append a block to the text of HISTORY.md, separated by one blank line."""
    if not text or not block or text.endswith("\n\n"):
        return text + block
    return text + ("\n" if text.endswith("\n") else "\n\n") + block


# HISTORY.md of earlier versions -------------------------------------------------------------------


_START = re.compile(r"\[(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}))?[^\]\n]*\][ \t]*")
_RAW = re.compile(r"\[RAW\]")
_MESSAGE = re.compile(r"\[[^\]\n]*\][ \t]+[A-Z][A-Z0-9_]*(?:[ \t]+\[tools:[^\]\n]*\])?:")


@dataclass(frozen=True, slots=True)
class OldBlock:
    """One dated paragraph; `content` excludes the date."""

    timestamp: str
    content: str
    raw: bool


def parse_old_history(text: str, undated: str) -> list[OldBlock]:
    """Split a file at its dates without losing a word; `undated` dates text before the first."""
    blocks: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        if _START.match(line) and not _continues(blocks[-1], line):
            blocks.append([])
        blocks[-1].append(line)
    texts = ("\n".join(lines).strip() for lines in blocks)
    return [_block(text, undated) for text in texts if text]


def _continues(block: list[str], line: str) -> bool:
    """Return whether a dated line is a message inside a raw block rather than a new block."""
    if not block or not _MESSAGE.match(line):
        return False
    start = _START.match(block[0])
    return start is not None and _RAW.match(block[0], start.end()) is not None


def _block(text: str, undated: str) -> OldBlock:
    start = _START.match(text)
    if start is None:
        return OldBlock(undated, text, raw=False)
    content = text[start.end() :].strip()
    raw = _RAW.match(content) is not None
    return OldBlock(f"{start[1]} {start[2] or '00:00'}", content or text, raw)


# Origins ------------------------------------------------------------------------------------------


_MAX_NAME = 32


def machine_name() -> str:
    """Return the machine's name: its host name and four hex digits, created once per user.

    Falls back to the bare host name if the user's state directory isn't writable.
    """
    host = slugify(platform.node().partition(".")[0] or "machine", _MAX_NAME)
    file = platformdirs.user_state_path("kbtui", appauthor=False) / "machine"
    try:
        if name := file.read_text("utf-8").strip():
            return slugify(name, _MAX_NAME + 8)
    except (OSError, UnicodeDecodeError):
        pass
    name = f"{host}-{secrets.token_hex(2)}"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as made:
            made.write(name + "\n")
    except FileExistsError:
        return slugify(file.read_text("utf-8").strip() or host, _MAX_NAME + 8)
    except OSError:
        return host
    return name
