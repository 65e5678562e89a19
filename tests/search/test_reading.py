"""A row of the queue of models that read for meaning: how far it is, and what changes that."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError, ModelError
from kbtui.search.embedding.child_embedder import UnfitError
from kbtui.search.embedding.prepared import ClosingError
from kbtui.search.query.reading import ReadingQueue, Row
from tests.search.fakes import ReadyModel, WordEmbedder

if TYPE_CHECKING:
    from pathlib import Path


class Models:
    """What loading gives, one after the other; an exception is raised."""

    def __init__(self, *found: WordEmbedder | Exception | None) -> None:
        self.left = list(found)

    def __call__(self, _stop: threading.Event) -> WordEmbedder | None:
        found = self.left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


STOP = threading.Event()


def test_a_row_is_loaded_once(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(WordEmbedder()))
    assert (row.name, row.embedded, row.is_to_come) == ("", 0, True)
    assert row.load(STOP)
    assert row.load(STOP)
    assert (row.name, row.embedded, row.is_to_come) == ("words", 0, False)


def test_a_failure_stays_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(ModelError("It was out of memory."), WordEmbedder()))
    assert not row.load(STOP)
    assert not row.load(STOP)
    assert (row.state, row.message) == ("failed", "It was out of memory.")
    row.retry()
    assert (row.state, row.message) == ("waiting", "")
    assert row.load(STOP)


def test_what_this_processor_cannot_run_is_not_tried_again(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(UnfitError("moon")))
    row.load(STOP)
    row.retry()
    assert not row.load(STOP)
    assert "can't run on this processor" in row.message


def test_one_that_was_cut_off_by_closing_still_waits(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(ClosingError(), WordEmbedder()))
    assert not row.load(STOP)
    assert row.is_to_come
    assert row.load(STOP)


def test_where_there_is_no_model_none_is_looked_for_again(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(None))
    assert not row.load(STOP)
    assert not row.load(STOP)
    assert (row.is_to_come, row.message) == (False, "")


def test_vectors_that_cannot_be_kept_are_a_failure_of_the_row(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("")
    row = Row(tmp_path / "vectors" / "below" / "a file", Models(WordEmbedder()))
    assert not row.load(STOP)
    assert "can't be kept" in row.message


def test_a_closed_row_is_never_loaded(tmp_path: Path) -> None:
    row = Row(tmp_path, Models(WordEmbedder()))
    row.close()
    assert not row.load(STOP)
    assert not row.is_to_come


def test_only_what_is_loaded_answers_and_the_model_before_while_another_is_prepared(
    tmp_path: Path,
) -> None:
    def no_corpus() -> None:
        raise KbtuiError("No passage is looked at.")

    before, gate = WordEmbedder(identity="before"), threading.Event()
    (tmp_path / "vectors" / "before").mkdir(parents=True)
    model = ReadyModel(WordEmbedder(), gate, before=[before])
    queue = ReadingQueue(tmp_path / "vectors", model, STOP, no_corpus)
    assert [*queue.answering()] == [queue.before]
    assert queue.standing_in == "words"
    gate.set()
    assert not [*queue.answering()], "it need only be loaded"
    assert queue.load()
    assert [*queue.answering()] == [queue.first, queue.before]
    assert queue.standing_in == ""
    queue.close()
    assert not [*queue.answering()]


@pytest.mark.parametrize("has_second", [True, False])
def test_a_multilingual_model_stands_beside_a_row_once_it_is_loaded(
    tmp_path: Path, has_second: bool
) -> None:
    second = ReadyModel(WordEmbedder(identity="second")) if has_second else None
    model = ReadyModel(WordEmbedder())
    queue = ReadingQueue(tmp_path / "vectors", model, STOP, lambda: None, second=second)
    assert queue.beside(queue.first) is None
    assert queue.second.load(STOP) is has_second
    assert queue.beside(queue.first) is queue.beside(queue.rough)
    assert (queue.beside(queue.first) is queue.second) is has_second
    assert queue.beside(queue.before) is None
