"""The words index: the only file that touches Whoosh's engine.

Whoosh keeps the index on disk, in its own format: any Whoosh can open it. Documents are added in
bulk, where Whoosh does so one posting at a time (`_BulkWriter`). Searches read postings from a
file of ours beside each segment, written and deleted with it (`bm25f.PackedPostings`). Whoosh
pickles part of its files; here they are read as plain data, so that a cache can't run code,
whoever wrote it.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import shutil
import struct
import threading
import weakref
from array import array
from collections import Counter, defaultdict
from operator import sub
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import whoosh.codec.whoosh3
import whoosh.filedb.structfile
import whoosh.index
from whoosh import columns, fields, formats
from whoosh.analysis import Analyzer, Token
from whoosh.codec.whoosh3 import (
    LENGTHS_COLUMN,
    WHOOSH3_HEADER_MAGIC,
    W3Codec,
    W3FieldWriter,
    W3TermInfo,
)
from whoosh.filedb.filestore import FileStorage
from whoosh.filedb.filetables import OrderedHashWriter
from whoosh.index import TOC
from whoosh.reading import SegmentReader
from whoosh.system import pack_int, pack_ushort
from whoosh.util.numeric import byte_to_length, length_to_byte
from whoosh.writing import SegmentWriter

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS, Corpus, PackedPostings, Packer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Gathered, Postings
    from kbtui.search.index.rows import LexicalDocument

VERSION = "5"
FILTER_FIELDS = ("scope", "path", "type", "tag", "created", "updated", "said")
_CHUNK = "chunk"
_FILE = "file"
_PACKED = ".packed"
_BLOCK = 4096
# A key and its value have these before them; where a term's postings are; a slot of the table.
_TERM_SIZES, _EXTENT, _POINTER = (struct.Struct(form) for form in ("!ii", "!qi", "!Iq"))
_LENGTH_OF_BYTE = np.array([byte_to_length(i) for i in range(256)], dtype=np.float32)


class KbtuiAnalyzer(Analyzer):  # type: ignore[misc]
    """Lets Whoosh's own tools analyse text as we do."""

    def __call__(self, value: str, **_options: Any) -> Iterator[Token]:
        """Yield one token a term."""
        token = Token()
        for term in analyser.terms(value):
            token.text, token.boost, token.stopped = term, 1.0, False
            yield token


class TermsField(fields.FieldType):  # type: ignore[misc]
    """A field of terms with frequencies, scored by length if `scorable`; nothing is stored."""

    def __init__(self, *, scorable: bool) -> None:
        self.format = formats.Existence()
        self.analyzer = KbtuiAnalyzer()
        self.scorable = scorable
        self.stored = self.unique = False


def _exact(field_name: str) -> str:
    return f"{field_name}_length"


def _schema() -> fields.Schema:
    schema = fields.Schema()
    schema.add(_CHUNK, fields.COLUMN(columns.NumericColumn("i", default=-1)))
    schema.add(_FILE, fields.COLUMN(columns.NumericColumn("i")))
    for name in SCORED_FIELDS:
        schema.add(name, TermsField(scorable=True))
        schema.add(_exact(name), fields.COLUMN(columns.NumericColumn("i")))
    for name in FILTER_FIELDS:
        schema.add(name, TermsField(scorable=False))
    return schema


class _PlainReader(pickle.Unpickler):
    """Makes nothing but what an index of ours consists of."""

    _PARTS = frozenset(
        {
            (__name__, "KbtuiAnalyzer"),
            (__name__, "TermsField"),
            ("builtins", "int"),
            ("collections", "defaultdict"),
            ("whoosh.codec.whoosh3", "W3Codec"),
            ("whoosh.codec.whoosh3", "W3Segment"),
            ("whoosh.columns", "NumericColumn"),
            ("whoosh.fields", "COLUMN"),
            ("whoosh.fields", "Schema"),
            ("whoosh.formats", "Existence"),
        }
    )

    def find_class(self, module: str, name: str, /) -> Any:
        """Find one of the parts; `pickle` calls this for whatever else than plain data is named."""
        if (module, name) not in self._PARTS:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an index")
        return super().find_class(module, name)


def _read_plainly() -> None:
    """Have Whoosh read its pickles in this way, those of its older formats not at all."""

    def load(file: Any) -> Any:
        return _PlainReader(file).load()

    def loads(data: bytes) -> Any:
        return _PlainReader(io.BytesIO(data)).load()

    whoosh.index.pickle = SimpleNamespace(
        loads=loads, dumps=pickle.dumps, PicklingError=pickle.PicklingError
    )
    whoosh.index.toc_loaders = {}
    whoosh.filedb.structfile.load_pickle = load
    whoosh.codec.whoosh3.loads = loads


