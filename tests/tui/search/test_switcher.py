from __future__ import annotations

import os
import time

from kbtui.tui.search.switcher import SwitcherScreen
from tests.tui.notes_support import (
    NotesApp,
    agent_writes,
    hit,
    make_kb,
    ready,
    shown,
    text_of,
    until,
)


async def switcher(pilot, query: str = "") -> SwitcherScreen:
    await ready(pilot)
    screen = SwitcherScreen(pilot.app.kb, query)
    await pilot.app.push_screen(screen)
    await until(pilot, lambda: screen.names.row_count)
    return screen


async def test_without_a_name_what_changed_last_comes_first(tmp_path):
    kb = make_kb(tmp_path)
    agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nNew.\n")
    # A file system's clock may tick more slowly than this test goes on.
    for entry in kb.library.infos():
        age = 5 if entry.slug == "bob" else 10
        moment = time.time() - age
        os.utime(kb.workspace.root / entry.path, (moment, moment))
    kb.library.create("topic", "Kafka")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        screen = await switcher(pilot)
        assert [row.entry.slug for row in screen.names.items[:2]] == ["kafka", "bob"]
        assert screen.names.row_count == 5


async def test_a_few_letters_find_an_entry_and_enter_opens_it(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        screen = await switcher(pilot)
        await pilot.press(*"psql")
        await until(pilot, lambda: screen.names.query_text == "psql")
        assert screen.names.found.entry.slug == "postgresql"
        await pilot.press("enter")
        await shown(pilot, app.notes, "knowledge/topics/postgresql.md")
        assert len(app.screen_stack) == 1


async def test_arrows_choose_and_a_wide_screen_previews(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await switcher(pilot, "o")
        await until(pilot, lambda: screen.names.query_text == "o")
        first = screen.names.found.entry
        await pilot.press("down")
        assert screen.names.found.entry is not first
        preview = screen.query_one("#switcher-preview")
        await until(pilot, lambda: text_of(preview).strip())


async def test_below_the_names_stand_entries_that_say_it_in_their_text(tmp_path):
    kb = make_kb(tmp_path)
    kb.library.create("topic", "Messaging", body="Uses\n\nthe zanzibar queue.")
    kb.search.hits = (hit("knowledge/topics/messaging.md", 11, "the zanzibar queue"),)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        screen = await switcher(pilot)
        await pilot.press(*"zanzibar")
        await until(pilot, lambda: any(row.line for row in screen.names.items))
        assert "make “zanzibar”" in text_of(screen.names)
        assert screen.names.found.entry is None, "the cursor stays where it was: on the offer"
        await pilot.press("down")
        assert screen.names.found.line == 11
        await pilot.press("enter")
        await shown(pilot, app.notes, "knowledge/topics/messaging.md")


async def test_what_is_not_there_can_be_made(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        screen = await switcher(pilot)
        await pilot.press(*"Event sourcing")
        await until(pilot, lambda: screen.names.row_count == 1)
        assert "make “Event sourcing”" in text_of(screen.names)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 3, "the type is asked for")
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: app.notes.editor is not None)
        assert kb.library.find("Event sourcing").type == "decision"


async def test_an_existing_name_is_not_offered_to_be_made(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        screen = await switcher(pilot, "alice")
        await until(pilot, lambda: screen.names.query_text == "alice")
        assert screen.names.offer == ""
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
