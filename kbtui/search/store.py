"""What the index knows of each file and chunk, in SQLite: the part that isn't postings.

The words index is committed apart from this, so a change of a file takes three steps: its new
chunks are stored and the file marked, the words index is committed, the old chunks go and the
mark with them. A file that is found marked was caught in between, and is indexed again.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbtui.search import analyser
from kbtui.search.chunker import Chunk, Document, Passage, passage_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

VERSION = "1"
KEY_BYTES = 16
_BUSY_SECONDS = 10.0
_IN_ONE_QUERY = 500
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
    session TEXT, first_message INTEGER, last_message INTEGER, passages TEXT, keys BLOB,
    check_sum INTEGER
);
CREATE INDEX chunks_of_file ON chunks (file);
CREATE TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_ROW = (
    "chunks.id, files.path, files.title, files.type, files.tags, files.aliases, files.created,"
    " coalesce(nullif(chunks.updated, ''), nullif(files.updated, ''), files.created),"
    " files.private, files.extra, chunks.ord, chunks.text, chunks.first_line, chunks.last_line,"
    " chunks.headings, chunks.context, chunks.session, chunks.first_message, chunks.last_message,"
    " chunks.passages, chunks.keys, chunks.check_sum"
)


class DamagedStoreError(Exception):
    """What is stored can't be what was stored; the index is to be built anew."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk with the properties of its file, as stored."""

    id: int
    path: str
    title: str
    type: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    created: str
    updated: str
    private: bool
    extra: str
    ord: int
    text: str
    lines: tuple[int, int]
    headings: tuple[tuple[int, str], ...]
    context: str
    session: str | None
    messages: tuple[int, int] | None
    passages: tuple[Passage, ...]
    keys: bytes

    def passage_texts(self) -> list[str]:
        """What is embedded of this chunk, in the order of `keys`."""
        return [f"{p.context}{self.text[p.start : p.end]}" for p in self.passages]


