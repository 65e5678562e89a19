"""`ChunkRow`: a chunk with its properties, its conversion to SQL values and to lexical documents.

`TreeIndex` and `TreeReader` index the files of one commit in memory.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import Corpus
from kbtui.search.index.chunker import (
    Chunk,
    IndexedDocument,
    Passage,
    is_indexed,
    is_question,
    mostly_asks,
    passage_key,
    read_document,
)
from kbtui.search.index.language import languages_of
from kbtui.search.index.markdown import Properties, is_title, prose_start, split_definitions
from kbtui.search.index.segment import LexicalDocument, Segment
from kbtui.search.index.time_words import says_when
from kbtui.sessions.imported import is_imported
from kbtui.text import storable
from kbtui.workspace.files import blob_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kbtui.search.index.chunker import ChunkLimits


# In the order of `stored_values`; preceded by file and fresh, or followed by the id.
STORED_COLUMNS = (
    "ord, text, first_line, last_line, headings, context, updated, session, first_message,"
    " last_message, role, passages, keys, signature, check_sum"
)
# In the order that `chunk_row` reads.
READ_COLUMNS = (
    "chunks.id, files.path, files.title, files.type, files.tags, files.aliases, files.created,"
    " files.updated, files.private, files.extra, chunks.ord, chunks.text, chunks.first_line,"
    " chunks.last_line, chunks.headings, chunks.passages, chunks.session, chunks.first_message,"
    " chunks.last_message, chunks.updated, chunks.context, chunks.role, chunks.keys,"
    " chunks.check_sum"
)
_SIGNATURE_BYTES = 12
_BETWEEN = "\n0\n"
# Terms of the field "said": the speaker, and marks for messages that only ask, for those of a talk
# of people that mostly ask, and for texts that say a time.
USER = "user"
ASSISTANT = "assistant"
ELSEWHERE = "elsewhere"  # another program's assistant, in an imported session
ASKED = "question"
ASKING = "asking"
TIMED = "when"


class DamagedStoreError(Exception):
    """The store returned something else than was stored; the index must be rebuilt."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk with the properties of its `file`; `ord` is its 0-based position there.

    `keys` are the concatenated vector keys of its passages.
    """

    id: int
    path: str
    ord: int
    file: Properties
    chunk: Chunk
    keys: bytes

    @property
    def updated(self) -> str:
        """The day of the last known change; empty if there is none."""
        return self.chunk.updated or self.file.updated or self.file.created


def row_of(document: IndexedDocument, chunk: Chunk, number: int, order: int) -> ChunkRow:
    """Make the row of a chunk."""
    chunk = replace(chunk, text=storable(chunk.text), context=storable(chunk.context))
    keys = b"".join([passage_key(text) for text in chunk.passage_texts()])
    return ChunkRow(number, document.path, order, document.properties, chunk, keys)


def stored_values(row: ChunkRow, content: bytes) -> tuple[Any, ...]:
    """Return the column values of a row with its signature, in the order of `STORED_COLUMNS`."""
    passages = json.dumps([[p.start, p.end, p.context] for p in row.chunk.passages])
    headings = json.dumps(row.chunk.headings)
    return (
        row.ord,
        row.chunk.text,
        *row.chunk.lines,
        headings,
        row.chunk.context,
        row.chunk.updated,
        row.chunk.session,
        *(row.chunk.messages or (None, None)),
        row.chunk.role,
        passages,
        row.keys,
        content,
        _check_sum(row.chunk.text, headings, passages, row.keys),
    )


def signature(document: LexicalDocument, keys: bytes) -> bytes:
    """Hash a chunk's lexical document and vector keys, to detect changes."""
    content = repr((document.texts, document.filters, keys))
    return hashlib.blake2b(
        content.encode("utf-8", "surrogatepass"), digest_size=_SIGNATURE_BYTES
    ).digest()


