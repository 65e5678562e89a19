"""Immutable segments of the lexical index: documents with terms, lengths and postings.

A segment is one file of flat arrays that are used without decoding, so large ones are memory-mapped
and shared between processes. Terms are sorted per field, for binary search and prefix queries.
Loading a segment never executes code, whoever wrote it.
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
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING

import numpy as np
from whoosh.util.numeric import byte_to_length

from kbtui.search.index import analyser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Postings = tuple[NDArray[np.int32], NDArray[np.float32]]
    Table = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]
    # A document number for a term that occurs once, else document, frequency, document, ...
    TermPostings = int | array[int]
    Buffer = bytes | mmap.mmap

TEXT_FIELDS = ("title", "headings", "label", "tags", "body", "context")
# Words as written, where stemming changes them: for prefixes, wildcards and misspelt words.
WRITTEN = "written"
_TEXTS_OF_WRITTEN = ("title", "headings", "label", "tags", "body")
FILTER_FIELDS = ("scope", "path", "type", "tag", "created", "updated", "said", "language")
_FIELDS = (*TEXT_FIELDS, *FILTER_FIELDS, WRITTEN)
NO_POSTINGS: Postings = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
_MAGIC = b"KBWORDS3"
# Counts of documents, terms, postings, and bytes of terms; everything is in native byte order.
_HEADER = struct.Struct("=8s4I")
_MAX_FREQUENCY = 65_535
_LARGE_FILE = 1 << 18  # bytes
_PREFIX_BYTES = 8
_FIRST_BYTES = struct.Struct(f"{_PREFIX_BYTES}s")  # cut, or filled with zeros
# The lengths that Whoosh's one-byte encoding can represent.
_LENGTHS = np.array([byte_to_length(byte) for byte in range(256)], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """One chunk for the lexical index: texts are analysed, filter terms are used as they are.

    `part` tells parts of a file that answer each for itself, such as conversations of the archive;
    `series` tells files that answer together, such as notes of one title in a folder.
    """

    chunk: int
    texts: Mapping[str, str]
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    part: str = ""
    series: str = ""

    @property
    def numbers(self) -> tuple[int, int]:
        """31-bit hashes of the file and of the series; collisions are rare and nearly harmless."""
        file = "\0".join((*self.filters.get("path", ()), self.part))
        return _number(file), _number(self.series or file)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment's file with its checksum, and its deleted documents' numbers, ascending."""

    name: str
    size: int
    check_sum: int
    deleted: tuple[int, ...] = ()


