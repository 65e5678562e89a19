"""The archive: condensed conversations, one JSON object per line in ``memory/history.jsonl``.

An entry is identified by (origin, cursor). `origin` names the machine that wrote it, so archives of
several machines merge by union; a cursor is higher than every other that its writer had seen. There
is no cursor file to lose: the next cursor follows from the lines, from what Dream has read and from
the log. ``HISTORY.md`` holds the same entries for people and grep.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from hashlib import sha256
from time import time
from typing import Any
from weakref import WeakKeyDictionary

from kbtui.errors import ConflictError, NotFoundError, UsageError
from kbtui.history.change import Actor, Change, Commit
from kbtui.history.history import History
from kbtui.memory.records.archive_lines import (
    NOT_GROUNDED,
    ArchiveEntry as ArchiveEntry,
    Holding as Holding,
    OldBlock,
    Snapshot,
    as_block,
    is_record as is_record,
    machine_name,
    parse_old_history,
    read_entry,
    read_snapshot,
    texts_of,
    to_record,
    with_block,
)
from kbtui.memory.records.cursors import Cursors as Cursors
from kbtui.memory.records.dates import without_stamp
from kbtui.memory.records.ranges import Range, merged
from kbtui.memory.records.record_merge import resolver_of as resolver_of
from kbtui.memory.records.tombstones import LOST_KEY as LOST_KEY, Tombstones as Tombstones
from kbtui.text import clean, clean_line
from kbtui.workspace import files
from kbtui.workspace.jsonl import BadLine, add_record, parse_records
from kbtui.workspace.layout import Workspace

ARCHIVE = "memory/history.jsonl"
PROJECTION = "memory/HISTORY.md"
KEPT_ENTRIES = 500
_ARCHIVISTS = frozenset({Actor.CONSOLIDATOR, Actor.IMPORT})
_TIME = "%Y-%m-%d %H:%M"
_Holdings = tuple[
    "Snapshot | None", tuple[tuple[str, "Holding"], ...], Mapping[str, "list[Holding]"]
]
_Reader = Callable[[str], "bytes | None"]


@dataclass(slots=True)
class _Staged:
    """The entries added to a running change, and the files as they were when it began."""

    base: dict[str, bytes | None]
    entries: list[ArchiveEntry] = field(default_factory=list)


class Archive:
    """Reads the archive, and adds entries to it within a caller's change."""

    def __init__(self, workspace: Workspace, history: History, origin: str | None = None) -> None:
        self.workspace = workspace
        self._history = history
        self._origin = origin or machine_name()
        self._cursors = Cursors(workspace, history)
        self._cached: tuple[bytes, Snapshot] | None = None
        self._seen: tuple[object, Snapshot] | None = None
        self._holdings: _Holdings = (None, (), {})
        self._commits: tuple[str | None, tuple[tuple[str, Holding], ...]] = (None, ())
        self._staged: WeakKeyDictionary[Change, _Staged] = WeakKeyDictionary()
        history.add_companion(self._restage)

    @property
    def origin(self) -> str:
        """The name of this machine."""
        return self._origin

    def entries(self, after: int | Mapping[str, int] = 0) -> list[ArchiveEntry]:
        """Return the entries after a cursor (for all origins, or one per origin), oldest first."""
        return [
            entry
            for entry in self._current().entries
            if entry.cursor > _cursor_for(after, entry.origin)
        ]

    def find(self, cursor: int, origin: str | None = None) -> ArchiveEntry:
        """Return the entry with this cursor; without `origin`, prefer the one this machine wrote.

        Raises:
            NotFoundError: There is no such entry.
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
        verbatim: bool = False,
        dropped: Iterable[tuple[int, str]] = (),
        not_grounded: Iterable[str] = (),
    ) -> int:
        """Add an entry to the archive and HISTORY.md in a running change, and return its cursor.

        The cursor is higher than that of every existing entry. It is set in the change's origin,
        together with session and messages unless the origin already has them. If another process
        adds an entry before the change is applied, the cursor is renumbered; `change.origin.cursor`
        holds the final one afterwards.

        Args:
            change: The change; archive, facts and entries become one commit.
            content: The condensed text, or the full text if `raw`. Empty if everything was dropped.
            session: The session that the entry covers.
            messages: The range of its messages that the entry accounts for.
            timestamp: The time of the content, as ``YYYY-MM-DD HH:MM`` in the user's zone.
            raw: Whether no model could condense it; another one may later, see `covered`.
            verbatim: Whether no model was asked; one may be later, too.
            dropped: The messages of the range that were left out, each with its reason.
            not_grounded: Lines that a model wanted to write although nobody had said them.
        """
        self._stage_migration(change)
        if isinstance(timestamp, datetime):
            timestamp = timestamp.astimezone().strftime(_TIME)
        entry = ArchiveEntry(
            cursor=self._next_cursor(change.read),
            timestamp=timestamp,
            content=without_stamp(clean(content).strip()),
            session=session,
            messages=messages,
            origin=self._origin,
            raw=raw,
            dropped=tuple(dropped),
            verbatim=verbatim,
            not_grounded=tuple(map(clean_line, not_grounded)),
        )
        base = {path: change.before(path) for path in (ARCHIVE, PROJECTION)}
        self._staged.setdefault(change, _Staged(base)).entries.append(entry)
        change.write(ARCHIVE, add_record(change.read(ARCHIVE) or b"", to_record(entry)))
        change.write(PROJECTION, self._projected(change.read, entry))
        change.origin = replace(
            change.origin,
            session=change.origin.session or session,
            messages=change.origin.messages or messages,
            cursor=entry.cursor,
        )
        return entry.cursor

    def covered(self, session: str, *, by_model: bool = False) -> list[Range]:
        """Return the ranges of a session's messages that are archived, or a model has condensed."""
        unread = self._unread(session) if by_model else frozenset()
        return merged(
            holding.messages
            for holding in self.holdings(session)
            if (holding.cursor, holding.messages) not in unread
        )

    def _unread(self, session: str) -> frozenset[tuple[int, Range | None]]:
        return frozenset(
            (entry.cursor, entry.messages)
            for entry in self._current().entries
            if entry.is_unread and entry.session == session
        )

    def holdings(self, session: str) -> list[Holding]:
        """Return the archived message ranges of a session, from archive lines and commits.

        A line that has since been lost from the file is still on record in the log, so its messages
        aren't consolidated a second time.
        """
        return self.all_holdings().get(session, [])

    def all_holdings(self) -> Mapping[str, list[Holding]]:
        """Return the `holdings` of every session in the archive, by session."""
        snapshot, recorded = self._current(), self._committed_holdings()
        if self._holdings[:2] != (snapshot, recorded):
            found: dict[str, dict[tuple[int, Range], Holding]] = {}
            for session, holding in (*_entry_holdings(snapshot), *recorded):
                known = found.setdefault(session, {})
                known.setdefault((holding.cursor, holding.messages), holding)
            lists = {session: list(known.values()) for session, known in found.items()}
            self._holdings = (snapshot, recorded, lists)
        return self._holdings[2]

    def undo_duplicates(self) -> int:
        """Undo this machine's commits for what another machine condensed too; return how many.

        After a sync the archive holds what both made of the same messages. The version of the
        machine whose name sorts first stays. Later changes are kept, and so is the archive's own
        line. A file is left alone if undoing would remove a line that another commit wrote as well.
        """
        commits = [*self._history.log()] if (duplicates := self._duplicates()) else []
        undone = {each for commit in commits for each in (commit.origin.undoes or "").split()}
        count = 0
        for entry in duplicates:
            commit_id = next((each.id for each in commits if self._added_entry(each, entry)), None)
            if commit_id and commit_id not in undone:
                with suppress(ConflictError, UsageError):  # a later sync may succeed
                    count += self._undo_duplicate(commit_id, commits)
        return count

    def _duplicates(self) -> list[ArchiveEntry]:
        """Return this machine's entries that a machine sorting before it has made as well."""
        entries = [entry for entry in self.entries() if entry.session]
        made = {_duplicate_key(entry) for entry in entries if entry.origin < self._origin}
        return [e for e in entries if e.origin == self._origin and _duplicate_key(e) in made]

    def _undo_duplicate(self, commit_id: str, commits: Sequence[Commit]) -> bool:
        """Undo a commit, except in files where that removes lines other commits wrote too."""
        plans: list[Change] = []
        self._history.undo(commit_id, actor=Actor.SYNC, sink=plans.append)
        planned = plans[0]
        gone = {
            path: _lines(planned.known[path]) - _lines(planned.edits[path])
            for path in planned.edits
        }
        for commit in commits:
            if commit.id != commit_id and not commit.merged:
                for path in gone.keys() & {change.path for change in commit.paths}:
                    if gone[path] & self._lines_added(path, commit):
                        del gone[path]
        paths = () if len(gone) == len(planned.edits) else tuple(gone)
        return (
            bool(gone) and self._history.undo(commit_id, paths=paths, actor=Actor.SYNC) is not None
        )

    def _lines_added(self, path: str, commit: Commit) -> set[bytes]:
        def at(rev: str | None) -> set[bytes]:
            with suppress(NotFoundError):
                return _lines(self._history.read(path, rev)) if rev else set()
            return set()

        return at(commit.id) - at(commit.parent)

    def _added_entry(self, commit: Commit, entry: ArchiveEntry) -> bool:
        """Return whether a commit added this entry; another machine's may have the same cursor."""
        recorded_origin = commit.origin.session, commit.origin.messages, commit.origin.cursor
        if recorded_origin != (entry.session, entry.messages, entry.cursor):
            return False
        return entry in read_snapshot([(ARCHIVE, self._history.read(ARCHIVE, commit.id))]).entries

    def problems(self) -> tuple[BadLine, ...]:
        """Return the lines that can't be parsed; they stay in the file as they are."""
        return self._current().bad

    def migrate(self) -> int:
        """Convert an old HISTORY.md into archive entries, once, and return how many were made.

        A copy stays in ``HISTORY.md.bak``. If another program wrote an archive as well, only blocks
        that it lacks are converted.
        """
        if self._migrated(self._read):
            return 0
        with self._history.change(
            Actor.IMPORT, "The old HISTORY.md becomes the archive; a copy is in HISTORY.md.bak."
        ) as change:
            return self._stage_migration(change)

    def reword(self, change: Change, reword: Callable[[str], str]) -> int:
        """Apply `reword` to the texts of all entries in a change; return how many changed."""
        count = 0
        for path in (*self._year_files(), ARCHIVE):
            data = change.read(path) or b""
            lines = data.split(b"\n")
            for record in parse_records(data, path)[0]:
                new = _reworded(record.value, reword)
                if new != record.value:
                    lines[record.number - 1] = json.dumps(new, ensure_ascii=False).encode()
                    count += 1
            if lines != data.split(b"\n"):
                self._write(change, path, b"\n".join(lines))
        return count

    def remove(self, change: Change, sessions: frozenset[str]) -> int:
        """Remove the entries of deleted sessions in a running change; return how many."""
        gone: list[ArchiveEntry] = []
        for path in (*self._year_files(), ARCHIVE):
            data = change.read(path) or b""
            found = {n: entry for n, entry in _entries_in(data, path) if entry.session in sessions}
            if found:
                gone += found.values()
                self._write_or_delete(change, path, _without_lines(data, found))
        for path in self.shown() if gone else ():
            old = _text(change.read(path))
            text = reduce(lambda text, entry: text.replace(as_block(entry), "", 1), gone, old)
            if text != old:
                self._write_or_delete(change, path, _bytes(text))
        return len(gone)

    def _write_or_delete(self, change: Change, path: str, data: bytes) -> None:
        change.put(path, data if data.strip() else None, over=change.before(path))

    def shown(self) -> list[str]:
        """Return the paths of the files that show the archive to people."""
        found = self.workspace.memory.glob("HISTORY*.md")
        return sorted(f"memory/{file.name}" for file in found if file.is_file())

    def compact(
        self, change: Change, keep_after: int | Mapping[str, int], keep: int = KEPT_ENTRIES
    ) -> int:
        """Move old entries out of the working files into one file per year; return how many moved.

        Nothing is dropped. Only entries up to `keep_after` move (a reader hasn't seen the later
        ones), never the newest `keep`, and only once enough have accumulated. Coverage and cursors
        still count the moved entries.
        """
        data = change.read(ARCHIVE) or b""
        known = list(_entries_in(data, ARCHIVE))
        old = known[: max(0, len(known) - keep)]
        movable = {n: e for n, e in old if e.cursor <= _cursor_for(keep_after, e.origin)}
        if len(movable) <= keep // 5:
            return 0
        lines, shown = data.split(b"\n"), _text(change.read(PROJECTION))
        years: dict[str, tuple[bytes, str]] = {}
        for number, entry in movable.items():
            year = entry.timestamp[:4] if entry.timestamp[:4].isdecimal() else "undated"
            moved, text = years.get(year, (b"", ""))
            block = as_block(entry)
            if block and block in shown:
                shown = shown.replace(block, "", 1)
                text += block
            years[year] = (moved + lines[number - 1] + b"\n", text)
        self._write(change, ARCHIVE, _without_lines(data, movable))
        self._write(change, PROJECTION, _bytes(shown))
        for year, (moved, text) in years.items():
            self._write_year(change, year, moved, text)
        return len(movable)

    def _write_year(self, change: Change, year: str, lines: bytes, text: str) -> None:
        path = f"memory/history-{year}.jsonl"
        data = change.read(path) or b""
        gap = b"" if not data or data.endswith(b"\n") else b"\n"
        self._write(change, path, data + gap + lines)
        if text:
            path = f"memory/HISTORY-{year}.md"
            self._write(change, path, _bytes(with_block(_text(change.read(path)), text)))

    def _write(self, change: Change, path: str, data: bytes) -> None:
        """Write a file unless somebody else has changed it since it was read."""
        change.put(path, data, over=change.before(path))

    def _restage(self, change: Change) -> None:
        """Renumber and re-add the staged entries, under the lock, if the archive has grown."""
        staged = self._staged.pop(change, None)
        if staged is None or all(self._read(path) == data for path, data in staged.base.items()):
            return
        if change.expected.keys() & staged.base.keys():
            raise ConflictError(
                "The archive was changed by somebody else meanwhile.",
                "Nothing was written. Try again.",
                paths=(ARCHIVE,),
            )
        data = {path: self._read(path) for path in staged.base}

        def read(path: str) -> bytes | None:
            return data[path] if path in data else self._read(path)

        for entry in staged.entries:
            later = replace(entry, cursor=self._next_cursor(read))
            data[ARCHIVE] = add_record(data[ARCHIVE] or b"", to_record(later))
            data[PROJECTION] = self._projected(read, later)
            change.origin = replace(change.origin, cursor=later.cursor)
        for path, grown in data.items():
            change.replace(path, grown)

    def _projected(self, read: _Reader, entry: ArchiveEntry) -> bytes:
        """Return HISTORY.md with an archived entry added; rebuild it if it is missing."""
        shown = read(PROJECTION)
        if shown is not None:
            return _bytes(with_block(_text(shown), as_block(entry)))
        entries = (entry for _, entry in _entries_in(read(ARCHIVE) or b"", ARCHIVE))
        return _bytes("".join(map(as_block, entries)))

    def _next_cursor(self, read: _Reader) -> int:
        known = [entry.cursor for entry in self._snapshot(read).entries]
        known += self._cursors.seen().values()
        known += [holding.cursor for _, holding in self._committed_holdings()]
        return max(known, default=0) + 1

    def _migrated(self, read: _Reader) -> bool:
        if not (read(PROJECTION) or b"").strip():
            return True
        if any(read(path) for path in (ARCHIVE, *self._year_files())):
            return not self._old_blocks(read)
        # An archive that has existed and is gone is a loss, not an old workspace.
        return next(iter(self._history.log(ARCHIVE, limit=1)), None) is not None

    def _old_blocks(self, read: _Reader) -> list[OldBlock]:
        """Return the blocks of an old HISTORY.md that the archive lacks; none if both are ours."""
        entries = self._snapshot(read).entries
        if any(entry.origin for entry in entries):
            return []
        known = {_collapsed(entry.content) for entry in entries}
        old = files.text_of(read(PROJECTION))
        blocks = parse_old_history(old, self._modified(PROJECTION))
        return [block for block in blocks if _collapsed(block.content) not in known]

    def _stage_migration(self, change: Change) -> int:
        if self._migrated(change.read):
            return 0
        old = change.read(PROJECTION) or b""
        blocks = self._old_blocks(change.read)
        shown = _text(old)
        for entry in self._snapshot(change.read).entries:
            if _collapsed(entry.content) not in _collapsed(shown):
                shown = with_block(shown, as_block(entry))
        self._write(change, PROJECTION, _bytes(shown))
        change.write(self._free_backup(change), old, expecting=None)
        data = change.read(ARCHIVE) or b""
        for cursor, block in enumerate(blocks, self._next_cursor(change.read)):
            entry = ArchiveEntry(
                cursor, block.timestamp, block.content, origin=self._origin, raw=block.raw
            )
            data = add_record(data, to_record(entry))
        self._write(change, ARCHIVE, data)
        return len(blocks)

    def _free_backup(self, change: Change) -> str:
        path, number = f"{PROJECTION}.bak", 1
        while change.read(path) is not None:
            number += 1
            path = f"{PROJECTION}.bak{number}"
        return path

    def _modified(self, path: str) -> str:
        status = files.file_status(self.workspace, path)
        seconds = time() if status is None else status.st_mtime
        return datetime.fromtimestamp(seconds).astimezone().strftime(_TIME)

    def _read(self, path: str) -> bytes | None:
        return files.read_if_there(self.workspace, path)

    def _year_files(self) -> list[str]:
        found = self.workspace.memory.glob("history-*.jsonl")
        return sorted(f"memory/{file.name}" for file in found if file.is_file())

    def _current(self) -> Snapshot:
        """Return the entries in the files, reread only if a file has changed since last time."""
        paths = (*self._year_files(), ARCHIVE)
        state = tuple((path, self._status(path)) for path in paths)
        if self._seen is None or self._seen[0] != state:
            self._seen = (state, self._snapshot(self._read))
        return self._seen[1]

    def _status(self, path: str) -> tuple[int, ...]:
        found = files.file_status(self.workspace, path)
        return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size) if found else ()

    def _snapshot(self, read: _Reader) -> Snapshot:
        data = [(path, read(path) or b"") for path in (*self._year_files(), ARCHIVE)]
        state = sha256(b"".join(sha256(part).digest() for _, part in data)).digest()
        if self._cached is None or self._cached[0] != state:
            self._cached = (state, read_snapshot(data))
        return self._cached[1]

    def _committed_holdings(self) -> tuple[tuple[str, Holding], ...]:
        """Return the holdings recorded in commits, reading on from where the last call ended."""
        seen, found = self._commits
        head = self._history.head()
        if head is None or head == seen:
            return found
        fresh = []
        for commit in self._history.log():
            if commit.id == seen:
                break
            origin = commit.origin
            if commit.actor in _ARCHIVISTS and origin.session and origin.messages and origin.cursor:
                fresh.append((origin.session, Holding(origin.cursor, origin.messages)))
        self._commits = (head, (*found, *fresh))
        return self._commits[1]


