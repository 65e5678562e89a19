"""The archive: what was said, condensed, line by line in ``memory/history.jsonl``.

An entry is known by (origin, cursor): `origin` names the machine that wrote it, so archives of
several machines merge by union, and a cursor is above every other that its writer had seen. There
is no cursor file to lose; the next cursor follows from the lines, from what Dream has read and
from the log. ``HISTORY.md`` holds the same entries for people and grep.
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
    Book,
    Holding as Holding,
    OldBlock,
    as_block,
    is_record as is_record,
    machine_name,
    parse_old_history,
    read_book,
    read_entry,
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
_Holdings = tuple["Book | None", tuple[tuple[str, "Holding"], ...], Mapping[str, "list[Holding]"]]
_Reader = Callable[[str], "bytes | None"]


@dataclass(slots=True)
class _Staged:
    """The additions of a running change, and the files as they were when it began."""

    base: dict[str, bytes | None]
    entries: list[ArchiveEntry] = field(default_factory=list)


class Archive:
    """Reads the archive, and adds to it inside a change that somebody else makes."""

    def __init__(self, workspace: Workspace, history: History, origin: str | None = None) -> None:
        self.workspace = workspace
        self._history = history
        self._origin = origin or machine_name()
        self._cursors = Cursors(workspace, history)
        self._cached: tuple[bytes, Book] | None = None
        self._seen: tuple[object, Book] | None = None
        self._holdings: _Holdings = (None, (), {})
        self._commits: tuple[str | None, tuple[tuple[str, Holding], ...]] = (None, ())
        self._staged: WeakKeyDictionary[Change, _Staged] = WeakKeyDictionary()
        history.add_companion(self._settle)

    @property
    def origin(self) -> str:
        """The name of this machine."""
        return self._origin

    def entries(self, after: int | Mapping[str, int] = 0) -> list[ArchiveEntry]:
        """All entries behind a cursor for all origins, or the last seen of each, oldest first."""
        return [
            entry for entry in self._now().entries if entry.cursor > _limit(after, entry.origin)
        ]

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
        verbatim: bool = False,
        dropped: Iterable[tuple[int, str]] = (),
        not_grounded: Iterable[str] = (),
    ) -> int:
        """Add one entry to a running change, to the archive and to HISTORY.md; its cursor.

        The change's origin gets the cursor, and session and messages where it has none. The cursor
        is above that of every entry there is. Where another process adds one before the change is
        applied, `change.origin.cursor` holds the final one afterwards.

        Args:
            change: The change; archive, facts and entries become one commit.
            content: The condensed text, or for `raw` the whole one. Empty where all was dropped.
            session: The session that it is about.
            messages: Which of its messages the entry accounts for.
            timestamp: The time of the content, as ``YYYY-MM-DD HH:MM`` in the user's zone.
            raw: No model could condense it.
            verbatim: No model was asked; one may be later, see `covered`.
            dropped: Messages of the range that were left out, each with its reason.
            not_grounded: Lines that a model wanted to write and nobody had said.
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
        """Which messages of a session are archived, or were given to a model; see `holdings`."""
        verbatim = self._verbatim(session) if by_model else frozenset()
        return merged(
            holding.messages
            for holding in self.holdings(session)
            if (holding.cursor, holding.messages) not in verbatim
        )

    def _verbatim(self, session: str) -> frozenset[tuple[int, Range | None]]:
        return frozenset(
            (entry.cursor, entry.messages)
            for entry in self._now().entries
            if entry.verbatim and entry.session == session
        )

    def holdings(self, session: str) -> list[Holding]:
        """The archived messages of a session, by the lines and by the commits made of them.

        A line that was lost from the file since is still on record in the log, so what it stood
        for isn't consolidated a second time.
        """
        return self.all_holdings().get(session, [])

    def all_holdings(self) -> Mapping[str, list[Holding]]:
        """The `holdings` of every session that is in the archive, by session."""
        book, recorded = self._now(), self._recorded()
        if self._holdings[:2] != (book, recorded):
            found: dict[str, dict[tuple[int, Range], Holding]] = {}
            for session, holding in (*_held(book), *recorded):
                known = found.setdefault(session, {})
                known.setdefault((holding.cursor, holding.messages), holding)
            lists = {session: list(known.values()) for session, known in found.items()}
            self._holdings = (book, recorded, lists)
        return self._holdings[2]

    def take_back_doubled(self) -> int:
        """Undo what this machine condensed and another has condensed as well; how many times.

        A sync brings together what both made of the same messages. That of the machine whose name
        comes first stays; what was changed since stays too, and so does the archive's own line. A
        file from which a line would go that others wrote as well is left as it is.
        """
        commits = [*self._history.log()] if (doubled := self._doubled()) else []
        undone = {each for commit in commits for each in (commit.origin.undoes or "").split()}
        count = 0
        for entry in doubled:
            made_by = next((each.id for each in commits if self._added(each, entry)), None)
            if made_by and made_by not in undone:
                with suppress(ConflictError, UsageError):  # some later sync may do it
                    count += self._take_back(made_by, commits)
        return count

    def _doubled(self) -> list[ArchiveEntry]:
        """The entries of this machine of which a machine that comes first has made one as well."""
        entries = [entry for entry in self.entries() if entry.session]
        made = {_about(entry) for entry in entries if entry.origin < self._origin}
        return [e for e in entries if e.origin == self._origin and _about(e) in made]

    def _take_back(self, made_by: str, commits: Sequence[Commit]) -> bool:
        """Undo a commit, but for files from which lines would go that other commits wrote too."""
        plans: list[Change] = []
        self._history.undo(made_by, actor=Actor.SYNC, sink=plans.append)
        planned = plans[0]
        gone = {
            path: _lines(planned.known[path]) - _lines(planned.edits[path])
            for path in planned.edits
        }
        for commit in commits:
            if commit.id != made_by and not commit.merged:
                for path in gone.keys() & {change.path for change in commit.paths}:
                    if gone[path] & self._written(path, commit):
                        del gone[path]
        paths = () if len(gone) == len(planned.edits) else tuple(gone)
        return bool(gone) and self._history.undo(made_by, paths=paths, actor=Actor.SYNC) is not None

    def _written(self, path: str, commit: Commit) -> set[bytes]:
        """The lines that a commit added to a file."""

        def at(rev: str | None) -> set[bytes]:
            with suppress(NotFoundError):
                return _lines(self._history.read(path, rev)) if rev else set()
            return set()

        return at(commit.id) - at(commit.parent)

    def _added(self, commit: Commit, entry: ArchiveEntry) -> bool:
        """True if a commit added an entry; another machine's may have the same cursor."""
        told = commit.origin.session, commit.origin.messages, commit.origin.cursor
        if told != (entry.session, entry.messages, entry.cursor):
            return False
        return entry in read_book([(ARCHIVE, self._history.read(ARCHIVE, commit.id))]).entries

    def problems(self) -> tuple[BadLine, ...]:
        """Lines that can't be used; they stay in the file as they are."""
        return self._now().bad

    def migrate(self) -> int:
        """Make archive entries of an old HISTORY.md, once; a copy stays in ``HISTORY.md.bak``.

        Beside an archive that another program wrote, of what that doesn't say. Gives how many were
        made.
        """
        if self._migrated(self._read):
            return 0
        with self._history.change(
            Actor.IMPORT, "The old HISTORY.md becomes the archive; a copy is in HISTORY.md.bak."
        ) as change:
            return self._stage_migration(change)

    def reword(self, change: Change, reword: Callable[[str], str]) -> int:
        """Change in a running change what entries say; how many are changed."""
        count = 0
        for path in (*self._years(), ARCHIVE):
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
        """Take out in a running change what is said of sessions that are gone; how many entries."""
        gone: list[ArchiveEntry] = []
        for path in (*self._years(), ARCHIVE):
            data = change.read(path) or b""
            found = {n: entry for n, entry in _entries_in(data, path) if entry.session in sessions}
            if found:
                gone += found.values()
                self._put(change, path, _without_lines(data, found))
        for path in self.shown() if gone else ():
            old = _text(change.read(path))
            text = reduce(lambda text, entry: text.replace(as_block(entry), "", 1), gone, old)
            if text != old:
                self._put(change, path, _bytes(text))
        return len(gone)

    def _put(self, change: Change, path: str, data: bytes) -> None:
        change.put(path, data if data.strip() else None, over=change.before(path))

    def shown(self) -> list[str]:
        """The files that show the archive to people."""
        found = self.workspace.memory.glob("HISTORY*.md")
        return sorted(f"memory/{file.name}" for file in found if file.is_file())

    def compact(
        self, change: Change, keep_after: int | Mapping[str, int], keep: int = KEPT_ENTRIES
    ) -> int:
        """Keep the working files short: move old entries into a file a year; how many were moved.

        Nothing is dropped, and what a reader hasn't seen isn't moved: only entries up to
        `keep_after`, and of those not the newest `keep`, once it is worth the while. Coverage and
        cursors go on to count the moved ones.
        """
        data = change.read(ARCHIVE) or b""
        known = list(_entries_in(data, ARCHIVE))
        old = known[: max(0, len(known) - keep)]
        movable = {n: e for n, e in old if e.cursor <= _limit(keep_after, e.origin)}
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

    def _settle(self, change: Change) -> None:
        """Under the lock: where the archive has grown meanwhile, add to what it is now."""
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
        """HISTORY.md with an entry, which is in the archive already; made again if it's gone."""
        shown = read(PROJECTION)
        if shown is not None:
            return _bytes(with_block(_text(shown), as_block(entry)))
        entries = (entry for _, entry in _entries_in(read(ARCHIVE) or b"", ARCHIVE))
        return _bytes("".join(map(as_block, entries)))

    def _next_cursor(self, read: _Reader) -> int:
        known = [entry.cursor for entry in self._book(read).entries]
        known += self._cursors.seen().values()
        known += [holding.cursor for _, holding in self._recorded()]
        return max(known, default=0) + 1

    def _migrated(self, read: _Reader) -> bool:
        if not (read(PROJECTION) or b"").strip():
            return True
        if any(read(path) for path in (ARCHIVE, *self._years())):
            return not self._old_blocks(read)
        # An archive that was there once and is gone is a loss, not an old workspace.
        return next(iter(self._history.log(ARCHIVE, limit=1)), None) is not None

    def _old_blocks(self, read: _Reader) -> list[OldBlock]:
        """Entries of an old HISTORY.md that the archive lacks; nothing where both are ours."""
        entries = self._book(read).entries
        if any(entry.origin for entry in entries):
            return []
        known = {_squeezed(entry.content) for entry in entries}
        old = files.text_of(read(PROJECTION))
        blocks = parse_old_history(old, self._modified(PROJECTION))
        return [block for block in blocks if _squeezed(block.content) not in known]

    def _stage_migration(self, change: Change) -> int:
        if self._migrated(change.read):
            return 0
        old = change.read(PROJECTION) or b""
        blocks = self._old_blocks(change.read)
        shown = _text(old)
        for entry in self._book(change.read).entries:
            if _squeezed(entry.content) not in _squeezed(shown):
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

    def _years(self) -> list[str]:
        found = self.workspace.memory.glob("history-*.jsonl")
        return sorted(f"memory/{file.name}" for file in found if file.is_file())

    def _now(self) -> Book:
        """The entries in the files; read only where one was changed since the last look."""
        paths = (*self._years(), ARCHIVE)
        state = tuple((path, self._status(path)) for path in paths)
        if self._seen is None or self._seen[0] != state:
            self._seen = (state, self._book(self._read))
        return self._seen[1]

    def _status(self, path: str) -> tuple[int, ...]:
        found = files.file_status(self.workspace, path)
        return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size) if found else ()

    def _book(self, read: _Reader) -> Book:
        data = [(path, read(path) or b"") for path in (*self._years(), ARCHIVE)]
        state = sha256(b"".join(sha256(part).digest() for _, part in data)).digest()
        if self._cached is None or self._cached[0] != state:
            self._cached = (state, read_book(data))
        return self._cached[1]

    def _recorded(self) -> tuple[tuple[str, Holding], ...]:
        """The archived messages by what commits say, read on from where the last look ended."""
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
    """The entries of a file, each with the number of its line."""
    for record in parse_records(data, path)[0]:
        if (entry := read_entry(record.value)) is not None:
            yield record.number, entry


