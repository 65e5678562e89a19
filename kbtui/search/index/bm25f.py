"""BM25F over postings held as numpy arrays: the same scores as Whoosh's, in a fraction of the time.

A `Corpus` is a fixed state of an index: its segments, which of their documents are live, and the
statistics over those. Scores are Whoosh's own formula (``whoosh.scoring.BM25F``: BM25 for each
field, times the field's boost, summed), except that deleted documents do not count, so that an
index which was edited scores like one that was built anew.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from datetime import date
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Floats = NDArray[np.float32]
    Mask = NDArray[np.bool_]
    Postings = tuple[Ids, Floats]

# Boosts, K1 and B were chosen by measurement on all judged sets. `context` is what was said just
# before and after a message.
SCORED_FIELDS: Mapping[str, float] = {
    "title": 0.7,
    "headings": 1.2,
    "tags": 1.5,
    "body": 1.0,
    "context": 0.5,
}
K1 = 0.5
B: Mapping[str, float] = dict.fromkeys(SCORED_FIELDS, 0.5)
# How much more a rare term counts than by Whoosh's soft idf; 1 would be the textbook's idf.
RARITY = 0.7
MOST_EXPANSIONS = 64
_MOST_EXPANDED = 2_000
_NO_IDS: Ids = np.empty(0, dtype=np.int32)
NO_POSTINGS: Postings = (_NO_IDS, np.empty(0, dtype=np.float32))
_OVERHEAD = 600  # of two small arrays, a key and a place in a dictionary
_MOST_COUNTED = 65_535
_WARMED = 0.9  # of the limit: what is asked for must find room as well
_MOST_IMPACTS = 16 << 20  # bytes


class Segment(Protocol):
    """A fixed run of documents, numbered from 0."""

    @property
    def name(self) -> str:
        """The name that its postings are cached under."""

    @property
    def chunks(self) -> NDArray[np.int64]:
        """The chunk id of each document, ascending."""

    @property
    def files(self) -> NDArray[np.int64]:
        """A number for the file of each document; of two documents the same if it is one file."""

    def lengths(self, field: str) -> Floats:
        """The length of a field in each document, as it is scored."""

    def exact_lengths(self, field: str) -> NDArray[np.int64]:
        """The true lengths, which averages are made of."""

    def postings(self, field: str, term: str) -> Postings:
        """The documents that hold a term, ascending, and how often each does."""

    def all_postings(self) -> Iterator[Sequence[tuple[str, str, Postings]]]:
        """Field, term and postings of all scored terms, the most frequent first, in parts."""

    def beginning_with(self, field: str, prefix: str) -> Sequence[str]:
        """The terms of a field that start with `prefix`."""


class _Packed:
    """Postings of a segment's scored terms, one behind the other in a few arrays.

    A term in arrays of its own takes 600 bytes, and most terms occur once or twice. Terms are known
    by a hash of 64 bits: two of a million share one in one index of ten million.

    Attributes:
        is_whole: A term that isn't here is in no text.
    """

    def __init__(self) -> None:
        self.is_whole = False
        self._ids = array("i")
        self._counts = array("H")
        self._terms = array("q")
        self._ends = array("L", [0])
        self._order = array("i")
        self._all_ids: Ids = _NO_IDS
        self._all_counts: NDArray[np.uint16] = np.empty(0, dtype=np.uint16)

    @property
    def size(self) -> int:
        """Bytes held."""
        terms = len(self._terms) * 12 + len(self._ends) * 8
        return len(self._ids) * 4 + len(self._counts) * 2 + terms

    def add(self, field: str, term: str, postings: Postings) -> None:
        """Put the postings of one term behind the others."""
        ids, weights = postings
        self._ids.frombytes(ids.astype(np.intc, copy=False).tobytes())
        self._counts.frombytes(np.minimum(weights, _MOST_COUNTED).astype(np.ushort).tobytes())
        self._terms.append(hash((field, term)))
        self._ends.append(len(self._ids))

    def finish(self, *, is_whole: bool) -> None:
        """Get ready for `get`; nothing is added any more."""
        terms = np.frombuffer(self._terms, dtype=np.int64)
        order = np.argsort(terms)
        self._terms = array("q", terms[order].tobytes())
        self._order = array("i", order.astype(np.intc).tobytes())
        self._all_ids = np.frombuffer(self._ids, dtype=np.int32)
        self._all_counts = np.frombuffer(self._counts, dtype=np.uint16)
        self.is_whole = is_whole

    def get(self, field: str, term: str) -> Postings | None:
        """The postings of a term; None if it isn't here."""
        wanted = hash((field, term))
        place = bisect_left(self._terms, wanted)
        if place == len(self._terms) or self._terms[place] != wanted:
            return None
        number = self._order[place]
        part = slice(self._ends[number], self._ends[number + 1])
        return self._all_ids[part], self._all_counts[part].astype(np.float32)


