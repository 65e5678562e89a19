from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.search.embedding.vectors import VectorStore

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
    file = max(tmp_path.glob("*.vectors"), key=lambda f: f.stat().st_size)
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
    assert store.compact({key(n) for n in range(20)})
    assert len(list(tmp_path.glob("*.vectors"))) == 1
    again = VectorStore(tmp_path, 8)
    assert len(again) == 20
    assert again.matrix[again.rows([key(7)])].tolist() == vectors(7).tolist()
    assert not again.compact(set())


def test_a_search_keeps_its_matrix_while_vectors_are_added(tmp_path: Path) -> None:
    store = stored(tmp_path, 1)
    matrix = store.matrix
    for n in range(2, 50):
        store.add([key(n)], vectors(n))
    assert matrix.tolist() == vectors(1).tolist()


def test_no_half_written_file_is_left_behind(tmp_path: Path) -> None:
    stored(tmp_path, 1)
    assert [file.suffix for file in tmp_path.iterdir()] == [".vectors"]
