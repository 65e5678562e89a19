from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.search.embedding.vectors import VectorStore
from tests.search.helpers import write_old_segment

if TYPE_CHECKING:
    from pathlib import Path


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def vectors(*numbers: int) -> np.ndarray:
    return np.stack([np.full(8, float(n), dtype=np.float32) for n in numbers])


def stored(folder: Path, *numbers: int) -> VectorStore:
    store = VectorStore(folder, 8)
    store.add([key(n) for n in numbers], vectors(*numbers))
    return store


def test_what_was_added_is_there_after_opening_again(tmp_path: Path) -> None:
    stored(tmp_path, 1, 2)
    stored(tmp_path, 3)
    store = VectorStore(tmp_path, 8)
    rows = store.rows([key(3), key(1), key(9)])
    assert store.matrix[rows[:2]].tolist() == vectors(3, 1).tolist()
    assert rows[2] == -1


def test_adding_again_changes_nothing(tmp_path: Path) -> None:
    store = stored(tmp_path, 1)
    store.add([key(1)], vectors(1))
    assert len(store) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_a_damaged_segment_is_dropped_and_the_others_stay(tmp_path: Path, damage: str) -> None:
    stored(tmp_path, 1, 2)
    stored(tmp_path, 3)
    file = max(tmp_path.glob("*.rows"), key=lambda f: f.stat().st_size)
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    contents = {"flip": data, "cut": data[:50], "empty": b"", "other": b"x" * 500}
    file.write_bytes(bytes(contents[damage]))
    store = VectorStore(tmp_path, 8)
    assert (key(1) in store, key(2) in store, key(3) in store) == (False, False, True)
    assert not file.exists()


def test_vectors_of_another_length_are_not_taken(tmp_path: Path) -> None:
    stored(tmp_path, 1)
    assert len(VectorStore(tmp_path, 16)) == 0


def test_another_process_s_vectors_are_seen(tmp_path: Path) -> None:
    one, other = VectorStore(tmp_path, 8), VectorStore(tmp_path, 8)
    one.add([key(5)], vectors(5))
    assert key(5) not in other
    other.refresh()
    assert key(5) in other


def test_many_segments_become_one_without_what_nobody_wants(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, 8)
    for n in range(30):
        store.add([key(n)], vectors(n))
    assert store.is_scattered
    assert store.compact({key(n) for n in range(20)})
    assert not store.is_scattered
    assert len(list(tmp_path.glob("*.rows"))) == 1
    again = VectorStore(tmp_path, 8)
    assert len(again) == 20
    assert again.matrix[again.rows([key(7)])].tolist() == vectors(7).tolist()
    assert not again.compact(set())


def test_a_search_keeps_its_matrix_while_vectors_are_added(tmp_path: Path) -> None:
    store = stored(tmp_path, 1)
    matrix = store.matrix
    for n in range(2, 50):
        store.add([key(n)], vectors(n))
    assert matrix[np.arange(len(matrix))].tolist() == vectors(1).tolist()


def test_no_half_written_file_is_left_behind(tmp_path: Path) -> None:
    stored(tmp_path, 1)
    assert [file.suffix for file in tmp_path.iterdir()] == [".rows"]


KEYS = [key(number) for number in range(7)]


def random_vectors(count: int, dimension: int = 8) -> np.ndarray:
    made = np.random.default_rng(count).normal(size=(count, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 20, 5000])
def test_rounding_moves_a_product_by_little_in_memory_and_in_a_mapped_file(
    tmp_path: Path, count: int
) -> None:
    made, query = random_vectors(count, 384), random_vectors(1, 384)[0]
    keys = [key(n) for n in range(count)]
    store = VectorStore(tmp_path, 384)
    store.add(keys, made)
    for matrix in (store.matrix, VectorStore(tmp_path, 384).matrix):
        assert np.abs(matrix.products(query) - made @ query).max() < 0.002
        some = np.arange(count)[::3]
        assert np.allclose(matrix.products(query, some), matrix.products(query)[some])


def test_rows_of_many_segments_large_and_small_are_told_apart(tmp_path: Path) -> None:
    made = random_vectors(5100)
    store = VectorStore(tmp_path, 8)
    for start, end in ((0, 30), (30, 5050), (5050, 5100)):
        store.add([key(n) for n in range(start, end)], made[start:end])
    for opened in (store, VectorStore(tmp_path, 8)):
        rows = opened.rows([key(n) for n in range(5100)])
        assert np.abs(opened.matrix[rows] - made).max() < 0.01


def test_vectors_of_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    made = random_vectors(7)
    write_old_segment(tmp_path, KEYS[:5], made[:5])
    write_old_segment(tmp_path, KEYS[5:], made[5:])
    for _ in range(2):
        store = VectorStore(tmp_path, 8)
        assert np.abs(store.matrix[store.rows([key(n) for n in range(7)])] - made).max() < 0.01
        assert {file.suffix for file in tmp_path.iterdir()} == {".rows"}


def test_vectors_of_an_earlier_version_serve_where_there_is_no_room_to_write_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_old_segment(tmp_path, KEYS[:5], random_vectors(5))
    with monkeypatch.context() as patch:
        patch.setattr(VectorStore, "_write", full)
        store = VectorStore(tmp_path, 8)
        store.refresh()
    assert (len(store), len(store.matrix)) == (5, 5)
    assert len(VectorStore(tmp_path, 8)) == 5


def test_a_damaged_segment_of_an_earlier_version_is_dropped(tmp_path: Path) -> None:
    write_old_segment(tmp_path, KEYS[:5], random_vectors(5))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert len(VectorStore(tmp_path, 8)) == 0
    assert not list(tmp_path.iterdir())


def test_what_isn_t_a_number_is_near_to_nothing(tmp_path: Path) -> None:
    made = np.stack([np.full(8, np.nan), np.zeros(8), np.full(8, 0.5)]).astype(np.float32)
    store = VectorStore(tmp_path, 8)
    store.add([key(n) for n in range(3)], made)
    near = store.matrix.products(np.full(8, 0.5, dtype=np.float32))
    assert np.isnan(near[0])
    assert near[1:].tolist() == pytest.approx([0, 2])
