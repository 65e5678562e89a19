"""The newer line: for a line that was said, the later one that tells what holds instead.

Pairs are derived from lines and their dates, in the cache: they are in no commit, and they are
built in the background, file by file, from what changed. A line is known by its text, so that it
may stand in several places; it is an older one if something newer was said after the last time that
it was. A line that is forgotten, purged, changed or hidden is no newer line: each one is read again
where it stands before it is shown.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbtui.derived import DerivedDatabase
from kbtui.errors import KbtuiError
from kbtui.freed import give_back
from kbtui.knowledge.entries.entry import Entry, parse_entry
from kbtui.listeners import Listeners
from kbtui.memory.comparing.corrections import corrects as corrects
from kbtui.memory.comparing.line import statement_of, with_subject
from kbtui.memory.comparing.same_thing import (
    MAX_LENGTH,
    about_the_same as about_the_same,
    is_newer as is_newer,
    may_tell,
    standing as standing,
)
from kbtui.memory.recall.said import Said, SaidTimes
from kbtui.memory.records.journal import day_of, without_dates
from kbtui.offline.borrowed import sentences_with_owner
from kbtui.offline.language import significant_terms
from kbtui.offline.lines import lines_of
from kbtui.search.results import Hit, NewerLine as NewerLine
from kbtui.text import clean_line, fold
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY

if TYPE_CHECKING:
    import sqlite3

    from kbtui.history.history import History
    from kbtui.sessions.store import SessionMessage, SessionStore
    from kbtui.workspace.layout import Workspace

_LOG = logging.getLogger(__name__)
_IDENTITY = "newer 2"
_SCHEMA = (
    "CREATE TABLE files (path TEXT PRIMARY KEY, state TEXT)",
    """
    CREATE TABLE lines (
        id INTEGER PRIMARY KEY, path TEXT, line INTEGER, message INTEGER, text TEXT, told TEXT,
        key TEXT, day TEXT, moment REAL
    )
    """,
    "CREATE INDEX lines_of_file ON lines (path)",
    "CREATE INDEX lines_by_key ON lines (key)",
    "CREATE INDEX lines_by_moment ON lines (moment)",
    "CREATE TABLE terms (term TEXT, line INTEGER, PRIMARY KEY (term, line)) WITHOUT ROWID",
    "CREATE INDEX terms_of_line ON terms (line)",
    "CREATE TABLE pairs (older INTEGER, newer INTEGER, PRIMARY KEY (older, newer)) WITHOUT ROWID",
    "CREATE INDEX pairs_by_newer ON pairs (newer)",
)
_KEY_LETTERS = 5  # by which forms of a word are found: `same_thing` compares them
_MAX_CANDIDATES = 60
SOON_SECONDS = 3 * 86_400.0
"""Within this time a short correction is of what was said before it."""
_CLOSE_SECONDS = 2.0
_MOST_COMMON = 400  # lines with a term, above which it tells nothing
_CATCH_UP_SECONDS = 1.5  # mostly for one or two files, of which each takes a hundredth of it
_REST_SECONDS = 0.02  # for what a command doesn't show, where much is left
_FEW_FILES = 16  # that changed, of which all are waited for
_AHEAD = " ahead "  # between a file's state, and the day on which it had a line of a time to come
_LOOK_SECONDS = 30.0  # conversations change without a commit
_BATCH = 200
_MAX_CHAIN = 20
_INDEX = "INDEX.md"
_MEMORY = "memory/"
_SESSIONS = "sessions/"


class Sight(Protocol):
    """What somebody may see, as far as newer lines need it."""

    def hides(self, path: str) -> bool:
        """Return whether a file is hidden."""

    def text(self, path: str) -> str:
        """Return the text of a file that isn't hidden."""

    @property
    def sessions(self) -> _SeenSessions:
        """The conversations."""


class _SeenSessions(Protocol):
    def messages(self, ref: str) -> Sequence[SessionMessage]:
        """Return the messages of a conversation, without what is hidden."""


class _Line(NamedTuple):
    """A statement of a file: `told` is its text with what it is about, for comparison."""

    line: int
    message: int
    text: str
    told: str
    said: Said


