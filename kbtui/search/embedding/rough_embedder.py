"""A static embedding model distilled from the real one: the mean of one vector per token.

It embeds a thousand passages a second where the real one embeds a dozen, so that a large folder can
be searched semantically within the first minute. Each token of the vocabulary is embedded by
itself; the vectors are reduced to their principal components and whitened, and weighted down for
common tokens (the tokenizer's order gives the frequency rank).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from kbtui.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

FILE = "rough-1.npy"  # increase the number when the method changes
DIMENSION = 256
_MAX_TOKENS = 60_000  # more take minutes
_BATCH = 256
_SMOOTHING = 1e-5
_EPSILON = 1e-9

Tokens = list[int]


class RoughEmbedder:
    """Embeds a text as the normalised, weighted mean of its tokens' vectors."""

    is_local = True
    dimension = DIMENSION

    def __init__(
        self,
        name: str,
        identity: str,
        table: Vectors,
        tokens: Callable[[Sequence[str]], list[Tokens]],
    ) -> None:
        """Create it from `table`, one row per token, and a batch tokenizer."""
        self.name = name
        self.identity = identity
        self._table = table
        self._tokens = tokens

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages."""
        found = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, ids in enumerate(self._tokens(texts)):
            if ids:
                mean = self._table[ids].mean(axis=0, dtype=np.float32)
                found[row] = mean / max(float(np.linalg.norm(mean)), _EPSILON)
        return found

    def query(self, text: str) -> Vectors:
        """Embed one query as a 1-D vector."""
        vector: Vectors = self.documents([text])[0]
        return vector

    def close(self) -> None:
        """Do nothing: memory is freed with the object."""


def read_table(folder: Path, tokens: int) -> Vectors | None:
    """Read the token table of a prepared model; return None if it is missing or damaged."""
    try:
        table: Vectors = np.load(folder / FILE, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = table.shape == (tokens, DIMENSION) and table.dtype == np.float16
    return table if fits and bool(np.isfinite(table[:: max(1, tokens // 500)]).all()) else None


def make_table(
    vocabulary: Sequence[str],
    embed: Callable[[list[Tokens]], Vectors],
    goes_on: Callable[[], bool],
) -> Vectors | None:
    """Embed every token; return None if there are too many or too few, or if stopped.

    Args:
        vocabulary: The tokens by id, most common first.
        embed: Embeds lists of token ids, given without special tokens.
        goes_on: Called before each batch of tokens; may wait, and returns False to stop.
    """
    count = len(vocabulary)
    if not DIMENSION < count <= _MAX_TOKENS:
        return None
    parts: list[Vectors] = []
    for start in range(0, count, _BATCH):
        if not goes_on():
            return None
        parts.append(embed([[token] for token in range(start, min(start + _BATCH, count))]))
    vectors = np.concatenate(parts).astype(np.float64)
    if vectors.shape[1] < DIMENSION:
        return None
    vectors -= vectors.mean(axis=0)
    directions, strengths, _ = np.linalg.svd(vectors.T @ vectors)
    whitened = vectors @ directions[:, :DIMENSION] / np.sqrt(strengths[:DIMENSION] + _EPSILON)
    table = whitened * _weights(vocabulary)[:, None]
    scaled: Vectors = (table / np.abs(table).max()).astype(np.float16)
    return scaled


def write_table(folder: Path, table: Vectors) -> None:
    """Write a table atomically beside its model.

    Raises:
        OSError: there is no room for it.
    """
    data = io.BytesIO()
    np.save(data, table, allow_pickle=False)
    replace_file(folder / FILE, data.getvalue())


def _weights(vocabulary: Sequence[str]) -> NDArray[np.float64]:
    """Weight tokens by rank, assuming Zipf's law; special tokens come before the first word."""
    bare = (
        token.strip("#\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}")
        for token in vocabulary
    )
    first = next((n for n, token in enumerate(bare) if len(token) > 1 and token.isalpha()), 0)
    share = 1 / (np.maximum(1, np.arange(len(vocabulary)) - first + 1) + 2.7)
    share /= share.sum()
    weights: NDArray[np.float64] = _SMOOTHING / (_SMOOTHING + share)
    return weights