def chunk_row(stored: tuple[Any, ...], *, passages: bool) -> ChunkRow:
    """Decode a row with columns in the order of `READ_COLUMNS`, and its `passages` if needed.

    Raises:
        DamagedStoreError: it doesn't match its checksum or can't be decoded.
    """
    number, path, title, kind, tags, aliases, created, updated, *rest = stored
    private, extra, order, text, first, last, headings, listed, *rest = rest
    session, since, until, changed, context, role, keys, expected = rest
    try:
        if _check_sum(text, headings, listed, keys) != expected:
            raise DamagedStoreError(f"chunk {number} of {path} has changed")
        tags, aliases = _names(tags), _names(aliases)
        file = Properties(title, kind, tags, aliases, created, updated, bool(private), extra)
        chunk = Chunk(
            text,
            (first, last),
            tuple((line, heading) for line, heading in json.loads(headings)),
            tuple(Passage(*each) for each in json.loads(listed)) if passages else (),
            session,
            None if since is None else (since, until),
            changed,
            context,
            role,
        )
        return ChunkRow(number, path, order, file, chunk, keys)
    except (TypeError, ValueError) as error:
        raise DamagedStoreError(f"chunk {number} can't be read: {error}") from error


def said(title: str, tags: str, aliases: str, headings: str, text: str) -> str:
    """Return all that a chunk says, in lines that no phrase goes across; lists are JSON."""
    listed = f"{tags}\n{aliases}\n{headings}"
    if "\\" in listed:
        names = [*json.loads(tags), *json.loads(aliases)]
        listed = "\n".join([*names, *(heading for _, heading in json.loads(headings))])
    return _BETWEEN.join((title, *listed.replace('", "', "\n").split("\n"), text))


@lru_cache(maxsize=4096)
def _names(listed: str) -> tuple[str, ...]:
    return tuple(json.loads(listed))


def _check_sum(text: str, headings: str, passages: str, keys: bytes) -> int:
    whole = f"{text}\0{headings}\0{passages}".encode("utf-8", "surrogatepass")
    return zlib.crc32(keys, zlib.crc32(whole))


def lexical_document(row: ChunkRow) -> LexicalDocument:
    """Convert a chunk to a document of the lexical index."""
    file, chunk = row.file, row.chunk
    parts = dict.fromkeys([part for _, path in chunk.headings for part in path.split(" > ")])
    label = list(parts) if chunk.session else []
    headings = [part for part in parts if not chunk.session and not is_title(part, file.title)]
    asked = ASKED if chunk.role and is_question(chunk.text) else ""
    is_asking = bool(chunk.role) and _is_by_name(chunk) and mostly_asks(chunk.text)
    asking = ASKING if is_asking else ""
    texts = _texts(row)
    timed = TIMED if says_when(texts["body"]) else ""
    return LexicalDocument(
        row.id,
        {
            **texts,
            "headings": "\n".join(headings),
            "label": "\n".join(label),
            "tags": "\n".join((*file.tags, file.type)),
        },
        {
            "scope": _folders(row.path),
            "path": (row.path,),
            "type": tuple(filter(None, [analyser.fold(file.type)])),
            "tag": tuple(filter(None, _tag_terms(file.tags))),
            "created": tuple(filter(None, [file.created])),
            "updated": tuple(filter(None, [row.updated])),
            "said": tuple(filter(None, [_speaker(chunk), asked, asking, timed])),
            "language": languages_of(chunk.text),
        },
        _part(row),
        _series(row),
    )


def _series(row: ChunkRow) -> str:
    """Return folder and title of a note: those of one title there are lines of the same talk."""
    folder, _, name = row.path.rpartition("/")
    return "" if name.endswith(".jsonl") else f"{folder}\0{row.file.title}"


def _part(row: ChunkRow) -> str:
    """Return the conversation of a record of the archive, or its line if that isn't known."""
    if not row.path.endswith(".jsonl") or row.path.startswith("sessions/"):
        return ""
    return row.chunk.session or str(row.chunk.lines[0])


def _speaker(chunk: Chunk) -> str:
    is_answer = chunk.role == ASSISTANT and chunk.session is not None
    return ELSEWHERE if is_answer and is_imported(chunk.session or "") else chunk.role


def _is_by_name(chunk: Chunk) -> bool:
    """Return whether a message is by somebody with a name, rather than by a role."""
    who = chunk.headings[0][1].partition(",")[0] if chunk.headings else ""
    return who != chunk.role


