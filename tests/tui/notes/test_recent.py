"""The last changes, below a tree that leaves room for them."""

from __future__ import annotations

from kbtui.history.change import Actor
from kbtui.tui.messages import OpenHistory
from tests.tui.notes_support import NotesApp, agent_writes, make_kb, ready, text_of, until


async def test_the_last_changes_stand_below_the_tree_where_there_is_room(tmp_path) -> None:
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 50)) as pilot:
        notes = await ready(pilot)
        await until(pilot, lambda: "You had" in text_of(notes.query_one("#notes-recent")))
        recent = notes.query_one("#notes-recent")
        assert recent.region.y > notes.knowledge_tree.region.y
        agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nNew.\n")
        await until(pilot, lambda: "kbtui changed ● Bob" in text_of(recent))
        await pilot.resize_terminal(120, 30)
        await until(pilot, lambda: not recent.display)
        await pilot.resize_terminal(120, 50)
        await until(pilot, lambda: "kbtui changed" in text_of(recent))


async def test_a_click_on_one_shows_it_in_the_history(tmp_path) -> None:
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 50)) as pilot:
        notes = await ready(pilot)
        agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nNew.\n")
        await until(pilot, lambda: notes.query("#notes-recent"))
        recent = notes.query_one("#notes-recent")
        await until(pilot, lambda: "kbtui changed" in text_of(recent))
        row = next(
            n for n, line in enumerate(text_of(recent).split("\n")) if "kbtui changed" in line
        )
        await pilot.click("#notes-recent", offset=(20, row + 1))
        await until(pilot, lambda: any(isinstance(m, OpenHistory) for m in app.seen))
        (opened,) = [m for m in app.seen if isinstance(m, OpenHistory)]
        assert opened.commit == next(kb.history.log()).id


async def test_a_change_of_a_day_is_told_by_what_was_said(tmp_path) -> None:
    kb = make_kb(tmp_path)
    with kb.history.change(Actor.YOU, "said") as change:
        change.write("memory/2026-11-27.md", "- [ ] 20:33 call the **plumber**\n")
    app = NotesApp(kb)
    async with app.run_test(size=(120, 50)) as pilot:
        notes = await ready(pilot)
        await until(pilot, lambda: notes.query("#notes-recent"))
        recent = notes.query_one("#notes-recent")
        await until(pilot, lambda: "You + call the plumber" in text_of(recent))
