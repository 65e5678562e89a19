"""The archive: what was said, condensed, line by line in ``memory/history.jsonl``.

An entry is known by (origin, cursor): `origin` names the machine that wrote it, so archives of
several machines merge by union, and a cursor is above every other that its writer had seen. There
is no cursor file to lose; the next cursor follows from the lines, from what Dream has read and
from the log. ``HISTORY.md`` holds the same entries for people and grep.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Any

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor
from kbtui.memory.cursors import Cursors
from kbtui.memory.machine import machine_name
from kbtui.memory.old_history import parse_old_history
from kbtui.memory.ranges import Range, merged, read_range
from kbtui.memory.records import BadLine, Record, add_record, parse_records
from kbtui.text import clean
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

ARCHIVE = "memory/history.jsonl"
PROJECTION = "memory/HISTORY.md"
KEPT_ENTRIES = 1000
_SEGMENT = "memory/history-{}.jsonl"
_ARCHIVISTS = frozenset({Actor.CONSOLIDATOR, Actor.IMPORT})
_TIME = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One slice of a conversation, condensed or, where no model could, whole (`raw`).

    `timestamp` is the content's time in the user's zone, ``YYYY-MM-DD HH:MM``. `messages` is the
    range that it accounts for, of which those in `dropped` (message id, reason) were left out.
    """

    cursor: int
    timestamp: str
    content: str
    session: str | None = None
    messages: Range | None = None
    origin: str = ""
    raw: bool = False
    dropped: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """Messages of a session that an archive entry accounts for; `dropped` has reasons by id."""

    cursor: int
    messages: Range
    dropped: Mapping[int, str] = field(default_factory=dict, hash=False)

    def holds(self, message: int) -> bool:
        """Whether it accounts for a message."""
        return self.messages[0] <= message <= self.messages[1]


@dataclass(frozen=True, slots=True)
class _Book:
    """All that the archive's files say at one moment, oldest cursor first."""

    entries: tuple[ArchiveEntry, ...]
    bad: tuple[BadLine, ...]


