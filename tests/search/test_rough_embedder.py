"""The rough model, and its use until the real one has caught up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.search.embedding import rough_embedder
from kbtui.search.embedding.rough_embedder import (
    DIMENSION,
    FILE,
    RoughEmbedder,
    make_table,
    read_table,
    write_table,
)
from kbtui.search.query import reading, semantic
from tests.search.fakes import ReadyModel, SlowEmbedder, WordEmbedder
from tests.search.helpers import eventually, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kbtui.search.embedding.embedder import Vectors
    from tests.search.helpers import Desk

WORDS = ["[PAD]", "!", *(f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(400))]


def embed(lists: list[list[int]]) -> Vectors:
    """Embed each token as a random vector with a common offset."""
    made = np.zeros((len(lists), 384), dtype=np.float32)
    for row, ids in enumerate(lists):
        made[row] = np.random.default_rng(ids[0]).normal(size=384) + 3
    return made


def tokens(texts: Sequence[str]) -> list[list[int]]:
    return [[WORDS.index(word) for word in text.split() if word in WORDS] for text in texts]


@pytest.fixture(scope="module")
def table() -> Vectors:
    made = make_table(WORDS, embed, lambda: True)
    assert made is not None
    return made


def test_texts_that_share_rare_words_are_nearer_than_those_that_share_common_ones(
    table: Vectors,
) -> None:
    rough = RoughEmbedder("words", "words-rough", table, tokens)
    rare, common, asked, nothing = rough.documents(["wne waa", "waa wpa", "wne waa wpb", "?"])
    assert float(asked @ rare) > float(asked @ common)
    assert np.allclose(np.linalg.norm([rare, common, asked], axis=1), 1, atol=1e-3)
    assert not nothing.any()
    assert np.array_equal(rough.query("wne waa"), rare)


def test_a_table_is_read_as_it_was_written(table: Vectors, tmp_path: Path) -> None:
    assert read_table(tmp_path, len(WORDS)) is None
    write_table(tmp_path, table)
    found = read_table(tmp_path, len(WORDS))
    assert found is not None
    assert np.array_equal(found, table)
    assert [file.name for file in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("damage", ["cut", "other", "not numbers", "empty"])
def test_a_table_that_is_not_whole_is_none(table: Vectors, tmp_path: Path, damage: str) -> None:
    file = tmp_path / FILE
    if damage == "other":
        np.save(file, table[:-1])
    elif damage == "not numbers":
        np.save(file, np.full_like(table, np.nan))
    else:
        write_table(tmp_path, table)
        file.write_bytes(file.read_bytes()[: -100 if damage == "cut" else 0])
    assert read_table(tmp_path, len(WORDS)) is None


def test_no_table_is_made_of_too_many_tokens_or_when_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert make_table(WORDS[:100], embed, lambda: True) is None
    monkeypatch.setattr(rough_embedder, "_MAX_TOKENS", DIMENSION + 1)
    assert make_table(WORDS, embed, lambda: True) is None
    monkeypatch.undo()
    assert make_table(WORDS, embed, lambda: False) is None


def test_the_rough_model_answers_until_the_real_one_has_caught_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_ROUGH_FROM", 10)
    monkeypatch.setattr(semantic, "_PRIORITISED", 1)
    for number in range(40):
        desk.write(
            f"knowledge/topics/n{number:02}.md", f"# Note {number}\n\nNothing of the kind.\n"
        )
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    real = SlowEmbedder()
    index = desk.index(model=ReadyModel(real))
    index.start()
    try:
        found = eventually(lambda: (r := index.search("vacation")).semantic and paths(r) and r)
        assert paths(found)[0] == "knowledge/topics/aa.md"
        assert not real.seen
        folder = desk.workspace.cache / "search" / "vectors" / "words-1-rough"
        assert folder.is_dir()
        real.let.release(2)
        # Written first, it would be embedded last, but the query gave it priority.
        eventually(lambda: any("holiday" in text for text in real.seen))
        real.let.release(100)
        eventually(lambda: index.status().state == "ready")
        eventually(lambda: not folder.exists())
        assert paths(index.search("vacation"))[0] == "knowledge/topics/aa.md"
    finally:
        real.let.release(100)
        index.close()


def test_it_is_not_made_while_reading_is_paused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_ROUGH_FROM", 1)
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    steps = []

    class Distilled(WordEmbedder):
        def rough(self, goes_on: Callable[[], bool]) -> None:
            steps.append("asked")
            steps.append("went on" if goes_on() else "stopped")

    index = desk.index(model=ReadyModel(Distilled()))
    index.pause.stopped = True
    index.start()
    try:
        eventually(lambda: steps)
        time.sleep(0.2)
        assert steps == ["asked"]
        index.pause.stopped = False
        eventually(lambda: steps == ["asked", "went on"])
    finally:
        index.close()


def test_a_rough_reading_that_was_cut_off_is_used_by_the_next_start(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_ROUGH_FROM", 1)
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    real = SlowEmbedder()
    for _ in range(2):
        index = desk.index(model=ReadyModel(real))
        index.start()
        eventually(lambda index=index: paths(index.search("vacation")))
        real.fail = True
        real.let.release()
        index.close()
        real.fail = False
    assert real.rougher is not None
    assert len(real.rougher.seen) == 1