def _entries_in(data: bytes, path: str) -> Iterator[tuple[int, ArchiveEntry]]:
    for record in parse_records(data, path)[0]:
        if (entry := read_entry(record.value)) is not None:
            yield record.number, entry


def _without_lines(data: bytes, numbers: Container[int]) -> bytes:
    """Return a file without the lines of these numbers, counted from 1."""
    return b"\n".join(line for n, line in enumerate(data.split(b"\n"), 1) if n not in numbers)


def _entry_holdings(snapshot: Snapshot) -> Iterator[tuple[str, Holding]]:
    for entry in snapshot.entries:
        if entry.session is not None and entry.messages is not None:
            yield entry.session, Holding(entry.cursor, entry.messages, dict(entry.dropped))


def _lines(data: bytes | None) -> set[bytes]:
    return {line.strip() for line in (data or b"").splitlines()} - {b""}


def _duplicate_key(entry: ArchiveEntry) -> tuple[object, ...]:
    """Return the key that entries made of the same messages share."""
    return entry.session, entry.messages, entry.timestamp, entry.verbatim, entry.raw


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _cursor_for(after: int | Mapping[str, int], origin: str) -> int:
    return after if isinstance(after, int) else after.get(origin, 0)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _reworded(value: Mapping[str, Any], reword: Callable[[str], str]) -> dict[str, Any]:
    new = dict(value)
    if isinstance(content := value.get("content"), str):
        new["content"] = reword(content)
    if texts := texts_of(value.get(NOT_GROUNDED)):
        new[NOT_GROUNDED] = [said for each in texts if (said := reword(each))]
    return new