class Archive:
    """Reads the archive, and adds to it inside a change that somebody else makes."""

    def __init__(self, workspace: Workspace, history: History, origin: str | None = None) -> None:
        self.workspace = workspace
        self._history = history
        self._origin = origin or machine_name()
        self._cursors = Cursors(workspace, history)
        self._cached: tuple[bytes, _Book] | None = None
        self._commits: tuple[str | None, dict[str, list[Holding]]] = (None, {})

    def entries(self, after: int | Mapping[str, int] = 0) -> list[ArchiveEntry]:
        """All entries behind a cursor, oldest first.

        Args:
            after: One cursor for all origins, or the last seen of each origin (see `Cursors`).
        """
        book = self._book(self._read)
        if isinstance(after, int):
            return [entry for entry in book.entries if entry.cursor > after]
        return [entry for entry in book.entries if entry.cursor > after.get(entry.origin, 0)]

    def find(self, cursor: int, origin: str | None = None) -> ArchiveEntry:
        """One entry; without an origin the one that this machine wrote wins.

        Raises:
            NotFoundError: there is none.
        """
        found = [
            entry
            for entry in self.entries(cursor - 1)
            if entry.cursor == cursor and origin in (None, entry.origin)
        ]
        if not found:
            raise NotFoundError(f"The archive has no entry {cursor}.", "It may have been removed.")
        return min(found, key=lambda entry: entry.origin != self._origin)

    def stage(
        self,
        change: Change,
        content: str,
        *,
        session: str | None,
        messages: Range | None,
        timestamp: str | datetime,
        raw: bool = False,
        dropped: Iterable[tuple[int, str]] = (),
    ) -> int:
        """Add one entry to a running change, to the archive and to HISTORY.md.

        The change's origin gets the cursor, and session and messages where it has none.

        Returns:
            Its cursor, which is above that of every entry there is.
        """
        self._stage_migration(change)
        when = (
            timestamp.astimezone().strftime(_TIME) if isinstance(timestamp, datetime) else timestamp
        )
        entry = ArchiveEntry(
            cursor=self._next_cursor(change.read),
            timestamp=when,
            content=_without_time(clean(content).strip(), when),
            session=session,
            messages=messages,
            origin=self._origin,
            raw=raw,
            dropped=tuple(dropped),
        )
        self._append(change, ARCHIVE, add_record(change.read(ARCHIVE) or b"", _record(entry)))
        self._project(change, entry)
        change.origin = replace(
            change.origin,
            session=change.origin.session or session,
            messages=change.origin.messages or messages,
            cursor=entry.cursor,
        )
        return entry.cursor

    def covered(self, session: str) -> list[Range]:
        """Which messages of a session are archived; see `holdings`."""
        return merged(holding.messages for holding in self.holdings(session))

    def holdings(self, session: str) -> list[Holding]:
        """What is archived of a session, by the lines and by the commits made of them.

        A line that was lost from the file since is still on record in the log, so what it stood
        for isn't consolidated a second time.
        """
        found = [
            Holding(entry.cursor, entry.messages, dict(entry.dropped))
            for entry in self.entries()
            if entry.session == session and entry.messages is not None
        ]
        known = {(holding.cursor, holding.messages) for holding in found}
        recorded = self._recorded().get(session, ())
        return [*found, *(each for each in recorded if (each.cursor, each.messages) not in known)]

    def problems(self) -> tuple[BadLine, ...]:
        """Lines that can't be used; they stay in the file as they are."""
        return self._book(self._read).bad

    def migrate(self) -> int:
        """Make archive entries of an old HISTORY.md, once; a copy stays in ``HISTORY.md.bak``.

        Returns:
            How many entries were made; 0 when there was nothing to do.
        """
        if self._migrated(self._read):
            return 0
        with self._history.change(
            Actor.IMPORT, "The old HISTORY.md becomes the archive; a copy is in HISTORY.md.bak."
        ) as change:
            return self._stage_migration(change)

    def compact(
        self, change: Change, keep_after: int | Mapping[str, int], keep: int = KEPT_ENTRIES
    ) -> int:
        """Keep the working file short: move old entries into a file for each year.

        Nothing is dropped, and what a reader hasn't seen isn't moved: only entries up to
        `keep_after`, and of those not the newest `keep`. Coverage, cursors and search go on to
        count the moved ones.

        Returns:
            How many entries were moved.
        """
        data = change.read(ARCHIVE) or b""
        records, _ = parse_records(data, ARCHIVE)
        movable = [
            (record, entry)
            for record in records[: max(0, len(records) - keep)]
            if (entry := _entry(record.value)) and entry.cursor <= _limit(keep_after, entry.origin)
        ]
        if not movable:
            return 0
        for record, entry in movable:
            self._move(change, record, entry)
        moved = {record.number for record, _ in movable}
        lines = data.split(b"\n")
        kept = b"\n".join(line for number, line in enumerate(lines, 1) if number not in moved)
        self._append(change, ARCHIVE, kept)
        return len(movable)

    def _move(self, change: Change, record: Record, entry: ArchiveEntry) -> None:
        year = entry.timestamp[:4] if entry.timestamp[:4].isdecimal() else "undated"
        path = _SEGMENT.format(year)
        data = change.read(path) or b""
        gap = b"" if not data or data.endswith(b"\n") else b"\n"
        self._append(change, path, data + gap + record.data + b"\n")

    def _append(self, change: Change, path: str, data: bytes) -> None:
        """Write a grown file, unless somebody else has changed it since it was read."""
        before = self._read(path)
        change.write(path, data, expecting=None if before is None else files.blob_id(before))

    def _project(self, change: Change, entry: ArchiveEntry) -> None:
        shown = change.read(PROJECTION)
        if shown is None:
            text = "".join(_block(each) for each in self._book(change.read).entries)
        else:
            text = shown.decode("utf-8", "surrogateescape")
            gap = (
                "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
            )
            text += gap + _block(entry)
        self._append(change, PROJECTION, text.encode("utf-8", "surrogateescape"))

    def _next_cursor(self, read: Callable[[str], bytes | None]) -> int:
        known = [entry.cursor for entry in self._book(read).entries]
        known += self._cursors.seen().values()
        known += [each.cursor for found in self._recorded().values() for each in found]
        return max(known, default=0) + 1

    def _migrated(self, read: Callable[[str], bytes | None]) -> bool:
        if any(read(path) for path in (ARCHIVE, *self._segments())):
            return True
        if not (read(PROJECTION) or b"").strip():
            return True
        # An archive that was there once and is gone is a loss, not an old workspace.
        return next(iter(self._history.log(ARCHIVE, limit=1)), None) is not None

    def _stage_migration(self, change: Change) -> int:
        if self._migrated(change.read):
            return 0
        old = change.read(PROJECTION) or b""
        change.write(self._free_backup(change), old, expecting=None)
        data = b""
        blocks = parse_old_history(files.decode(old).text, self._modified(PROJECTION))
        for cursor, block in enumerate(blocks, self._next_cursor(change.read)):
            entry = ArchiveEntry(
                cursor, block.timestamp, block.content, origin=self._origin, raw=block.raw
            )
            data = add_record(data, _record(entry))
        self._append(change, ARCHIVE, data)
        return len(blocks)

    def _free_backup(self, change: Change) -> str:
        path, number = f"{PROJECTION}.bak", 1
        while change.read(path) is not None:
            number += 1
            path = f"{PROJECTION}.bak{number}"
        return path

    def _modified(self, path: str) -> str:
        status = files.file_status(self.workspace.root, path)
        seconds = time() if status is None else status.st_mtime
        return datetime.fromtimestamp(seconds).astimezone().strftime(_TIME)

    def _read(self, path: str) -> bytes | None:
        try:
            return files.read_bytes(self.workspace.root, path)
        except NotFoundError:
            return None

    def _segments(self) -> list[str]:
        found = self.workspace.memory.glob("history-*.jsonl")
        return sorted(f"memory/{file.name}" for file in found if file.is_file())

    def _book(self, read: Callable[[str], bytes | None]) -> _Book:
        data = [(path, read(path) or b"") for path in (*self._segments(), ARCHIVE)]
        print_ = sha256(repr([(path, sha256(part).digest()) for path, part in data]).encode())
        if self._cached is None or self._cached[0] != print_.digest():
            self._cached = (print_.digest(), _make_book(data))
        return self._cached[1]

    def _recorded(self) -> dict[str, list[Holding]]:
        """What the commits say was archived, read on from where the last look ended."""
        seen, found = self._commits
        head = self._history.head()
        if head is None or head == seen:
            return found
        for commit in self._history.log():
            if commit.id == seen:
                break
            origin = commit.origin
            if commit.actor in _ARCHIVISTS and origin.session and origin.messages and origin.cursor:
                holding = Holding(origin.cursor, origin.messages)
                found.setdefault(origin.session, []).append(holding)
        self._commits = (head, found)
        return found


