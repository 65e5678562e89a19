from __future__ import annotations

from kbtui.tui.diff.confirm import ConfirmScreen
from tests.tui.notes_support import (
    NotesApp,
    agent_writes,
    arrived,
    make_kb,
    opened,
    ready,
    shown,
    text_of,
    until,
)

ALICE = "knowledge/people/alice.md"
DOCKER = "knowledge/topics/docker.md"


def exists(kb, path: str) -> bool:
    return (kb.workspace.root / path).exists()


async def test_n_asks_for_title_and_type_and_starts_to_write(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"Carol", "enter")
        await until(pilot, lambda: notes.editor is not None)
        assert notes.current_path == "knowledge/people/carol.md", "the cursor was in people"
        await pilot.press(*"Boss", "ctrl+s")
        await until(pilot, lambda: "## Role\nBoss" in kb.library.find("Carol").text)
        await until(pilot, lambda: notes.knowledge_tree.entry.slug == "carol")


async def test_shift_r_renames_and_repairs_links(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("R")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("ctrl+u", *"Alice Smith", "enter")
        await shown(pilot, notes, "knowledge/people/alice-smith.md")
        assert "[[people/alice-smith|Alice]]" in kb.library.find("bob").text
        await until(pilot, lambda: notes.knowledge_tree.entry.slug == "alice-smith")


async def test_m_moves_to_another_category(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("m")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"topi", "enter")
        await shown(pilot, notes, "knowledge/topics/alice.md")
        assert not exists(kb, ALICE)


async def test_d_deletes_at_once_and_u_brings_it_back(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, DOCKER)
        before = (kb.workspace.root / DOCKER).read_bytes()
        await pilot.press("d")
        await until(pilot, lambda: notes.view is None, "the reader is closed")
        assert not exists(kb, DOCKER)
        assert "u brings it back" in app.toasts
        await until(pilot, lambda: "Docker" not in text_of(notes.knowledge_tree))
        await pilot.press("u")
        await shown(pilot, notes, DOCKER)
        assert (kb.workspace.root / DOCKER).read_bytes() == before


async def test_after_a_deletion_the_entry_read_before_is_shown(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/bob.md")
        notes.open_entry(ALICE)
        await shown(pilot, notes, ALICE)
        await pilot.press("d")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await shown(pilot, notes, "knowledge/people/bob.md")


async def test_u_undoes_the_last_change_of_the_entry_and_no_other(tmp_path):
    kb = make_kb(tmp_path)
    agent_writes(kb, ALICE, "# Alice\n\nWrong.\n")
    agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nRight.\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        assert "Wrong." in text_of(notes.view.body)
        await pilot.press("u")
        await until(pilot, lambda: "likes tea" in text_of(notes.view.body))
        assert "Right." in kb.library.find("bob").text
        assert "Undone" in app.toasts


async def test_an_undo_that_cannot_be_made_changes_nothing_and_says_why(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        (kb.workspace.root / ALICE).write_text("# Alice\n\nEdited in vim, not yet recorded.\n")
        await pilot.press("u")
        await until(pilot, lambda: app.toasts or len(app.screen_stack) > 1)
        assert "Edited in vim" in (kb.workspace.root / ALICE).read_text()
        assert notes.current_path == ALICE


async def test_t_filters_by_a_tag(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        await pilot.press("t")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"data", "enter")
        tree = notes.knowledge_tree
        await until(pilot, lambda: tree.filtering)
        assert [row.key for row in tree.rows] == ["topics/", "knowledge/topics/postgresql.md"]


async def test_every_action_of_the_registry_can_be_carried_out():
    from kbtui.tui.actions.registry import actions
    from kbtui.tui.history.history import HistoryScreen
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.notes_pane import NotesPane
    from kbtui.tui.search.search import SearchScreen
    from kbtui.tui.search.switcher import SwitcherScreen

    shown_by = {
        "notes": NotesPane,
        "editor": EntryEditor,
        "history": HistoryScreen,
        "search": SearchScreen,
        "switcher": SwitcherScreen,
    }
    missing = [
        action.id
        for context, widget in shown_by.items()
        for action in actions(context)
        if not hasattr(widget, f"action_{action.method}")
    ]
    assert missing == []
