"""Notes that are alike: those nearest to a note's passages, with the sentence that is most alike.

A file's nearness is the mean of two: of its best passage to the whole note, and of its best passage
to any passage of the note, so that a note about several things has neighbours for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kbtui.knowledge.format.document import Document
from kbtui.search.index.letters import SENTENCE_END
from kbtui.search.query.fusion import as_first, foreign_documents, unit
from kbtui.search.results import SimilarNote
from kbtui.text import clean_line, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kbtui.search.embedding.embedder import Embedder, Vectors
    from kbtui.search.embedding.vectors import Matrix
    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.index.chunk_rows import ChunkRow
    from kbtui.search.query.fusion import DocumentRows
    from kbtui.search.query.hits import Rows

    Scores = NDArray[np.float64]

_MAX_PASSAGES = 16  # of the note, evenly chosen
_MAX_SENTENCES = 12
_MIN_LETTERS = 12
_WIDTH = 240
_BATCH = 64
_QUOTE_MARK = re.compile(r"^[>\s]+")
_SAID = ("paragraph", "item", "task", "quote", "row")
MIN_COSINE = 0.35
"""What two unrelated notes reach by chance, on the bundled model's scale."""


@dataclass(frozen=True)
class Space:
    """The vectors of one model: its embedder, and how documents are mapped to rows."""

    embedder: Embedder
    view: DocumentRows
    matrix: Matrix
    is_calibrated: bool = False
    is_second: bool = False

    def of(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return the vectors of some documents' passages, at most `_MAX_PASSAGES`."""
        rows = [self.view.rows_of(number) for number in numbers.tolist()]
        found = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
        step = -(-len(found) // _MAX_PASSAGES) or 1
        return self.matrix[found[::step]]

    def nearness(self, own: Vectors) -> Scores:
        """Return how near each document is to a note's passages; NaN without a vector."""
        _, whole = self.view.nearest(self.matrix, unit(own.mean(axis=0)))
        parts = [self.view.nearest(self.matrix, unit(each))[1] for each in own]
        found = (whole + np.max(parts, axis=0)) / 2
        return as_first(found) if self.is_second else found


def nearness(spaces: Sequence[Space], own: NDArray[np.int64], foreign: Mask) -> Scores:
    """Return each document's nearness to those of a note: by the model that reads both best.

    Args:
        spaces: The first model's vectors, then the multilingual one's, if there is one.
        own: The note's documents.
        foreign: The documents in another language than English.
    """
    found = np.full(len(foreign), np.nan)
    for space in spaces:
        vectors = space.of(own)
        if not len(vectors):
            continue
        near = space.nearness(vectors)
        holds = np.isfinite(near)
        if space.is_second and not foreign[own].any():
            holds &= foreign
        found[holds] = near[holds]
    return found


def most_similar(
    corpus: Corpus,
    rows: Rows,
    spaces: Sequence[Space],
    own: Mask,
    allowed: Mask,
    limit: int,
    hides: Callable[[str], bool],
) -> tuple[SimilarNote, ...]:
    """Return the notes nearest to that with the documents `own`, nearest first.

    Args:
        corpus: All documents.
        rows: Reads chunks.
        spaces: The first model's vectors, then the multilingual one's, if there is one.
        own: The note's documents.
        allowed: The documents of other notes.
        limit: How many notes at most.
        hides: Whether whoever asked may not see a path.
    """
    numbers = np.flatnonzero(own)
    foreign = foreign_documents(corpus)
    near = nearness(spaces, numbers, foreign)
    floor = MIN_COSINE if spaces[0].is_calibrated else -1.0
    candidates = np.flatnonzero(allowed & ~own & np.isfinite(near) & (near >= floor))
    candidates = candidates[np.argsort(-near[candidates], kind="stable")]
    found: dict[str, SimilarNote] = {}
    for start in range(0, len(candidates), _BATCH):
        batch = candidates[start : start + _BATCH]
        read = rows.rows(corpus.chunks[batch].tolist())
        for number, chunk in zip(batch.tolist(), corpus.chunks[batch].tolist(), strict=True):
            row = read.get(chunk)
            if row is None or row.path in found or hides(row.path):
                continue
            space = spaces[-1 if foreign[number] or foreign[numbers].any() else 0]
            note = _note(row, float(near[number]), space, space.of(numbers))
            if note is not None:  # a template may have nothing to say
                found[row.path] = note
            if len(found) >= limit:
                return tuple(found.values())
    return tuple(found.values())


def _note(row: ChunkRow, score: float, space: Space, own: Vectors) -> SimilarNote | None:
    """Return a similar note with the sentence that is most alike; None if it has none."""
    sentences = list(_sentences(row))
    if not sentences:
        return None
    line, text = sentences[0]
    if len(sentences) > 1 and len(own) and space.embedder.is_local:
        vectors = space.embedder.documents([sentence for _, sentence in sentences])
        line, text = sentences[int((vectors @ own.T).max(axis=1).argmax())]
    title = clean_line(row.file.title)
    return SimilarNote(row.path, title, line, shorten(text, _WIDTH), round(score, 4))


def _sentences(row: ChunkRow) -> Iterator[tuple[int, str]]:
    """Yield the first sentences of a chunk with their lines, as a reader sees them."""
    text, found = row.chunk.text, 0
    document = Document(text, has_head=False, is_excerpt=True)
    for block in document.walk():
        at = block.start
        for part in SENTENCE_END.split(text[block.start : block.end]):
            at = text.index(part, at)
            sentence = clean_line(_QUOTE_MARK.sub("", part))
            if block.kind in _SAID and sum(map(str.isalpha, sentence)) >= _MIN_LETTERS:
                yield row.chunk.lines[0] + document.line_at(at), sentence
                found += 1
            if found >= _MAX_SENTENCES:
                return
            at += len(part)