def row_of(document: Document, chunk: Chunk, number: int, order: int) -> ChunkRow:
    """The row that a chunk makes."""
    properties = document.properties
    return ChunkRow(
        id=number,
        path=document.path,
        title=properties.title,
        type=properties.type,
        tags=properties.tags,
        aliases=properties.aliases,
        created=properties.created,
        updated=chunk.updated or properties.updated or properties.created,
        private=properties.private,
        extra=properties.extra,
        ord=order,
        text=chunk.text,
        lines=chunk.lines,
        headings=chunk.headings,
        context=chunk.context,
        session=chunk.session,
        messages=chunk.messages,
        passages=chunk.passages,
        keys=b"".join(passage_key(text) for text in chunk.passage_texts()),
    )


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
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                with self._transaction():
                    for statement in _SCHEMA.strip().split(";\n"):
                        self._connection.execute(statement)
            self._connection.execute("SELECT value FROM meta WHERE key = 'revision'")
        except BaseException:
            self._connection.close()
            raise

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

    def files(self) -> dict[str, str]:
        """The blob of each indexed file; of a marked one an empty text."""
        with self._lock:
            rows = self._connection.execute("SELECT path, blob, marked FROM files").fetchall()
        return {path: "" if marked else blob for path, blob, marked in rows}

    def has_marks(self) -> bool:
        """Whether a change is under way, or was when its process died."""
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

    def begin(
        self, documents: Iterable[tuple[Document, str]], gone: Iterable[str]
    ) -> tuple[list[ChunkRow], list[int]]:
        """Store the new chunks of changed files, given with their blobs, and mark the files.

        Returns the new chunks, and the ids of the old ones, which `finish` takes out.
        """
        added: list[ChunkRow] = []
        removed: list[int] = []
        with self._transaction():
            for path in gone:
                removed += self._mark(path, "")
            for document, blob in documents:
                removed += self._mark(document.path, blob, document)
                added += self._insert(document)
            self._learn(added)
        return added, removed

    def finish(self, removed: Sequence[int], gone: Iterable[str], lexical: str) -> None:
        """Take the old chunks and the marks away; `lexical` describes the words index now."""
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
            execute("REPLACE INTO meta VALUES ('lexical', ?)", (lexical,))
            execute("REPLACE INTO meta VALUES ('revision', ?)", (str(self.revision() + 1),))

    def _mark(self, path: str, blob: str, document: Document | None = None) -> list[int]:
        """Mark a file before it changes; gives the ids of the chunks that it has."""
        execute = self._connection.execute
        known = execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        old = execute("SELECT id FROM chunks WHERE file = ?", known).fetchall() if known else []
        if document is None:
            execute("UPDATE files SET marked = 1 WHERE path = ?", (path,))
        else:
            p = document.properties
            lists = json.dumps(p.tags), json.dumps(p.aliases)
            execute(
                "INSERT INTO files (path, blob, marked, title, type, tags, aliases, created,"
                " updated, private, extra, problem) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET blob = excluded.blob, marked = 1,"
                " title = excluded.title, type = excluded.type, tags = excluded.tags,"
                " aliases = excluded.aliases, created = excluded.created,"
                " updated = excluded.updated, private = excluded.private,"
                " extra = excluded.extra, problem = excluded.problem",
                (path, blob, _safe(p.title), _safe(p.type), *lists, p.created, p.updated,
                 p.private, _safe(p.extra), document.problem),
            )  # fmt: skip
        return [number for (number,) in old]

    def _insert(self, document: Document) -> Iterator[ChunkRow]:
        query = "SELECT id FROM files WHERE path = ?"
        (file,) = self._connection.execute(query, (document.path,)).fetchone()
        for order, chunk in enumerate(document.chunks):
            row = row_of(document, chunk, 0, order)
            passages = json.dumps([[p.start, p.end, p.context] for p in row.passages])
            headings = json.dumps(row.headings)
            text = _safe(row.text)
            cursor = self._connection.execute(
                "INSERT INTO chunks (file, ord, fresh, text, first_line, last_line, headings,"
                " context, updated, session, first_message, last_message, passages, keys,"
                " check_sum) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (file, order, text, *row.lines, headings, _safe(row.context), chunk.updated,
                 row.session, *(row.messages or (None, None)), passages, row.keys,
                 _check_sum(text, headings, passages, row.keys)),
            )  # fmt: skip
            yield row_of(document, chunk, int(cursor.lastrowid or 0), order)

    def _learn(self, rows: Sequence[ChunkRow]) -> None:
        """Remember the words of new chunks; what is gone from all texts is told by the index."""
        words: set[str] = set()
        for row in rows:
            words |= analyser.vocabulary(row.text)
            words |= analyser.vocabulary(row.title)
        self._connection.executemany(
            "INSERT OR IGNORE INTO words VALUES (?)", [(_safe(word),) for word in words]
        )

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
                    f"SELECT {_ROW} FROM chunks JOIN files ON files.id = chunks.file"  # noqa: S608
                    f" WHERE chunks.id IN ({marks})",
                    part,
                ).fetchall()
            found.update((row[0], _chunk_row(row)) for row in rows)
        return found

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


def _safe(text: str) -> str:
    """Text that can be stored: half of a surrogate pair can't."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _check_sum(text: str, headings: str, passages: str, keys: bytes) -> int:
    whole = f"{text}\0{headings}\0{passages}".encode("utf-8", "surrogatepass")
    return zlib.crc32(keys, zlib.crc32(whole))


def _chunk_row(row: tuple[Any, ...]) -> ChunkRow:
    number, path, title, kind, tags, aliases, created, updated, private, extra, *rest = row
    order, text, first, last, headings, context, session, since, until, *rest = rest
    passages, keys, expected = rest
    try:
        if _check_sum(text, headings, passages, keys) != expected:
            raise DamagedStoreError(f"chunk {number} of {path} has changed")
        return ChunkRow(
            id=number,
            path=path,
            title=title,
            type=kind,
            tags=tuple(json.loads(tags)),
            aliases=tuple(json.loads(aliases)),
            created=created,
            updated=updated,
            private=bool(private),
            extra=extra,
            ord=order,
            text=text,
            lines=(first, last),
            headings=tuple((line, heading) for line, heading in json.loads(headings)),
            context=context,
            session=session,
            messages=None if since is None else (since, until),
            passages=tuple(Passage(*passage) for passage in json.loads(passages)),
            keys=keys,
        )
    except (TypeError, ValueError) as error:
        raise DamagedStoreError(f"chunk {number} can't be read: {error}") from error