_read_plainly()


class LexicalIndex:
    """A Whoosh index in a folder of its own; one writer at a time (the caller holds a lock)."""

    def __init__(self, folder: Path) -> None:
        """Open the index in `folder`, or make an empty one if there is none."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._storage = FileStorage(str(folder))
        self._open: dict[str, WhooshSegment] = {}
        if TOC._latest_generation(self._storage, "MAIN") < 0:
            self._storage.create_index(_schema())
        self._index = self._storage.open_index()

    def write(self, added: Iterable[LexicalDocument], removed: Iterable[int] = ()) -> None:
        """Take chunks out and put others in, in one commit; `added` ascends by chunk id."""
        shutil.rmtree(self._folder / "MAIN.tmp", ignore_errors=True)
        gone = set(removed)
        writer = _BulkWriter(self._index)
        try:
            if gone:
                self._delete(writer, gone)
            for document in added:
                writer.add_chunk(document)
            writer.commit(mergetype=_drop_empty)
        except BaseException:
            if not writer.is_closed:
                writer.cancel()
            raise

    def corpus(self) -> Corpus:
        """The state of the index now; segments that were open before are used again."""
        toc = TOC.read(self._storage, "MAIN")
        self._open = {
            segment.segment_id(): self._open.get(segment.segment_id())
            or WhooshSegment(self._folder, SegmentReader(self._storage, toc.schema, segment))
            for segment in toc.segments
        }
        deleted = [tuple(segment.deleted_docs()) for segment in toc.segments]
        return Corpus(tuple(self._open.values()), deleted)

    def segment_count(self) -> int:
        """How many segments there are; an open index holds two files of each."""
        return len(TOC.read(self._storage, "MAIN").segments)

    def segment_sizes(self) -> list[tuple[int, NDArray[np.int64]]]:
        """For each segment how many of its chunks are deleted, and its live chunks."""
        sizes = []
        for segment in TOC.read(self._storage, "MAIN").segments:
            chunks = _read_column(self._folder, segment, _CHUNK, ">i4", -1).astype(np.int64)
            alive = np.ones(len(chunks), dtype=np.bool_)
            alive[list(segment.deleted_docs())] = False
            sizes.append((int((~alive).sum()), chunks[alive]))
        return sizes

    def files(self) -> list[Path]:
        """The files that make up the present state."""
        toc = TOC.read(self._storage, "MAIN")
        names = [f"{segment.segment_id()}." for segment in toc.segments]
        found = [self._folder / TOC._filename("MAIN", toc.generation)]
        return found + [
            file for file in self._folder.iterdir() if file.name.startswith(tuple(names))
        ]

    def _delete(self, writer: _BulkWriter, gone: set[int]) -> None:
        wanted = np.fromiter(gone, dtype=np.int64)
        for segment in writer.segments:
            chunks = _read_column(self._folder, segment, _CHUNK, ">i4", -1)
            for number in np.flatnonzero(np.isin(chunks, wanted)):
                segment.delete_document(int(number))

    def close(self) -> None:
        """Close the index's files; segments in use stay readable until they are let go."""
        self._open = {}
        self._index.close()


def _drop_empty(_writer: Any, segments: list[Any]) -> list[Any]:
    """Merge nothing (that is the caller's to plan), and forget segments that are all deleted."""
    return [s for s in segments if s.deleted_count() < s.doc_count_all()]


class WhooshSegment:
    """One segment of the index, read in bulk."""

    def __init__(self, folder: Path, reader: Any) -> None:
        self._folder = folder
        self._reader = reader
        # Searches share segments, so nobody can say when the last is done with one.
        weakref.finalize(self, reader.close)
        self._segment = reader.segment()
        self._lock = threading.Lock()  # a reader's file position is shared
        self._postings = PackedPostings(folder / self._segment.make_filename(_PACKED))
        self.chunks = self._column(_CHUNK, ">i4", -1).astype(np.int64)
        self.files = self._column(_FILE, ">i4", 0).astype(np.int64)
        self._lengths = {
            name: _LENGTH_OF_BYTE[self._column(f"_{name}_len", "u1", 0)] for name in SCORED_FIELDS
        }
        self._exact = {
            name: self._column(_exact(name), ">i4", 0).astype(np.int64) for name in SCORED_FIELDS
        }

    def _column(self, name: str, dtype: str, default: int) -> NDArray[Any]:
        return _read_column(self._folder, self._segment, name, dtype, default)

    def lengths(self, field: str) -> NDArray[np.float32]:
        """Lengths as Whoosh keeps them, in a byte each."""
        found: NDArray[np.float32] = self._lengths[field]
        return found

    def exact_lengths(self, field: str) -> NDArray[np.int64]:
        """Lengths in terms."""
        return self._exact[field]

    def postings(self, field: str, term: str) -> Postings:
        """One term's postings, as they lie packed beside Whoosh's own."""
        return self._postings.get(field, term)

    def beginning_with(self, field: str, prefix: str) -> list[str]:
        """The terms that start with `prefix`, found through the index's order."""
        with self._lock:
            return _decoded(self._reader.expand_prefix(field, prefix))