def _limit(keep_after: int | Mapping[str, int], origin: str) -> int:
    return keep_after if isinstance(keep_after, int) else keep_after.get(origin, 0)


def _record(entry: ArchiveEntry) -> dict[str, Any]:
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
    if entry.dropped:
        record["dropped"] = [list(each) for each in entry.dropped]
    return record


def _entry(value: Mapping[str, Any]) -> ArchiveEntry | None:
    """Read a line, nanobot's own included; None where it has no cursor or no content."""
    cursor, content = value.get("cursor"), value.get("content")
    if isinstance(cursor, str) and cursor.isdecimal():
        cursor = int(cursor)
    if not isinstance(cursor, int) or isinstance(cursor, bool) or cursor < 1:
        return None
    if not isinstance(content, str):
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
    )


def _dropped(value: Any) -> tuple[tuple[int, str], ...]:
    pairs = value if isinstance(value, list) else []
    return tuple(
        (pair[0], pair[1])
        for pair in pairs
        if isinstance(pair, list)
        and len(pair) == 2  # noqa: PLR2004 — id and reason
        and isinstance(pair[0], int)
        and isinstance(pair[1], str)
    )


def _make_book(data: list[tuple[str, bytes]]) -> _Book:
    """Read the files; the same entry twice counts once, two under one id count both."""
    entries: dict[tuple[str, int], ArchiveEntry] = {}
    bad: list[BadLine] = []
    for path, part in data:
        records, broken = parse_records(part, path)
        bad += broken
        for record in records:
            entry = _entry(record.value)
            if entry is None:
                bad.append(BadLine(path, record.number, record.data, "no cursor or no content"))
                continue
            if record.value.get("messages") is not None and entry.messages is None:
                bad.append(BadLine(path, record.number, record.data, "no range of messages"))
            twin = entries.get((entry.origin, entry.cursor))
            if twin is not None and twin != entry:
                entry = _set_apart(entry)
            entries.setdefault((entry.origin, entry.cursor), entry)
    ordered = sorted(entries.values(), key=lambda entry: (entry.cursor, entry.origin))
    return _Book(tuple(ordered), tuple(bad))


def _set_apart(entry: ArchiveEntry) -> ArchiveEntry:
    """Give an entry whose id is taken an origin of its own, so that no reader passes over it."""
    mark = sha256(f"{entry.timestamp}\0{entry.content}\0{entry.messages}".encode()).hexdigest()[:8]
    return replace(entry, origin=f"{entry.origin}~{mark}")


def _block(entry: ArchiveEntry) -> str:
    mark = "[RAW] " if entry.raw and not entry.content.startswith("[RAW]") else ""
    return f"[{entry.timestamp}] {mark}{entry.content}".rstrip() + "\n\n"


def _without_time(content: str, timestamp: str) -> str:
    """Take off the time that models put in front, which is kept apart and computed by us."""
    head, closed, rest = content.partition("]")
    if closed and head.startswith("[") and head[1:5].isdecimal() and timestamp[:4].isdecimal():
        return rest.strip() or content
    return content
