"""A corpus as Whoosh's index: the reader, what scores its postings, and the searcher.

Documents have the numbers of the `Corpus`. Whoosh counts deleted documents in its statistics; here
they aren't counted, so that an edited index scores like a rebuilt one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from whoosh.collectors import Collector
from whoosh.fields import ID, TEXT, Schema
from whoosh.matching import ListMatcher
from whoosh.query import And, AndNot, Not, Or, Query
from whoosh.reading import IndexReader, TermInfo, TermNotFound
from whoosh.scoring import BM25F
from whoosh.searching import Searcher

from kbtui.search.index.bm25f import K1, B
from kbtui.search.index.chain import CHAIN
from kbtui.search.index.segment import FILTER_FIELDS, TEXT_FIELDS, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask

    Texts = Callable[[Sequence[int]], Mapping[int, str]]


SCHEMA = Schema(
    **{name: TEXT(CHAIN, phrase=False) for name in TEXT_FIELDS},
    **{name: ID() for name in (*FILTER_FIELDS, WRITTEN)},
)


class CorpusReader(IndexReader):  # type: ignore[misc]
    """Whoosh's reader of a corpus, for one search; terms are bytes, as in Whoosh's own segments."""

    schema = SCHEMA

    def __init__(self, corpus: Corpus, texts: Texts = lambda _numbers: {}) -> None:
        """Create it; `texts` returns what the chunks with some ids say, title and tags included."""
        self.corpus = corpus
        self._texts = texts

    def texts(self, numbers: NDArray[np.int64]) -> list[str]:
        """Return the texts of documents; an unknown one is empty."""
        chunks = self.corpus.chunks[numbers].tolist()
        found = self._texts(chunks)
        return [found.get(chunk, "") for chunk in chunks]

    def __contains__(self, term: tuple[str, bytes]) -> bool:
        return self.doc_frequency(*term) > 0

    def indexed_field_names(self) -> list[str]:
        """Return the names of all fields."""
        return list(SCHEMA.names())

    def all_terms(self) -> Iterator[tuple[str, bytes]]:
        """Yield every term by field, sorted."""
        for field in sorted(SCHEMA.names()):
            yield from self.terms_from(field, b"")

    def terms_from(self, fieldname: str, prefix: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the terms of a field from `prefix` on, sorted."""
        start = prefix.decode("utf-8", "surrogatepass")
        return ((fieldname, term) for term in self.corpus.terms_from(fieldname, start))

    def _postings(self, fieldname: str, text: bytes | str) -> tuple[NDArray[Any], NDArray[Any]]:
        term = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return self.corpus.postings(fieldname, term)

    def term_info(self, fieldname: str, text: bytes) -> TermInfo:
        """Return the statistics of a term.

        Raises:
            TermNotFound: no document has it.
        """
        ids, weights = self._postings(fieldname, text)
        if not len(ids):
            raise TermNotFound(f"No term {fieldname}:{text!r}")
        lengths = self.corpus.lengths(fieldname)[ids] if fieldname in TEXT_FIELDS else weights
        return TermInfo(
            weight=float(weights.sum()),
            df=len(ids),
            minlength=float(lengths.min()),
            maxlength=float(lengths.max()),
            maxweight=float(weights.max()),
            minid=int(ids[0]),
            maxid=int(ids[-1]),
        )

    def has_deletions(self) -> bool:
        """Return whether there are deleted documents."""
        return self.corpus.count < self.corpus.size

    def is_deleted(self, docnum: int) -> bool:
        """Return whether a document is deleted; a NOT of Whoosh's asks past the last one."""
        return docnum < self.corpus.size and not self.corpus.live[docnum]

    def stored_fields(self, docnum: int) -> dict[str, Any]:
        """Return the chunk's id: everything else is in the store."""
        return {"chunk": int(self.corpus.chunks[docnum])}

    def doc_count_all(self) -> int:
        """Return the number of documents, deleted ones included."""
        return self.corpus.size

    def doc_count(self) -> int:
        """Return the number of documents that aren't deleted."""
        return self.corpus.count

    def frequency(self, fieldname: str, text: bytes) -> float:
        """Return how often a term occurs."""
        return float(self._postings(fieldname, text)[1].sum())

    def doc_frequency(self, fieldname: str, text: bytes) -> int:
        """Return the number of documents with a term."""
        return len(self._postings(fieldname, text)[0])

    def field_length(self, fieldname: str) -> float:
        """Return the number of words in a field, of all documents that aren't deleted."""
        return self.corpus.average_length(fieldname) * self.corpus.count

    def min_field_length(self, fieldname: str) -> float:
        """Return the length of a field in the document where it is shortest."""
        return float(self.corpus.lengths(fieldname).min(initial=math.inf))

    def max_field_length(self, fieldname: str) -> float:
        """Return the length of a field in the document where it is longest."""
        return float(self.corpus.lengths(fieldname).max(initial=0))

    def doc_field_length(self, docnum: int, fieldname: str, default: float = 0) -> float:
        """Return the length of a field in a document, as Whoosh rounds it."""
        return float(self.corpus.lengths(fieldname)[docnum]) or default

    def postings(self, fieldname: str, text: bytes, scorer: Any = None) -> Postings:
        """Return a matcher of the documents with a term."""
        info = self.term_info(fieldname, text)
        return Postings(*self._postings(fieldname, text), scorer, (fieldname, text), info)

    def terms_within(
        self, fieldname: str, text: str, maxdist: int, prefix: int = 0
    ) -> Iterator[str]:
        """Yield the terms of a field within an edit distance of a text, and with its beginning."""
        from rapidfuzz import process
        from rapidfuzz.distance import DamerauLevenshtein, Levenshtein

        found: set[str] = set()
        for lexicon in self.corpus.lexicons(fieldname):
            near: Sequence[str] = lexicon.split("\0")
            # The quicker one counts letters that changed places as two edits.
            for scorer, most in ((Levenshtein, 2 * maxdist), (DamerauLevenshtein, maxdist)):
                passed = process.extract(
                    text, near, scorer=scorer.distance, score_cutoff=most, limit=None
                )
                near = [term for term, *_ in passed if term]
            found.update(near)
        return (term for term in sorted(found) if term.startswith(text[:prefix]))

    def terms_like(self, fieldname: str, pattern: str) -> Iterator[str]:
        """Yield the terms of a field that a pattern with ``*`` and ``?`` matches, sorted."""
        letters = re.escape(pattern).replace(r"\*", r"[^\0]*").replace(r"\?", r"[^\0]")
        wanted = re.compile(rf"\0({letters})(?=\0)")
        lexicons = self.corpus.lexicons(fieldname)
        yield from sorted({term for lexicon in lexicons for term in wanted.findall(lexicon)})

    def has_vector(self, docnum: int, fieldname: str) -> bool:  # noqa: ARG002
        """Return False: there are no term vectors."""
        return False

    def vector(self, docnum: int, fieldname: str, format_: Any = None) -> Any:  # noqa: ARG002
        """Raise, as there are no term vectors.

        Raises:
            KeyError: always.
        """
        raise KeyError(f"No vector of {fieldname} in {docnum}")


