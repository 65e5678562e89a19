"""Notes that are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.search.results import SimilarNote
from kbtui.settings import SearchSettings
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import ENGLISH, GERMAN

if TYPE_CHECKING:
    from tests.search.helpers import Desk

CAR = "knowledge/topics/car.md"


@pytest.fixture
def filled(desk: Desk) -> Desk:
    desk.write(CAR, "# Car\n\nThe car needs new tyres before the holiday.\n")
    desk.write(
        "knowledge/topics/trip.md",
        "# Trip\n\nBread needs flour and salt.\n\n- [ ] The automobile has old tyres, before vacation"
        " starts.\n\nThe hotel is booked by the sea.\n",
    )
    desk.write("knowledge/topics/cook.md", "# Kitchen\n\nSoup wants onions, garlic and patience.\n")
    desk.write("docs/garage/tyres.md", "# Shop\n\nTyres for every automobile are sold here.\n")
    desk.write("memory/2026-01-02.md", "# Day\n\nThe car needs new tyres before the holiday.\n")
    desk.write("sessions/x.jsonl", '{"role": "user", "content": "The car needs new tyres."}\n')
    return desk


def test_the_nearest_notes_come_first_with_the_sentence_that_is_alike(filled: Desk) -> None:
    found = filled.index(model=ReadyModel(WordEmbedder())).similar(CAR, wait=True).notes
    assert [note.path for note in found][:2] == [
        "knowledge/topics/trip.md",
        "docs/garage/tyres.md",
    ]
    assert found[0] == SimilarNote(
        "knowledge/topics/trip.md",
        "Trip",
        5,
        "The automobile has old tyres, before vacation starts.",
        found[0].score,
    )
    assert found[0].score > found[1].score > found[2].score


def test_neither_the_note_itself_nor_memory_nor_conversations_are_similar(filled: Desk) -> None:
    found = filled.index(model=ReadyModel(WordEmbedder())).similar(CAR, 20, wait=True).notes
    assert {note.path.partition("/")[0] for note in found} == {"knowledge", "docs"}
    assert CAR not in {note.path for note in found}


def test_there_are_at_most_as_many_as_asked_for_each_file_once(desk: Desk) -> None:
    desk.write(CAR, "The car needs tyres.\n")
    for n in range(9):
        part = f"## Part\n\nThe car needs tyres, {n}. {'It is said at length. ' * 60}\n\n"
        desk.write(f"knowledge/topics/n{n}.md", part * 4)
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert len({note.path for note in index.similar(CAR, wait=True).notes}) == 5
    assert len({note.path for note in index.similar(CAR, 7).notes}) == 7


def test_what_is_hidden_is_passed_over_and_others_move_up(filled: Desk) -> None:
    index = filled.index(model=ReadyModel(WordEmbedder()))
    found = index.similar(CAR, 1, wait=True, hides=lambda path: path.endswith("trip.md")).notes
    assert [note.path for note in found] == ["docs/garage/tyres.md"]


def test_notes_in_another_language_are_compared_by_the_second_model(desk: Desk) -> None:
    first, second = WordEmbedder(), WordEmbedder(identity="words-2")
    desk.write(CAR, GERMAN)
    desk.write("knowledge/topics/shop.md", f"{GERMAN}Der Chef ist nett.\n")
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(first), second=ReadyModel(second))
    index.search("Wagen", wait=True)
    second.seen.clear()
    found = index.similar(CAR).notes
    assert found[0].path == "knowledge/topics/shop.md"
    assert second.seen  # its sentences


def test_a_note_that_is_not_indexed_has_none(filled: Desk) -> None:
    index = filled.index(model=ReadyModel(WordEmbedder()))
    assert index.similar("knowledge/topics/nowhere.md", wait=True).notes == ()


@pytest.mark.parametrize(
    "text", ["", "#", "```\ncode\n```\n", "1. 2. 3.\n", "?" * 5000, "x" * 9000]
)
def test_notes_without_a_sentence_are_no_trouble(desk: Desk, text: str) -> None:
    desk.write(CAR, text)
    desk.write("knowledge/topics/same.md", text)
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(WordEmbedder()))
    for path in (CAR, "knowledge/topics/tax.md"):
        for note in index.similar(path, wait=True).notes:
            assert note.line >= 1


def test_without_search_by_meaning_it_is_said(filled: Desk) -> None:
    index = filled.index(settings=SearchSettings(semantic=False))
    found = index.similar(CAR)
    assert found.notes == ()
    assert "switched off" in found.notice


def test_a_model_that_fails_is_said(filled: Desk) -> None:
    embedder = WordEmbedder()
    index = filled.index(model=ReadyModel(embedder))
    index.search("car", wait=True)
    embedder.fail = True
    found = index.similar(CAR)
    assert found.notes == ()
    assert "away" in found.notice


def test_code_and_comments_are_no_sentence_that_is_alike(desk: Desk) -> None:
    desk.write(CAR, "# Car\n\nThe car needs new tyres before the holiday.\n")
    desk.write(
        "knowledge/topics/other.md",
        "# Other\n\n```\nthe car needs new tyres before the holiday\n```\n\n"
        "%% the car needs new tyres before the holiday %%\n\n> Tyres are sold for a car.\n",
    )
    (found,) = desk.index(model=ReadyModel(WordEmbedder())).similar(CAR, wait=True).notes
    assert (found.line, found.sentence) == (9, "Tyres are sold for a car.")


def test_a_note_without_a_sentence_is_like_none(desk: Desk) -> None:
    desk.write(CAR, "# Car\n\nThe car needs new tyres before the holiday.\n")
    desk.write("knowledge/topics/blank.md", "# The car needs new tyres\n\n## Tyres\n")
    assert desk.index(model=ReadyModel(WordEmbedder())).similar(CAR, wait=True).notes == ()
