"""The dialog of notes that are like the open one."""

from __future__ import annotations

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.embedding import prepared
from kbtui.tui.notes.similar import SimilarScreen
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.tui.notes_support import NotesApp, arrived, opened, until

CAR = "knowledge/topics/car.md"
SHOP = "knowledge/topics/shop.md"


@pytest.fixture
def kb(tmp_path, monkeypatch):
    monkeypatch.setattr(
        prepared, "ConfiguredModel", lambda _role: ReadyModel(WordEmbedder(identity="words"))
    )
    settings = {"search": {"semantic": True, "background": False}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=settings) as kb:
        kb.library.create("topic", "Car", body="The car needs new tyres before the holiday.")
        kb.library.create(
            "topic", "Shop", body="Open on Monday.\n\nTyres for every automobile are sold here."
        )
        kb.library.create("topic", "Soup", body="Onions and garlic.")
        kb.search.search("car", wait=True)
        yield kb


async def shown(pilot):
    await opened(pilot, CAR)
    await pilot.press("S")
    screen = await arrived(pilot, SimilarScreen, "#similar-notes")
    await until(pilot, lambda: screen.choices.items, "the notes")
    return screen


async def test_similar_notes_stand_with_the_sentence_that_is_alike_and_enter_opens_one(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await shown(pilot)
        assert [each.label for each in screen.choices.items] == ["Shop", "Soup"]
        assert screen.choices.items[0].detail == "Tyres for every automobile are sold here."
        await pilot.press("enter")
        await until(pilot, lambda: app.notes.view.path == SHOP, "the note")


async def test_l_links_to_a_similar_note_once(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("l")
        await until(pilot, lambda: "topics/shop" in kb.library.get(CAR).text, "the link")
        (commit, *_) = kb.history.log(CAR, limit=1)
        assert commit.actor.value == "you"
        await pilot.press("l")
        await pilot.pause()
        assert kb.library.get(CAR).text.count("topics/shop") == 1


async def test_where_no_note_is_alike_it_is_said(kb):
    for path in (SHOP, "knowledge/topics/soup.md"):
        kb.library.delete(path)
    kb.search.refresh([SHOP, "knowledge/topics/soup.md"])
    app = NotesApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, CAR)
        await pilot.press("S")
        screen = await arrived(pilot, SimilarScreen, "#similar-text")
        await until(
            pilot, lambda: "No note is like it" in str(screen.query_one("#similar-text").render())
        )
