"""The table behind the log: one row a commit, and which paths it touched."""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kbtui.history.objects.commit import Commit, PathChange, RawCommit, read_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.objects.commit import Actor

IDENTITY = "commits 2"
SCHEMA = (
    """
    CREATE TABLE commits (
        seq INTEGER PRIMARY KEY, id TEXT UNIQUE, parent TEXT, time INTEGER, actor TEXT, turn TEXT,
        batch TEXT, message TEXT, paths TEXT, crc INTEGER
    )
    """,
    "CREATE TABLE paths (seq INTEGER, path TEXT, old_path TEXT)",
    "CREATE INDEX paths_of_commit ON paths (seq)",
    "CREATE INDEX commits_of_path ON paths (path, seq)",
    "CREATE INDEX commits_of_old_path ON paths (old_path, seq) WHERE old_path IS NOT NULL",
    "CREATE INDEX commits_of_turn ON commits (turn) WHERE turn IS NOT NULL",
    "CREATE INDEX commits_of_batch ON commits (batch) WHERE batch IS NOT NULL",
    "CREATE INDEX merges ON commits (seq) WHERE parent LIKE '% %'",
)
PAGE = 256
NEWEST = 1 << 62
_COLUMNS = "seq, id, parent, time, actor, turn, batch, message, paths, crc"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which commits are wanted; None wants all. Both ends of the time are included."""

    actor: Actor | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    turn: str | None = None
    batch: str | None = None

    def matches(self, commit: Commit) -> bool:
        """True if one commit is wanted."""
        return (
            (self.actor is None or commit.actor == self.actor)
            and (self.turn is None or commit.origin.turn == self.turn)
            and (self.batch is None or commit.origin.batch == self.batch)
            and (self.since is None or commit.time >= self.since)
            and (self.until is None or commit.time <= self.until)
            and self.matches_text(commit)
        )

    def matches_text(self, commit: Commit) -> bool:
        """True if a commit says what is looked for, in any case."""
        return self.text is None or self.text.casefold() in (
            f"{commit.subject}\n{commit.body}".casefold()
        )


def tip(db: sqlite3.Connection) -> tuple[int, str | None]:
    """The number and the id of the newest row."""
    row = db.execute("SELECT seq, id FROM commits ORDER BY seq DESC LIMIT 1").fetchone()
    return (row[0], row[1]) if row else (0, None)


def number_of(db: sqlite3.Connection, identifier: str) -> int | None:
    """The row of a commit."""
    row = db.execute("SELECT seq FROM commits WHERE id = ?", (identifier,)).fetchone()
    return row[0] if row else None


def append(
    db: sqlite3.Connection, base: int, rows: Sequence[tuple[str, RawCommit, tuple[PathChange, ...]]]
) -> bool:
    """Put rows after row `base`, dropping what came after it; False when the table moved on."""
    if tip(db)[0] < base:
        return False
    db.execute("DELETE FROM commits WHERE seq > ?", (base,))
    db.execute("DELETE FROM paths WHERE seq > ?", (base,))
    for seq, (identifier, raw, paths) in enumerate(rows, base + 1):
        db.execute(
            f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            _row(seq, identifier, raw, paths),
        )
        db.executemany(
            "INSERT INTO paths VALUES (?, ?, ?)",
            [(seq, path.path, path.old_path) for path in paths],
        )
    return True


def append_next(
    db: sqlite3.Connection, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]
) -> None:
    """Put one new commit behind its parent; where that isn't the newest row nothing is done."""
    number, newest = tip(db)
    if newest == (raw.parents[0] if raw.parents else None):
        append(db, number, [(identifier, raw, paths)])


def _row(
    seq: int, identifier: str, raw: RawCommit, paths: tuple[PathChange, ...]
) -> tuple[int | str | None, ...]:
    commit = read_commit(identifier, raw)
    # Without line counts: a table that was rebuilt says the same as one that grew.
    listed = json.dumps([[path.path, path.kind, path.old_path, path.blob] for path in paths])
    row = (
        seq,
        identifier,
        " ".join(raw.parents),
        int(commit.time.timestamp()),
        commit.actor.value,
        commit.origin.turn,
        commit.origin.batch,
        raw.message,
        listed,
    )
    return (*row, zlib.crc32(repr(row).encode("utf-8", "replace")))


def page(db: sqlite3.Connection, wanted: LogFilter, before: int) -> list[tuple[int, Commit]]:
    """The newest commits before row `before` that match all but the text."""
    clauses, values = ["seq < ?"], [before]
    for clause, value in (
        ("actor = ?", wanted.actor and wanted.actor.value),
        ("turn = ?", wanted.turn),
        ("batch = ?", wanted.batch),
        ("time >= ?", wanted.since and wanted.since.timestamp()),
        ("time <= ?", wanted.until and wanted.until.timestamp()),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(value)  # type: ignore[arg-type]
    return _select(db, " AND ".join(clauses), values)


def page_of_path(
    db: sqlite3.Connection, path: str, before: int, limit: int | None = None
) -> list[tuple[int, Commit]]:
    """The newest commits before row `before` that touched a path, or anything below it."""
    where = """
    seq < ? AND seq IN (
        SELECT seq FROM paths WHERE path = ?
        UNION SELECT seq FROM paths WHERE old_path = ?
        UNION SELECT seq FROM paths WHERE path >= ? AND path < ?
        UNION SELECT seq FROM paths WHERE old_path >= ? AND old_path < ?
    )
    """
    # "0" is the character after "/", so this is the range of all that lies below the folder.
    below = [f"{path}/", f"{path}0"]
    return _select(db, where, [before, path, path, *below, *below], limit=limit)


def later_of_path(db: sqlite3.Connection, path: str, after: int) -> list[tuple[int, Commit]]:
    """The oldest commits after row `after` that touched a path or renamed it."""
    where = "seq IN (SELECT seq FROM paths WHERE seq > ? AND (path = ? OR old_path = ?))"
    return _select(db, where, [after, path, path], order="ASC")


def has_merges(db: sqlite3.Connection) -> bool:
    """True if any commit has several parents."""
    query = "SELECT 1 FROM commits WHERE parent LIKE '% %' LIMIT 1"
    return db.execute(query).fetchone() is not None


def merges(db: sqlite3.Connection) -> list[tuple[int, Commit]]:
    """The commits with several parents, oldest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE parent LIKE '% %' ORDER BY seq",  # noqa: S608
    )
    return [(row[0], _commit(row)) for row in rows]


def _select(
    db: sqlite3.Connection,
    where: str,
    values: Sequence[int | str],
    order: str = "DESC",
    limit: int | None = None,
) -> list[tuple[int, Commit]]:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE {where} ORDER BY seq {order} LIMIT {limit or PAGE}",  # noqa: S608
        values,
    )
    return [(row[0], _commit(row)) for row in rows]


def _commit(row: tuple[Any, ...]) -> Commit:
    *fields, crc = row
    if zlib.crc32(repr(tuple(fields)).encode("utf-8", "replace")) != crc:
        raise sqlite3.DatabaseError("a row of the log's table is damaged")
    _, identifier, parents, time, _, _, _, message, paths, _ = row
    raw = RawCommit("", tuple(parents.split()), datetime.fromtimestamp(time, UTC), message)
    changes = tuple(
        PathChange(path, kind, old_path, blob=blob)
        for path, kind, old_path, blob in json.loads(paths)
    )
    return read_commit(identifier, raw, changes)
