"""A segment: chunks with their terms, lengths and postings in one block of bytes, never changed.

Everything lies in arrays that are used as they are read, so a large one is mapped into memory and
processes share it. Terms are sorted, each field's apart: they are found by halving, and those with
one beginning stand together. Nothing in it is code, whoever wrote it.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from whoosh.util.numeric import byte_to_length

from kbtui.search.index import analyser

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Postings = tuple[NDArray[np.int32], NDArray[np.float32]]
    # The document that alone has a term, and once; else document, frequency, document, ...
    Gathered = int | array[int]
    Buffer = bytes | mmap.mmap

TEXT_FIELDS = ("title", "headings", "label", "tags", "body", "context")
FILTER_FIELDS = ("scope", "path", "type", "tag", "created", "updated", "said")
_FIELDS = (*TEXT_FIELDS, *FILTER_FIELDS)
NO_POSTINGS: Postings = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
_MAGIC = b"KBWORDS1"
# The numbers of documents, terms, postings, and bytes of terms; all is in the machine's order.
_HEAD = struct.Struct("=8s4I")
_MOST_COUNTED = 65_535
_LARGE_FILE = 1 << 18  # bytes
_HEAD_BYTES = 8
# The lengths that a byte of Whoosh's can say.
_LENGTHS = np.array([byte_to_length(byte) for byte in range(256)], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """One chunk as words are indexed: texts are analysed, filters are taken as they are."""

    chunk: int
    texts: Mapping[str, str]
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def file(self) -> int:
        """A number of 31 bits for the file; two files share one hardly ever, and to little harm."""
        return zlib.crc32("\0".join(self.filters.get("path", ())).encode()) >> 1


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment's file as it was written, and the numbers of its deleted documents, ascending."""

    name: str
    size: int
    check_sum: int
    deleted: tuple[int, ...] = ()


