"""BM25F over numpy postings: the same scores as Whoosh's, in a fraction of the time.

A `Corpus` is an immutable snapshot of an index: its segments, which of their documents are live,
and the statistics over those. Scores use Whoosh's formula (``whoosh.scoring.BM25F``: BM25 per
field, times the field's boost, summed), except that deleted documents are excluded, so that an
edited index scores like a rebuilt one.
"""

from __future__ import annotations

import math
from datetime import date
from functools import cached_property
from heapq import merge
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from whoosh.scoring import bm25

from kbtui.search.index import analyser
from kbtui.search.index.segment import NO_POSTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.segment import Postings, Segment, Table

    Ids = NDArray[np.int32]
    Floats = NDArray[np.float32]
    Mask = NDArray[np.bool_]

# Boosts, K1 and B were tuned on all judged sets. `label` is the speaker and date of a message,
# `context` the text just before and after it.
SCORED_FIELDS: Mapping[str, float] = {
    "title": 0.7,
    "headings": 0.7,
    "label": 1.2,
    "tags": 1.5,
    "body": 1.0,
    "context": 0.5,
}
_SCORED = tuple(SCORED_FIELDS)
# A word in many titles tells whose or what kind a note is, like the label of a message, and not its
# topic: a query with it means these notes. Tuned on conversation turns under a heading with speaker
# and date; notes with distinct titles score as before.
LABEL_BOOST = 3.0
_LABEL_SHARE = 0.2  # of all files
_MIN_LABELLED = 20  # files
K1 = 0.5
B: Mapping[str, float] = dict.fromkeys(SCORED_FIELDS, 0.5)
# An exponent between Whoosh's soft idf (0) and the textbook idf (1).
RARITY = 0.7
MAX_EXPANSIONS = 64
_SPARSE = 64  # documents a posting
_FEW_TERMS = 8  # are looked up one by one
_MAX_CACHED_EXPANSIONS = 2_000
_BODY = ("body",)
_ASKED_ALWAYS = frozenset({"scope", "said"})  # by every search, with few different terms
_LONGEST_SERIES = 60  # notes and passages
_NO_NUMBERS = np.empty(0, dtype=np.int64)
_NO_IDS = NO_POSTINGS[0]
_NO_TABLE: Table = (_NO_NUMBERS, _NO_IDS, np.empty(0, dtype=np.uint16))
_ENTRY_OVERHEAD = 600  # bytes, of two small arrays and a dictionary entry
_MAX_IMPACT_BYTES = 16 << 20  # bytes


def _size(postings: Postings) -> int:
    return postings[0].nbytes + postings[1].nbytes + _ENTRY_OVERHEAD


def _day_number(day: str) -> int | None:
    """Return the ordinal of ``2026``, ``2026-03`` or ``2026-03-25``, or None if invalid."""
    try:
        return date.fromisoformat(day + "-01-01"[len(day) - 4 :]).toordinal()
    except ValueError:
        return None


