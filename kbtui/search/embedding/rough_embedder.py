"""A rough model made from the real one: a vector a token, and a text is their mean.

It embeds a thousand passages a second where the real one does a dozen, so that a large folder is
searched by meaning within the first minute. Each token of the vocabulary is embedded by itself,
once; of these vectors the main directions are kept and evened out, and common tokens weigh less
(the tokenizer's order tells how common each is).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from kbtui.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from threading import Event

    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

FILE = "rough-1.npy"  # counts up whenever it is made differently
DIMENSION = 256
_MOST_TOKENS = 60_000  # more take minutes
_AT_ONCE = 256
_RARE = 1e-5
_TINY = 1e-9

Tokens = list[int]


class RoughEmbedder:
    """Texts to the weighted means of their tokens' vectors, as unit vectors."""

    is_local = True
    dimension = DIMENSION

    def __init__(
        self,
        name: str,
        identity: str,
        table: Vectors,
        tokens: Callable[[Sequence[str]], list[Tokens]],
    ) -> None:
        """Take a row of `table` for each token, and what makes tokens of texts."""
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
                found[row] = mean / max(float(np.linalg.norm(mean)), _TINY)
        return found

    def query(self, text: str) -> Vectors:
        """Embed one query as a flat vector."""
        vector: Vectors = self.documents([text])[0]
        return vector

    def rough(self, _stop: Event) -> None:
        """There is nothing rougher."""

    def close(self) -> None:
        """Nothing to do: memory goes with the object."""


def read_table(folder: Path, tokens: int) -> Vectors | None:
    """The table of a prepared model; None where it isn't there or isn't whole."""
    try:
        table: Vectors = np.load(folder / FILE, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = table.shape == (tokens, DIMENSION) and table.dtype == np.float16
    return table if fits and bool(np.isfinite(table[:: max(1, tokens // 500)]).all()) else None


def make_table(
    vocabulary: Sequence[str], embed: Callable[[list[Tokens]], Vectors], stop: Event
) -> Vectors | None:
    """Embed every token; None if there are too many, or too few, or `stop` was set meanwhile.

    Args:
        vocabulary: The tokens by their numbers, in the order of how common they are.
        embed: Embeds lists of token numbers, without the marks of beginning and end.
        stop: Ends it.
    """
    count = len(vocabulary)
    if not DIMENSION < count <= _MOST_TOKENS:
        return None
    parts: list[Vectors] = []
    for start in range(0, count, _AT_ONCE):
        if stop.is_set():
            return None
        parts.append(embed([[token] for token in range(start, min(start + _AT_ONCE, count))]))
    vectors = np.concatenate(parts).astype(np.float64)
    if vectors.shape[1] < DIMENSION:
        return None
    vectors -= vectors.mean(axis=0)
    directions, strengths, _ = np.linalg.svd(vectors.T @ vectors)
    evened = vectors @ directions[:, :DIMENSION] / np.sqrt(strengths[:DIMENSION] + _TINY)
    table = evened * _weights(vocabulary)[:, None]
    kept: Vectors = (table / np.abs(table).max()).astype(np.float16)
    return kept


def write_table(folder: Path, table: Vectors) -> None:
    """Keep a table beside its model, in one step.

    Raises:
        OSError: there is no room for it.
    """
    data = io.BytesIO()
    np.save(data, table, allow_pickle=False)
    replace_file(folder / FILE, data.getvalue())


def _weights(vocabulary: Sequence[str]) -> NDArray[np.float64]:
    """How much each token says, by Zipf's law; what stands before the first word is marks."""
    bare = (
        token.strip("#\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}")
        for token in vocabulary
    )
    first = next((n for n, token in enumerate(bare) if len(token) > 1 and token.isalpha()), 0)
    share = 1 / (np.maximum(1, np.arange(len(vocabulary)) - first + 1) + 2.7)
    share /= share.sum()
    weights: NDArray[np.float64] = _RARE / (_RARE + share)
    return weights
