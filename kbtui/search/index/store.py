"""The state of each file and chunk, in SQLite: the part of the index that isn't postings.

A change of a file takes three steps: its new chunks are stored and the file marked, its words are
written as a segment, and in one transaction the segment counts, the old chunks go and the mark with
them. A file that is found marked was caught in between, and is indexed again.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kbtui.derived import enable_wal
from kbtui.search.index import analyser
from kbtui.search.index.chunk_rows import (
    READ,
    STORED,
    ChunkRow,
    chunk_row,
    lexical_document,
    row_of,
    signature,
    storable,
    stored_values,
)
from kbtui.search.index.chunker import IndexedDocument
from kbtui.search.index.segment import LexicalDocument, SegmentFile

VERSION = "4"
KEY_BYTES = 16
_BUSY_SECONDS = 10.0
_IN_ONE_QUERY = 500
_MARKS = ", ".join("?" * len(STORED.split(",")))
_INSERT = f"INSERT INTO chunks (file, fresh, {STORED}) VALUES (?, 1, {_MARKS})"
_UPDATE = f"UPDATE chunks SET ({STORED}) = ({_MARKS}) WHERE id = ?"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE, blob TEXT, marked INTEGER DEFAULT 0,
    title TEXT, type TEXT, tags TEXT, aliases TEXT, created TEXT, updated TEXT,
    private INTEGER, extra TEXT, problem TEXT
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER, ord INTEGER, fresh INTEGER,
    text TEXT, first_line INTEGER, last_line INTEGER, headings TEXT, context TEXT, updated TEXT,
    session TEXT, first_message INTEGER, last_message INTEGER, role TEXT, passages TEXT, keys BLOB,
    signature BLOB, check_sum INTEGER
);
CREATE INDEX chunks_of_file ON chunks (file);
CREATE TABLE segments (
    ord INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER, check_sum INTEGER, deleted BLOB
);
CREATE TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class StateStore:
    """The SQLite file of one generation; threads share it, one at a time."""

    def __init__(self, file: Path) -> None:
        """Open the file, or make it.

        Raises:
            sqlite3.Error: it is damaged, or no file of ours.
        """
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, self._connection.close)
        try:
            enable_wal(self._connection, _BUSY_SECONDS)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if self._is_new():
                with self._transaction():
                    if self._is_new():  # still: another process may have been faster
                        for statement in _SCHEMA.strip().split(";\n"):
                            self._connection.execute(statement)
            self._connection.execute("SELECT value FROM meta WHERE key = 'revision'")
        except BaseException:
            self._connection.close()
            raise

    def _is_new(self) -> bool:
        return not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def get(self, key: str, default: str = "") -> str:
        """One value of the meta table."""
        with self._lock:
            row = self._connection.execute(
                "SELECT value FROM meta WHERE key = ?", (key,)
            ).fetchone()
        return str(row[0]) if row else default

    def put(self, key: str, value: str) -> None:
        """Store one value in the meta table."""
        with self._lock:
            self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (key, value))

    def revision(self) -> int:
        """Counts the changes, of all processes."""
        return int(self.get("revision", "0"))

    def segments(self) -> tuple[SegmentFile, ...]:
        """The segments of the words index, in the order in which they came."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT name, size, check_sum, deleted FROM segments ORDER BY ord"
            ).fetchall()
        return tuple(
            SegmentFile(name, size, check_sum, tuple(array("i", deleted)))
            for name, size, check_sum, deleted in rows
        )

    def files(self, only: Iterable[str] | None = None) -> dict[str, str]:
        """The blob of each indexed file; of a marked one an empty text.

        Args:
            only: Look at these files alone, and at those below, where it is a folder.
        """
        query = "SELECT path, blob, marked FROM files"
        with self._lock:
            if only is None:
                rows = self._connection.execute(query).fetchall()
            else:
                query += " WHERE path = ? OR (path > ? || '/' AND path < ? || '0')"
                rows = [
                    row for path in only for row in self._connection.execute(query, (path,) * 3)
                ]
        return {path: "" if marked else blob for path, blob, marked in rows}

    def has_marks(self) -> bool:
        """True if a change is under way, or was when its process died."""
        with self._lock:
            found = self._connection.execute("SELECT 1 FROM files WHERE marked LIMIT 1").fetchone()
        return found is not None

    def problems(self) -> list[tuple[str, str]]:
        """The files that are listed but not searched, and why."""
        with self._lock:
            return self._connection.execute(
                "SELECT path, problem FROM files WHERE problem != '' ORDER BY path"
            ).fetchall()

    def counts(self) -> tuple[int, int]:
        """How many files and chunks there are."""
        with self._lock:
            (files,) = self._connection.execute("SELECT count(*) FROM files").fetchone()
            (chunks,) = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return files, chunks

    def last_chunk(self) -> int:
        """The highest chunk id ever given: as long as it stays, there is nothing new to embed."""
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"
        with self._lock:
            row = self._connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    def begin(
        self, documents: Iterable[tuple[IndexedDocument, str]], gone: Iterable[str]
    ) -> tuple[list[LexicalDocument], list[int]]:
        """Store the new chunks of changed files, given with their blobs, and mark the files.

        Chunks that say the same as before, at most in other lines, stay what they are.

        Returns:
            The new chunks, as words are indexed, and the ids of the old ones, which `finish` takes
            out.
        """
        added: list[LexicalDocument] = []
        removed: list[int] = []
        words: set[str] = set()
        with self._transaction():
            for path in gone:
                removed += self._chunks_of(path).values()
                self._connection.execute("UPDATE files SET marked = 1 WHERE path = ?", (path,))
            for document, blob in documents:
                old = self._chunks_of(document.path)
                self._mark(document, blob)
                added += self._insert(document, old, words)
                removed += old.values()
            # What is gone from all texts is told by the index.
            self._connection.executemany(
                "INSERT OR IGNORE INTO words VALUES (?)", [(storable(word),) for word in words]
            )
        return added, removed

    def finish(
        self, removed: Sequence[int], gone: Iterable[str], segments: Iterable[SegmentFile]
    ) -> None:
        """Take the old chunks and the marks away; `segments` hold the words from now on."""
        with self._transaction():
            execute = self._connection.execute
            self._connection.executemany(
                "DELETE FROM chunks WHERE id = ?", [(number,) for number in removed]
            )
            self._connection.executemany(
                "DELETE FROM files WHERE path = ? AND marked", [(path,) for path in gone]
            )
            execute("UPDATE chunks SET fresh = 0 WHERE fresh")
            execute("UPDATE files SET marked = 0 WHERE marked")
            execute("DELETE FROM segments")
            self._connection.executemany(
                "INSERT INTO segments (name, size, check_sum, deleted) VALUES (?, ?, ?, ?)",
                [(s.name, s.size, s.check_sum, array("i", s.deleted).tobytes()) for s in segments],
            )
            execute("REPLACE INTO meta VALUES ('revision', ?)", (str(self.revision() + 1),))

    def _chunks_of(self, path: str) -> dict[tuple[bytes, int], int]:
        """The chunks that a file has, by signature and a count.

        Those that a dead process left half done get signatures that nothing matches.
        """
        rows = self._connection.execute(
            "SELECT chunks.id, signature, fresh OR marked FROM chunks"
            " JOIN files ON files.id = file WHERE path = ? ORDER BY ord",
            (path,),
        ).fetchall()
        found: dict[tuple[bytes, int], int] = {}
        counts: Counter[bytes] = Counter()
        for number, content, unsure in rows:
            key = b"" if unsure else content
            found[key, counts[key]] = number
            counts[key] += 1
        return found

    def _mark(self, document: IndexedDocument, blob: str) -> None:
        p = document.properties
        values = [p.title, p.type, json.dumps(p.tags), json.dumps(p.aliases), p.created, p.updated]
        self._connection.execute(
            "INSERT INTO files (path, blob, marked, title, type, tags, aliases, created, updated,"
            " private, extra, problem) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET blob = excluded.blob, marked = 1,"
            " title = excluded.title, type = excluded.type, tags = excluded.tags,"
            " aliases = excluded.aliases, created = excluded.created,"
            " updated = excluded.updated, private = excluded.private,"
            " extra = excluded.extra, problem = excluded.problem",
            (
                document.path,
                blob,
                *map(storable, values),
                p.private,
                storable(p.extra),
                document.problem,
            ),
        )

    def _insert(
        self, document: IndexedDocument, old: dict[tuple[bytes, int], int], words: set[str]
    ) -> Iterator[LexicalDocument]:
        """Store a file's chunks; takes from `old` those that stay, gives the others.

        The words of new ones are put into `words`.
        """
        query = "SELECT id FROM files WHERE path = ?"
        (file,) = self._connection.execute(query, (document.path,)).fetchone()
        counts: Counter[bytes] = Counter()
        for order, chunk in enumerate(document.chunks):
            row = row_of(document, chunk, 0, order)
            indexed = lexical_document(row)
            content = signature(indexed, row.keys)
            values = stored_values(row, content)
            stays = old.pop((content, counts[content]), None)
            counts[content] += 1
            if stays is not None:
                self._connection.execute(_UPDATE, (*values, stays))
            else:
                cursor = self._connection.execute(_INSERT, (file, *values))
                words |= analyser.vocabulary(row.chunk.text)
                words |= analyser.vocabulary(row.file.title)
                yield replace(indexed, chunk=int(cursor.lastrowid or 0))

    def words(self) -> list[str]:
        """The words of all texts there ever were."""
        with self._lock:
            return [word for (word,) in self._connection.execute("SELECT word FROM words")]

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """The chunks with these ids that are there.

        Raises:
            DamagedStoreError: what is stored isn't what was stored.
        """
        found: dict[int, ChunkRow] = {}
        for start in range(0, len(numbers), _IN_ONE_QUERY):
            part = [int(number) for number in numbers[start : start + _IN_ONE_QUERY]]
            marks = ",".join("?" * len(part))
            with self._lock:
                rows = self._connection.execute(
                    f"SELECT {READ} FROM chunks JOIN files ON files.id = chunks.file"
                    f" WHERE chunks.id IN ({marks})",
                    part,
                ).fetchall()
            found.update((row[0], chunk_row(row)) for row in rows)
        return found

    def chunks_in(self, path: str) -> list[int]:
        """The ids of a file's chunks."""
        query = "SELECT chunks.id FROM chunks JOIN files ON files.id = file WHERE path = ?"
        with self._lock:
            return [number for (number,) in self._connection.execute(query, (path,))]

    def passage_keys(self, after: int = 0) -> Iterator[tuple[int, bytes, bool]]:
        """For each chunk behind an id: its id, its passages' keys, whether its file is private."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT chunks.id, keys, private FROM chunks JOIN files ON files.id = file"
                " WHERE chunks.id > ? ORDER BY chunks.id",
                (after,),
            ).fetchall()
        return ((number, keys, bool(private)) for number, keys, private in rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