class Newer:
    """The pairs of one workspace; thread-safe."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        sessions: SessionStore,
        now: Callable[[], datetime],
        yields: Callable[[threading.Event], None] = lambda _stop: None,
    ) -> None:
        """Create it; nothing is read yet.

        Args:
            workspace: The workspace.
            history: Its history.
            sessions: Its conversations.
            now: The clock.
            yields: Waits while the foreground is busy, or until an event is set.
        """
        self.said = SaidTimes(history, sessions, now)
        self._workspace = workspace
        self._history = history
        self._sessions = sessions
        self._yields = yields
        self._database = DerivedDatabase(workspace.cache / "newer.sqlite", _SCHEMA, _IDENTITY)
        self._updating = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: Listeners[[]] = Listeners()

    # Keeping up ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread that keeps up with what changes."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="kbtui-newer", daemon=True)
            self._thread.start()

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` whenever files were read, in whatever thread; return an unsubscriber."""
        return self._listeners.add(listener)

    def wake(self) -> None:
        """Have the thread look for changes."""
        self._wake.set()

    def close(self) -> None:
        """Stop the thread, and close the file."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._database.close()

    def forget(self, paths: Iterable[str]) -> None:
        """Drop what is known of files, which is found again where it still stands."""
        wanted = list(paths)

        def work(db: sqlite3.Connection) -> None:
            for path in wanted:
                _drop(db, path)

        self._database.run(work, write=True)
        self.wake()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self.update()
            except (KbtuiError, OSError) as error:
                _LOG.warning("Newer lines: %s", error)
            except Exception:  # noqa: BLE001 - the thread must survive a damaged file
                _LOG.exception("Newer lines")
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()

    def catch_up(self, paths: Iterable[str] = ()) -> None:
        """Read what changed, as far as a short command may wait for it.

        Where more than a few files have, these are waited for, and the memory.
        """
        if self._thread is None:
            self.update(_CATCH_UP_SECONDS, frozenset(paths))

    def update(self, seconds: float | None = None, first: Collection[str] = ()) -> int:
        """Read the files that changed, and return their number.

        Args:
            seconds: After how long to leave the rest for later; None: never.
            first: The files to read before all others.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        is_rest = False
        with self._updating:
            there = self._states()
            known = self._database.run(self._known_states)
            gone = known.keys() - there.keys()
            if gone:
                self._database.run(lambda db: [_drop(db, path) for path in gone], write=True)
            changed = [path for path, state in there.items() if known.get(path) != state]
            changed.sort(key=lambda path: (path not in first, _reading_order(path)))
            done = 0
            for path in changed:
                is_shown = path in first or path.startswith(_MEMORY) or len(changed) <= _FEW_FILES
                if deadline is not None and not is_shown and not is_rest:
                    # From now, or finding out what changed would leave no time for any.
                    is_rest, deadline = True, min(deadline, time.monotonic() + _REST_SECONDS)
                late = deadline is not None and time.monotonic() > deadline
                if late:
                    left = len(changed) - done
                    _LOG.warning("Newer lines: %d files had to be left for the next time.", left)
                if self._stop.is_set() or late:
                    break
                self._read_file(path, there[path])
                if seconds is None:
                    self._yields(self._stop)
                done += 1
        if done:
            self._listeners.tell()
        if done and seconds is None:
            give_back()  # what long conversations took
        return done

    def _states(self) -> dict[str, str]:
        """Return the files that may hold statements, each with what changes as it does."""
        found: dict[str, str] = {}
        head = self._history.head()
        if head is not None:
            found = {
                path: blob for path, blob in self._history.tree(head).items() if _may_hold(path)
            }
        with suppress(OSError):
            for file in self._workspace.sessions.iterdir():
                if file.suffix == ".jsonl":
                    status = file.stat()
                    found[f"{_SESSIONS}{file.name}"] = f"{status.st_size} {status.st_mtime_ns}"
        return found

    def _known_states(self, db: sqlite3.Connection) -> dict[str, str]:
        """Return what was read of which state, "" of files with a line of a time yet to come.

        Those were read while the clock was ahead, and what it told of them doesn't hold; or they
        name that time themselves, which is found out once a day.
        """
        now = self.said.now()
        known = dict(db.execute("SELECT path, state FROM files").fetchall())
        ahead = db.execute(
            "SELECT DISTINCT path FROM lines WHERE moment > ?", (now.timestamp() + 1,)
        ).fetchall()
        for (path,) in ahead:
            known[path], _, day = known.get(path, "").partition(_AHEAD)
            if day != now.date().isoformat():
                known[path] = ""
        return known

    def _read_file(self, path: str, state: str) -> None:
        """Replace what is known of a file, and find the pairs of its lines."""
        lines: Sequence[_Line] = ()
        with suppress(KbtuiError):
            lines = tuple(self._session(path) if path.startswith(_SESSIONS) else self._note(path))
        lines = tuple(each for each in lines if may_tell(each.told))
        now = self.said.now()
        if any(each.said.moment > now.timestamp() + 1 for each in lines):
            state = f"{state}{_AHEAD}{now.date()}"

        def work(db: sqlite3.Connection) -> None:
            kept = _drop(db, path, besides=lines)
            db.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (path, state))
            for each in lines:
                if each not in kept:
                    _add(db, path, each)

        self._database.run(work, write=True)

    def _note(self, path: str) -> Iterator[_Line]:
        text = files.read_text(self._workspace, path)
        found = [each for each in lines_of(text) if len(each.text) <= MAX_LENGTH]
        said = self.said.of_lines(path, text, [each.first for each in found]) if found else {}
        if not said:
            return
        entry = parse_entry(path, text.encode("utf-8", "replace"))
        for each in found:
            if each.first in said:
                told = _told_of(entry, each.text)
                yield _Line(each.first, 0, each.text, told, said[each.first])

    def _session(self, path: str) -> Iterator[_Line]:
        for message in self._sessions.read(path.removeprefix(_SESSIONS).removesuffix(".jsonl")):
            if message.role != "user" or (said := self.said.of_message(message)) is None:
                continue
            for sentence, is_borrowed in sentences_with_owner(message.content):
                if not is_borrowed and len(sentence) <= MAX_LENGTH:
                    text = clean_line(sentence)
                    yield _Line(message.id, message.id, text, text, said)

    def said_in(self, path: str, text: str, numbers: Iterable[int]) -> dict[int, Said]:
        """Return when lines of a file were said, by their number from 1, where it is known."""
        return self.said.of_lines(path, text, numbers)

    # Asking -------------------------------------------------------------------------------------

    def of(self, text: str, sight: Sight) -> NewerLine | None:
        """Return the newest line that holds instead of one with this text; None if none does."""
        key = key_of(text)
        if not key:
            return None
        rows = self._database.run(lambda db: _chain(db, key))
        own = [row for row in rows if row.key == key and _is_seen(row, sight)]
        if not own:
            return None
        later = [row for row in rows if row.key != key and all(map(row.is_after, own))]
        seen = [row for row in later if _is_seen(row, sight)]
        newest = [row for row in seen if not any(other.is_after(row) for other in seen)]
        return newest[0].shown if newest else None

    def known(self, texts: Iterable[str]) -> list[str]:
        """Return those of some lines' texts that may be an older one's; this is fast."""
        keys = self._database.run(
            lambda db: {
                key for (key,) in db.execute("SELECT key FROM lines JOIN pairs ON older = id")
            }
        )
        return [text for text in texts if key_of(text) in keys] if keys else []

    def lines_in(self, text: str, sight: Sight) -> dict[int, NewerLine]:
        """Return the newer line of each older one in a file's text, by its first line's number."""
        lines = list(lines_of(text))
        known = set(self.known(each.text for each in lines))
        found = ((each.first, self.of(each.text, sight)) for each in lines if each.text in known)
        return {number: newer for number, newer in found if newer is not None}

    def with_newer(self, hits: Sequence[Hit], sight: Sight) -> tuple[Hit, ...]:
        """Return hits with the newer line of what each shows, where one is known and seen."""
        shown = [list(_shown_lines(hit)) for hit in hits]
        known = set(self.known(text for texts in shown for text in texts))
        if not known:
            return tuple(hits)
        found = {text: self.of(text, sight) for text in known}
        return tuple(
            replace(hit, newer=next(filter(None, map(found.get, texts)), None))
            for hit, texts in zip(hits, shown, strict=True)
        )

    def older(self, text: str, sight: Sight) -> list[NewerLine]:
        """Return the lines instead of which one with this text holds, newest first."""
        key = key_of(text)
        rows = self._database.run(lambda db: _before(db, key)) if key else []
        found = {row.key: row for row in sorted(rows, key=_moment) if row.key != key}
        return [
            row.shown
            for row in sorted(found.values(), key=_moment, reverse=True)
            if _is_seen(row, sight)
        ]


