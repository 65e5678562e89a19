"""Compares questions and notes with what the models of the queue have read.

A search uses the first model with enough vectors, or the one with most.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from kbtui.errors import KbtuiError
from kbtui.search.index.language import language_of
from kbtui.search.query.fusion import FOREIGN, Comparison, JoinedComparison, foreign_documents
from kbtui.search.query.notices import by_words, notice_of, preparing
from kbtui.search.query.reading import Documents, split_keys
from kbtui.search.query.similar import Space

if TYPE_CHECKING:
    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import TreeIndex
    from kbtui.search.index.store import StateStore
    from kbtui.search.query.fusion import DocumentRows
    from kbtui.search.query.parser import Query
    from kbtui.search.query.reading import Keys, ReadingQueue, Row


# A commit with a smaller share of vectors is only searched lexically.
_MIN_TREE_SHARE = 0.8
_MIN_CORPUS_SHARE = 0.9
_PRIORITISED = 50


class Semantic:
    """The semantic part of one index; its methods are for any thread."""

    def __init__(self, queue: ReadingQueue) -> None:
        """Create it, for the models of a queue and their vectors."""
        self.queue = queue
        self._lock = threading.Lock()  # of the views of vectors, and the keys
        self._keys = _KeyCache()

    def answer(
        self, query: Query, corpus: Corpus, store: StateStore, *, load: bool, wait: bool
    ) -> tuple[Comparison | None, str]:
        """Compare a query with a corpus; return the result, if any, and a notice or ``""``.

        With `load`, first load the model and embed a few missing passages; with `wait`, all.
        """
        if query.has_words:
            self.queue.note_language(query.text)
        try:
            if load:
                self.queue.get_ready(store, wait=wait)
        except KbtuiError as error:
            return None, by_words(error.message)
        compared = self.compare(query.text, corpus, store) if query.has_words else None
        return compared, notice_of(store, self.queue)

    def compare(self, text: str, corpus: Corpus, store: StateStore) -> Comparison | None:
        """Compare a query with every document; return None without a model, or if it fails."""
        documents = self._now(corpus, store)
        best = self._best(documents) if text.strip() else None
        if best is None:
            return None
        row, view = best
        found = self._compare(row, text, view)
        if found is not None and row is not self.queue.first:
            nearest = np.argsort(-np.nan_to_num(found.cosines, nan=-1.0), kind="stable")
            self.queue.prioritize(frozenset(corpus.chunks[nearest[:_PRIORITISED]].tolist()))
        return self._join(found, row, text, documents)

    def compare_tree(
        self, text: str, tree: TreeIndex, *, load: bool, wait: bool
    ) -> tuple[Comparison | None, str]:
        """Compare a query with the files of a commit, using existing vectors only.

        Args:
            text: The query.
            tree: The files of the commit.
            load: Load the model, if it is prepared.
            wait: Prepare it as well.

        Returns:
            The comparison, or None if too few passages have vectors; and a notice or ``""``.
        """
        queue, first = self.queue, self.queue.first
        if load:
            queue.load_for_search(wait=wait)
        if not first.is_ready:
            return None, by_words(queue.message) or preparing(queue.preparation)

        documents = Documents(
            tree.corpus,
            lambda: {number: split_keys(held) for number, held in tree.passage_keys()},
            "then",
        )
        view = self._view(first, documents)
        if len(view.documents) < _MIN_TREE_SHARE * tree.corpus.count or not text.strip():
            return None, ""
        joined = self._join(self._compare(first, text, view), first, text, documents)
        return joined, by_words(queue.message)

    def spaces(self, corpus: Corpus, store: StateStore) -> list[Space]:
        """Return the vectors to compare notes by: the best model's, and the multilingual one's."""
        documents = self._now(corpus, store)
        best = self._best(documents)
        if best is None:
            return []
        row, view = best
        found = [Space(row.embedder, view, row.vectors.matrix, row.is_calibrated)]
        beside = self.queue.beside(row)
        if beside is not None:
            view = self._view(beside, documents)
            found.append(Space(beside.embedder, view, beside.vectors.matrix, is_second=True))
        return found

    def _now(self, corpus: Corpus, store: StateStore) -> Documents:
        return Documents(corpus, lambda: self._keys.read(store), "now")

    def _best(self, documents: Documents) -> tuple[Row, DocumentRows] | None:
        """Return the first model with enough vectors of a corpus, or the one with most, if any."""
        read: list[tuple[Row, DocumentRows]] = []
        for row in self.queue.answering():
            view = self._view(row, documents)
            if len(view.documents) >= _MIN_CORPUS_SHARE * documents.corpus.count:
                return row, view
            read.append((row, view))
        return max(read, key=lambda each: len(each[1].documents), default=None)

    def _view(self, row: Row, documents: Documents) -> DocumentRows:
        with self._lock:
            return row.view(documents, busy=self.queue.is_busy)

    def _join(
        self, first: Comparison | None, row: Row, text: str, documents: Documents
    ) -> Comparison | None:
        """Join a row's comparison with that of the multilingual model, if that has vectors."""
        beside, corpus = self.queue.beside(row), documents.corpus
        if first is None or beside is None:
            return first
        view = self._view(beside, documents)
        found = self._compare(beside, text, view) if len(view.documents) else None
        if found is None:
            return first
        foreign, language = foreign_documents(corpus), language_of(text)
        is_foreign = language in FOREIGN
        if not language:  # a few words: probably in the language of most passages
            is_foreign = 2 * int(foreign.sum()) > corpus.count
        if not is_foreign:
            return JoinedComparison(first, found, foreign, abroad=foreign)
        return JoinedComparison(first, found, corpus.live)

    def _compare(self, row: Row, text: str, view: DocumentRows) -> Comparison | None:
        try:
            vector = row.embedder.query(text)
        except KbtuiError as error:
            self.queue.failure = error.message
            return None
        self.queue.failure = ""
        return Comparison(
            vector, view, row.vectors.matrix, is_calibrated=row.is_calibrated, kind=row.kind
        )


class _KeyCache:
    """A cache of every chunk's passage keys; ids only grow, so only new ones are read."""

    def __init__(self) -> None:
        self._keys: Keys = {}
        self._store: StateStore | None = None

    def read(self, store: StateStore) -> Keys:
        if self._store is not store:
            self._keys, self._store = {}, store
        after = max(self._keys, default=0)
        for chunk, keys, _ in store.passage_keys(after):
            self._keys[chunk] = split_keys(keys)
        return self._keys