class PostingsCache:
    """The postings of the terms that were asked for last, by segment; bounded in bytes."""

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._bytes = 0  # of what was asked for
        self._held: OrderedDict[tuple[str, str, str], Postings] = OrderedDict()
        self._packed: dict[str, _Packed] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes held, as far as they can be counted."""
        return self._bytes + sum(packed.size for packed in tuple(self._packed.values()))

    def get(self, segment: Segment, field: str, term: str) -> Postings:
        """Read the postings, from the segment only if they aren't here."""
        packed = self._packed.get(segment.name)
        if packed is not None and field in SCORED_FIELDS:
            found = packed.get(field, term)
            if found is not None or packed.is_whole:
                return found or NO_POSTINGS
        key = (segment.name, field, term)
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held
        read = segment.postings(field, term)
        with self._lock:
            if key not in self._held:
                self._held[key] = read
                self._bytes += _size(read)
            while self.size > self._limit and len(self._held) > 1:
                self._bytes -= _size(self._held.popitem(last=False)[1])
        return read

    def warm(self, segment: Segment, proceed: Callable[[], bool]) -> None:
        """Read all postings of a segment that there is room for, the longest ones first.

        Where all found room, a term that isn't held is known to be in no text. `proceed` is asked
        from time to time, and may take the time to let others work.
        """
        if segment.name in self._packed:
            return
        others = sum(packed.size for packed in tuple(self._packed.values()))
        packed, room = _Packed(), True
        for read in segment.all_postings():
            for field, term, postings in read:
                packed.add(field, term, postings)
            room = others + packed.size <= self._limit * _WARMED
            if not room:
                break
            if not proceed():
                return
        packed.finish(is_whole=room)
        with self._lock:
            self._packed[segment.name] = packed
            self._forget(
                [key for key in self._held if key[0] == segment.name and packed.get(*key[1:])]
            )

    def _forget(self, keys: Iterable[tuple[str, str, str]]) -> None:
        for key in keys:
            self._bytes -= _size(self._held.pop(key))

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget the postings of segments that are gone."""
        kept = set(names)
        with self._lock:
            self._packed = {name: found for name, found in self._packed.items() if name in kept}
            self._forget([key for key in self._held if key[0] not in kept])


def _size(postings: Postings) -> int:
    return postings[0].nbytes + postings[1].nbytes + _OVERHEAD


def _day_number(day: str) -> int | None:
    """Of a date as ``2026``, ``2026-03`` or ``2026-03-25``."""
    try:
        return date.fromisoformat(day + "-01-01"[len(day) - 4 :]).toordinal()
    except ValueError:
        return None


class Corpus:
    """A state of the index that searches run on; never changes, so threads share it freely."""

    def __init__(
        self, segments: Sequence[Segment], deleted: Sequence[Sequence[int]], cache: PostingsCache
    ) -> None:
        """Take the segments and, for each, the numbers of its deleted documents."""
        self.segments = tuple(segments)
        self._cache = cache
        sizes = [len(segment.chunks) for segment in segments]
        self.bases = [sum(sizes[:i]) for i in range(len(sizes))]
        self.size = sum(sizes)
        self.live: Mask = np.ones(self.size, dtype=np.bool_)
        for base, gone in zip(self.bases, deleted, strict=True):
            if gone:
                self.live[np.fromiter(gone, dtype=np.int64) + base] = False
        self.count = int(self.live.sum())
        self.chunks = (
            np.concatenate([segment.chunks for segment in segments])
            if segments
            else np.empty(0, dtype=np.int64)
        )
        self._files = [segment.files for segment in segments]
        self._by_file: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None
        self._dense = self.count == self.size
        self._averages: dict[str, float] = {}
        self._norms: dict[str, Floats] = {}
        self._impacts: dict[tuple[str, tuple[str, ...]], Postings] = {}
        self._impact_bytes = 0
        self._days: dict[str, NDArray[np.float64]] = {}
        self._expanded: dict[tuple[str, tuple[str, ...], int], list[str]] = {}

    def scores(self, terms: Iterable[tuple[str, float]]) -> NDArray[np.float64]:
        """The BM25F score of every document for weighted terms; 0 where none occurs."""
        total = np.zeros(self.size)
        for term, weight in terms:
            ids, impact = self.impacts(term)
            total[ids] += impact if weight == 1 else impact * np.float32(weight)
        return total

    def rarity(self, term: str) -> float:
        """The weight that makes a rare term count more, and a common one less."""
        held = len(self.impacts(term)[0])
        soft = math.log(self.count / (held + 1)) + 1
        hard = math.log(1 + (self.count - held + 0.5) / (held + 0.5))
        return float((hard / soft) ** RARITY) if soft > 0 else 1.0

    def best_of_file(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each document the highest score of the live documents of its file."""
        if not self.size:
            return scores
        if self._by_file is None:
            _, of_document = np.unique(np.concatenate(self._files), return_inverse=True)
            order = np.argsort(of_document, kind="stable")
            starts = np.searchsorted(of_document[order], np.arange(of_document.max() + 1))
            self._by_file = (order, starts, of_document)
        order, starts, of_document = self._by_file
        alive = scores if self._dense else np.where(self.live, scores, -np.inf)
        best: NDArray[np.float64] = np.maximum.reduceat(alive[order], starts)[of_document]
        return best if self._dense else np.where(self.live, best, scores)

    def days(self, field: str) -> NDArray[np.float64]:
        """The date that each document has in a field, as a day's number; NaN without one."""
        found = self._days.get(field)
        if found is None:
            found = np.full(self.size, np.nan)
            for day in self.expand("", (field,), most=self.size):
                number = _day_number(day)
                if number is not None:
                    found[self.postings(field, day)[0]] = number
            self._days[field] = found
        return found

    def impacts(self, term: str, fields: tuple[str, ...] = tuple(SCORED_FIELDS)) -> Postings:
        """The share of a term in the score of each document that holds it, over all fields."""
        key = (term, fields)
        held = self._impacts.get(key)
        if held is None:
            held = self._work_out_impacts(term, fields)
            if self._impact_bytes > _MOST_IMPACTS:
                self._impacts, self._impact_bytes = {}, 0
            self._impacts[key] = held
            self._impact_bytes += _size(held)
        return held

    def warm(self, proceed: Callable[[], bool]) -> None:
        """Read postings into the cache, for queries to come; see `PostingsCache.warm`."""
        for segment in self.segments:
            self._cache.warm(segment, proceed)

    def _work_out_impacts(self, term: str, fields: tuple[str, ...]) -> Postings:
        parts = [part for field in fields if (part := self._impact(field, term)) is not None]
        if not parts:
            return _NO_IDS, np.empty(0, dtype=np.float32)
        if len(parts) == 1:
            ids, impact = parts[0]
            return ids, impact.astype(np.float32)
        every = np.concatenate([ids for ids, _ in parts])
        ids, where = np.unique(every, return_inverse=True)
        summed = np.bincount(where, weights=np.concatenate([impact for _, impact in parts]))
        return ids.astype(np.int32), summed.astype(np.float32)

    def _impact(self, field: str, term: str) -> tuple[Ids, NDArray[np.float64]] | None:
        ids, weights = self.postings(field, term)
        if not len(ids):
            return None
        idf = math.log(self.count / (len(ids) + 1)) + 1
        b = B[field]
        norm = (1 - b) + b * self._lengths(field)[ids] / self._average(field)
        tf = weights.astype(np.float64)
        return ids, SCORED_FIELDS[field] * idf * (tf * (K1 + 1)) / (tf + K1 * norm)

    def postings(self, field: str, term: str) -> Postings:
        """The live documents that hold a term in a field, and how often."""
        found = []
        for base, segment in zip(self.bases, self.segments, strict=True):
            ids, weights = self._cache.get(segment, field, term)
            if len(ids):
                found.append((ids + np.int32(base), weights))
        if not found:
            return _NO_IDS, np.empty(0, dtype=np.float32)
        ids = np.concatenate([part[0] for part in found])
        weights = np.concatenate([part[1] for part in found])
        if self._dense:
            return ids, weights
        alive = self.live[ids]
        return ids[alive], weights[alive]

    def holding(self, field: str, terms: Iterable[str]) -> Mask:
        """Which documents hold any of the terms in a field."""
        mask: Mask = np.zeros(self.size, dtype=np.bool_)
        for term in terms:
            mask[self.postings(field, term)[0]] = True
        return mask

    def knows(self, term: str) -> bool:
        """True if any live document holds the term."""
        return len(self.impacts(term)[0]) > 0

    def expand(self, prefix: str, fields: Sequence[str], most: int = MOST_EXPANSIONS) -> list[str]:
        """The terms that start with `prefix`; the shortest ones, if there are too many."""
        key = (prefix, tuple(fields), most)
        known = self._expanded.get(key)
        if known is None:
            found = {
                term
                for segment in self.segments
                for field in fields
                for term in segment.beginning_with(field, prefix)
            }
            known = sorted(found, key=lambda term: (len(term), term))[:most]
            if prefix and len(self._expanded) < _MOST_EXPANDED:
                self._expanded[key] = known
        return list(known)

    def _average(self, field: str) -> float:
        if field not in self._averages:
            total, base = 0, 0
            for base, segment in zip(self.bases, self.segments, strict=True):
                exact = segment.exact_lengths(field)
                alive = self.live[base : base + len(exact)]
                total += int(exact[alive].sum())
            self._averages[field] = (total / self.count if self.count else 0) or 1
        return self._averages[field]

    def _lengths(self, field: str) -> Floats:
        if field not in self._norms:
            self._norms[field] = np.concatenate(
                [segment.lengths(field) for segment in self.segments]
            )
        return self._norms[field]