def _decoded(terms: Iterable[bytes]) -> list[str]:
    return [term.decode("utf-8", "replace") for term in terms]


def _read_column(folder: Path, segment: Any, name: str, dtype: str, default: int) -> NDArray[Any]:
    """Read a whole column; documents at the end that have the default are not in the file."""
    values = np.full(segment.doc_count_all(), default, dtype=dtype)
    file = folder / W3Codec.column_filename(segment, name)
    if file.exists():
        stored = np.fromfile(file, dtype=dtype)
        values[: len(stored)] = stored
    return values


class _BulkWriter(SegmentWriter):  # type: ignore[misc]
    """Whoosh's writer, with postings gathered by term instead of sorted one by one."""

    def __init__(self, index: Any) -> None:
        codec = W3Codec(blocklimit=_BLOCK, compression=0)
        super().__init__(index, codec=codec, compound=False)
        self.fieldwriter.close()  # type: ignore[has-type]
        self.fieldwriter = _BulkFieldWriter(codec, self.storage, self.newsegment)
        self._gathered: dict[str, dict[str, Gathered]] = defaultdict(dict)
        self._columns = {_CHUNK: array("i"), _FILE: array("i")}
        self._lengths = {name: array("i") for name in SCORED_FIELDS}

    def add_chunk(self, document: LexicalDocument) -> None:
        """Add one chunk as a document."""
        self._columns[_CHUNK].append(document.chunk)
        self._columns[_FILE].append(document.file)
        for name, lengths in self._lengths.items():
            terms = analyser.terms(document.texts.get(name, ""))
            self._gather(name, Counter(terms))
            lengths.append(len(terms))
        for name, values in document.filters.items():
            self._gather(name, dict.fromkeys(values, 1))
        self._added = True
        self.docnum += 1

    def _gather(self, name: str, counts: Mapping[str, int]) -> None:
        terms = self._gathered[name]
        number = self.docnum
        for term, count in counts.items():
            held = terms.get(term)
            if held is None:
                terms[term] = number if count == 1 else array("I", (number, count))
            elif isinstance(held, int):
                terms[term] = array("I", (held, 1, number, count))
            else:
                held.append(number)
                held.append(count)

    def _flush_segment(self) -> None:
        for name, values in self._columns.items():
            self._write_column(name, values)
        for name, lengths in self._lengths.items():
            self._write_column(_exact(name), lengths)
            if total := sum(lengths):
                self._write_column(f"_{name}_len", bytes(map(length_to_byte, lengths)))
                self.perdocwriter._fieldlengths[name] = total
        self.perdocwriter._doccount = self.docnum
        self.perdocwriter.close()
        packer = Packer()
        for name in sorted(self._gathered):
            terms = self._gathered.pop(name)
            packer.add(name, terms)
            self.fieldwriter.write_field(name, self.schema[name], terms, self._lengths.get(name))
        self.fieldwriter.close()
        with self.storage.create_file(self.newsegment.make_filename(_PACKED)) as file:
            file.write(packer.finish())

    def _write_column(self, name: str, values: array[int] | bytes) -> None:
        column = LENGTHS_COLUMN if isinstance(values, bytes) else self.schema[name].column_type
        self.perdocwriter._create_column(name, column)
        writer = self.perdocwriter._get_column(name)
        for number, value in enumerate(values):
            writer.add(number, value)


