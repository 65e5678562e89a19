"""The SQLite store of files and chunks: everything in the index except postings.

A file is updated in three steps: its new chunks are stored and the file is marked; its postings are
written as a segment; one transaction adds the segment and removes the old chunks and the mark. A
file that is found marked was interrupted in between, and is indexed again.
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
from typing import Any

from kbtui.derived import enable_wal
from kbtui.search.index import analyser
from kbtui.search.index.chunk_rows import (
    READ_COLUMNS,
    STORED_COLUMNS,
    ChunkRow,
    chunk_row,
    lexical_document,
    row_of,
    said,
    signature,
    stored_values,
)
from kbtui.search.index.chunker import IndexedDocument
from kbtui.search.index.segment import LexicalDocument, SegmentFile
from kbtui.text import storable

VERSION = "4"
KEY_BYTES = 16
_BUSY_SECONDS = 10.0
_MAX_PARAMETERS = 500
_PLACEHOLDERS = ", ".join("?" * len(STORED_COLUMNS.split(",")))
_INSERT = f"INSERT INTO chunks (file, fresh, {STORED_COLUMNS}) VALUES (?, 1, {_PLACEHOLDERS})"
_UPDATE = f"UPDATE chunks SET ({STORED_COLUMNS}) = ({_PLACEHOLDERS}) WHERE id = ?"
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
    """The SQLite file of one generation; thread-safe, with one thread at a time."""

    def __init__(self, file: Path) -> None:
        """Open or create the file.

        Raises:
            sqlite3.Error: it is damaged, or not such a store.
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
                    if self._is_new():  # another process may have created it meanwhile
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
        """Return one value of the meta table."""
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
        """Return the number of changes made so far, by all processes."""
        return int(self.get("revision", "0"))

    def segments(self) -> tuple[SegmentFile, ...]:
        """Return the segments of the lexical index, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT name, size, check_sum, deleted FROM segments ORDER BY ord"
            ).fetchall()
        return tuple(
            [
                SegmentFile(name, size, check_sum, tuple(array("i", deleted)))
                for name, size, check_sum, deleted in rows
            ]
        )

    def files(self, only: Iterable[str] | None = None) -> dict[str, str]:
        """Return the blob of each indexed file by path; empty for marked files.

        Args:
            only: Restrict the result to these files, and to those below these folders.
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
        """Return whether a change is in progress or was interrupted."""
        with self._lock:
            found = self._connection.execute("SELECT 1 FROM files WHERE marked LIMIT 1").fetchone()
        return found is not None

    def problems(self) -> list[tuple[str, str]]:
        """Return the files that aren't searched, with the reasons."""
        with self._lock:
            return self._connection.execute(
                "SELECT path, problem FROM files WHERE problem != '' ORDER BY path"
            ).fetchall()

    def counts(self) -> tuple[int, int]:
        """Return the numbers of files and chunks."""
        with self._lock:
            (files,) = self._connection.execute("SELECT count(*) FROM files").fetchone()
            (chunks,) = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return files, chunks

    def last_chunk(self) -> int:
        """Return the highest chunk id ever used: while it stays, there is nothing new to embed."""
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"
        with self._lock:
            row = self._connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    def begin(
        self, documents: Iterable[tuple[IndexedDocument, str]], deleted_paths: Iterable[str]
    ) -> tuple[list[LexicalDocument], list[int]]:
        """Store the new chunks of changed files, given with their blobs, and mark the files.

        Chunks with unchanged content keep their ids, even if their lines have moved.

        Returns:
            The new chunks for the lexical index, and the ids of old ones for `finish` to delete.
        """
        added: list[LexicalDocument] = []
        removed: list[int] = []
        words: set[str] = set()
        with self._transaction():
            for path in deleted_paths:
                removed += self._chunks_of(path).values()
                self._connection.execute("UPDATE files SET marked = 1 WHERE path = ?", (path,))
            for document, blob in documents:
                old = self._chunks_of(document.path)
                self._upsert_file(document, blob)
                added += self._store_chunks(document, old, words)
                removed += old.values()
            # Words are never removed here: the postings tell which are no longer in use.
            stored = words if "".join(words).isascii() else map(storable, words)
            self._connection.executemany(
                "INSERT OR IGNORE INTO words VALUES (?)", [(word,) for word in stored]
            )
        return added, removed

    def finish(
        self, removed: Sequence[int], deleted_paths: Iterable[str], segments: Iterable[SegmentFile]
    ) -> None:
        """Delete the old chunks and the marks, and record the new `segments`."""
        with self._transaction():
            execute = self._connection.execute
            self._connection.executemany(
                "DELETE FROM chunks WHERE id = ?", [(number,) for number in removed]
            )
            self._connection.executemany(
                "DELETE FROM files WHERE path = ? AND marked", [(path,) for path in deleted_paths]
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
        """Return a file's chunk ids by ``(signature, count)``; the count separates equal chunks.

        Chunks of an interrupted change get an empty signature, which never matches.
        """
        rows = self._connection.execute(
            "SELECT chunks.id, signature, fresh OR marked FROM chunks"
            " JOIN files ON files.id = file WHERE path = ? ORDER BY ord",
            (path,),
        ).fetchall()
        found: dict[tuple[bytes, int], int] = {}
        counts: Counter[bytes] = Counter()
        for number, content, is_interrupted in rows:
            key = b"" if is_interrupted else content
            found[key, counts[key]] = number
            counts[key] += 1
        return found

    def _upsert_file(self, document: IndexedDocument, blob: str) -> None:
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

    def _store_chunks(
        self, document: IndexedDocument, old: dict[tuple[bytes, int], int], words: set[str]
    ) -> Iterator[LexicalDocument]:
        """Store a file's chunks, remove unchanged ones from `old`, and yield the new ones.

        The vocabulary of new chunks is added to `words`.
        """
        query = "SELECT id FROM files WHERE path = ?"
        (file,) = self._connection.execute(query, (document.path,)).fetchone()
        counts: Counter[bytes] = Counter()
        for order, chunk in enumerate(document.chunks):
            row = row_of(document, chunk, 0, order)
            indexed = lexical_document(row)
            content = signature(indexed, row.keys)
            values = stored_values(row, content)
            kept_id = old.pop((content, counts[content]), None)
            counts[content] += 1
            if kept_id is not None:
                self._connection.execute(_UPDATE, (*values, kept_id))
            else:
                cursor = self._connection.execute(_INSERT, (file, *values))
                words |= analyser.vocabulary(row.chunk.text)
                words |= analyser.vocabulary(row.file.title)
                yield replace(indexed, chunk=int(cursor.lastrowid or 0))

    def words(self) -> list[str]:
        """Return the words of all texts ever indexed."""
        with self._lock:
            return [word for (word,) in self._connection.execute("SELECT word FROM words")]

    def rows(self, numbers: Sequence[int], *, passages: bool = False) -> dict[int, ChunkRow]:
        """Return the chunks with these ids, with their `passages` if needed.

        Unknown ids are left out.

        Raises:
            DamagedStoreError: a chunk doesn't match its checksum.
        """
        selected = self._selected(READ_COLUMNS, numbers)
        return {row[0]: chunk_row(row, passages=passages) for row in selected}

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return what the chunks with these ids say (`chunk_rows.said`); others are left out."""
        return {
            number: said(*columns)
            for number, *columns in self._selected(
                "chunks.id, files.title, files.tags, files.aliases, chunks.headings, chunks.text",
                numbers,
            )
        }

    def _selected(self, columns: str, numbers: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Yield columns of chunks and their files."""
        for start in range(0, len(numbers), _MAX_PARAMETERS):
            part = [int(number) for number in numbers[start : start + _MAX_PARAMETERS]]
            placeholders = ",".join("?" * len(part))
            with self._lock:
                rows = self._connection.execute(
                    f"SELECT {columns} FROM chunks JOIN files ON files.id = chunks.file"
                    f" WHERE chunks.id IN ({placeholders})",
                    part,
                ).fetchall()
            yield from rows

    def chunks_in(self, path: str) -> list[int]:
        """Return the ids of a file's chunks."""
        query = "SELECT chunks.id FROM chunks JOIN files ON files.id = file WHERE path = ?"
        with self._lock:
            return [number for (number,) in self._connection.execute(query, (path,))]

    def passage_keys(self, after: int = 0) -> Iterator[tuple[int, bytes, bool]]:
        """Return ``(id, passage keys, is private)`` for each chunk with an id above `after`."""
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