class _Row(NamedTuple):
    id: int
    path: str
    line: int
    message: int
    text: str
    key: str
    day: str
    moment: float

    def is_after(self, other: _Row) -> bool:
        """Return whether it was said later: within a file the lower line was."""
        if self.path == other.path:
            return self.line > other.line
        return self.moment > other.moment

    @property
    def shown(self) -> NewerLine:
        """The line for whoever shows it."""
        day = date.fromisoformat(self.day)
        session = _session_of(self.path)
        return NewerLine(self.path, self.line, self.text, day, self.moment, session)


def _moment(row: _Row) -> float:
    return row.moment


_COLUMNS = "id, path, line, message, text, key, day, moment"


def _chain(db: sqlite3.Connection, key: str) -> list[_Row]:
    """Return the lines with a key, and all that are newer than one, step by step."""
    return _walk(db, key, "newer", "older")


def _before(db: sqlite3.Connection, key: str) -> list[_Row]:
    """Return the lines with a key, and all that are older than one, step by step."""
    return _walk(db, key, "older", "newer")


def _walk(db: sqlite3.Connection, key: str, to: str, come: str) -> list[_Row]:
    found: dict[int, _Row] = {}
    keys = {key}
    fresh = [key]
    for _ in range(_MAX_CHAIN):
        rows = [
            _Row(*row)
            for each in fresh
            for row in db.execute(f"SELECT {_COLUMNS} FROM lines WHERE key = ?", (each,))  # noqa: S608
        ]
        found |= {row.id: row for row in rows}
        following = {
            str(other)
            for row in rows
            for (other,) in db.execute(
                f"SELECT key FROM pairs JOIN lines ON id = {to} WHERE {come} = ?",  # noqa: S608
                (row.id,),
            )
        }
        fresh = sorted(following - keys)
        keys |= following
        if not fresh:
            break
    return list(found.values())


