from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, strategies as st

from kbtui.search.query.fusion import MAX_SEMANTIC_ONLY, VectorKind, best_first, fuse, rank_of

WEIGHTS = (0.7, 0.3)


@dataclass
class Fixed:
    """A fake `Comparison` with given cosines before and after feedback."""

    cosines: np.ndarray
    after: np.ndarray | None = None
    fed_back: list[int] = field(default_factory=list)
    kind: VectorKind = field(default_factory=VectorKind)
    abroad: np.ndarray | None = None

    def with_feedback(self, numbers: np.ndarray) -> np.ndarray:
        self.fed_back = numbers.tolist()
        return self.cosines if self.after is None else self.after


def everything(count: int) -> np.ndarray:
    return np.ones(count, dtype=bool)


def test_without_meaning_words_alone_decide() -> None:
    fused = fuse(np.array([0.0, 2.0, 4.0]), None, everything(3), WEIGHTS)
    assert np.allclose(fused.scores, [0.0, 0.5, 1.0])
    assert fused.candidates.tolist() == [False, True, True]


def test_what_only_words_speak_for_always_stays() -> None:
    count = 1000
    lexical = np.zeros(count)
    lexical[-1] = 0.01
    fused = fuse(lexical, Fixed(np.linspace(1, -1, count)), everything(count), WEIGHTS)
    assert fused.candidates[-1]
    assert fused.candidates.sum() == MAX_SEMANTIC_ONLY + 1


def test_what_both_speak_for_comes_first() -> None:
    meaning = Fixed(np.array([0.1, 0.9, 0.9]))
    fused = fuse(np.array([5.0, 5.0, 0.0]), meaning, everything(3), WEIGHTS)
    assert best_first(fused.scores, fused.candidates, 3)[0] == 1


def test_a_document_without_a_vector_is_neither_favoured_nor_lost() -> None:
    meaning = Fixed(np.array([0.9, np.nan, 0.1]))
    fused = fuse(np.array([4.0, 2.0, 1.0]), meaning, everything(3), WEIGHTS)
    first, second, third = fused.scores
    assert first > second > third
    assert fused.candidates.all()


def test_without_any_vector_yet_words_alone_decide() -> None:
    lexical = np.array([0.0, 2.0, 4.0])
    without = fuse(lexical, None, everything(3), WEIGHTS)
    fused = fuse(lexical, Fixed(np.full(3, np.nan)), everything(3), WEIGHTS)
    assert np.array_equal(fused.scores, without.scores)
    assert np.array_equal(fused.candidates, without.candidates)


def test_a_filter_reorders_nothing() -> None:
    lexical = np.array([0.0, 3.0, 1.0, 0.0])
    semantic = np.array([0.9, 0.5, 0.45, 0.0])
    open_scores = fuse(lexical, Fixed(semantic), everything(4), WEIGHTS).scores
    mask = np.array([False, True, True, False])
    filtered = fuse(lexical, Fixed(semantic), mask, WEIGHTS)
    assert np.array_equal(filtered.scores, open_scores)
    assert filtered.candidates.tolist() == [False, True, True, False]


def test_what_is_deleted_changes_nothing() -> None:
    lexical, semantic = np.array([1.0, 3.0, 2.0]), np.array([0.2, 0.7, 0.5])
    alone = fuse(lexical, Fixed(semantic), everything(3), WEIGHTS).scores
    live = np.array([True, True, True, False])
    more = fuse(np.append(lexical, 9.0), Fixed(np.append(semantic, 0.99)), live, WEIGHTS, live=live)
    assert np.allclose(more.scores[:3], alone)


def test_the_question_is_moved_towards_the_best_of_both() -> None:
    meaning = Fixed(np.array([0.1, 0.2, 0.3]), after=np.array([0.9, 0.2, 0.3]))
    fused = fuse(np.zeros(3), meaning, everything(3), WEIGHTS)
    assert meaning.fed_back == [2, 1, 0]
    assert best_first(fused.scores, fused.candidates, 1).tolist() == [0]


def test_what_stands_beside_an_answer_is_lifted() -> None:
    def best_of_series(scores: np.ndarray) -> np.ndarray:
        return np.concatenate([np.full(2, scores[:2].max()), np.full(2, scores[2:].max())])

    lexical = np.array([9.0, 2.0, 2.1, 0.0])
    plain = fuse(lexical, None, everything(4), WEIGHTS).scores
    lifted = fuse(lexical, None, everything(4), WEIGHTS, best_of_series=best_of_series).scores
    assert plain[1] < plain[2]
    assert lifted[1] > lifted[2]
    assert lifted.argmax() == 0


def test_ties_at_the_end_are_all_kept() -> None:
    scores = np.array([3.0, 1.0, 1.0, 1.0])
    assert len(best_first(scores, everything(4), 2)) == 4


def test_ranks_count_from_one() -> None:
    among = np.array([5.0, 7.0, 0.0])
    assert rank_of(7.0, among) == 1
    assert rank_of(5.0, among) == 2
    assert rank_of(0.0, among) is None
    assert rank_of(float("nan"), among) is None


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
    st.integers(1, 40),
)
def test_the_first_results_are_the_same_for_any_limit(lexical, rng, limit) -> None:
    meaning = Fixed(np.array([rng.uniform(-1, 1) for _ in lexical]))
    fused = fuse(np.array(lexical), meaning, everything(len(lexical)), WEIGHTS)
    assert ((fused.scores >= 0) & (fused.scores <= 1)).all()
    assert not (np.array(lexical)[~fused.candidates] > 0).any()
    full = best_first(fused.scores, fused.candidates, 1000).tolist()
    assert best_first(fused.scores, fused.candidates, limit).tolist()[:limit] == full[:limit]
