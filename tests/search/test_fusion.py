from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbtui.search.fusion import MOST_BY_MEANING_ALONE, best_first, fuse, rank_of

WEIGHTS = (0.7, 0.3)


def everything(count: int) -> np.ndarray:
    return np.ones(count, dtype=bool)


def test_without_meaning_words_alone_decide() -> None:
    fused = fuse(np.array([0.0, 2.0, 4.0]), None, everything(3), WEIGHTS)
    assert fused.scores.tolist() == [0.0, 0.5, 1.0]
    assert fused.candidates.tolist() == [False, True, True]


def test_what_only_words_speak_for_always_stays() -> None:
    count = 1000
    lexical = np.zeros(count)
    lexical[-1] = 0.01
    semantic = np.linspace(1, -1, count)
    fused = fuse(lexical, semantic, everything(count), WEIGHTS)
    assert fused.candidates[-1]
    assert fused.candidates.sum() == MOST_BY_MEANING_ALONE + 1


def test_what_both_speak_for_comes_first() -> None:
    lexical = np.array([5.0, 5.0, 0.0])
    semantic = np.array([0.1, 0.9, 0.9])
    fused = fuse(lexical, semantic, everything(3), WEIGHTS)
    assert best_first(fused.scores, fused.candidates, 3)[0] == 1


def test_a_document_without_a_vector_is_neither_favoured_nor_lost() -> None:
    lexical = np.array([4.0, 2.0, 1.0])
    semantic = np.array([0.9, np.nan, 0.1])
    fused = fuse(lexical, semantic, everything(3), WEIGHTS)
    assert fused.scores[1] == 0.5
    assert fused.candidates.all()


def test_a_filter_does_not_change_how_meaning_is_measured() -> None:
    lexical = np.zeros(4)
    semantic = np.array([0.9, 0.5, 0.45, 0.0])
    open_scores = fuse(lexical, semantic, everything(4), WEIGHTS).scores
    mask = np.array([False, True, True, False])
    assert np.array_equal(fuse(lexical, semantic, mask, WEIGHTS).scores, open_scores)


def test_ties_at_the_end_are_all_kept() -> None:
    scores = np.array([3.0, 1.0, 1.0, 1.0])
    assert len(best_first(scores, everything(4), 2)) == 4


def test_ranks_count_from_one_among_the_candidates() -> None:
    values = np.array([5.0, 9.0, 7.0, 0.0])
    candidates = np.array([True, False, True, True])
    assert rank_of(values, 2, candidates) == 1
    assert rank_of(values, 0, candidates) == 2
    assert rank_of(values, 3, candidates) is None


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
    st.integers(1, 40),
)
def test_the_first_results_are_the_same_for_any_limit(lexical, rng, limit) -> None:
    semantic = np.array([rng.uniform(-1, 1) for _ in lexical])
    fused = fuse(np.array(lexical), semantic, everything(len(lexical)), WEIGHTS)
    assert ((fused.scores >= 0) & (fused.scores <= 1)).all()
    full = best_first(fused.scores, fused.candidates, 1000).tolist()
    assert best_first(fused.scores, fused.candidates, limit).tolist()[:limit] == full[:limit]