def _texts(row: ChunkRow) -> dict[str, str]:
    text, context, extra = row.chunk.text, row.chunk.context, row.file.extra
    if row.chunk.session:
        # A conversation's title would outweigh the text of its messages.
        return {"title": "", "body": text, "context": f"{context}\n{extra}"}
    title = row.file.title
    name = row.path.rpartition("/")[2].rpartition(".")[0]
    adds_terms = not {*analyser.terms(name)} <= {*analyser.terms(title)}
    start = 0 if row.ord else prose_start(text, title)
    lines = text[:start].splitlines()
    front = "\n".join(line for line in lines if not is_title(line.strip("# \t"), title))
    body, definitions = split_definitions(text[start:])
    return {
        "title": "\n".join((title, *row.file.aliases, name if adds_terms else "")),
        "body": body if row.ord else f"{body}\n{extra}",
        "context": f"{front}\n{definitions}\n{context}",
    }


def _folders(path: str) -> tuple[str, ...]:
    """Return a path and all its parents, each of which is a scope."""
    return tuple(accumulate(path.split("/"), lambda above, name: f"{above}/{name}"))


def _tag_terms(tags: Iterable[str]) -> list[str]:
    """Return tags with their parents: ``area/work`` is found by ``area`` as well."""
    return list(
        dict.fromkeys(term for tag in tags for term in _folders(analyser.fold(tag)) if term)
    )


_CACHED_FILES = 20_000
_CACHED_TREES = 2


class TreeIndex:
    """An in-memory index of the files of one commit."""

    def __init__(self, documents: Iterable[IndexedDocument]) -> None:
        rows = [
            (document, chunk, order)
            for document in documents
            for order, chunk in enumerate(document.chunks)
        ]
        self._rows = {
            number: row_of(document, chunk, number, order)
            for number, (document, chunk, order) in enumerate(rows)
        }
        segment = Segment.of(map(lexical_document, self._rows.values()))
        self.corpus = Corpus([segment], [()])

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids; unknown ids are left out."""
        return {number: self._rows[number] for number in numbers if number in self._rows}

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return what the chunks with these ids say; unknown ids are left out."""
        return {
            number: said(
                row.file.title,
                json.dumps(row.file.tags),
                json.dumps(row.file.aliases),
                json.dumps(row.chunk.headings),
                row.chunk.text,
            )
            for number, row in self.rows(numbers).items()
        }

    def passage_keys(self) -> Iterator[tuple[int, bytes]]:
        """Yield ``(id, keys)`` per chunk, with the concatenated keys of its vectors."""
        return ((number, row.keys) for number, row in self._rows.items())


class TreeReader:
    """Builds tree indexes, with caches of recent trees and of files split into chunks."""

    def __init__(
        self, limits: ChunkLimits, tree_at: Callable[[str], Iterable[tuple[str, bytes]]]
    ) -> None:
        """Create a reader; `tree_at` returns the files of a revision."""
        self._limits = limits
        self._tree_at = tree_at
        self._lock = threading.Lock()
        self._documents: OrderedDict[tuple[str, str], IndexedDocument] = OrderedDict()
        self._trees: dict[str, TreeIndex] = {}

    def at(self, revision: str) -> TreeIndex:
        """Return the index of a commit; the most recently used ones are cached."""
        with self._lock:
            tree = self._trees.pop(revision, None) or self._index(self._tree_at(revision))
            self._trees[revision] = tree
            while len(self._trees) > _CACHED_TREES:
                del self._trees[next(iter(self._trees))]
            return tree

    def _index(self, files: Iterable[tuple[str, bytes]]) -> TreeIndex:
        return TreeIndex(self._document(path, data) for path, data in files if is_indexed(path))

    def _document(self, path: str, data: bytes) -> IndexedDocument:
        key = (path, blob_id(data))
        found = self._documents.get(key)
        if found is None:
            found = self._documents[key] = read_document(path, data, self._limits)
            if len(self._documents) > _CACHED_FILES:
                self._documents.popitem(last=False)
        return found