class Corpus:
    """An immutable snapshot of the index, which threads can share."""

    def __init__(self, segments: Sequence[Segment], deleted: Sequence[Sequence[int]]) -> None:
        """Create a snapshot of segments, given with the numbers of their deleted documents."""
        self.segments = tuple(segments)
        sizes = [len(segment.chunks) for segment in segments]
        self.bases = [0, *accumulate(sizes)][: len(sizes)]
        self.size = sum(sizes)
        self.live: Mask = np.ones(self.size, dtype=np.bool_)
        for base, numbers in zip(self.bases, deleted, strict=True):
            if numbers:
                self.live[np.fromiter(numbers, dtype=np.int64) + base] = False
        self.count = int(self.live.sum())
        numbers_of = [(segment.chunks, segment.files, segment.series) for segment in segments]
        columns = zip(*numbers_of or [(_NO_NUMBERS,) * 3], strict=True)
        self.chunks, self.files, self.series = map(np.concatenate, columns)
        self._by_series: NDArray[np.int64] | None = None
        self._all_live = self.count == self.size
        self._averages: dict[str, float] = {}
        self._norms: dict[str, Floats] = {}
        self._impacts: dict[tuple[str, tuple[str, ...]], Postings] = {}
        self._titles: dict[str, Postings] = {}
        self._impact_bytes = 0
        self._masks: dict[tuple[str, tuple[str, ...]], Mask] = {}
        self._days: dict[str, NDArray[np.float64]] = {}
        self._expansions: dict[tuple[str, tuple[str, ...], int], list[str]] = {}

    def scores(self, terms: Iterable[tuple[str, float]]) -> NDArray[np.float64]:
        """Return the BM25F score of every document for weighted terms; 0 if none occurs."""
        total = np.zeros(self.size)
        for term, weight in terms:
            ids, impact = self.impacts(term)
            total[ids] += impact if weight == 1 else impact * np.float32(weight)
        return total

    def rarity(self, term: str) -> float:
        """Return the weight that boosts a rare term and reduces a common one."""
        return self._rarity(len(self.impacts(term)[0]))

    def rarities(self, terms: Sequence[str]) -> list[float]:
        """Return the weights of many terms that boost rare ones."""
        tables = [self.table(field, terms)[:2] for field in SCORED_FIELDS]
        of_terms, ids = map(np.concatenate, zip(*tables, strict=True))
        held = np.unique(of_terms * self.size + ids) // max(1, self.size)
        return [*map(self._rarity, np.bincount(held, minlength=len(terms)).tolist())]

    def _rarity(self, frequency: int) -> float:
        soft = self._soft_idf(frequency)
        hard = math.log(1 + (self.count - frequency + 0.5) / (frequency + 0.5))
        return float((hard / soft) ** RARITY) if soft > 0 else 1.0

    def _soft_idf(self, frequency: int) -> float:
        return math.log(self.count / (frequency + 1)) + 1

    def best_of_series(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each document the highest score among live ones of its file, or series."""
        if not self.size:
            return scores
        if self._by_series is None:
            _, of_document = np.unique(self.series, return_inverse=True)
            # A title that many notes bear is a template's, and tells nothing.
            is_long = np.bincount(of_document)[of_document] > _LONGEST_SERIES
            own = np.where(is_long, self.files, self.series)
            _, self._by_series = np.unique(own, return_inverse=True)
        alive = scores if self._all_live else np.where(self.live, scores, -np.inf)
        lowest = alive.min()
        higher = np.flatnonzero(alive > lowest)  # few, where words are looked for
        best = np.full(self.size, lowest)  # there are no more series than documents
        np.maximum.at(best, self._by_series[higher], alive[higher])
        best = best[self._by_series]
        return best if self._all_live else np.where(self.live, best, scores)

    def days(self, field: str) -> NDArray[np.float64]:
        """Return each document's date in a field, as an ordinal; NaN if it has none."""
        found = self._days.get(field)
        if found is None:
            found = np.full(self.size, np.nan)
            for day in self.expand("", (field,), limit=self.size):
                number = _day_number(day)
                if number is not None:
                    found[self.postings(field, day)[0]] = number
            self._days[field] = found
        return found

    def impacts(self, term: str, fields: tuple[str, ...] = _SCORED) -> Postings:
        """Return a term's contribution to the score of each document that has it, over `fields`."""
        key = (term, fields)
        found = self._impacts.get(key)
        if found is None:
            held = self._postings_of(term, fields)
            found = self._compute_impacts(held, fields)
            if self._impact_bytes > _MAX_IMPACT_BYTES:
                self._impacts, self._titles, self._impact_bytes = {}, {}, 0
            self._impacts[key] = found
            self._impact_bytes += _size(found)
            if fields == _SCORED:
                self._titles[term] = held.get("title", NO_POSTINGS)
                self._impact_bytes += _size(self._titles[term])
        return found

    def _compute_impacts(self, held: Mapping[str, Postings], fields: tuple[str, ...]) -> Postings:
        parts = [self._impact(field, *held[field]) for field in fields if field in held]
        if not parts:
            return NO_POSTINGS
        if len(parts) == 1:
            ids, impact = parts[0]
            return ids, impact.astype(np.float32)
        all_ids, impacts = map(np.concatenate, zip(*parts, strict=True))
        if _SPARSE * len(all_ids) < self.size:
            numbers, where = np.unique(all_ids, return_inverse=True)
            summed = np.bincount(where, weights=impacts)
        else:  # adding up in an array of all documents is quicker than sorting
            mask = np.zeros(self.size, dtype=np.bool_)
            mask[all_ids] = True
            numbers = np.flatnonzero(mask)
            summed = np.bincount(all_ids, weights=impacts)[numbers]
        return numbers.astype(np.int32), summed.astype(np.float32)

    def sum_of(self, field: str, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the score of every document for weighted terms of one field, without its boost."""
        of_terms, ids, found = self.table(field, [*weights])
        scores = found.astype(np.float64)
        if field in B:
            frequencies = np.bincount(of_terms, minlength=len(weights)).tolist()
            idf = np.array([*map(self._soft_idf, frequencies)])
            scores = self._bm25(field, ids, scores, idf[of_terms])
        scores *= np.fromiter(weights.values(), dtype=np.float64)[of_terms]
        total: NDArray[Any] = np.bincount(ids, weights=scores, minlength=self.size)
        return total

    def _impact(self, field: str, ids: Ids, weights: Floats) -> tuple[Ids, NDArray[np.float64]]:
        idf = self._soft_idf(len(ids))
        return ids, self._boost(field, ids) * self._bm25(field, ids, weights, idf)

    def _bm25(
        self, field: str, ids: Ids, weights: NDArray[Any], idf: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        lengths, average = self.lengths(field)[ids], self.average_length(field)
        scores = bm25(idf, weights.astype(np.float64), lengths, average, B[field], K1)
        found: NDArray[np.float64] = scores
        return found

    def boosts(self, field: str, terms: Sequence[str]) -> list[float]:
        """Return the weights of terms in a field; in one that isn't scored, their soft idf."""
        frequencies = self._frequencies(field, terms)
        if field not in SCORED_FIELDS:
            return [*map(self._soft_idf, frequencies.tolist())]
        return [
            self._boost(field, self.postings(field, term)[0] if is_often else _NO_IDS)
            for term, is_often in zip(terms, frequencies >= _MIN_LABELLED, strict=True)
        ]

    def _frequencies(self, field: str, terms: Sequence[str]) -> NDArray[np.int64]:
        return np.bincount(self.table(field, terms)[0], minlength=len(terms))

    def _boost(self, field: str, ids: Ids) -> float:
        is_label = field == "title" and self._is_in_many_files(ids)
        return LABEL_BOOST if is_label else SCORED_FIELDS[field]

    def _is_in_many_files(self, ids: Ids) -> bool:
        if len(ids) < _MIN_LABELLED:
            return False
        count = len(np.unique(self.files[ids]))
        return count >= max(_MIN_LABELLED, _LABEL_SHARE * self._file_count)

    def postings(self, field: str, term: str) -> Postings:
        """Return the live documents that have a term in a field, with frequencies."""
        if field == "title" and term in self._titles:
            return self._titles[term]
        return self._postings_of(term, (field,)).get(field, NO_POSTINGS)

    def _postings_of(self, term: str, fields: Sequence[str]) -> dict[str, Postings]:
        """Return the postings of a term by field, without fields that have none."""
        parts: dict[str, list[Postings]] = {}
        for base, segment in zip(self.bases, self.segments, strict=True):
            for field, (ids, weights) in segment.postings(term, fields):
                parts.setdefault(field, []).append((ids + np.int32(base), weights))
        found: dict[str, Postings] = {}
        for field, held in parts.items():
            ids, weights = map(np.concatenate, zip(*held, strict=True))
            if not self._all_live:
                alive = self.live[ids]
                ids, weights = ids[alive], weights[alive]
            if len(ids):
                found[field] = ids, weights
        return found

    def table(self, field: str, terms: Iterable[str]) -> Table:
        """Return the postings of many terms in live documents, each with the place of its term."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        tables: list[Table] = []
        for base, segment in zip(self.bases, self.segments, strict=True):
            of_terms, ids, counts = segment.table(encoded, field)
            tables.append((of_terms, ids + np.int32(base), counts))
        of_terms, ids, counts = map(np.concatenate, zip(*tables or [_NO_TABLE], strict=True))
        if self._all_live:
            return of_terms, ids, counts
        alive = self.live[ids]
        return of_terms[alive], ids[alive], counts[alive]

    def terms_from(self, field: str, start: str = "") -> Iterator[bytes]:
        """Yield the terms of a field from `start` on, sorted."""
        of_segments = [segment.terms_from(field, start) for segment in self.segments]
        return (term for term, _ in groupby(merge(*of_segments)))

    def lexicons(self, field: str) -> Iterator[str]:
        """Yield the terms of a field in each segment, with a NUL before each and after the last."""
        return (segment.lexicon(field) for segment in self.segments)

    def holding(self, field: str, terms: Iterable[str]) -> Mask:
        """Return a new mask of the documents that have any of the terms in a field."""
        key = (field, tuple(terms))
        mask = self._masks.get(key)
        if mask is None:
            mask = np.zeros(self.size, dtype=np.bool_)
            if len(key[1]) > _FEW_TERMS:
                mask[self.table(field, key[1])[1]] = True
            for term in key[1] if len(key[1]) <= _FEW_TERMS else ():
                mask[self.postings(field, term)[0]] = True
            if field in _ASKED_ALWAYS:
                self._masks[key] = mask
        return mask.copy()

    def containing(self, field: str, folded: str) -> Mask:
        """Return a mask of the documents with a term in a field that contains a text, if folded."""
        mask: Mask = np.zeros(self.size, dtype=np.bool_)
        for base, segment in zip(self.bases, self.segments, strict=True):
            mask[segment.containing(field, folded) + base] = True
        return mask & self.live

    def knows(self, term: str) -> bool:
        """Return whether any live document has the term."""
        return len(self.impacts(term)[0]) > 0

    def expand(self, prefix: str, fields: Sequence[str], limit: int = MAX_EXPANSIONS) -> list[str]:
        """Return at most `limit` terms that start with `prefix`, shortest first."""
        key = (prefix, tuple(fields), limit)
        cached = self._expansions.get(key)
        if cached is None:
            found = set().union(*[segment.with_prefix(prefix, fields) for segment in self.segments])
            cached = sorted(found, key=lambda term: (len(term), term))[:limit]
            if prefix and len(self._expansions) < _MAX_CACHED_EXPANSIONS:
                self._expansions[key] = cached
        return list(cached)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that some documents have second terms of, by their codes."""
        return tuple(
            language
            for language in analyser.LANGUAGES
            if self.expand(f"{analyser.SECOND}{language}", _BODY, 1)
        )

    @cached_property
    def _file_count(self) -> int:
        return len(np.unique(self.files[self.live]))

    def average_length(self, field: str) -> float:
        """Return the average length of a field in live documents."""
        if field not in self._averages:
            total, base = 0, 0
            for base, segment in zip(self.bases, self.segments, strict=True):
                exact = segment.exact_lengths(field)
                alive = self.live[base : base + len(exact)]
                total += int(exact[alive].sum())
            self._averages[field] = (total / self.count if self.count else 0) or 1
        return self._averages[field]

    def lengths(self, field: str) -> Floats:
        """Return each document's length in a field, rounded as by Whoosh."""
        if field not in self._norms:
            self._norms[field] = np.concatenate(
                [segment.lengths(field) for segment in self.segments]
            )
        return self._norms[field]