def _without_lines(data: bytes, numbers: Container[int]) -> bytes:
    """The lines of a file but for some, which are counted from 1."""
    return b"\n".join(line for n, line in enumerate(data.split(b"\n"), 1) if n not in numbers)


def _held(book: Book) -> Iterator[tuple[str, Holding]]:
    for entry in book.entries:
        if entry.session is not None and entry.messages is not None:
            yield entry.session, Holding(entry.cursor, entry.messages, dict(entry.dropped))


def _lines(data: bytes | None) -> set[bytes]:
    """The lines of a file that hold anything."""
    return {line.strip() for line in (data or b"").splitlines()} - {b""}


def _about(entry: ArchiveEntry) -> tuple[object, ...]:
    """What two entries have in common that are of the same messages."""
    return entry.session, entry.messages, entry.timestamp, entry.verbatim, entry.raw


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _limit(after: int | Mapping[str, int], origin: str) -> int:
    return after if isinstance(after, int) else after.get(origin, 0)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _reworded(value: Mapping[str, Any], reword: Callable[[str], str]) -> dict[str, Any]:
    """A line of the archive with its texts changed."""
    new = dict(value)
    if isinstance(content := value.get("content"), str):
        new["content"] = reword(content)
    if texts := texts_of(value.get(NOT_GROUNDED)):
        new[NOT_GROUNDED] = [said for each in texts if (said := reword(each))]
    return new
