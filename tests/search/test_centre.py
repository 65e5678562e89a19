"""Vectors compared without what all passages have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.search.embedding.vectors import VectorStore
from kbtui.search.query.fusion import BUNDLED, SECOND, DocumentRows, VectorKind

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.search.embedding.vectors import Matrix

WITH_MEAN = replace(BUNDLED, common=0.0)


@dataclass
class Passages:
    """A corpus as far as its vectors are concerned: which chunk each document is."""

    live: np.ndarray
    foreign: np.ndarray

    def holding(self, _field: str, languages: tuple[str, ...]) -> np.ndarray:
        return self.foreign if "de" in languages else ~self.foreign

    @property
    def size(self) -> int:
        return len(self.live)

    @property
    def chunks(self) -> np.ndarray:
        return np.arange(self.size)


def centred_view(
    folder: Path,
    vectors: np.ndarray,
    counts: list[int],
    kind: VectorKind = SECOND,
    deleted: int = 0,
    foreign: int = 0,
) -> tuple[DocumentRows, Matrix]:
    """Documents of so many passages each, compared without what all have in common."""
    names = [row.to_bytes(16, "big") for row in range(len(vectors))]
    store = VectorStore(folder, vectors.shape[1])
    store.add(names, vectors.astype(np.float32))
    ends = np.cumsum(counts)
    keys = {
        n: tuple(names[end - count : end])
        for n, (end, count) in enumerate(zip(ends, counts, strict=True))
    }
    numbers = np.arange(len(counts))
    corpus = Passages(numbers >= deleted, numbers < foreign)
    return DocumentRows(corpus, store, keys, kind), store.matrix


def units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_what_all_passages_have_in_common_counts_for_no_passage(tmp_path: Path) -> None:
    """A passage with no topic of its own is nearest to every question, centred to none."""
    common, *topics = np.eye(32)
    notes = units(np.array([common * 3 + topics[n % 30] for n in range(3000)] + [common]))
    query = units(common * 3 + topics[7] * 0.3)
    assert (notes @ query).argmax() == 3000
    view, matrix = centred_view(tmp_path, notes, [1] * 3001)
    assert view.nearest(matrix, query.astype(np.float32))[0].argmax() % 30 == 7


@pytest.mark.parametrize("documents", [40, 5000])
def test_centred_cosines_are_those_of_vectors_without_the_mean(
    tmp_path: Path, documents: int
) -> None:
    chance = np.random.default_rng(5)
    counts = chance.integers(1, 4, documents).tolist()
    vectors = units(chance.normal(size=(sum(counts), 32)) + 0.5)
    query = units(chance.normal(size=32) + 0.5)
    view, matrix = centred_view(tmp_path, vectors, counts)
    stored = matrix[np.arange(len(vectors))]
    mean = stored.sum(axis=0) / (len(stored) + 50)
    cosines = units(stored - mean) @ units(query - mean)
    wanted, at = [], 0
    for count in counts:
        whole = units(units(stored - mean)[at : at + count].sum(axis=0)) @ units(query - mean)
        wanted.append(0.7 * cosines[at : at + count].max() + 0.3 * whole)
        at += count
    found, likeness = view.nearest(matrix, query.astype(np.float32))
    assert likeness is found
    assert found == pytest.approx(wanted, abs=2e-3)  # rows are rounded to bytes
    moved = view.rescore(matrix, query.astype(np.float32), found)
    assert moved == pytest.approx(found, abs=1e-6)


def talk(count: int, chance: np.random.Generator) -> np.ndarray:
    """Vectors that have much in common, as those of all messages of a conversation."""
    return units(units(chance.normal(size=(count, 64))) + np.eye(64)[0])


def test_the_first_model_has_at_most_half_of_the_mean_taken(tmp_path: Path) -> None:
    vectors = talk(3000, np.random.default_rng(7))
    query = vectors[5].astype(np.float32)
    view, matrix = centred_view(tmp_path, vectors, [1] * 3000, BUNDLED)
    half = matrix[np.arange(3000)].mean(axis=0) / 2
    cosines = units(matrix[np.arange(3000)] - half) @ units(query - half)
    found, _ = view.nearest(matrix, query)
    assert np.corrcoef(found, cosines)[0, 1] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("passages", [1, 3])
def test_thresholds_hold_for_cosines_with_the_mean_whose_scale_others_keep(
    tmp_path: Path, passages: int
) -> None:
    chance = np.random.default_rng(8)
    vectors, query = talk(3000, chance), talk(1, chance)[0].astype(np.float32)
    (view, matrix), (plain, _) = (
        centred_view(tmp_path / kind, vectors, [passages] * (3000 // passages), of)
        for kind, of in (("first", BUNDLED), ("with", WITH_MEAN))
    )
    (found, likeness), (before, _) = (each.nearest(matrix, query) for each in (view, plain))
    assert likeness == pytest.approx(before, abs=1e-6)
    assert found.mean() == pytest.approx(before.mean(), abs=0.02)
    assert found.max() == pytest.approx(before.max(), abs=0.05)


def test_the_mean_of_a_few_notes_is_hardly_taken(tmp_path: Path) -> None:
    """It is mostly what the notes are about."""
    vectors = talk(12, np.random.default_rng(9))
    query = vectors[3].astype(np.float32)
    view, matrix = centred_view(tmp_path, vectors, [1] * 12, BUNDLED)
    found, likeness = view.nearest(matrix, query)
    assert found == pytest.approx(likeness, abs=0.01)


@pytest.mark.parametrize("others", ["deleted", "foreign"])
def test_what_is_deleted_or_in_another_language_is_no_part_of_the_mean(
    tmp_path: Path, others: str
) -> None:
    """An index that was made anew finds the same, and what English notes have in common goes."""
    chance = np.random.default_rng(10)
    without, left = -talk(500, chance), talk(900, chance)
    query = left[5].astype(np.float32)
    vectors = np.concatenate([without, left])
    view, matrix = centred_view(
        tmp_path / "all", vectors, [1] * 1400, BUNDLED, **{others: len(without)}
    )
    alone, of_left = centred_view(tmp_path / "alone", left, [1] * 900, BUNDLED)
    found, _ = view.nearest(matrix, query)
    assert found[500:] == pytest.approx(alone.nearest(of_left, query)[0], abs=2e-3)