class SegmentBuilder:
    """Collects the postings of documents, and serialises them as a segment."""

    def __init__(self) -> None:
        self._count = 0
        self._chunks, self._files, self._series = array("i"), array("i"), array("i")
        self._lengths = {name: array("i") for name in TEXT_FIELDS}
        self._terms: dict[str, dict[str, TermPostings]] = {name: {} for name in _FIELDS}

    def add(self, document: LexicalDocument) -> None:
        """Add a chunk as the next document."""
        self._chunks.append(document.chunk)
        file, series = document.numbers
        self._files.append(file)
        self._series.append(series)
        texts = "\n".join([document.texts.get(name, "") for name in _TEXTS_OF_WRITTEN])
        told = document.filters.get("language", ())
        languages = [code for code in analyser.LANGUAGES if code in told]
        counts: dict[str, Mapping[str, int]] = {}
        for name, lengths in self._lengths.items():
            text = document.texts.get(name, "")
            terms = analyser.terms(text)
            lengths.append(len(terms))  # second terms make no text longer
            if languages:
                terms += analyser.all_second_terms(text, languages)
            counts[name] = Counter(terms)
        counts[WRITTEN] = dict.fromkeys(analyser.written(texts), 1)
        for name, values in document.filters.items():
            counts[name] = dict.fromkeys(values, 1)
        self._add_postings(counts)
        self._count += 1

    def _add_postings(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add how often each field of the next document has each term."""
        number = self._count
        for name, of_field in counts.items():
            terms = self._terms[name]
            for term, count in of_field.items():
                held = terms.get(term)
                if held is None:
                    terms[term] = number if count == 1 else array("I", (number, count))
                elif isinstance(held, int):
                    terms[term] = array("I", (held, 1, number, count))
                else:
                    held.append(number)
                    held.append(count)

    def finish(self) -> bytes:
        """Return the content of the segment's file."""
        terms: list[bytes] = []
        of_field, ends, pairs = array("I"), array("I"), array("I")
        for field_terms in self._terms.values():
            for term in sorted(field_terms):  # UTF-8 sorts by code point
                held = field_terms[term]
                terms.append(term.encode("utf-8", "surrogatepass"))
                pairs.extend((held, 1) if isinstance(held, int) else held)
                ends.append(len(pairs) // 2)
            of_field.append(len(terms))
        ids, counts = np.array(pairs, dtype=np.uint32).reshape(-1, 2).T
        text = b"".join(terms)
        heads = b"".join(map(_FIRST_BYTES.pack, terms))
        return b"".join(
            (
                _HEADER.pack(_MAGIC, self._count, len(terms), len(ids), len(text)),
                np.frombuffer(heads, ">u8").astype(np.uint64).tobytes(),
                *map(bytes, (self._chunks, self._files, self._series, *self._lengths.values())),
                *map(bytes, (of_field, ends, array("I", accumulate(map(len, terms))))),
                ids.astype(np.int32).tobytes(),
                np.minimum(counts, _MAX_FREQUENCY).astype(np.uint16).tobytes(),
                text,
            )
        )


class Segment:
    """An open segment; documents are numbered from 0.

    Attributes:
        chunks: The chunk id of each document, ascending.
        files: The file's number of each document (`LexicalDocument.numbers`).
        series: The same of the series.
    """

    def __init__(self, data: Buffer) -> None:
        """Open the bytes of a segment.

        Raises:
            ValueError: they are truncated, or not a segment.
        """
        magic, count, terms, postings, text = _HEADER.unpack(
            data[: _HEADER.size].ljust(_HEADER.size)
        )
        sizes = [count] * (3 + len(TEXT_FIELDS)) + [len(_FIELDS), terms, terms, postings]
        begin = _HEADER.size + _PREFIX_BYTES * terms
        starts = [begin, *[begin + 4 * end for end in accumulate(sizes)]]
        self._text = starts[-1] + 2 * postings
        if magic != _MAGIC or len(data) != self._text + text:
            raise ValueError("This is no segment of a words index.")
        parts = [
            np.frombuffer(data, np.int32, size, start)
            for size, start in zip(sizes, starts, strict=False)
        ]
        self.chunks, self.files, self.series = (part.astype(np.int64) for part in parts[:3])
        self._lengths = dict(zip(TEXT_FIELDS, parts[3:], strict=False))
        of_field, ends, text_ends, self._ids = parts[-4:]
        bounds = [0, *of_field.tolist()]
        self._field_bounds = dict(zip(_FIELDS, pairwise(bounds), strict=True))
        # Reading single numbers is faster from memoryviews than from numpy arrays.
        self._ends, self._text_ends = ends.data, text_ends.data
        self._prefix_keys = memoryview(data)[_HEADER.size : begin].cast("Q")
        self._counts = np.frombuffer(data, np.uint16, postings, starts[-1])
        self._data = data
        self._lexicons: dict[str, str] = {}

    @classmethod
    def of(cls, documents: Iterable[LexicalDocument]) -> Segment:
        """Build a segment in memory."""
        builder = SegmentBuilder()
        for document in documents:
            builder.add(document)
        return cls(builder.finish())

    @classmethod
    def open(cls, folder: Path, file: SegmentFile) -> Segment:
        """Open a segment's file; small ones aren't mapped, as a mapping keeps the file open.

        Raises:
            OSError: it can't be read.
            ValueError: it doesn't match its size or checksum.
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
        """Return each document's length, rounded as by Whoosh's one-byte encoding."""
        place = np.searchsorted(_LENGTHS, self._lengths[field])
        rough: NDArray[np.float32] = _LENGTHS[np.minimum(place, len(_LENGTHS) - 1)]
        return rough

    def exact_lengths(self, field: str) -> NDArray[np.int64]:
        """Return each document's length in terms."""
        return self._lengths[field].astype(np.int64)

    def postings(self, term: str, fields: Iterable[str]) -> list[tuple[str, Postings]]:
        """Return per field with the term its postings: document numbers, ascending, and counts."""
        found: list[tuple[str, Postings]] = []
        for name, place, wanted in self._find(term, fields):
            if place < self._field_bounds[name][1] and self._term(place) == wanted:
                part = slice(self._ends[place - 1] if place else 0, self._ends[place])
                found.append((name, (self._ids[part], self._counts[part].astype(np.float32))))
        return found

    def table(self, terms: Sequence[bytes], field: str) -> Table:
        """Return the postings of many terms of a field, each with the place of its term."""
        first, last = self._field_bounds[field]
        keys = np.asarray(self._prefix_keys[first:last])
        heads = np.frombuffer(b"".join(map(_FIRST_BYTES.pack, terms)), ">u8").astype(np.uint64)
        low, high = (keys.searchsorted(heads, side) + first for side in ("left", "right"))
        of_terms = np.flatnonzero(high > low)
        places = low[of_terms]
        for number, at in enumerate(of_terms.tolist()):
            if len(terms[at]) >= _PREFIX_BYTES:
                place, end = int(low[at]), int(high[at])
                place = bisect_left(range(end), terms[at], place, key=self._term)
                is_there = place < end and self._term(place) == terms[at]
                places[number] = place if is_there else -1
        of_terms, places = of_terms[places >= 0], places[places >= 0]
        ends = np.asarray(self._ends)
        starts = np.where(places > 0, ends[places - 1], 0)
        counts = ends[places] - starts
        offsets = np.cumsum(counts) - counts
        rows = np.repeat(starts - offsets, counts) + np.arange(counts.sum())
        return np.repeat(of_terms, counts), self._ids[rows], self._counts[rows]

    def terms_from(self, field: str, start: str) -> Iterator[bytes]:
        """Yield the terms of a field from `start` on, sorted."""
        ((_, first, _),) = self._find(start, (field,))
        return map(self._term, range(first, self._field_bounds[field][1]))

    def lexicon(self, field: str) -> str:
        """Return the terms of a field, sorted, with a NUL before each and after the last."""
        if field not in self._lexicons:
            terms = b"\0".join(self.terms_from(field, "")).decode("utf-8", "replace")
            self._lexicons[field] = f"\0{terms}\0"
        return self._lexicons[field]

    def containing(self, field: str, folded: str) -> NDArray[np.int32]:
        """Return the documents with a term in a field that contains a text, when folded."""
        first, last = self._field_bounds[field]
        begin = int(self._ends[first - 1]) if first else 0
        ends = np.asarray(self._ends[first:last], dtype=np.int64)
        terms = analyser.fold(self.lexicon(field)).split("\0")[1:-1]
        found = [folded in term for term in terms[: last - first]]
        counts = np.diff(ends, prepend=begin)
        held: NDArray[np.int32] = self._ids[begin : begin + int(counts.sum())][
            np.repeat(found, counts)
        ]
        return held

    def with_prefix(self, prefix: str, fields: Iterable[str]) -> set[str]:
        """Return the terms of `fields` that start with `prefix`."""
        wanted = prefix.encode("utf-8", "surrogatepass")
        return {
            term.decode("utf-8", "replace")
            for field in fields
            for term in takewhile(
                lambda term: term.startswith(wanted), self.terms_from(field, prefix)
            )
        }

    def _find(self, term: str, fields: Iterable[str]) -> list[tuple[str, int, bytes]]:
        """Return ``(field, insertion point, encoded term)`` for each of `fields`.

        Binary search compares the first bytes as numbers, and whole terms only where those match.
        """
        wanted = term.encode("utf-8", "surrogatepass")
        head = int.from_bytes(_FIRST_BYTES.pack(wanted), "big")  # a number that sorts the same
        is_long = len(wanted) >= _PREFIX_BYTES  # a shorter term is known by its number
        found = []
        for name in fields:
            first, last = self._field_bounds[name]
            place = bisect_left(self._prefix_keys, head, first, last)
            if is_long and place < last and self._prefix_keys[place] == head:
                end = bisect_right(self._prefix_keys, head, place, last)
                place = bisect_left(range(end), wanted, place, key=self._term)
            found.append((name, place, wanted))
        return found

    def _term(self, place: int) -> bytes:
        start = self._text_ends[place - 1] if place else 0
        return self._data[self._text + start : self._text + self._text_ends[place]]


def _number(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) >> 1