def _is_seen(row: _Row, sight: Sight) -> bool:
    """Return whether a line still stands there, and may be seen."""
    try:
        session = _session_of(row.path)
        if session is not None:
            texts = [m.content for m in sight.sessions.messages(session) if m.id == row.message]
        elif sight.hides(row.path):
            return False
        else:
            texts = [sight.text(row.path)]
    except KbtuiError:
        return False
    wanted = clean_line(row.text)
    return any(wanted in clean_line(each) for each in texts)


def _session_of(path: str) -> str | None:
    is_session = path.startswith(_SESSIONS)
    return path.removeprefix(_SESSIONS).removesuffix(".jsonl") if is_session else None


def _shown_lines(hit: Hit) -> Iterator[str]:
    """Yield the lines of a hit: that of its match, then those that its snippet shows whole."""
    snippet = fold(clean_line(hit.snippet))
    lines = list(lines_of(hit.text, hit.lines[0]))
    yield from (each.text for each in lines if each.first <= hit.line <= each.last)
    yield from (each.text for each in lines if fold(each.text) in snippet)


def _may_hold(path: str) -> bool:
    """Return whether a recorded file has lines that somebody said."""
    is_note = path.endswith(".md") and not path.endswith(_INDEX)
    if path.startswith(_MEMORY):
        return is_note and (day_of(path) is not None or path == MEMORY)
    return is_note and path.startswith("knowledge/")


def _reading_order(path: str) -> tuple[int, str]:
    """Sort memory before entries before conversations, for what has no time for all."""
    return ((_MEMORY, "knowledge/", _SESSIONS).index(path[: path.index("/") + 1]), path)


def _told_of(entry: Entry, text: str) -> str:
    """Return a line as `with_subject`; lines of the memory and of decisions stand alone."""
    if not entry.is_entry or day_of(entry.path) is not None or entry.type == "decision":
        return text
    return with_subject(entry.title, text)


