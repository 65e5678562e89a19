"""A SQLite cache of derived data, which may be deleted at any time and is rebuilt when damaged."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

_Result = TypeVar("_Result")
_BUSY_SECONDS = 2.0
_POLL_SECONDS = 0.002
_MEMORY = ":memory:"


_TRANSIENT_CODES = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC),
    *(sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN),
}


def is_transient(error: Exception) -> bool:
    """Return whether an error is due to a full disk or another process rather than to damage."""
    if not isinstance(error, sqlite3.OperationalError):
        return False
    text, code = str(error), getattr(error, "sqlite_errorcode", None)
    return code in _TRANSIENT_CODES or "full" in text or "locked" in text


def enable_wal(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch a database to a write-ahead log, retrying while it is locked.

    SQLite's busy timeout doesn't apply here: two readers that both want exclusive access would
    deadlock.

    Raises:
        sqlite3.OperationalError: The database stays locked for longer than `seconds`.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


class DerivedDatabase:
    """A database whose whole content can be recomputed.

    A file that is damaged or has another identity is deleted and recreated. If there can be no file
    (disk full, permission denied, locked by another process), the data is kept in memory.
    """

    def __init__(self, file: Path, schema: Sequence[str], identity: str) -> None:
        self.generation = 0
        self._file = file
        self._schema = schema
        self._identity = identity
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def run(self, work: Callable[[sqlite3.Connection], _Result], *, write: bool = False) -> _Result:
        """Run `work` in a transaction; with `write`, the write lock is taken first.

        `work` may raise `sqlite3.Error` for inconsistent data. After any such error it is run again
        on an empty database, and `generation` is increased.
        """
        begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        with self._lock:
            try:
                return self._attempt(work, begin)
            except sqlite3.Error as error:
                self.close()
                self.generation += 1
                if is_transient(error):
                    self._connection = self._open(_MEMORY)
                else:
                    self._delete()
            try:
                return self._attempt(work, begin)
            except sqlite3.Error:
                self.close()
                self._connection = self._open(_MEMORY)
                return self._attempt(work, begin)

    def clear(self) -> None:
        """Delete all data."""
        with self._lock:
            self.close()
            self._delete()
            self.generation += 1

    def close(self) -> None:
        """Close the file; the next `run` reopens it."""
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        self.close()

    def _attempt(self, work: Callable[[sqlite3.Connection], _Result], begin: str) -> _Result:
        if self._connection is None:
            self._connection = self._open(str(self._file))
        with _transaction(self._connection, begin):
            return work(self._connection)

    def _open(self, place: str) -> sqlite3.Connection:
        if place != _MEMORY:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(
            place, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            enable_wal(connection, _BUSY_SECONDS)
            connection.execute("PRAGMA synchronous = OFF")  # a crash may cost a rebuild
            if not self._is_ours(connection):
                self._recreate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'identity'")
        if known.fetchone() is None:
            return False
        rows = connection.execute("SELECT text FROM identity").fetchall()
        return bool(rows == [(self._identity,)])

    def _recreate(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if self._is_ours(connection):  # another process was faster
                return
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
            for (name,) in tables:
                connection.execute(f'DROP TABLE "{name}"')
            for statement in ("CREATE TABLE identity (text TEXT)", *self._schema):
                connection.execute(statement)
            connection.execute("INSERT INTO identity VALUES (?)", (self._identity,))

    def _delete(self) -> None:
        for name in self._files():
            with contextlib.suppress(OSError):
                name.unlink()

    def _files(self) -> Iterator[Path]:
        yield self._file
        for suffix in ("-wal", "-shm", "-journal"):
            yield self._file.with_name(self._file.name + suffix)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
