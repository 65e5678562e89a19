"""Search over the files of a commit, in memory: what was known then."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS, Corpus, PostingsCache
from kbtui.search.index.chunker import is_indexed, read_document
from kbtui.search.index.rows import lexical_document, row_of
from kbtui.workspace.files import blob_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Postings
    from kbtui.search.index.chunker import ChunkLimits, Document
    from kbtui.search.index.rows import ChunkRow

_REMEMBERED_FILES = 20_000
_REMEMBERED_TREES = 2


class MemorySegment:
    """Chunks indexed in dictionaries; scores as a segment on disk does."""

    name = "memory"

    def __init__(self, rows: Sequence[ChunkRow]) -> None:
        self.chunks = np.array([row.id for row in rows], dtype=np.int64)
        self._terms: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._lengths = {field: np.zeros(len(rows), dtype=np.int64) for field in SCORED_FIELDS}
        self.files = np.zeros(len(rows), dtype=np.int64)
        for number, row in enumerate(rows):
            document = lexical_document(row)
            self.files[number] = document.file
            for field, text in document.texts.items():
                counts = Counter(analyser.terms(text))
                self._lengths[field][number] = counts.total()
                self._add(field, number, counts.items())
            for field, values in document.filters.items():
                self._add(field, number, ((value, 1) for value in dict.fromkeys(values)))

    def _add(self, field: str, number: int, counts: Iterable[tuple[str, int]]) -> None:
        terms = self._terms.setdefault(field, {})
        for term, count in counts:
            terms.setdefault(term, []).append((number, count))

    def lengths(self, field: str) -> NDArray[np.float32]:
        """Lengths in terms."""
        return self._lengths[field].astype(np.float32)

    def exact_lengths(self, field: str) -> NDArray[np.int64]:
        """Lengths in terms."""
        return self._lengths[field]

    def postings(self, field: str, term: str) -> Postings:
        """The chunks that hold a term, and how often."""
        held = np.array(self._terms.get(field, {}).get(term, ()), dtype=np.int32).reshape(-1, 2)
        return np.ascontiguousarray(held[:, 0]), held[:, 1].astype(np.float32)

    def all_postings(self) -> Iterator[list[tuple[str, str, Postings]]]:
        """Nothing: they are in memory anyway."""
        return iter(())

    def beginning_with(self, field: str, prefix: str) -> list[str]:
        """The terms that start with `prefix`."""
        return [term for term in self._terms.get(field, ()) if term.startswith(prefix)]


class TreeIndex:
    """The files of one commit, indexed."""

    def __init__(self, documents: Iterable[Document]) -> None:
        rows = [
            (document, chunk, order)
            for document in documents
            for order, chunk in enumerate(document.chunks)
        ]
        self._rows = {
            number: row_of(document, chunk, number, order)
            for number, (document, chunk, order) in enumerate(rows)
        }
        segment = MemorySegment(list(self._rows.values()))
        self.corpus = Corpus([segment], [()], PostingsCache())

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """The chunks with these ids."""
        return {number: self._rows[number] for number in numbers if number in self._rows}

    def passage_keys(self) -> Iterator[tuple[int, bytes]]:
        """The keys of each chunk's vectors, one behind the other."""
        return ((number, row.keys) for number, row in self._rows.items())


class TreeReader:
    """Makes tree indexes; a file that is the same in two commits is cut into chunks once."""

    def __init__(
        self, limits: ChunkLimits, tree_at: Callable[[str], Iterable[tuple[str, bytes]]]
    ) -> None:
        """`tree_at` gives the files of a revision."""
        self._limits = limits
        self._tree_at = tree_at
        self._lock = threading.Lock()
        self._documents: OrderedDict[tuple[str, str], Document] = OrderedDict()
        self._trees: dict[str, TreeIndex] = {}

    def at(self, revision: str) -> TreeIndex:
        """Index the files of a commit; the last ones asked for are remembered."""
        with self._lock:
            tree = self._trees.pop(revision, None) or self._index(self._tree_at(revision))
            self._trees[revision] = tree
            while len(self._trees) > _REMEMBERED_TREES:
                del self._trees[next(iter(self._trees))]
            return tree

    def _index(self, files: Iterable[tuple[str, bytes]]) -> TreeIndex:
        return TreeIndex(self._document(path, data) for path, data in files if is_indexed(path))

    def _document(self, path: str, data: bytes) -> Document:
        key = (path, blob_id(data))
        found = self._documents.get(key)
        if found is None:
            found = self._documents[key] = read_document(path, data, self._limits)
            if len(self._documents) > _REMEMBERED_FILES:
                self._documents.popitem(last=False)
        return found