class _BulkFieldWriter(W3FieldWriter):  # type: ignore[misc]
    """Writes a term's postings at once, in the blocks that Whoosh's own writer makes.

    Without a dozen calls for each of the many terms that occur once or twice, and without asking
    the system for a file's position with each.
    """

    def __init__(self, codec: W3Codec, storage: FileStorage, segment: Any) -> None:
        super().__init__(codec, storage, segment)
        file = self._tindex.dbfile  # type: ignore[has-type]
        file.seek(0)  # the head that stands there is written again
        self._tindex = _TermTable(file)
        self._fieldmap: dict[str, int] = {}
        self._tindex.extras["fieldmap"] = self._fieldmap
        self._offset = 0

    def write_field(
        self, name: str, spec: Any, terms: dict[str, Gathered], lengths: array[int] | None
    ) -> None:
        """Write all terms of one field."""
        self.start_field(name, spec)
        prefix = pack_ushort(self._fieldid)
        bounds = None if lengths is None else bytes(map(length_to_byte, lengths))
        once: dict[int, tuple[bytes, bytes]] = {}  # by document: terms that it alone has say alike
        write, add = self._postfile.raw_file().write, self._tindex.add
        for term in sorted(terms):  # UTF-8 has the order of code points
            if not term:
                continue
            held = terms[term]
            if not isinstance(held, int):
                data, info = _blocks(held[::2], held[1::2], bounds)
            elif held in once:
                data, info = once[held]
            else:
                data, info = once[held] = _blocks(array("I", (held,)), array("I", (1,)), bounds)
            write(data)
            extent = _EXTENT.pack(self._offset, len(data))
            add(prefix + term.encode("utf-8", "surrogatepass"), info + extent)
            self._offset += len(data)
        self.finish_field()


class _TermTable(OrderedHashWriter):  # type: ignore[misc]
    """Whoosh's table of terms, which knows where it is, and has a number a term in memory."""

    def __init__(self, file: whoosh.filedb.structfile.StructFile) -> None:
        super().__init__(file)
        self._at = self.dbfile.tell()
        self._write = self.dbfile.raw_file().write
        self._hashes = array("I")

    def add(self, key: bytes, value: bytes) -> None:
        """Add a term that comes after all others."""
        self.index.append(self._at)
        of_key = hashlib.md5(key, usedforsecurity=False).digest()
        self._hashes.append(int.from_bytes(of_key[-4:], "big"))
        entry = _TERM_SIZES.pack(len(key), len(value)) + key + value
        self._write(entry)
        self._at += len(entry)

    def _write_hashes(self) -> None:
        buckets = [array("I") for _ in range(256)]
        for number, of_key in enumerate(self._hashes):
            buckets[of_key & 255].append(number)
        positions = self.index.array
        for bucket in buckets:
            count = 2 * len(bucket)
            self.directory.append((self._at, count))
            taken = bytearray(count)
            table = bytearray(_POINTER.size * count)
            for number in bucket:
                of_key = self._hashes[number]
                slot = (of_key >> 8) % count
                while taken[slot]:
                    slot = (slot + 1) % count
                taken[slot] = 1
                _POINTER.pack_into(table, _POINTER.size * slot, of_key, positions[number])
            self.dbfile.write(bytes(table))
            self._at += len(table)


def _blocks(ids: array[int], counts: array[int], bounds: bytes | None) -> tuple[bytes, bytes]:
    """The blocks of a term, and its entry in the table of terms but for where they are."""
    parts = [WHOOSH3_HEADER_MAGIC]
    ranges = []
    for start in range(0, len(ids), _BLOCK):
        part = slice(start, start + _BLOCK)
        ranges.append(_range_of(ids[part], bounds))
        last = start + _BLOCK >= len(ids)
        parts += _block(ids[part], counts[part], ranges[-1], last=last)
    info = W3TermInfo._struct.pack(
        0,
        sum(counts),
        len(ids),
        min(shortest for shortest, _ in ranges),
        max(longest for _, longest in ranges),
        max(counts),
        ids[0],
        ids[-1],
    )
    return b"".join(parts), info


def _block(
    ids: array[int], counts: array[int], lengths: tuple[int, int], *, last: bool
) -> tuple[bytes, bytes, bytes]:
    """One block: its length (negative in the last one), what is in it, and the postings."""
    deltas = (ids[0], *map(sub, ids[1:], ids[:-1]))
    most = max(counts)
    weights = None if most == 1 else tuple(map(float, counts))
    data = pickle.dumps((deltas, weights, None), 2)
    info = pickle.dumps((len(ids), ids[-1], float(most), 0, *lengths), 2)
    size = len(info) + len(data)
    return pack_int(-size if last else size), info, data


def _range_of(ids: array[int], bounds: bytes | None) -> tuple[int, int]:
    """The shortest and the longest of some documents."""
    if bounds is None:
        return 0, 0
    found = [bounds[number] for number in ids]
    return min(found), max(found)