class SegmentBuilder:
    """Gathers documents by their terms, and gives the bytes of the segment."""

    def __init__(self) -> None:
        self._count = 0
        self._chunks, self._files = array("i"), array("i")
        self._lengths = {name: array("i") for name in TEXT_FIELDS}
        self._terms: dict[str, dict[str, Gathered]] = {name: {} for name in _FIELDS}

    def add(self, document: LexicalDocument) -> None:
        """Add a chunk as the next document."""
        self._chunks.append(document.chunk)
        self._files.append(document.file)
        for name, lengths in self._lengths.items():
            terms = analyser.terms(document.texts.get(name, ""))
            lengths.append(len(terms))
            self._gather(name, Counter(terms))
        for name, values in document.filters.items():
            self._gather(name, dict.fromkeys(values, 1))
        self._count += 1

    def _gather(self, name: str, counts: Mapping[str, int]) -> None:
        terms, number = self._terms[name], self._count
        for term, count in counts.items():
            held = terms.get(term)
            if held is None:
                terms[term] = number if count == 1 else array("I", (number, count))
            elif isinstance(held, int):
                terms[term] = array("I", (held, 1, number, count))
            else:
                held.append(number)
                held.append(count)

    def finish(self) -> bytes:
        """The content of a segment's file."""
        terms: list[bytes] = []
        of_field, ends, both = array("I"), array("I"), array("I")
        for gathered in self._terms.values():
            for term in sorted(gathered):  # UTF-8 has the order of code points
                held = gathered[term]
                terms.append(term.encode("utf-8", "surrogatepass"))
                both.extend((held, 1) if isinstance(held, int) else held)
                ends.append(len(both) // 2)
            of_field.append(len(terms))
        ids, counts = np.array(both, dtype=np.uint32).reshape(-1, 2).T
        text = b"".join(terms)
        return b"".join(
            (
                _HEAD.pack(_MAGIC, self._count, len(terms), len(ids), len(text)),
                array("Q", map(_head, terms)).tobytes(),
                *map(bytes, (self._chunks, self._files, *self._lengths.values())),
                *map(bytes, (of_field, ends, array("I", accumulate(map(len, terms))))),
                ids.astype(np.int32).tobytes(),
                np.minimum(counts, _MOST_COUNTED).astype(np.uint16).tobytes(),
                text,
            )
        )


class Segment:
    """A segment that is read; documents are numbered from 0, and `chunks` ascend.

    Attributes:
        chunks: The chunk id of each document.
        files: A number for the file of each document; of two of one file the same.
    """

    def __init__(self, data: Buffer) -> None:
        """Take the bytes of one.

        Raises:
            ValueError: they are cut short, or none of ours.
        """
        magic, count, terms, postings, text = _HEAD.unpack(data[: _HEAD.size].ljust(_HEAD.size))
        sizes = [count] * (2 + len(TEXT_FIELDS)) + [len(_FIELDS), terms, terms, postings]
        begin = _HEAD.size + _HEAD_BYTES * terms
        starts = [begin, *(begin + 4 * end for end in accumulate(sizes))]
        self._text = starts[-1] + 2 * postings
        if magic != _MAGIC or len(data) != self._text + text:
            raise ValueError("This is no segment of a words index.")
        parts = [
            np.frombuffer(data, np.int32, size, start)
            for size, start in zip(sizes, starts, strict=False)
        ]
        self.chunks, self.files = parts[0].astype(np.int64), parts[1].astype(np.int64)
        self._lengths = dict(zip(TEXT_FIELDS, parts[2:], strict=False))
        of_field, ends, text_ends, self._ids = parts[-4:]
        bounds = [0, *of_field.tolist()]
        self._of_field = dict(zip(_FIELDS, pairwise(bounds), strict=True))
        # Single numbers are read faster out of these than out of arrays of numpy's.
        self._ends, self._text_ends = ends.data, text_ends.data
        self._heads = memoryview(data)[_HEAD.size : begin].cast("Q")
        self._counts = np.frombuffer(data, np.uint16, postings, starts[-1])
        self._data = data

    @classmethod
    def of(cls, documents: Iterable[LexicalDocument]) -> Segment:
        """One in memory."""
        builder = SegmentBuilder()
        for document in documents:
            builder.add(document)
        return cls(builder.finish())

    @classmethod
    def open(cls, folder: Path, file: SegmentFile) -> Segment:
        """Open a segment's file; a small one is read, as what is mapped holds the file open.

        Raises:
            OSError: it can't be read.
            ValueError: it isn't what was written.
        """
        with (folder / file.name).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            is_large = size == file.size > _LARGE_FILE
            data: Buffer = (
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
                if is_large
                else stream.read()
            )
        if len(data) != file.size or zlib.crc32(data) != file.check_sum:
            raise ValueError(f"{file.name} of the words index has changed.")
        return cls(data)

    def lengths(self, field: str) -> NDArray[np.float32]:
        """Lengths as Whoosh keeps them, in a byte each: the longer, the more roughly."""
        place = np.searchsorted(_LENGTHS, self._lengths[field])
        rough: NDArray[np.float32] = _LENGTHS[np.minimum(place, len(_LENGTHS) - 1)]
        return rough

    def exact_lengths(self, field: str) -> NDArray[np.int64]:
        """Lengths in terms."""
        return self._lengths[field].astype(np.int64)

    def postings(self, term: str, fields: Iterable[str]) -> list[tuple[str, Postings]]:
        """For each field that has a term: the documents with it, ascending, and how often each."""
        found: list[tuple[str, Postings]] = []
        for name, place, wanted in self._places(term, fields):
            if place < self._of_field[name][1] and self._term(place) == wanted:
                part = slice(self._ends[place - 1] if place else 0, self._ends[place])
                found.append((name, (self._ids[part], self._counts[part].astype(np.float32))))
        return found

    def beginning_with(self, prefix: str, fields: Iterable[str]) -> set[str]:
        """The terms of some fields that start with `prefix`."""
        found = set()
        for name, start, wanted in self._places(prefix, fields):
            for place in range(start, self._of_field[name][1]):
                term = self._term(place)
                if not term.startswith(wanted):
                    break
                found.add(term.decode("utf-8", "replace"))
        return found

    def _places(self, term: str, fields: Iterable[str]) -> list[tuple[str, int, bytes]]:
        """Where a term stands, or would, in each of some fields; and the term as it is held.

        It is looked for by its head, and as a whole among those that have the same.
        """
        wanted = term.encode("utf-8", "surrogatepass")
        head = _head(wanted)
        found = []
        for name in fields:
            first, last = self._of_field[name]
            place = bisect_left(self._heads, head, first, last)
            if place < last and self._heads[place] == head:
                end = bisect_right(self._heads, head, place, last)
                place = bisect_left(range(end), wanted, place, key=self._term)
            found.append((name, place, wanted))
        return found

    def _term(self, place: int) -> bytes:
        start = self._text_ends[place - 1] if place else 0
        return self._data[self._text + start : self._text + self._text_ends[place]]


def _head(term: bytes) -> int:
    """The first bytes of a term as a number of the same order."""
    return int.from_bytes(term[:_HEAD_BYTES].ljust(_HEAD_BYTES, b"\0"), "big")