class Postings(ListMatcher):  # type: ignore[misc]
    """A matcher of documents that are known as an array, with weights."""

    def __init__(
        self,
        ids: NDArray[Any],
        weights: NDArray[Any] | None,
        scorer: Any = None,
        term: tuple[str, bytes] | None = None,
        info: TermInfo | None = None,
    ) -> None:
        """Create it; without a `scorer`, the weights are the scores."""
        self.arrays = ids, weights
        super().__init__((), scorer=scorer, term=term, terminfo=info)
        del self._ids, self._weights

    @classmethod
    def of(cls, mask: Mask) -> Postings:
        """Return a matcher of the documents of a mask, without scores."""
        return cls(np.flatnonzero(mask), None)

    @cached_property
    def _ids(self) -> list[int]:
        return list(self.arrays[0].tolist())

    @cached_property
    def _weights(self) -> list[float] | None:
        return None if self.arrays[1] is None else self.arrays[1].tolist()


class Word(Query):  # type: ignore[misc]
    """A term in any scored field, with the sum of its scores there."""

    def __init__(self, text: str, boost: float = 1.0) -> None:
        """Create it; the score is multiplied by `boost`."""
        self.text, self.boost = text, boost

    def matcher(self, searcher: Searcher, _context: Any = None) -> Postings:
        """Return a matcher of the documents with the term."""
        ids, impact = searcher.reader().corpus.impacts(self.text)
        return Postings(ids, impact * np.float32(self.boost))