@lru_cache(maxsize=4_096)
def key_of(text: str) -> str:
    """Return by what a line is known: its words, without case, a leading order and dates."""
    return fold(statement_of(without_dates(clean_line(text)))).strip(" .!*-#")


def _terms_of(told: str) -> list[str]:
    return sorted({each[:_KEY_LETTERS] for each in significant_terms(told)})


# Writing ------------------------------------------------------------------------------------------


def _drop(db: sqlite3.Connection, path: str, besides: Sequence[_Line] = ()) -> set[_Line]:
    """Delete the lines of a file with their pairs, except some; return those that stay."""
    wanted = set(besides)
    kept: set[_Line] = set()
    rows = db.execute(
        "SELECT id, line, message, text, told, day, moment FROM lines WHERE path = ?", (path,)
    ).fetchall()
    for number, line, message, text, told, day, moment in rows:
        same = _Line(line, message, text, told, Said(date.fromisoformat(day), moment))
        if same in wanted and same not in kept:
            kept.add(same)
            continue
        db.execute("DELETE FROM lines WHERE id = ?", (number,))
        db.execute("DELETE FROM terms WHERE line = ?", (number,))
        db.execute("DELETE FROM pairs WHERE older = ? OR newer = ?", (number, number))
    db.execute("DELETE FROM files WHERE path = ?", (path,))
    return kept


def _add(db: sqlite3.Connection, path: str, line: _Line) -> None:
    """Add a line, and the pairs that it makes with others."""
    terms = _terms_of(line.told)
    number = db.execute(
        "INSERT INTO lines (path, line, message, text, told, key, day, moment)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            path,
            line.line,
            line.message,
            line.text,
            line.told,
            key_of(line.text),
            line.said.day.isoformat(),
            line.said.moment,
        ),
    ).lastrowid
    pairs = [
        (other, number) if is_before else (number, other)
        for other, is_before in _partners(db, path, line, terms)
    ]
    db.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?)", pairs)
    db.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?)", [(each, number) for each in terms])


def _partners(
    db: sqlite3.Connection, path: str, line: _Line, terms: Sequence[str]
) -> Iterator[tuple[int, bool]]:
    """Yield the lines that make a pair with one, and whether they were said before it."""
    telling = [each for each in terms if _count(db, each) <= _MOST_COMMON]
    if not telling:
        return
    rows = db.execute(
        """
        SELECT id, path, lines.line, told, moment, COUNT(*) AS shared
        FROM terms JOIN lines ON id = terms.line
        WHERE term IN (SELECT value FROM json_each(?))
        GROUP BY id ORDER BY shared DESC, moment DESC LIMIT ?
        """,
        (json.dumps(telling), _MAX_CANDIDATES),
    ).fetchall()
    is_told = False
    corrected: list[tuple[float, int, int, bool]] = []
    for number, other_path, other_line, told, moment, _shared in rows:
        is_before = _is_before((other_path, other_line, moment), path, line)
        later, earlier = (line.told, told) if is_before else (told, line.told)
        if is_newer(later, earlier):
            is_told |= is_before
            yield number, is_before
        elif is_before and line.said.moment - moment <= SOON_SECONDS and corrects(later, earlier):
            corrected.append((moment, other_line, number, other_path == path))
    if corrected and not is_told:
        yield _last_said(corrected), True


def _last_said(corrected: Sequence[tuple[float, int, int, bool]]) -> int:
    """Return which of the lines that a correction may mean was said last.

    They are given as when they were said, their line, number, and whether they stand in the file of
    the correction. A commit knows the second, a conversation less than that; of lines as close as
    this, those of one file have an order.
    """
    latest = max(corrected)[0]
    close = [each for each in corrected if latest - each[0] <= _CLOSE_SECONDS]
    return max([each for each in close if each[3]] or close)[2]


def _is_before(other: tuple[str, int, float], path: str, line: _Line) -> bool:
    """Return whether another line was said before one: within a file the upper line was."""
    other_path, other_line, moment = other
    if other_path == path:
        return other_line < line.line
    return moment <= line.said.moment


def _count(db: sqlite3.Connection, term: str) -> int:
    found = db.execute(
        "SELECT COUNT(*) FROM (SELECT 1 FROM terms WHERE term = ? LIMIT ?)",
        (term, _MOST_COMMON + 1),
    ).fetchone()
    return int(found[0])