class ArrayOr(Or):  # type: ignore[misc]
    """An ``Or`` of words and terms, summed in arrays: the same scores as one by one."""

    def matcher(self, searcher: Searcher, context: Any = None) -> Postings:
        """Return a matcher of the documents with any of them."""
        corpus: Corpus = searcher.reader().corpus
        total = np.zeros(corpus.size)
        by_field: dict[str, Counter[str]] = {}
        for each in self.subqueries:
            if isinstance(each, Word):
                ids, scores = each.matcher(searcher).arrays
                total[ids] += scores
            else:
                by_field.setdefault(each.fieldname, Counter())[each.text] += each.boost
        is_scored = context is None or context.weighting is not None
        for field, weights in by_field.items():
            total += (corpus.sum_of if is_scored else corpus.holding)(field, weights)
        numbers = np.flatnonzero(total)
        return Postings(numbers, total[numbers] * self.boost if is_scored else None)


class ArrayAnd(And):  # type: ignore[misc]
    """An ``And`` of conditions, whose matchers are intersected as arrays."""

    def _tree_matcher(
        self, subs: Sequence[Query], _kind: Any, searcher: CorpusSearcher, *_: Any
    ) -> Postings:
        return Postings.of(np.logical_and.reduce([*map(searcher.documents, subs)]))


class ArrayAny(Or):  # type: ignore[misc]
    """An ``Or`` of conditions, whose matchers are united as arrays."""

    def _matcher(self, subs: Sequence[Query], searcher: CorpusSearcher, _context: Any) -> Postings:
        return Postings.of(np.logical_or.reduce([*map(searcher.documents, subs)]))


class ArrayAndNot(AndNot):  # type: ignore[misc]
    """An ``AndNot`` of conditions, subtracted as arrays.

    Whoosh's own matcher keeps its first document, even an excluded one, unless that is the first of
    the excluded ones as well.
    """

    def matcher(self, searcher: CorpusSearcher, _context: Any = None) -> Postings:
        """Return a matcher of the documents with the one and without the other."""
        return Postings.of(searcher.documents(self.a) & ~searcher.documents(self.b))


class ArrayNot(Not):  # type: ignore[misc]
    """A ``Not`` of a condition, subtracted as an array."""

    def matcher(self, searcher: CorpusSearcher, _context: Any = None) -> Postings:
        """Return a matcher of the documents without it."""
        return Postings.of(searcher.reader().corpus.live & ~searcher.documents(self.query))


class Known(Query):  # type: ignore[misc]
    """A condition whose documents are known already, such as those that say a phrase."""

    def __init__(self, mask: Mask) -> None:
        """Create it from a mask of documents."""
        self._ids = np.flatnonzero(mask)

    def estimate_size(self, _reader: IndexReader) -> int:
        """Return the number of documents."""
        return len(self._ids)

    def matcher(self, _searcher: Searcher, _context: Any = None) -> Postings:
        """Return a matcher of the documents."""
        return Postings(self._ids, None)


class _ArrayCollector(Collector):  # type: ignore[misc]
    """Collects the documents and scores of a `Postings`, as arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: NDArray[Any] = np.empty(0, dtype=np.int64)
        self.scores: NDArray[Any] = np.empty(0)

    def collect_matches(self) -> None:
        """Take all documents of the matcher."""
        self.ids, self.scores = self.matcher.arrays


class _LiveBM25F(BM25F):  # type: ignore[misc]
    def idf(self, searcher: Searcher, fieldname: str, text: bytes) -> float:
        reader = searcher.reader()
        return math.log(reader.doc_count() / (reader.doc_frequency(fieldname, text) + 1)) + 1


class CorpusSearcher(Searcher):  # type: ignore[misc]
    """Whoosh's searcher of a corpus, with BM25F by our constants."""

    def __init__(self, reader: CorpusReader) -> None:
        """Create it for one search."""
        weighting = _LiveBM25F(K1=K1, **{f"{field}_B": b for field, b in B.items()})
        super().__init__(reader, weighting=weighting)

    def avg_field_length(self, fieldname: str, default: Any = None) -> float:  # noqa: ARG002
        """Return the average length of a field, without deleted documents."""
        return float(self.reader().corpus.average_length(fieldname))

    def documents(self, wanted: Any) -> Mask:
        """Return a mask of the documents that match a query."""
        mask: Mask = np.zeros(self.reader().corpus.size, dtype=np.bool_)
        matcher = wanted.matcher(self, self.boolean_context())
        if isinstance(matcher, Postings):
            mask[matcher.arrays[0]] = True
        else:
            mask[np.fromiter(matcher.all_ids(), dtype=np.int64)] = True
        return mask

    def scores(self, wanted: Any) -> NDArray[np.float64]:
        """Return the score of every document for a query; 0 if it doesn't match."""
        collector = _ArrayCollector()
        self.search_with_collector(wanted, collector)
        total = np.zeros(self.reader().corpus.size)
        total[collector.ids] = collector.scores
        return total
